"""The download engine's time: 60 archives against aria2c and curl, one of 2 GB against curl.

    python benchmarks/fetch.py [ROUNDS] [PLACE]

A server on the loopback answers each request after 30 ms. The programs run in turn, each into an
empty directory under PLACE (by default where temporary files go), the disk at rest before each:

- tfwright's `fetch`, in a process of its own: every file hashed while it arrives, on the disk
  before it has its name;
- `aria2c -j16` with a checksum for every file, which does not wait for the disk;
- curl and sha256sum, one archive after the other.

The file of 2 GB shows what hashing costs: tfwright with a digest that is not computed, and curl,
which does not hash, with and without the wait for the disk that tfwright always takes upon itself
(`sync` of the file).
"""

import hashlib
import http.server
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ARCHIVES, SMALLEST, LARGEST = 60, 1_000, 60_000_000
BIG = 2_000_000_000
DELAY = 0.03
OURS = "tfwright"
FETCH = """
import json, sys
from pathlib import Path
from tfwright.progress import SILENCE
from tfwright.tools.http.downloads import WantedFile, fetch
from tfwright.vault.store import Store
digests = json.load(open(sys.argv[3]))
wanted = [WantedFile(name, digest, (sys.argv[2] + name,)) for name, digest in digests.items()]
outcomes = fetch(wanted, Store(Path(sys.argv[1])), report=SILENCE.progress)
sys.exit(not all(outcome.obtained for outcome in outcomes))
"""
UNHASHED = """
import json, sys
from tfwright.tools.http import partial
digest, size = next(iter(json.load(open(sys.argv[3])).values())), {size}
class Nothing:
    seen = 0
    def update(self, piece):
        self.seen += len(piece)
    def hexdigest(self):
        return digest if self.seen == size else ""
partial.hashlib = type("hashlib", (), {{"sha256": Nothing}})
"""


def main(rounds: int, place: str | None) -> None:
    """Measure everything and print a table of medians and ratios."""
    with (
        tempfile.TemporaryDirectory(prefix="tfwright-fetch-", dir=place) as name,
        serving(Path(name) / "site") as url,
    ):
        bench = Bench(Path(name), url)
        print(f"{'what':<44} {'tfwright':>9} {'other':>9} {'ratio':>6}")
        bench.make(
            {
                f"{number:02}": int(SMALLEST * (LARGEST / SMALLEST) ** (number / (ARCHIVES - 1)))
                for number in range(ARCHIVES)
            }
        )
        bench.report(
            f"{ARCHIVES} archives",
            rounds,
            {"aria2c -j16": bench.aria2c, "curl, sha256sum": bench.one_by_one},
        )
        bench.make({"big": BIG})
        bench.report(
            "2 GB",
            rounds,
            {
                "tfwright, not hashing": bench.unhashed,
                "curl": bench.curl,
                "curl, sync": bench.curl_and_sync,
            },
        )


