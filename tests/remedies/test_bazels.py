"""What is said of Bazel, its events and its logs, done to the letter."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import find_text, make_file
from tests.remedies.following import commands, failing
from tests.tools.bazel import test_binary, test_client
from tests.tools.bazel.test_binary import PLATFORM, VERSION, Obtain, digest, fake, program, publish

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.tools.bazel import client

elsewhere, releases, obtain = (test_binary.elsewhere, test_binary.releases, test_binary.obtain)


@pytest.mark.parametrize("right", ["the release", "the recipe"])
def test_a_checksum_is_changed_where_the_release_is_right(
    obtain: Obtain, releases: Path, recipe_file: Path, right: str
) -> None:
    publish(releases, fake(), digest(fake()))
    pin = digest(b"other" if right == "the release" else fake())
    before = recipe_file.read_text("utf-8")
    line = f'sha256.{PLATFORM} = "{{}}"'

    def obtained(pinned: str) -> bytes:
        recipe_file.write_text(before + line.format(pinned), "utf-8")
        digests = recipes.read(str(recipe_file)).bazel.sha256
        return obtain(digests).path.read_bytes()

    (binary,) = (releases / VERSION).glob("bazel-*[!6]")
    if right == "the recipe":
        binary.write_bytes(fake("0.26.2"))
    failing(lambda: obtained(pin), SupplyError, f"sha256.{PLATFORM}")
    if right == "the recipe":
        binary.write_bytes(fake())
    else:
        published = binary.with_name(f"{binary.name}.sha256").read_text("utf-8")
        pin = published.split()[0]
    assert obtained(pin) == fake()


def test_another_version_in_the_host_file_is_corrected(obtain: Obtain, tmp_path: Path) -> None:
    wrong = program(tmp_path / "wrong", fake("0.29.1"))
    right = program(tmp_path / "right", fake())
    path = tmp_path / "host.toml"

    def given(binary: Path) -> bytes:
        path.write_text(f'[bazels]\n"{VERSION}" = "{binary}"\n', "utf-8")
        named = load(path, HostFile).bazel(VERSION)
        return obtain(given=named).path.read_bytes()

    fault = failing(lambda: given(wrong), RecipeError)
    assert fault.remedy == "Correct [bazels] in the host file."
    assert given(right) == fake()


@contextmanager
def somebody() -> Iterator[Path]:
    """Be a user without rights; yield a folder that everybody can enter."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)


def test_a_binary_that_cannot_be_read_gets_the_mode_that_is_shown(obtain: Obtain) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        given = program(Path(folder) / "my bazel", fake())
        given.chmod(0)
        with somebody():
            fault = failing(lambda: obtain(given=given), RecipeError)
        command = fault.remedy.partition(": ")[2]
        subprocess.run(shlex.split(command), check=True, env={"PATH": "/bin"})
        assert given.stat().st_mode & 0o555 == 0o555
        assert obtain(given=given).path.read_bytes() == fake()


@pytest.mark.medium
def test_a_bazel_that_is_gone_is_obtained_again(
    obtain: Obtain, releases: Path, tmp_path: Path
) -> None:
    publish(releases, fake(), digest(fake()))
    binary = obtain().path
    bazel = replace(test_client.client(tmp_path, ""), binary=binary)

    def run() -> int:
        log = tmp_path / "log"
        return bazel.run(bazel.command("info"), log, lambda _: None).status

    binary.unlink()
    fault = failing(run, HostError)
    assert commands(fault.remedy) == ["invoke build --again fetch"]
    # What builds completes the command with the recipe, and obtains Bazel so.
    assert obtain().path == binary
    assert run() == 0


def test_a_bazel_that_does_not_run_here_gives_way_to_one_of_the_host_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("wrong", "right"):
        (tmp_path / name).mkdir()
    wrong = test_client.program(tmp_path / "wrong", "echo 'GLIBC_2.99 not found'; exit 1")
    right = test_client.program(tmp_path / "right", test_client.HELP)
    fault = failing(lambda: client.options(wrong, tmp_path), ToolError)
    assert any("GLIBC_2.99" in line for line in fault.evidence.lines)
    table = find_text(r"another binary in the host file: (\[bazels\])", fault.remedy)
    path = make_file(tmp_path / "host.toml", f'{table[1]}\n"{VERSION}" = "{right}"\n')
    named = load(path, HostFile).bazel(VERSION)
    assert named
    assert client.options(named, tmp_path).startup
