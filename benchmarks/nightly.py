"""What a night costs beyond its builds.

    PYTHONPATH=. python benchmarks/nightly.py

A night in which nothing is due, for 200 recipes with the real fingerprints of the demo; then the
pages of 200 recipes after 400 nights.
"""

import argparse
import datetime as dt
import shutil
import tempfile
import time
from pathlib import Path

from tests.nightly.fake import FakeBuilder, SimulatedClock, host_with

from tfwright.documents import recipe
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile, targets
from tfwright.nightly import night
from tfwright.nightly import state as states
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import BuildOrder, NightlyBuild
from tfwright.nightly.night import BuildHost, LostArchives
from tfwright.nightly.pages import site as site_pages


class IdleBuilder(PipelineBuilder):
    """Takes real fingerprints, and builds small wheels in the first night."""

    def build(self, order: BuildOrder) -> NightlyBuild:
        """Write a small wheel instead of running the pipeline."""
        return FakeBuilder(SimulatedClock(order.started)).build(order)

    def reproduce(self, *_: object) -> str:
        """Leave the reproduction out: it is a build."""
        return ""

    def lost_archives(self, *_: object) -> dict[str, LostArchives]:
        """Leave the servers alone."""
        return {}


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipes", type=int, default=200)
    parser.add_argument("--nights", type=int, default=400)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        idle_night(Path(scratch) / "idle", given.recipes)
        pages(Path(scratch) / "pages", given.recipes, given.nights)


def idle_night(folder: Path, count: int) -> None:
    """Time a night in which nothing is due."""
    folder.mkdir()
    names = []
    for number in range(count):
        copy = folder / f"demo{number}.toml"
        shutil.copyfile(recipe.RECIPES / "demo.toml", copy)
        names.append({"name": str(copy)})
    content = {"directory": str(folder / "host"), "recipe": names, "hours": 168}
    wanted = NightlyFile.model_validate({**content, "retention": {"free": 0}})
    clock = SimulatedClock()
    host = BuildHost(wanted, IdleBuilder(wanted, HostFile(build_out=folder / "out")), clock)
    while "skipped" in night.run(host).verdicts.values():
        clock.next_night()
    clock.next_night()
    begun, before = time.perf_counter(), time.process_time()
    verdicts = set(night.run(host).verdicts.values())
    seconds, own = time.perf_counter() - begun, time.process_time() - before
    print(f"a night without work, {count} recipes: {seconds:.2f} s, {own:.2f} s of processor time")
    print(f"verdicts: {verdicts}")


def pages(folder: Path, count: int, nights: int) -> None:
    """Time the pages after many nights, whose verdicts are written into the state."""
    host = host_with(folder, *[f"linux-r2.{number}-gpu" for number in range(count)], hours=168.0)
    night.run(host)
    names = [target.name for target in targets(host.nightly)]
    start = dt.datetime(2025, 1, 1, 2, tzinfo=dt.UTC)
    with states.open_state(folder) as state:
        for number in range(nights):
            row = state.begin_night(start + dt.timedelta(days=number))
            state.judge(row, "unchanged", *names)
        begun, before = time.perf_counter(), time.process_time()
        site_pages.write(host.nightly, state, host.clock(), {})
        seconds, own = time.perf_counter() - begun, time.process_time() - before
    size = (host.site / "index.html").stat().st_size
    print(
        f"pages of {count} recipes and {nights} nights: {seconds:.2f} s, {own:.2f} s of processor "
        "time"
    )
    print(f"the first page has {size:,} bytes")


if __name__ == "__main__":
    main()