class Bench:
    """Files on a server, and ways to fetch all of them."""

    def __init__(self, place: Path, url: str) -> None:
        """Keep everything under `place`."""
        self.site, self.out, self.list, self.input = (
            place / "site",
            place / "out",
            place / "digests.json",
            place / "aria2c.txt",
        )
        self.url, self.digests = url, dict[str, str]()

    def make(self, sizes: Mapping[str, int]) -> None:
        """Fill the site with random files, and write their checksums for the clients."""
        shutil.rmtree(self.site, ignore_errors=True)
        self.site.mkdir()
        self.digests = {name: write(self.site / name, size) for name, size in sizes.items()}
        self.list.write_text(json.dumps(self.digests), "utf-8")
        self.input.write_text(
            "".join(
                f"{self.url}{name}\n  checksum=sha-256={digest}\n"
                for name, digest in self.digests.items()
            ),
            "utf-8",
        )

    def report(self, what: str, rounds: int, peers: Mapping[str, Callable[[], None]]) -> None:
        """Run all in turn; print the medians for each peer, and the median of their ratios.

        Each round begins with another one, so that none always runs on a warm cache.
        """
        there = {
            name: run
            for name, run in peers.items()
            if name.startswith(OURS) or shutil.which(name.split()[0].rstrip(","))
        }
        for name in peers.keys() - there:
            print(f"{what}: {name} is left out, it is not on PATH")
        runs = [(OURS, self.tfwright), *there.items()]
        times = [
            {name: self.measure(run) for name, run in runs[first:] + runs[:first]}
            for first in (number % len(runs) for number in range(rounds))
        ]
        for name in there:
            ours = statistics.median(seconds[OURS] for seconds in times)
            theirs = statistics.median(seconds[name] for seconds in times)
            # Of each round: both ran under the same load then.
            ratio = statistics.median(seconds[OURS] / seconds[name] for seconds in times)
            print(f"{f'{what} / {name}':<44} {ours:8.2f}s {theirs:8.2f}s {ratio:6.2f}", flush=True)

    def measure(self, run: Callable[[], None]) -> float:
        """Return the seconds that `run` takes, into an empty directory on a disk at rest."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        os.sync()
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    def tfwright(self) -> None:
        """Fetch with tfwright."""
        self.run(sys.executable, "-c", FETCH, str(self.out), self.url, str(self.list))

    def unhashed(self) -> None:
        """Fetch the large file with tfwright, believing its digest."""
        self.run(
            sys.executable,
            "-c",
            UNHASHED.format(size=BIG) + FETCH,
            str(self.out),
            self.url,
            str(self.list),
        )

    def aria2c(self) -> None:
        """Fetch with aria2c, 16 at once."""
        self.run(
            "aria2c",
            "--quiet",
            "-j16",
            "--no-conf",
            f"--dir={self.out}",
            f"--input-file={self.input}",
        )

    def curl(self) -> None:
        """Fetch with curl, one after the other, on one connection."""
        self.run(
            "curl",
            "--silent",
            "--fail",
            "--remote-name-all",
            *(self.url + name for name in self.digests),
        )

    def one_by_one(self) -> None:
        """Fetch with curl, then verify with sha256sum, as a shell script would for each archive."""
        for name, digest in self.digests.items():
            self.run("curl", "--silent", "--fail", "--remote-name", self.url + name)
            self.run("sha256sum", "--check", "--quiet", stdin=f"{digest}  {name}\n")

    def curl_and_sync(self) -> None:
        """Fetch with curl, and wait until the files are on the disk."""
        self.curl()
        self.run("sync", *self.digests)

    def run(self, *argv: str, stdin: str = "") -> None:
        """Run a program in the directory that is filled."""
        subprocess.run(argv, cwd=self.out, input=stdin, text=True, check=True)


def write(path: Path, size: int) -> str:
    """Write a file of random bytes and return its digest."""
    digest = hashlib.sha256()
    with path.open("wb") as stream:
        for begin in range(0, size, 1 << 24):
            piece = os.urandom(min(1 << 24, size - begin))
            stream.write(piece)
            digest.update(piece)
    return digest.hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a directory from the kernel's page cache, each request after a delay."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: Path

    def do_GET(self) -> None:
        """Send a file."""
        time.sleep(DELAY)
        with (self.site / self.path.strip("/")).open("rb") as stream:
            self.send_response(200)
            self.send_header("Content-Length", str(os.fstat(stream.fileno()).st_size))
            self.end_headers()
            self.connection.sendfile(stream)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the library's name
        """Say nothing."""


@contextmanager
def serving(site: Path) -> Iterator[str]:
    """Run the server in a process of its own; yield its address.

    In the same process it would take time from the clients.
    """
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Bound", (Handler,), {"site": site})
    ) as server:
        process = multiprocessing.get_context("fork").Process(
            target=server.serve_forever, daemon=True
        )
        process.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        process.terminate()


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    folder = sys.argv[2] if len(sys.argv) > 2 else None  # noqa: PLR2004 the second argument
    main(rounds, folder)
