"""The texts in a Bazel's binary, which is an archive with an archive in it."""

import io
import zipfile
from pathlib import Path

from tests.making import make_file

from tfwright.tools.bazel.binary import workspace_texts

TEXTS = {
    "rules/java/jdk.WORKSPACE": "maybe(http_archive, 'rules_cc')\n",
    "rules/tools.WORKSPACE": "",
}


def binary(folder: Path, server: bytes) -> Path:
    path = make_file(folder / "bazel", b"#!/bin/sh\nexit 0\n")
    with zipfile.ZipFile(path, "a") as outer:
        outer.writestr("A-server.jar", server)
    return path


def test_the_texts_are_read_once_and_kept_beside_the_binary(tmp_path: Path) -> None:
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as inner:
        for name, text in {**TEXTS, "rules/Java.class": "no text"}.items():
            inner.writestr(name, text)
    path = binary(tmp_path, jar.getvalue())
    assert workspace_texts(path) == TEXTS
    path.unlink()
    assert workspace_texts(path) == TEXTS


def test_a_bazel_without_such_texts_has_none(tmp_path: Path) -> None:
    assert workspace_texts(binary(tmp_path, b"")) == {}
    make_file(tmp_path / "plain/bazel", "#!/bin/sh\n")
    assert workspace_texts(tmp_path / "plain/bazel") == {}


def test_a_damaged_bazel_has_none(tmp_path: Path) -> None:
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("rules/tools.WORKSPACE", "text " * 999)
    content = bytearray(jar.getvalue())
    packed = content.index(b"tools.WORKSPACE") + len("tools.WORKSPACE")
    content[packed : packed + 9] = b"\xff" * 9
    assert workspace_texts(binary(tmp_path, bytes(content))) == {}
