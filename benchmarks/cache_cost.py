"""What the verifying proxy costs: a build out of a full cache, against Bazel's own disk cache.

    python benchmarks/cache_cost.py BAZEL [--actions 400] [--rounds 5]

Every build starts a server in an empty output base and takes all from the cache. Both kinds run in
turn; the ratio is that of each pair, since other programs disturb both alike. Measured is processor
time, of Bazel with all that it started and of the proxy: waiting for a busy core does not count.
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
from pathlib import Path

from tfwright.tools import files
from tfwright.tools.cache import proxy
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.store import CacheDirectory

LIMIT = 10 << 30
OBJECT = 200_000
"""Bytes of each object file, as TensorFlow's are in the middle."""


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


def build(binary: Path, room: Path, folder: Path, flag: str) -> float:
    """Build in an empty output base; return the seconds of processor time that it took."""
    base = room / "base"
    startup = (
        str(binary),
        f"--output_user_root={room / 'user'}",
        f"--output_base={base}",
    )
    # The proxy runs in this process.
    begun = time.process_time()
    command = (*startup, "build", "--curses=no", flag, "//:all")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    seconds = time.process_time() - begun + used_by(base / "server")
    subprocess.run(
        (*startup, "shutdown"), cwd=folder, capture_output=True, check=False
    )
    files.remove(base)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return seconds


def main() -> None:
    """Fill both caches, then measure pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bazel", type=Path)
    parser.add_argument("--actions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--flag",
        default="remote_cache",
        help="how this Bazel calls an HTTP cache",
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfwright-cache-") as place:
        room = Path(place)
        folder = workspace(room, asked.actions)

        def own() -> float:
            return build(
                asked.bazel, room, folder, f"--disk_cache={room / 'theirs'}"
            )

        def ours() -> float:
            with served(room) as url:
                return build(asked.bazel, room, folder, f"--{asked.flag}={url}")

        own(), ours()
        pairs = [(own(), ours()) for _ in range(asked.rounds)]
    theirs, mine = (
        statistics.median(column) for column in zip(*pairs, strict=True)
    )
    ratio = statistics.median(second / first for first, second in pairs)
    print(
        f"{asked.actions} actions: disk cache {theirs:.2f} s, proxy {mine:.2f} s"
    )
    print(f"ratio of the pairs, in the middle: {ratio:.3f}")


if __name__ == "__main__":
    main()
