"""How long `invoke inspect` takes, and how much memory, against `auditwheel show`.

    python benchmarks/inspection.py WHEEL ...

auditwheel reads what a wheel's libraries need and compares it with its tags; inspect does that, checks RECORD, and reads GPU
code, machine code and texts. Each is run once, alone; a wheel is read from the page cache, which a first run fills.
"""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Cost(NamedTuple):
    """What a program took."""

    wall: float
    cpu: float
    memory: float
    """The most that it had, in MB."""


def main(wheels: Sequence[Path]) -> None:
    """Run both on each wheel, and print what they took."""
    peer = shutil.which("auditwheel")
    print(f"{'wheel':<60} {'MB':>5}   {'':10} {'wall s':>7} {'CPU s':>7} {'memory MB':>10}")
    for wheel in wheels:
        with wheel.open("rb") as stream:
            # In small pieces: a child's figure for memory begins with what its parent has.
            while stream.read(1 << 20):
                pass
        programs = {
            "inspect": [
                sys.executable,
                "-m",
                "invoke",
                f"--search-root={ROOT}",
                "inspect",
                str(wheel),
                "--json",
            ]
        }
        programs |= {"auditwheel": [peer, "show", str(wheel)]} if peer else {}
        for name, command in programs.items():
            cost = run(command)
            print(
                f"{wheel.name[:60]:<60} {wheel.stat().st_size / 1e6:>5.0f}   {name:10} {cost.wall:>7.1f} {cost.cpu:>7.1f} {cost.memory:>10.0f}"
            )
    if not peer:
        print("There is no auditwheel on PATH to compare with.")


def run(command: list[str]) -> Cost:
    """Run a program without looking at what it prints, nor at how it ends: a wheel may have faults."""
    begun = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, _, used = os.wait4(child, 0)
    return Cost(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    main([Path(argument) for argument in sys.argv[1:]])
