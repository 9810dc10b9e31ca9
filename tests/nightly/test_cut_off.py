"""Nights that end in the middle: a kill before each step, a disk that is full, a clock that errs."""

import datetime as dt
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.nightly.fake import SimulatedClock, host_with
from tests.nightly.test_night import assert_site_is_whole

from tfwright.documents.recipe import ROOT
from tfwright.index import wheels
from tfwright.nightly import night, site
from tfwright.nightly import state as states
from tfwright.nightly.night import BuildHost
from tfwright.nightly.state import NightVerdict
from tfwright.nightly.status import status_of
from tfwright.tools.process import file_lock

pytestmark = pytest.mark.medium

KILLS = """
import sys
from pathlib import Path
from tests.nightly import cut_off
folder, every, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cut_off.begin(folder)
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
cut_off.begin(folder)
ballast = folder / "ballast"
for number, room in enumerate(range(0, 360_000, int(sys.argv[2])), 2):
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
MOUNTED = """
import sys
from pathlib import Path
from tests.nightly import cut_off
assert cut_off.pass_night(Path(sys.argv[2]), 1) == cut_off.REFUSED
"""


KEPT = {wheels.FILE}


def waste(folder: Path) -> list[str]:
    """Return the files that no reader asks for: what has not got its name."""
    hidden = [path for path in folder.rglob(".*") if path.name not in KEPT]
    return [str(path.relative_to(folder)) for path in hidden]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def killed_nights(folder: Path, every: int, first: int) -> Iterator[str]:
    """Yield after each killed night, and after the one that went on with it."""
    argv = [sys.executable, "-c", KILLS, str(folder), str(every), str(first)]
    with subprocess.Popen(
        argv, cwd=ROOT, env=environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
        with states.open_state(folder) as state:
            known = {build.id for build in state.builds()}
        assert {path.name for path in (folder / "site/builds").iterdir()} == known
    return kills


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory: a kill loses nothing that a disk would have to be waited for."""
    shared = Path("/dev/shm")  # noqa: S108 the folder in it is private
    with TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("every", "first", "least"), [(60, 25, 2), pytest.param(1, 1, 200, marks=pytest.mark.slow)]
)
def test_a_night_that_is_killed_before_a_step_goes_on(
    in_memory: Path, every: int, first: int, least: int
) -> None:
    """A night of two recipes, which hides and deletes what it replaces, has some hundred steps."""
    assert assert_kills_leave_a_whole_site(in_memory, every, first) > least


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


def test_a_night_on_a_full_disk_says_so_and_the_next_one_goes_on(tmp_path: Path) -> None:
    said = on_a_small_disk(tmp_path, FULL, "49152")
    assert {"0", "3"} <= set(said)
    for line in said:
        if line not in {"0", "3"}:
            # Never that a file is damaged: whoever moved the state away would lose all nights.
            assert line.startswith(f"The disk is full: {tmp_path}")


@pytest.mark.parametrize("mounted", ["work", "site/builds"])
def test_a_night_whose_builds_cannot_be_moved_into_place_does_not_begin(
    tmp_path: Path, mounted: str
) -> None:
    (tmp_path / mounted).mkdir(parents=True)
    (said,) = on_a_small_disk(tmp_path / mounted, MOUNTED, str(tmp_path))
    assert "Unmount it" in said


def ahead(clock: SimulatedClock, days: int) -> None:
    clock.pass_seconds(days * 86400)


