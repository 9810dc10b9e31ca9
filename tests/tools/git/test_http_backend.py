"""git's own server behind HTTP, `git http-backend`: what mirrors and forges run."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.failing import fails
from tests.serving import QuietHandler, serving
from tests.upstream import commit, run_git

from tfwright.errors import SupplyError
from tfwright.progress import SILENCE, Listener
from tfwright.tools.git import archive, clones, mirror, program
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository

URL = "https://example.org/r.git"
FILES = {"op.cc": "int op;\n", "WORKSPACE": "\n", "testdata/big": "big\n"}


class Backend(QuietHandler):
    """Runs git http-backend for each request, as nginx with fcgiwrap does."""

    root: Path
    protocol: bool
    """Whether the client's wish for protocol 2 reaches git; old set-ups drop that header."""
    status: int
    """What is answered instead of running git; 0 runs it."""

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.body())

    def body(self) -> bytes:
        """Read a body that may come in chunks: git sends its wishes so where they are many."""
        if length := self.headers.get("Content-Length"):
            return self.rfile.read(int(length))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def answer(self, content: bytes) -> None:
        """Run git, and translate its answer from CGI to HTTP."""
        if self.status:
            self.send_error(self.status)
            return
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=content,
            capture_output=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(content)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", "") if self.protocol else "",
            },
        )
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode("ascii").split("\r\n")]
        said = dict(lines)
        self.send_response(int(said.pop("Status", "200").split()[0]))
        for name, value in said.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


Serve = Callable[..., str]


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Make the served repository: two commits, and a server that gives files by their ids."""
    work = tmp_path / "work"
    commit(work, FILES)
    commit(work, {"op.cc": "int at;\n"}, "two")
    bare = tmp_path / "served/r.git"
    run_git("clone", "--quiet", "--bare", work, bare, cwd=tmp_path)
    run_git("config", "uploadpack.allowFilter", "true", cwd=bare)
    run_git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=bare)
    return bare


@pytest.fixture
def serve(upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return what starts the server and gives the repository's address."""
    monkeypatch.setattr(program, "PROTOCOLS", "http:https:ssh:file")
    with ExitStack() as running:

        def start(*, protocol: bool = True, status: int = 0) -> str:
            bound = {"root": upstream.parent, "protocol": protocol, "status": status}
            handler = type("Bound", (Backend,), bound)
            return running.enter_context(serving(handler)) + "/r.git"

        yield start


def pin_of(upstream: Path, which: str = "HEAD", exclude: tuple[str, ...] = ()) -> Pin:
    return Pin(URL, "main", run_git("rev-parse", which, cwd=upstream), exclude)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [True, False], ids=["protocol 2", "protocol 0"])
def test_both_a_branchs_end_and_its_past_come_from_a_real_server(
    serve: Serve, upstream: Path, tmp_path: Path, *, protocol: bool
) -> None:
    origin = Origin(serve(protocol=protocol))
    for which, expected in {"HEAD": "int at;\n", "HEAD~1": "int op;\n"}.items():
        pin = pin_of(upstream, which)
        place = mirror.fetch(pin, tmp_path / "git", origin, SILENCE, offline=False)
        assert GitRepository(place).text(f"{pin.commit}:op.cc") == expected


@pytest.mark.slow
def test_a_server_that_gives_branches_only_is_asked_for_the_whole_branch(
    serve: Serve, upstream: Path, tmp_path: Path, listener: Listener, notes: list[str]
) -> None:
    run_git("config", "uploadpack.allowAnySHA1InWant", "false", cwd=upstream)
    pin = pin_of(upstream, "HEAD~1")
    address = serve(protocol=False)
    place = mirror.fetch(pin, tmp_path / "git", Origin(address), listener, offline=False)
    assert GitRepository(place).kind(pin.commit) == "commit"
    assert any("whole branches only" in note for note in notes)


@pytest.mark.slow
def test_a_clone_and_an_archive_come_the_same_way(
    serve: Serve, upstream: Path, tmp_path: Path
) -> None:
    address, wanted = serve(), pin_of(upstream).commit
    place = clones.fetch(Clone(address, wanted), tmp_path / "git", Origin(address), offline=False)
    assert GitRepository(place).text(f"{wanted}:op.cc") == "int at;\n"
    place = archive.repository_with(wanted, Origin(address), tmp_path / "archives")
    assert GitRepository(place).text(f"{wanted}:op.cc") == "int at;\n"


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_server_that_refuses_is_quoted(
    serve: Serve, upstream: Path, tmp_path: Path, listener: Listener, status: int
) -> None:
    address = serve(status=status)
    with fails(SupplyError) as caught:
        mirror.fetch(pin_of(upstream), tmp_path / "git", Origin(address), listener, offline=False)
    said = " ".join([caught.value.what, *caught.value.evidence.lines])
    words = {401: "Username|Authentication|terminal prompts", 404: "not found"}
    assert any(word in said for word in [str(status), *words.get(status, "").split("|")])


@pytest.mark.slow
def test_an_object_that_is_damaged_on_the_server_never_gets_in(
    serve: Serve, upstream: Path, tmp_path: Path, listener: Listener
) -> None:
    pin = pin_of(upstream)
    for path in (upstream / "objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-3] + b"bad")
    for path in (upstream / "objects/pack").glob("*.pack"):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    with fails(SupplyError):
        mirror.fetch(pin, tmp_path / "git", Origin(serve()), listener, offline=False)
