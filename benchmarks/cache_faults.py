"""Builds the demo again and again out of a cache that is damaged at random.

    python benchmarks/cache_faults.py --builds 50 --bazels 0.17.2 0.24.1 0.26.1 2.1.0

The host file names the Bazels, and mirrors for what Bazel 2 downloads by itself. Each build starts
with an empty output base. Every second one has an empty directory, and nginx with DAV behind it.
The wheel must always be the same.
"""

import argparse
import contextlib
import http.server
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import CacheTable
from tfwright.pipeline import engine, stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, SealedWheel
from tfwright.tools import files

NGINX = """\
daemon off; master_process off; pid {root}/nginx.pid; error_log {root}/error.log;
events {{}}
http {{
  access_log off; client_max_body_size 0;
  client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/fastcgi; uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ root {root}/data; dav_methods PUT; create_full_put_path on; }}
  }}
}}
"""
SLOW_SECONDS = 3.0
CHANCE = random.Random(1)  # noqa: S311 faults need no cryptography


# What happens to the files of a cache


def overwrite(path: Path, content: bytes | bytearray) -> None:
    """Write into a file, which may be read-only."""
    path.chmod(0o600)
    path.write_bytes(content)


def tampered(path: Path) -> None:
    """Flip a bit."""
    content = bytearray(path.read_bytes())
    if content:
        content[CHANCE.randrange(len(content))] ^= 1 << CHANCE.randrange(8)
    overwrite(path, content)


def truncated(path: Path) -> None:
    """Cut off the end."""
    content = path.read_bytes()
    overwrite(path, content[: CHANCE.randrange(len(content) + 1)])


def removed(path: Path) -> None:
    """Remove the file."""
    path.unlink()


def replaced(path: Path) -> None:
    """Write noise."""
    overwrite(path, CHANCE.randbytes(CHANCE.randrange(2000)))


def damaged(root: Path, damage: Callable[[Path], None]) -> None:
    """Damage about a third of the files."""
    for path in _files(root):
        if CHANCE.random() < 1 / 3:
            damage(path)


def swapped(root: Path) -> None:
    """Let files of one kind change places."""
    for kind in ("ac", "cas"):
        paths = list(_files(root / kind))
        contents = [path.read_bytes() for path in paths]
        CHANCE.shuffle(contents)
        for path, content in zip(paths, contents, strict=True):
            overwrite(path, content)


def _files(root: Path) -> Iterator[Path]:
    yield from sorted(path for path in root.rglob("*") if path.is_file())


DIRECTORY_FAULTS = ("none", "tampered", "truncated", "removed", "replaced", "swapped", "full")
SERVER_FAULTS = (*DIRECTORY_FAULTS, "slow", "dead", "dripping", "failing")


def apply(fault: str, root: Path) -> None:
    """Damage the files of a cache as the fault says; the others are of the server itself."""
    damages = {"tampered": tampered, "truncated": truncated}
    damages |= {"removed": removed, "replaced": replaced}
    if fault in damages:
        damaged(root, damages[fault])
    elif fault == "swapped":
        swapped(root)


# Servers


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def nginx(root: Path) -> Iterator[str]:
    """Run nginx with DAV over ``root/data``."""
    port = free_port()
    (root / "data").mkdir(parents=True, exist_ok=True)
    (root / "nginx.conf").write_text(NGINX.format(root=root, port=port), "utf-8")
    path = f"{os.environ['PATH']}:/usr/sbin"
    program = shutil.which("nginx", path=path) or sys.exit("nginx is missing")
    with subprocess.Popen((program, "-p", root, "-c", root / "nginx.conf")) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            _await(url)
            yield url
        finally:
            process.terminate()


def _await(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url)  # noqa: S310 our own server
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)


