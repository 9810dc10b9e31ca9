"""A fetch of 60 files killed at 100 random moments: what was finished is never fetched again, and the rest goes on."""

import hashlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.serving import QuietHandler, serving

from tfwright.progress import SILENCE
from tfwright.tools.http.downloads import WantedFile, fetch
from tfwright.vault.store import Store

pytestmark = pytest.mark.slow
CONTENTS = {
    f"/{number}": random.Random(number).randbytes(int(1_000 * 2_000 ** (number / 59)))
    for number in range(60)
}
DIGESTS = {path: hashlib.sha256(content).hexdigest() for path, content in CONTENTS.items()}
KILLS = 100
FETCH = """
import json, sys
from pathlib import Path
from tfwright.progress import SILENCE
from tfwright.tools.http.downloads import fetch
from tfwright.tools.http.downloads import WantedFile
from tfwright.vault.store import Store
wanted = [WantedFile(path, digest, (sys.argv[2] + path,)) for path, digest in json.loads(sys.argv[3]).items()]
print("ready", flush=True)
fetch(wanted, Store(Path(sys.argv[1])), report=SILENCE.progress)
"""


class Handler(QuietHandler):
    """Serves the files slowly, and notes where it was asked to begin."""

    protocol_version = "HTTP/1.1"
    begun: list[tuple[str, int]]

    def do_GET(self) -> None:
        content = CONTENTS[self.path]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.begun.append((self.path, start))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        with suppress(ConnectionError):
            for begin in range(start, len(content), 4_000):
                self.wfile.write(content[begin : begin + 4_000])
                time.sleep(0.02)


@pytest.fixture
def handler() -> type[Handler]:
    return type("Counting", (Handler,), {"begun": []})


@pytest.fixture
def url(handler: type[Handler]) -> Iterator[str]:
    with serving(handler) as address:
        yield address


def arrived(store: Store) -> dict[str, int]:
    """Return how many bytes of each file the store has; all of them for a finished one."""
    sizes = {}
    for path, digest in DIGESTS.items():
        file, partial = (store.path(digest), store.path(digest).with_name("partial"))
        sizes[path] = (
            file.stat().st_size
            if file.exists()
            else partial.stat().st_size
            if partial.exists()
            else 0
        )
    return sizes


def run_and_kill(store: Store, url: str, seconds: float) -> None:
    """Start a fetch in a process of its own, and kill it so long after it began."""
    with subprocess.Popen(
        [sys.executable, "-c", FETCH, str(store.root), url, json.dumps(DIGESTS)],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()


def test_after_100_kills_every_file_is_there_and_no_byte_was_asked_for_twice(
    handler: type[Handler], url: str, tmp_path: Path
) -> None:
    moments = random.Random(0)
    store, in_the_middle = Store(tmp_path), 0
    for _ in range(KILLS):
        had, finished = arrived(store), set(store.digests())
        handler.begun.clear()
        run_and_kill(store, url, moments.uniform(0.0, 0.25))
        assert [(path, start) for path, start in handler.begun if start != had[path]] == []
        assert not {DIGESTS[path] for path, _ in handler.begun} & finished
        assert all(map(store.verify, store.digests()))
        in_the_middle += len(store.digests()) < len(DIGESTS)
    outcomes = fetch(
        [WantedFile(path, digest, (url + path,)) for path, digest in DIGESTS.items()],
        store.path,
        report=SILENCE.progress,
    )
    assert all(outcome.obtained for outcome in outcomes)
    assert store.digests() == sorted(DIGESTS.values())
    assert all(map(store.verify, store.digests()))
    assert in_the_middle > KILLS * 0.9, "the fetch was over before it was killed often enough"
