"""Numbers as strangers write them: Python reads no more than 4,300 digits, and no float holds 400.

None of these may end in another error than the reader's own.
"""

import re
import struct
import zipfile
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.failing import fails

from tfwright.diagnosis import facts
from tfwright.documents import recipe
from tfwright.documents.nightly import Size
from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import RecipeError, SupplyError, WheelError
from tfwright.facts.compatibility import is_newer, version_numbers
from tfwright.index import wheels
from tfwright.rules import tree_files
from tfwright.tools import unpacking
from tfwright.tools.bazel.output import Display
from tfwright.tools.git import transport
from tfwright.tools.git.remote import Remote

LONG = "9" * 5_000
FLOAT = "9" * 400


@pytest.mark.parametrize(
    "line",
    [
        f"[{LONG} / 2] Compiling a",
        f"[1 / {LONG}] Compiling a",
        "[, / ,] Compiling a",
        f"[1 / 2] Compiling a; {FLOAT}s local",
        f"INFO: Build completed successfully, {LONG} total actions",
        "INFO: Build completed successfully, , total actions",
    ],
)
def test_a_program_of_the_build_cannot_end_it_by_what_it_prints(line: str) -> None:
    display = Display()
    display.feed(f"{line}\n")
    assert display.close() is not None


@pytest.mark.parametrize("number", [LONG, FLOAT, "0"])
def test_a_git_server_cannot_end_a_fetch_by_its_progress(number: str) -> None:
    told = []

    class Listener:
        def progress(self, progress: object) -> None:
            told.append(progress)

    lines = [f"remote: Counting objects: 100% ({number}/{number}), done.\n"]
    transport._read_progress(lines, Listener())  # type: ignore[arg-type]  # all that it calls
    assert len(told) == (1 if number == "0" else 0)


@pytest.mark.parametrize("tag", [f"v{LONG}.0", f"v1.{LONG}", f"v1.0.dev{LONG}"])
def test_a_tag_of_a_git_server_is_no_version(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Remote, "_refs", lambda *_: {f"refs/tags/{tag}": "0" * 40})
    with fails(SupplyError, "follow.tags"):
        Remote(Path(), "https://git.example/r.git").newest_tag("*")


@pytest.mark.parametrize("text", [f"r{LONG}.1", f"1.{LONG}"])
def test_a_branch_is_no_release(text: str) -> None:
    with pytest.raises(ValueError, match="is not a TensorFlow"):
        Release.parse(text)
    with pytest.raises(ValueError, match="is not a TensorFlow"):
        ExactRelease.parse(text)


def test_versions_are_compared_however_long_they_are() -> None:
    assert is_newer(f"{LONG}.1", "9.0")
    assert version_numbers(f"1.{LONG}")[0] == 1


@pytest.mark.parametrize(
    ("key", "value"), [("python", f"{LONG}.6"), ("cuda", LONG), ("glibc", f"2.{LONG}")]
)
def test_a_recipe_names_no_such_version(key: str, value: str, recipe_file: Path) -> None:
    text = recipe_file.read_text("utf-8")
    table = "verify" if key == "glibc" else "host"
    if key == "python":
        text = re.sub(r'(?m)^python = ".*"', f'python = "{value}"', text)
    else:
        text = re.sub(rf"(?m)^\[{table}\]$", f'[{table}]\n{key} = "{value}"', text)
        text += "" if f"[{table}]" in text else f'\n[{table}]\n{key} = "{value}"\n'
    recipe_file.write_text(text, "utf-8")
    with fails(RecipeError, key):
        recipe.read(str(recipe_file))


@pytest.mark.parametrize("text", [f"{FLOAT} GiB", f"{LONG}", f"1.{LONG} GB"])
def test_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Size).validate_python(text)


def test_a_wheels_name_and_version_are_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("small-1.0.dist-info/METADATA", f"Name: small\nVersion: {LONG}\n")
    with fails(WheelError, "version"):
        wheels.read_wheel(wheel, "")
    with fails(WheelError, "index"):
        wheels.parse_name(f"small-{LONG}-py3-none-any.whl")
    assert wheels._requires_python(f"=={LONG}") == ""


def test_versions_in_logs_and_in_setup_py_are_left_out() -> None:
    assert facts.Facts(bazel=LONG)._holds("bazel>=1.0") is None
    deep = "(" * 20_000
    for text in (f"numpy=={LONG}", f"numpy; {deep}"):
        program = f"REQUIRED_PACKAGES = [{text!r}]\n"
        assert len(tree_files.required_packages(program, "3.6")) <= 1


@pytest.mark.parametrize("size", [b"-60", b"", b"1_0", b"0x10", b" - 1", b"\xb2"])
def test_a_member_of_a_debian_package_has_a_size(size: bytes, tmp_path: Path) -> None:
    package, into = tmp_path / "a.deb", tmp_path / "into"
    into.mkdir()
    header = struct.pack("16s12s6s6s8s10s2s", *[b" "] * 5, size.ljust(10), b"`\n")
    package.write_bytes(b"!<arch>\n" + header + bytes(200))
    with fails(SupplyError, "unpacked"):
        unpacking.unpack(package, into)
