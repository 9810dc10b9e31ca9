"""What the verifying proxy costs: a build out of a full cache, against Bazel's own disk cache.

    python benchmarks/cache_cost.py BAZEL [--actions 400] [--rounds 10]

Every build starts a server in an empty output base and takes all from the cache. Both kinds run in
turn, each of them first in every second pair; the ratio is that of each pair, since other programs
disturb both alike. Measured is processor time, user and system, of the client, the server, all that
it started, and the proxy: waiting for a busy core does not count. Linux only.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.tools import files
from tfwright.tools.cache import proxy
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.store import CacheDirectory

LIMIT = 10 << 30
OBJECT = 200_000
"""Bytes of each object file, as TensorFlow's are in the middle."""


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time that a build took."""

    bazel: float
    """Client, server and actions."""
    proxy: float
    """This process."""

    @property
    def whole(self) -> float:
        """Of everything."""
        return self.bazel + self.proxy


def workspace(room: Path, actions: int) -> Path:
    """Write a workspace of so many C++ libraries, two actions each."""
    folder = room / "workspace"
    folder.mkdir()
    (folder / "WORKSPACE").touch()
    names = [f"part{number}" for number in range(actions // 2)]
    rules = [
        f'cc_library(name = "{name}", srcs = ["{name}.cc"], linkstatic = 1)'
        for name in names
    ]
    listed = ", ".join(f'":{name}"' for name in names)
    (folder / "BUILD").write_text(
        "\n".join([*rules, f'filegroup(name = "all", srcs = [{listed}])'])
    )
    for number, name in enumerate(names):
        text = f"extern const char {name}[{OBJECT}] = {{{number % 100 + 1}}};\n"
        (folder / f"{name}.cc").write_text(text, "utf-8")
    return folder


@contextmanager
def served(room: Path) -> Iterator[str]:
    """Run the proxy as a build does."""
    cache = BuildCache(
        CacheDirectory(room / "ours", LIMIT), Trust("0" * 64, b"s" * 32)
    )
    with proxy.serving(cache) as server:
        yield server.url


def used_by(server: Path) -> float:
    """Return the seconds of processor time that a Bazel server and its children used."""
    pid = int((server / "server.pid.txt").read_text("ascii"))
    # The name of the program is in parentheses and may hold blanks; utime is the 12th field after.
    fields = (
        Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    )
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def used_by_clients() -> float:
    """Return the seconds of processor time of all programs that this one waited for."""
    spent = os.times()
    return spent.children_user + spent.children_system


def build(binary: Path, room: Path, folder: Path, flag: str) -> Cost:
    """Build in an empty output base."""
    base = room / "base"
    startup = (
        str(binary),
        f"--output_user_root={room / 'user'}",
        f"--output_base={base}",
    )
    # The proxy runs in this process.
    own, clients = time.process_time(), used_by_clients()
    command = (*startup, "build", "--curses=no", flag, "//:all")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    cost = Cost(
        used_by_clients() - clients + used_by(base / "server"),
        time.process_time() - own,
    )
    subprocess.run(
        (*startup, "shutdown"), cwd=folder, capture_output=True, check=False
    )
    files.remove(base)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return cost


def main() -> None:
    """Fill both caches, then measure pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bazel", type=Path)
    parser.add_argument("--actions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--flag",
        default="remote_cache",
        help="how this Bazel calls an HTTP cache",
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfwright-cache-") as place:
        room = Path(place)
        folder = workspace(room, asked.actions)

        def own() -> Cost:
            return build(
                asked.bazel, room, folder, f"--disk_cache={room / 'theirs'}"
            )

        def ours() -> Cost:
            with served(room) as url:
                return build(asked.bazel, room, folder, f"--{asked.flag}={url}")

        own(), ours()
        pairs = []
        for number in range(asked.rounds):
            # Who comes first may find a disk or a processor in another state.
            first, second = (own, ours) if number % 2 == 0 else (ours, own)
            costs = first(), second()
            pair = costs if number % 2 == 0 else costs[::-1]
            pairs.append(pair)
            shown(f"{number + 1:>3}", *pair)
    summary(asked.actions, pairs)


def shown(label: str, theirs: Cost, mine: Cost) -> None:
    """Print what a pair took."""
    print(
        f"{label}  disk cache {theirs.whole:6.2f} s, with the proxy {mine.whole:6.2f} s"
        f" (the proxy itself {mine.proxy:5.2f} s), ratio {mine.whole / theirs.whole:.3f}",
        flush=True,
    )


def summary(actions: int, pairs: list[tuple[Cost, Cost]]) -> None:
    """Print the figures of all pairs."""
    ratios = sorted(mine.whole / theirs.whole for theirs, mine in pairs)
    proxy = statistics.median(mine.proxy for _, mine in pairs)
    theirs = sum(cost.whole for cost, _ in pairs)
    mine = sum(cost.whole for _, cost in pairs)
    print(f"{actions} actions, {len(pairs)} pairs of processor time")
    print(
        f"ratio {statistics.median(ratios):.3f} in the middle,"
        f" {ratios[0]:.3f} to {ratios[-1]:.3f}; of the sums {mine / theirs:.3f}"
    )
    print(f"the proxy itself: {1000 * proxy / actions:.2f} ms for each action")


if __name__ == "__main__":
    main()
