"""Nights that end in the middle: a kill before each step, a disk that is full, a clock that errs."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.nightly.test_night import assert_site_is_whole

from tfwright.documents.recipe import ROOT
from tfwright.nightly import state as states

KILLS = """
import sys
from pathlib import Path
from tests.nightly import cut_off
folder, every, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
assert cut_off.pass_night(folder, 1) == 0
number, step = 2, first
while True:
    status = cut_off.pass_night(folder, number, step)
    print(status, flush=True)
    if sys.stdin.readline() != "go on\\n":
        break
    # The same night again, to its end.
    assert cut_off.pass_night(folder, number) == 0
    print("done", flush=True)
    sys.stdin.readline()
    number, step = number + 1, step + every
"""
"""Says how each night ended, and waits until the test has looked at what it left."""


FULL = """
import os
import sys
from pathlib import Path
from tests.nightly import cut_off
from tests.nightly.test_cut_off import waste
from tests.nightly.test_night import assert_site_is_whole
folder = Path(sys.argv[1])
assert cut_off.pass_night(folder, 1) == 0
ballast = folder / "ballast"
for number, room in enumerate(range(0, 120_000, int(sys.argv[2])), 2):
    with ballast.open("wb") as stream:
        while os.statvfs(folder).f_bavail * 4096 > room:
            stream.write(bytes(4096))
            stream.flush()
    print(cut_off.pass_night(folder, number), flush=True)
    # What users see while the disk is full.
    assert_site_is_whole(folder / "site")
    ballast.unlink()
    assert cut_off.pass_night(folder, number) == 0
    assert_site_is_whole(folder / "site")
    assert waste(folder) == []
"""
"""Fills a small disk up to some bytes, runs a night, and runs it again with room."""


def waste(folder: Path) -> list[str]:
    """Return the files that no reader asks for: what has not got its name."""
    found = []
    for path in folder.rglob("*"):
        if path.name.startswith(".") and not path.name.startswith(".catalog.sqlite"):
            found.append(str(path.relative_to(folder)))
    return found


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def killed_nights(folder: Path, every: int, first: int) -> Iterator[str]:
    """Yield after each killed night, and after the one that went on with it."""
    argv = [sys.executable, "-c", KILLS, str(folder), str(every), str(first)]
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env=environment(),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        for line in process.stdout:
            ended = line.strip()
            assert ended in {"-9", "0", "done"}, ended
            yield ended
            process.stdin.write("stop\n" if ended == "0" else "go on\n")
            process.stdin.flush()
    assert process.returncode == 0


def assert_kills_leave_a_whole_site(folder: Path, every: int, first: int) -> int:
    """Look at the site after each kill and after each rerun; return the number of kills."""
    kills = 0
    for ended in killed_nights(folder, every, first):
        assert_site_is_whole(folder / "site")
        if ended == "-9":
            kills += 1
            continue
        assert waste(folder) == []
        assert not list((folder / "work").glob("*"))
        page = json.loads((folder / "site/latest.json").read_text())
        states_shown = {target["state"] for target in page["targets"]}
        assert states_shown <= {"good", "good-unchanged"}
        # What retention took is gone, also after a kill in its middle, and nothing else.
        with states.opened(folder) as state:
            known = {build.id for build in state.builds()}
        assert {path.name for path in (folder / "site/builds").iterdir()} == known
    return kills


def test_a_night_that_is_killed_at_every_twentieth_step_goes_on(tmp_path: Path) -> None:
    assert assert_kills_leave_a_whole_site(tmp_path, 20, 7) > 5


@pytest.mark.slow
def test_a_night_that_is_killed_before_any_step_goes_on(tmp_path: Path) -> None:
    """A night of two recipes, which hides and deletes what it replaces, has some 200 steps."""
    assert assert_kills_leave_a_whole_site(tmp_path, 1, 1) > 100


def on_a_small_disk(folder: Path, script: str, *argv: str) -> list[str]:
    """Run a script with a disk of its own mounted at `folder`; return the lines it printed.

    The disk is real and small; it exists in a mount namespace that ends with the script.
    """
    mounted = f"mount -t tmpfs -o size=2m tmpfs {shlex.quote(str(folder))}"
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*own, mounted], check=False, capture_output=True).returncode:
        pytest.skip("this host lets no user mount a disk in a namespace")
    command = shlex.join([sys.executable, "-c", script, str(folder), *argv])
    ended = subprocess.run(
        [*own, f"{mounted} && {command}"],
        cwd=ROOT,
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended.stdout.splitlines()


def test_a_night_on_a_full_disk_says_so_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    said = on_a_small_disk(tmp_path, FULL, "16384")
    assert {"0", "3"} <= set(said)
    for line in said:
        if line not in {"0", "3"}:
            # Never that a file is damaged: whoever moved the state away would lose all nights.
            assert line.startswith("The disk is full")