def test_a_clock_that_was_years_ahead_for_a_night_decides_nothing_after_it(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", reproduce=True)
    clock = host.fake.clock
    host.pass_night()
    ahead(clock, 3650)
    host.pass_night(a="2")
    ahead(clock, -3650)
    assert host.pass_night(a="3").verdicts == {"a": "good", "b": "unchanged"}
    # The build of the wrong year is not the newest one.
    assert host.pass_night().verdicts == {"a": "unchanged", "b": "unchanged"}
    pointer = json.loads(host.page("pointers/a/nightly.json"))
    assert pointer["started"].startswith("2026-01-03")
    assert host.latest()["a"]["wheel"]["build"] == pointer["build"]


def test_a_reproduction_noted_years_ahead_does_not_lose_its_turn(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", "b", nights=1)
    ahead(host.fake.clock, 3650)
    assert host.pass_night().reproduced == "a"
    ahead(host.fake.clock, -3650)
    assert {host.pass_night().reproduced for _ in range(2)} == {"a", "b"}


def test_what_was_hidden_years_ahead_is_deleted_in_time(tmp_path: Path) -> None:
    limits = {"count": 1, "hidden_days": 3}
    host = host_with(tmp_path, "a", retention=limits, reproduce=False, nights=1)
    ahead(host.fake.clock, 3650)
    host.pass_night(a="2")
    ahead(host.fake.clock, -3650)
    host.pass_nights(5)
    assert len(list(host.builds.iterdir())) == len(host.listed("tf-a")) == 1


def test_a_night_killed_before_the_clock_was_set_back_is_over(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    clock = host.fake.clock
    ahead(clock, 3650)
    with states.open_state(tmp_path) as state:
        state.judge(state.begin_night(clock()), "good", "a")
    ahead(clock, -3650)
    # In the resumed night the recipe would be done already.
    assert host.pass_night().verdicts == {"a": "good"}
    assert host.fake.built == ["a"]


def test_silence_is_noticed_although_the_last_night_lies_ahead(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    now = host.fake.clock()
    nights = [NightVerdict(1, now + dt.timedelta(days=3650), "good", "", "")]
    assert status_of(nights, now, stale_nights=3).word == "stale"


def test_a_state_that_is_read_again_orders_builds_of_one_day_by_their_time(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    for number in range(6):
        host.fake.parts["a"] = {"recipe": str(number)}
        night.run(host)
        host.fake.clock.pass_seconds(60)
    with states.open_state(tmp_path) as state:
        before = [build.id for build in state.builds()]
    (tmp_path / states.FILE).unlink()
    host.pass_night()
    with states.open_state(tmp_path) as state:
        assert [build.id for build in state.builds()] == before


RACE = """
import sys
from pathlib import Path
from tests.nightly.cut_off import host
from tfwright.errors import HostError
from tfwright.nightly import night
try:
    print(sorted(night.run(host(Path(sys.argv[1]), 1), wait=sys.argv[2] == "wait").verdicts.items()))
except HostError as fault:
    print(fault.what)
"""


@pytest.mark.parametrize("mode", ["wait", "say so"])
def test_hosts_that_start_at_once_in_one_directory_build_everything_once(
    tmp_path: Path, mode: str
) -> None:
    def race(_: int) -> str:
        argv = [sys.executable, "-c", RACE, str(tmp_path), mode]
        ended = subprocess.run(
            argv, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True
        )
        return ended.stdout.strip()

    with ThreadPoolExecutor(3) as racers:
        said = list(racers.map(race, range(3)))
    assert_site_is_whole(tmp_path / "site")
    assert len(list((tmp_path / "site/builds").iterdir())) == 2
    first = "[('a', 'good'), ('b', 'good')]"
    after = "[('a', 'unchanged'), ('b', 'unchanged')]"
    assert said.count(first) == 1
    for line in said:
        # A host that came when the others were done had nothing to wait for.
        waited = line in {first, after}
        assert waited or (mode == "say so" and "has to wait for" in line)


def test_a_wheel_is_yanked_while_a_night_runs(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a", nights=1)
    (name,) = host.listed("tf-a")
    with file_lock.locked(tmp_path / states.LOCK, "a night of eight hours"):
        site.yank(tmp_path, name, "wrong cuDNN")
        with states.open_state(tmp_path) as state:
            site.publish(host.nightly, state, host.clock())
    page = json.loads(host.page("simple/tf-a/index.json"))
    assert page["files"][0]["yanked"] == "wrong cuDNN"
    assert json.loads(host.page("match.json"))["wheels"] == []


def test_two_that_publish_at_once_leave_the_newest_state(tmp_path: Path) -> None:
    """One process holds the site; the other waits, and then reads what the first one wrote."""
    host = host_with(tmp_path, "a", nights=1)
    (name,) = host.listed("tf-a")
    with ThreadPoolExecutor(1) as other:
        with file_lock.locked(tmp_path / site.LOCK, "publishing"):
            done = other.submit(published_elsewhere, host)
            with pytest.raises(TimeoutError):
                done.result(timeout=0.3)
            # Not by `yank`, which would wait for this process.
            reasons = json.dumps({name: "wrong cuDNN"})
            (tmp_path / site.YANKED).write_text(reasons)
        done.result(timeout=60)
    page = json.loads(host.page("simple/tf-a/index.json"))
    assert page["files"][0]["yanked"] == "wrong cuDNN"


def published_elsewhere(host: BuildHost) -> None:
    with states.open_state(host.directory) as state:
        site.publish(host.nightly, state, host.clock())