class Faulty(http.server.BaseHTTPRequestHandler):
    """Stands before nginx, and is slow, drips, fails or has no room left."""

    protocol_version = "HTTP/1.1"
    behind = ""
    fault = ""

    def do_GET(self) -> None:
        """Answer as the fault says."""
        if self.fault == "slow":
            time.sleep(SLOW_SECONDS)
        if self.fault == "failing":
            self._answer(500, b"")
            return
        status, body = self._ask()
        self._answer(status, body)

    do_HEAD = do_GET  # noqa: N815 the name that http.server looks for

    def do_PUT(self) -> None:
        """Store, unless the disk is full."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.fault == "full":
            self._answer(507, b"")
            return
        request = urllib.request.Request(  # noqa: S310 our own server
            self.behind + self.path, body, method="PUT"
        )
        urllib.request.urlopen(request)  # noqa: S310 our own server
        self._answer(201, b"")

    def _ask(self) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(self.behind + self.path) as answer:  # noqa: S310
                return 200, answer.read()
        except urllib.error.HTTPError as fault:
            return fault.code, b""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        pieces = [body[at : at + 10] for at in range(0, len(body), 10)]
        with contextlib.suppress(OSError):
            for piece in pieces if self.fault == "dripping" else [body]:
                self.wfile.write(piece)
                time.sleep(0.05 if self.fault == "dripping" else 0)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def faulty(url: str, fault: str) -> Iterator[str]:
    """Put a faulty server before another one; a dead one does not listen."""
    if fault == "dead":
        yield f"http://127.0.0.1:{free_port()}"
        return
    handler = type("Handler", (Faulty,), {"behind": url, "fault": fault})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# Builds


RECIPE = ["demo"]


def job_with(version: str, cache: CacheTable, room: Path) -> RecipeJob:
    """Return a build of the demo with some Bazel; all of them share what they fetched."""
    recipe = recipes.read(RECIPE[0])
    bazel = recipe.bazel.model_copy(update={"version": version, "sha256": {}})
    named = recipe.model_copy(update={"bazel": bazel, "name": f"demo-{version}"})
    settings = host_file.read().model_copy(update={"build_out": room, "cache": cache})
    return RecipeJob(recipe=named, host_file=settings, until="seal")


def built(job: RecipeJob) -> tuple[str, str]:
    """Build from an empty output base; return the wheel's digest, and what the cache did."""
    files.remove(job.places.bazel)
    engine.build(replace(job, again="compile"))
    wheel, compiled = (
        stamps.last_result(job, "seal", SealedWheel),
        stamps.last_result(job, "compile", Built),
    )
    if wheel is None or compiled is None:
        sys.exit("the build left no stamps")
    use = compiled.cache
    said = f"{use.hits} of {use.lookups} hits, {use.faults}" if use else "off"
    return wheel.wheel.sha256, said


def main() -> None:
    """Build, damage, build again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--builds", type=int, default=50)
    parser.add_argument("--bazels", nargs="+", default=["0.26.1"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", type=Path, required=True, help="an empty directory to work in")
    parser.add_argument("--recipe", default="demo", help="one that differs from the demo little")
    asked = parser.parse_args()
    CHANCE.seed(asked.seed)
    RECIPE[0] = asked.recipe
    room: Path = asked.room.resolve()
    expected = {version: _prepared(version, room) for version in asked.bazels}
    for version, digest in expected.items():
        print(f"Bazel {version}: {digest[:16]} without a cache", flush=True)
    wrong = 0
    with nginx(room / "nginx") as url:
        for number in range(asked.builds):
            version = asked.bazels[number % len(asked.bazels)]
            digest, said = _round(version, room, url, served=number // len(asked.bazels) % 2 == 1)
            good = digest == expected[version]
            wrong += not good
            verdict = "same wheel" if good else "ANOTHER WHEEL"
            print(f"{number + 1:>3}  {version:<7} {said}  {verdict}", flush=True)
    print(f"{asked.builds} builds, {wrong} with another wheel")
    sys.exit(1 if wrong else 0)


def _prepared(version: str, room: Path) -> str:
    """Fetch and build once without a cache, then once to fill it."""
    digest, _ = built(job_with(version, CacheTable(enabled=False), room / "out"))
    with nginx(room / "nginx") as url:
        table = CacheTable(directory=room / "cache", server=url)
        built(job_with(version, table, room / "out"))
    return digest


def _round(version: str, room: Path, url: str, *, served: bool) -> tuple[str, str]:
    """Damage the cache, build, and let the next build find what this one left."""
    fault = CHANCE.choice(SERVER_FAULTS if served else DIRECTORY_FAULTS)
    size = 1e-6 if fault == "full" and not served else 20.0
    directory = room / ("empty" if served else "cache")
    if served:
        files.remove(directory)
        apply(fault, room / "nginx/data")
    else:
        apply(fault, directory / "ac")
        apply(fault, directory / "cas")
    with faulty(url, fault) if served else contextlib.nullcontext() as server:
        table = CacheTable(directory=directory, size=size, server=server)
        began = time.monotonic()
        digest, said = built(job_with(version, table, room / "out"))
    where = "server" if served else "directory"
    seconds = time.monotonic() - began
    return digest, f"{where:<9} {fault:<9} {seconds:5.1f} s  {said}"


if __name__ == "__main__":
    main()
