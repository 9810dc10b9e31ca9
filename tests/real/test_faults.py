"""The demo build under real faults: two at once, Ctrl-C, disks that are full.

These run for minutes: `pytest -m real tests/real/test_faults.py`. Full disks are small tmpfs mounts,
which only root can make. `invoke test --attack --part kills` kills builds at random moments.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfwright.documents.recipe import ROOT
from tfwright.tools import files

pytestmark = pytest.mark.real

COMMAND = (sys.executable, "-m", "invoke", "build")


@pytest.fixture(scope="module")
def build_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build_out whose vault is filled, so that what follows needs no network."""
    place = tmp_path_factory.mktemp("faults")
    (place / "host.toml").write_text(f'build_out = "{place}/out"\n', "utf-8")
    finish(place / "out")
    return place / "out"


def start(build_out: Path) -> "subprocess.Popen[str]":
    """Start a build of the demo in a session of its own."""
    environment = {**os.environ, "TFWRIGHT_HOST_FILE": str(build_out.parent / "host.toml")}
    return subprocess.Popen(
        [*COMMAND, "--wait"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 a background job ignores it, and its children would
    )


def finish(build_out: Path) -> str:
    """Build to the end and return the digest of the wheel."""
    process = start(build_out)
    printed, told = process.communicate(timeout=600)
    assert process.returncode == 0, told
    return files.sha256(Path(printed.strip()))


def forget_the_build(build_out: Path) -> None:
    """Remove all of the demo's build, and what Bazel cached of it."""
    files.remove(build_out / "demo")
    files.remove(build_out / "cache")


def test_two_builds_at_once_give_the_same_wheel_one_after_the_other(build_out: Path) -> None:
    forget_the_build(build_out)
    first, second = start(build_out), start(build_out)
    wheels = [process.communicate(timeout=600)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert wheels[0] == wheels[1]


def test_ctrl_c_ends_the_build_and_everything_that_it_started(build_out: Path) -> None:
    forget_the_build(build_out)
    process = start(build_out)
    time.sleep(6)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "resume: invoke build --wait" in told
    assert left_over(build_out) == []


def left_over(build_out: Path) -> list[str]:
    """Return the command lines of processes that still speak of `build_out`."""
    lines = [
        path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        for path in readable("/proc/[0-9]*/cmdline")
    ]
    return [line for line in lines if str(build_out) in line]


def readable(pattern: str) -> Iterator[Path]:
    """Return the files of a pattern below /proc that have not gone since."""
    for path in Path("/").glob(pattern.lstrip("/")):
        try:
            path.read_bytes()
        except OSError:
            continue
        yield path


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Mount a small tmpfs at `path`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.mark.parametrize(
    ("full", "size"),
    [("vault", "1m"), ("demo", "64k"), ("demo/bazel", "128k"), ("wheelhouse", "4k")],
)
def test_a_full_disk_is_told_and_nothing_half_is_published(
    build_out: Path, full: str, size: str
) -> None:
    forget_the_build(build_out)
    files.remove(build_out / "wheelhouse")
    with small_disk(build_out / full, size):
        process = start(build_out)
        _, told = process.communicate(timeout=600)
        assert process.returncode == 3, told
        assert "The disk is full" in told
        assert not list((build_out / "wheelhouse").glob("*.whl"))
    finish(build_out)
