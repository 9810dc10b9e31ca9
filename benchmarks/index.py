"""The wheel index against dumb-pypi and simple503, on the same wheels in one run.

    PYTHONPATH=. python benchmarks/index.py --wheels 5000 --peers /path/to/venv/bin

Both peers write HTML only. simple503 reads every wheel, as ours does; dumb-pypi is given names and
hashes, so that it reads none. Each command is timed as a whole process where it is one.
"""

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.nightly.wheels import write_wheel

from tfwright.index import write

PROJECTS = 20


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=int, default=5000)
    parser.add_argument("--peers", type=Path, help="directory of dumb-pypi and simple503")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_wheels(folder / "site/packages", given.wheels)
        show("tfwright, from nothing", lambda: write.refresh(folder / "site"))
        show("tfwright, nothing new", lambda: write.refresh(folder / "site"))
        write_wheel(folder / "site/packages", "project0", "9.9.9")
        show("tfwright, one new wheel", lambda: write.refresh(folder / "site"))
        if given.peers:
            measure_peers(given.peers, folder)


def make_wheels(folder: Path, count: int) -> None:
    """Write small wheels of some projects, so that the files themselves cost nothing."""
    for number in range(count):
        write_wheel(folder, f"project{number % PROJECTS}", f"1.{number // PROJECTS}.{number}")


def measure_peers(programs: Path, folder: Path) -> None:
    """Run the peers on the same wheels."""
    wheels = sorted((folder / "site/packages").glob("*.whl"))
    lines = folder / "packages.json"
    with lines.open("w", encoding="utf-8") as stream:
        for wheel in wheels:
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            entry = {"filename": wheel.name, "hash": f"sha256={digest}"}
            stream.write(json.dumps(entry) + "\n")
    dumb = [str(programs / "dumb-pypi"), "--package-list-json", str(lines)]
    dumb += ["--packages-url", "../../packages/", "--output-dir", str(folder / "dumb")]
    show("dumb-pypi, reads no wheel", lambda: run(dumb))
    peer = folder / "simple503"
    peer.mkdir()
    for wheel in wheels:
        (peer / wheel.name).hardlink_to(wheel)
    argv = [str(programs / "simple503"), "-B", "/", str(peer), str(peer / "out")]
    show("simple503, reads every wheel", lambda: run(argv))


def run(argv: list[str]) -> None:
    """Run a peer to its end."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def show(name: str, work: Callable[[], object]) -> None:
    """Time one piece of work."""
    begun, before = time.perf_counter(), processor()
    work()
    seconds = time.perf_counter() - begun
    print(f"{name:32} {seconds:7.2f} s, {processor() - before:6.2f} s of processor time")


def processor() -> float:
    """Return the processor time of this process and the programs that it ran."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
