"""A recipe whose tree downloads many archives from a slow server: what a killed fetch is tried on."""

import hashlib
import http.server
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Self

from tests.attack.program import Ended, Program
from tests.making import make_file

from tfwright.tools import files

ARCHIVES = 24
SMALLEST, LARGEST = 20_000, 1_500_000
PIECE, PAUSE = 1 << 16, 0.02
"""Bytes that the server sends at once, and the seconds between two pieces: kills come in between."""

RULE = """http_archive(
    name = "{name}",
    sha256 = "{sha256}",
    urls = ["{url}"],
)
"""
RECIPE = """\
summary = "Many archives"

[source]
url = "https://example.invalid/many.git"
branch = "main"
commit = "{commit}"
release = "1.8"

[host]
system = "any"
machine = "any"
python = "any"

[bazel]
version = "0.26.1"
"""


class Slow(http.server.BaseHTTPRequestHandler):
    """Serves files from memory in pieces, also from the middle on, as most servers do."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]

    def do_GET(self) -> None:
        content = self.files[self.path.strip("/")]
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f'"{len(content)}"')
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        for place in range(begin, len(content), PIECE):
            self.wfile.write(content[place : place + PIECE])
            time.sleep(PAUSE)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the library's name
        """Say nothing."""


class ManyArchives:
    """The recipe, its server and its build directory."""

    def __init__(self, folder: Path) -> None:
        luck = random.Random("archives")
        sizes = {f"a{number}": luck.randint(SMALLEST, LARGEST) for number in range(ARCHIVES)}
        self.contents = {name: luck.randbytes(size) for name, size in sizes.items()}
        handler = type("Bound", (Slow,), {"files": self.contents})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        # A killed client hangs up in the middle of an answer.
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in self.contents.items()
        }
        mirror, commit = self._repository(folder / "upstream")
        recipe = make_file(folder / "many.toml", RECIPE.format(commit=commit))
        self.fetch = ("fetch", "--recipe", str(recipe))
        mirrors = f'[mirrors]\n"https://example.invalid/many.git" = "{mirror}"\n'
        self.program = Program(folder, mirrors)

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _repository(self, folder: Path) -> tuple[Path, str]:
        """Make the tree: a WORKSPACE that names every archive."""
        folder.mkdir()
        place = f"http://127.0.0.1:{self.server.server_port}"
        rules = [
            RULE.format(name=name, sha256=sha256, url=f"{place}/{name}")
            for name, sha256 in self.digests.items()
        ]
        text = 'load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")\n'
        (folder / "WORKSPACE").write_text(text + "".join(rules), "utf-8")
        author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all")):
            subprocess.run(["git", "-C", folder, *words], check=True)
        head = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        )
        return folder, head.stdout.strip()

    @property
    def store(self) -> Path:
        """Where the archives are kept."""
        return self.program.build_out / "vault/repository_cache/content_addressable/sha256"

    def seconds(self) -> float:
        """Return how long a fetch of everything takes, Bazel and venv at hand."""
        first = self.program.run(*self.fetch)
        assert first.status == 0, first.err
        shutil.rmtree(self.store)
        begun = time.monotonic()
        self.program.run(*self.fetch)
        return time.monotonic() - begun

    def lose(self, luck: random.Random) -> None:
        """Remove what an earlier fetch brought: some archives, sometimes the git mirror as well."""
        for sha256 in self.digests.values():
            if luck.random() < 0.7:
                shutil.rmtree(self.store / sha256, ignore_errors=True)
        own = self.program.build_out / "many"
        shutil.rmtree(own / "stamps", ignore_errors=True)
        if luck.random() < 0.3:
            shutil.rmtree(self.program.build_out / "git", ignore_errors=True)
        if luck.random() < 0.2:
            shutil.rmtree(self.program.build_out / "vault/pythons", ignore_errors=True)

    def wrong(self, ended: Ended) -> str:
        """Say in what the fetch after the kills ended otherwise than it should."""
        if ended.fault or ended.status:
            return ended.fault or f"it failed: {ended.err.strip()[:300]}"
        for name, sha256 in self.digests.items():
            path = self.store / sha256 / "file"
            if not path.is_file() or files.sha256(path) != sha256:
                return f"{name} is not in the vault, or not as it was pinned"
        left = [path for path in self.program.build_out.rglob("*partial*") if path.is_file()]
        return f"{left[0]} was left behind" if left else ""
