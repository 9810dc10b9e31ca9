"""How long `invoke compare` takes for two wheels, and how much memory.

    python benchmarks/comparison.py ONE OTHER

The wheels are read from the page cache, which a first reading fills. Nothing else is known that
says of a library in which
sections and functions it differs, in bounded memory, so that there is nothing to compare with.
"""

import sys
from pathlib import Path

from inspection import ROOT, run


def main(one: Path, other: Path) -> None:
    """Compare twice, and print what the second time took."""
    command = [
        sys.executable,
        "-m",
        "invoke",
        f"--search-root={ROOT}",
        "compare",
        str(one),
        str(other),
        "--json",
    ]
    run(command)
    cost = run(command)
    print(
        f"{one.name} ({one.stat().st_size / 1e6:.0f} MB) "
        f"and {other.name} ({other.stat().st_size / 1e6:.0f} MB)"
    )
    print(f"{cost.wall:.1f} s, {cost.cpu:.1f} s of processor time, {cost.memory:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004 the name of the program, and two wheels
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
