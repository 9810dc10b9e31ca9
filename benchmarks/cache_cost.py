"""What verifying costs: a build out of a full cache, against Bazel's own disk cache.

    python benchmarks/cache_cost.py BAZEL [--actions 400] [--rounds 10]
    python benchmarks/cache_cost.py --recipe linux-r1.8-cpu [--rounds 3]

The first kind builds small libraries. The second repeats the last build of a recipe, out of the
cache that it filled. Bazel is one from 0.17 to 2.1. Every build starts a server in an empty output
base and takes all from the cache. Both kinds run in turn, each of them first in every second pair;
the ratio is that of each pair, since other programs disturb both alike. Measured is processor time,
user and system, of the client, the server, all that it started, and this process, which lays the
cache out and takes it in again: waiting for a busy core does not count. Linux only.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfwright.options import job_of
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.cache import usage
from tfwright.tools.cache.private import PrivateCache
from tfwright.tools.cache.store import CacheStore, Seal, read_secret
from tfwright.tools.process.command import Command

LIMIT = 100 << 30
LEFT_OUT = re.compile(
    "--(?:remote_(?:http_)?cache|disk_cache|profile|build_event_json_file|curses"
    "|experimental_generate_json_trace_profile)"
)
"""Options of a build that would write next to its own outputs."""
OBJECT = 200_000
"""Bytes of each object file, as TensorFlow's are in the middle."""


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time that a build took."""

    bazel: float
    """Client, server and actions."""
    ours: float
    """This process."""

    @property
    def whole(self) -> float:
        """Of everything."""
        return self.bazel + self.ours


@dataclass(frozen=True)
class Subject:
    """What is built."""

    startup: tuple[str, ...]
    """The Bazel with its options of start-up, without an output base."""
    options: tuple[str, ...]
    """The command, ``build``, and all that follows, without a cache."""
    folder: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class Cache:
    """Our cache, as each build opens it."""

    root: Path
    seal: Seal

    def open(self, place: Path, tree: Path) -> PrivateCache:
        """Lay it out as a process of its own would."""
        private = PrivateCache(CacheStore(self.root, LIMIT), self.seal, place, tree)
        private.lay_out(None)
        return private


def libraries(bazel: Path, room: Path, actions: int) -> Subject:
    """Return a workspace of so many actions: C++ libraries, two actions each."""
    folder = workspace(room, actions)
    return Subject(
        (str(bazel), f"--output_user_root={room / 'user'}"),
        ("build", "--curses=no", "//:all"),
        folder,
        os.environ,
    )


def last_build(job: RecipeJob) -> Subject:
    """Return the run of Bazel that compile would make for a recipe that was built."""
    steps = next(planned.steps() for planned in engine.plan(job) if planned.stage.name == "compile")
    command = next(step for step in steps if isinstance(step, Command))
    at = command.argv.index("build")
    startup, options = command.argv[:at], command.argv[at:]
    return Subject(
        tuple(one for one in startup if not one.startswith("--output_base=")),
        # The tree's links must keep leading to the real build's outputs.
        ("build", "--symlink_prefix=/", *(one for one in options[1:] if not LEFT_OUT.match(one))),
        command.cwd,
        command.env,
    )


def as_disk_cache(root: Path, sealing: Seal, theirs: Path) -> None:
    """Lay out what our cache holds as Bazel lays out its own, with copies of our files."""
    theirs.mkdir()
    for blob in root.glob("cas/*/*"):
        shutil.copy(blob, theirs)
    for entry in (root / "ac" / sealing.toolchain).glob("*/*"):
        payload = sealing.unseal(entry.name, entry.read_bytes())
        (theirs / f"ac_{entry.name}").write_bytes(payload or b"")


def workspace(room: Path, actions: int) -> Path:
    """Write a workspace of so many C++ libraries, two actions each."""
    folder = room / "workspace"
    folder.mkdir()
    (folder / "WORKSPACE").touch()
    names = [f"part{number}" for number in range(actions // 2)]
    rules = [f'cc_library(name = "{name}", srcs = ["{name}.cc"], linkstatic = 1)' for name in names]
    listed = ", ".join(f'":{name}"' for name in names)
    (folder / "BUILD").write_text(
        "\n".join([*rules, f'filegroup(name = "all", srcs = [{listed}])'])
    )
    for number, name in enumerate(names):
        text = f"extern const char {name}[{OBJECT}] = {{{number % 100 + 1}}};\n"
        (folder / f"{name}.cc").write_text(text, "utf-8")
    return folder


def used_by(server: Path) -> float:
    """Return the seconds of processor time that a Bazel server and its children used."""
    pid = int((server / "server.pid.txt").read_text("ascii"))
    # The name of the program is in parentheses and may hold blanks; utime is the 12th field after.
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def used_by_clients() -> float:
    """Return the seconds of processor time of all programs that this one waited for."""
    spent = os.times()
    return spent.children_user + spent.children_system


def build(subject: Subject, room: Path, flag: str) -> Cost:
    """Build in an empty output base."""
    base = room / "base"
    startup = (*subject.startup, f"--output_base={base}")
    run = partial(
        subprocess.run,
        cwd=subject.folder,
        env=subject.env,
        capture_output=True,
        text=True,
        check=False,
    )
    own, clients = time.process_time(), used_by_clients()
    command, *options = subject.options
    done = run((*startup, command, flag, *options))
    cost = Cost(used_by_clients() - clients + used_by(base / "server"), time.process_time() - own)
    run((*startup, "shutdown"))
    files.remove(base)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return cost


def main() -> None:
    """Fill both caches, then measure pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bazel", type=Path, nargs="?")
    parser.add_argument("--recipe")
    parser.add_argument("--actions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    if asked.recipe:
        of_recipe(asked.recipe, asked.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="tfwright-cache-") as place:
        room = Path(place)
        subject = libraries(asked.bazel, room, asked.actions)
        cache = Cache(room / "ours", Seal(b"s" * 32, "0" * 64))
        own = build(subject, room, f"--disk_cache={room / 'theirs'}")
        shown("fill", own, through(cache, subject, room))
        pairs = measured(subject, cache, room, asked.rounds)
    summary(asked.actions, pairs)


def of_recipe(name: str, rounds: int) -> None:
    """Measure pairs of the last build of a recipe."""
    job = job_of(name)
    host_file = job.host_file
    root = host_file.cache_directory
    use = [one.use for one in usage.read(root) if one.recipe == name][-1]
    sealing = Seal(read_secret(host_file.cache_secret), use.toolchain)
    # On the disk of the cache, so that files can be linked.
    with tempfile.TemporaryDirectory(prefix="cost-", dir=root) as place:
        room = Path(place)
        as_disk_cache(root, sealing, room / "theirs")
        cache = Cache(root, sealing)
        pairs = measured(last_build(job), cache, room, rounds)
    summary(use.lookups, pairs)


def through(cache: Cache, subject: Subject, room: Path) -> Cost:
    """Build with our cache, as compile opens it."""
    begun = time.process_time()
    private = cache.open(room / "private", subject.folder)
    before = time.process_time() - begun
    cost = build(subject, room, f"--disk_cache={private.folder}")
    # To remove what was built is no part of a build.
    begun = time.process_time()
    private.take_in()
    after = time.process_time() - begun
    said = private.use
    print(f"     {said.hits} hits of {said.lookups} lookups {said.faults or ''}")
    return Cost(cost.bazel, before + cost.ours + after)


def measured(subject: Subject, cache: Cache, room: Path, rounds: int) -> list[tuple[Cost, Cost]]:
    """Return pairs: with Bazel's own disk cache, and with ours."""

    def own() -> Cost:
        return build(subject, room, f"--disk_cache={room / 'theirs'}")

    def ours() -> Cost:
        return through(cache, subject, room)

    pairs = []
    for number in range(rounds):
        # Who comes first may find a disk or a processor in another state.
        first, second = (own, ours) if number % 2 == 0 else (ours, own)
        costs = first(), second()
        pair = costs if number % 2 == 0 else costs[::-1]
        pairs.append(pair)
        shown(f"{number + 1:>3}", *pair)
    return pairs


def shown(label: str, theirs: Cost, mine: Cost) -> None:
    """Print what a pair took, and what of it is this process."""
    print(
        f"{label}  Bazel's disk cache {theirs.whole:6.2f} s, ours {mine.whole:6.2f} s"
        f" ({mine.ours:5.2f} s of it tfwright), ratio {mine.whole / theirs.whole:.3f}",
        flush=True,
    )


def summary(actions: int, pairs: list[tuple[Cost, Cost]]) -> None:
    """Print the figures of all pairs."""
    ratios = sorted(mine.whole / theirs.whole for theirs, mine in pairs)
    ours = statistics.median(mine.ours for _, mine in pairs)
    theirs = sum(cost.whole for cost, _ in pairs)
    mine = sum(cost.whole for _, cost in pairs)
    print(f"{actions} actions, {len(pairs)} pairs of processor time")
    print(
        f"ratio {statistics.median(ratios):.3f} in the middle,"
        f" {ratios[0]:.3f} to {ratios[-1]:.3f}; of the sums {mine / theirs:.3f}"
    )
    print(f"tfwright itself: {1000 * ours / actions:.2f} ms for each action")


if __name__ == "__main__":
    main()
