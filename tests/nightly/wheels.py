"""Small real wheels for the tests of the build host."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def write_wheel(  # noqa: PLR0913, PLR0917 a wheel says as much of itself
    folder: Path,
    project: str = "demo",
    version: str = "1.0",
    tag: str = "py3-none-any",
    requires_python: str = "",
    body: str = "answer = 42\n",
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Write a wheel that pip installs, with further files; return its path."""
    info = f"{project}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    if requires_python:
        metadata += f"Requires-Python: {requires_python}\n"
    pure = str(tag.endswith("any")).lower()
    texts = {
        f"{project}/__init__.py": body,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n",
    }
    members = {**files, **{name: text.encode() for name, text in texts.items()}}
    record = "".join(_record_line(name, content) for name, content in members.items())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{project}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(content)}\n"
