"""Small real wheels."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

HEADERS = "Wheel-Version: 1.0\nGenerator: a test\n"


def write_wheel(  # noqa: PLR0913, PLR0917 a wheel says as much of itself
    folder: Path,
    project: str = "demo",
    version: str = "1.0",
    tag: str = "py3-none-any",
    requires_python: str = "",
    body: str | None = "answer = 42\n",
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Write a wheel that pip installs, with `body` as its module and further files; return its path."""
    info = f"{project}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    if requires_python:
        metadata += f"Requires-Python: {requires_python}\n"
    pure = str(tag.endswith("any")).lower()
    texts = {
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"{HEADERS}Root-Is-Purelib: {pure}\nTag: {tag}\n",
    }
    if body is not None:
        texts = {f"{project}/__init__.py": body, **texts}
    members = {**files, **{name: text.encode() for name, text in texts.items()}}
    record = "".join(_record_line(name, content) for name, content in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{project}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in members.items():
            # Of one date: two wheels are compared that may be made in two seconds.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o600 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(content)}\n"
