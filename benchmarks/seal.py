"""How fast a wheel is sealed, against `wheel unpack` and `wheel pack` on the same wheel.

    python benchmarks/seal.py WHEEL [ROUNDS]

WHEEL is any large one, such as tensorflow of 400 to 600 MB (`pip download --no-deps tensorflow`).
The package `wheel` is run by the Python that runs this; it has to be there, and some GB of disk.
Sealing verifies RECORD, which `wheel pack` replaces without reading it.
"""

import hashlib
import importlib.util
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tfwright.wheel import archive
from tfwright.wheel.seal import sealing

ROUNDS = 2
EPOCH = 1_540_000_000


def main(wheel: Path, rounds: int) -> None:
    """Time both alternately, and print the medians, the sizes and the ratio."""
    ours, theirs, digests = [], [], set()
    with tempfile.TemporaryDirectory(prefix="tfwright-seal-", dir=Path.cwd()) as place:
        sealed, unpacked, packed = (
            Path(place) / name for name in ("sealed.whl", "unpacked", "packed")
        )
        packed.mkdir()
        for _ in range(rounds):
            ours.append(timed(lambda: seal(wheel, sealed)))
            digests.add(digest(sealed))
            theirs.append(timed(lambda: repack(wheel, unpacked, packed)))
        sizes = [path.stat().st_size for path in (wheel, sealed, next(packed.iterdir()))]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{wheel.name}: {sizes[0]:,} bytes; {len(digests)} digest in {rounds} rounds; "
        f"at most {memory:,} MiB of memory"
    )
    print(f"seal           {statistics.median(ours):8.1f} s  {sizes[1]:,} bytes")
    print(f"unpack + pack  {statistics.median(theirs):8.1f} s  {sizes[2]:,} bytes")
    print(
        f"ratio          {statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):8.2f}"
    )


def timed(work: Callable[[], None]) -> float:
    """Return how many seconds something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def seal(wheel: Path, target: Path) -> None:
    """Seal the wheel as the seal stage does."""
    with archive.open_wheel(wheel) as opened, target.open("wb") as stream:
        sealing.seal(opened, stream, EPOCH, {})


def repack(wheel: Path, unpacked: Path, packed: Path) -> None:
    """Unpack the wheel and pack it again, by the package `wheel`."""
    run("unpack", str(wheel), "--dest", str(unpacked))
    run("pack", str(next(unpacked.iterdir())), "--dest-dir", str(packed))


def run(*arguments: str) -> None:
    """Run the package `wheel`."""
    subprocess.run(
        [sys.executable, "-m", "wheel", *arguments], check=True, stdout=subprocess.DEVNULL
    )


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    if importlib.util.find_spec("wheel") is None:
        sys.exit("The package wheel is not installed for this Python: pip install wheel")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS  # noqa: PLR2004 the second argument
    main(Path(sys.argv[1]), rounds)
