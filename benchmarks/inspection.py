"""How long `invoke inspect` takes, and how much memory, against `unzip -tq` and `auditwheel show`.

    python benchmarks/inspection.py WHEEL ...

unzip does no more than unpack a wheel and compare its checksums: what reading a wheel costs at the
least. auditwheel reads what the libraries need and compares it with the tags. inspect does
both, checks RECORD, and reads GPU code, machine code and texts.

The programs take turns, `ROUNDS` times, and the median of each is printed: a busy machine slows all
of them. A wheel is read from the page cache, which a first reading fills.
"""

import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROUNDS = 3
PEERS = {"unzip": ("unzip", "-tq"), "auditwheel": ("auditwheel", "show")}


class Cost(NamedTuple):
    """What a program took."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of all processors together."""
    memory: float
    """The most that it had, in MB."""


def main(wheels: Sequence[Path]) -> None:
    """Run all programs on each wheel, and print what they took."""
    print(f"{'wheel':<56} {'MB':>5}   {'':10} {'wall s':>7} {'CPU s':>7} {'MB':>6} {'CPU':>6}")
    for wheel in wheels:
        read(wheel)
        programs = {name: command for name, command in commands(wheel).items() if command}
        costs: dict[str, list[Cost]] = {name: [] for name in programs}
        for _ in range(ROUNDS):
            for name, command in programs.items():
                costs[name].append(run(command))
        least = statistics.median(cost.cpu for cost in costs.get("unzip", costs["inspect"]))
        for name, some in costs.items():
            cost = Cost(*(statistics.median(column) for column in zip(*some, strict=True)))
            print(
                f"{wheel.name[:56]:<56} {wheel.stat().st_size / 1e6:>5.0f}   {name:10} "
                f"{cost.wall:>7.1f} {cost.cpu:>7.1f} {cost.memory:>6.0f} {cost.cpu / least:>6.2f}"
            )


def read(wheel: Path) -> None:
    """Fill the page cache, in small pieces: a child's memory begins with what its parent has."""
    with wheel.open("rb") as stream:
        while stream.read(1 << 20):
            pass


def commands(wheel: Path) -> dict[str, list[str]]:
    """Return the command lines; an empty one for a program that is not on PATH."""
    invoke = [sys.executable, "-m", "invoke", f"--search-root={ROOT}"]
    found = {"inspect": [*invoke, "inspect", str(wheel), "--json"]}
    for name, (program, option) in PEERS.items():
        path = shutil.which(program)
        found[name] = [path, option, str(wheel)] if path else []
    return found


def run(command: list[str]) -> Cost:
    """Run a program, whatever it prints and however it ends: a wheel may have faults."""
    begun = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, _, used = os.wait4(child, 0)
    return Cost(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    main([Path(argument) for argument in sys.argv[1:]])
