"""git servers that lie or never end: git is stopped, the disk is given back, and nothing of the server is run."""

import hashlib
import os
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.failing import fails
from tests.serving import QuietHandler, serving
from tests.upstream import commit

from tfwright.errors import SupplyError, ToolError
from tfwright.printable import printable_lines
from tfwright.progress import SILENCE
from tfwright.tools.git import archive, clones, mirror, program, transport
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.remote import Remote
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.process import supervised
from tfwright.tools.process.command import Command
from tfwright.tools.process.supervised import Allowance

pytestmark = pytest.mark.medium

COMMIT = "1" * 40
FLUSH = b"0000"


def packet(content: bytes) -> bytes:
    """Return one line of git's protocol."""
    return b"%04x" % (len(content) + 4) + content


CAPABILITIES = (
    packet(b"# service=git-upload-pack\n")
    + FLUSH
    + packet(b"version 2\n")
    + packet(b"ls-refs=unborn\n")
    + packet(b"fetch=shallow filter\n")
    + packet(b"object-format=sha1\n")
    + FLUSH
)
Lie = Callable[["Handler"], None]


class Handler(QuietHandler):
    """Speaks git's protocol over HTTP until it comes to the lie."""

    lies: dict[str, Lie]

    def do_GET(self) -> None:
        if "advertise" in self.lies:
            self.lies["advertise"](self)
        else:
            self.begin("application/x-git-upload-pack-advertisement")
            self.wfile.write(CAPABILITIES)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = "fetch" if b"command=fetch" in body else "refs"
        self.begin("application/x-git-upload-pack-result")
        if asked in self.lies:
            self.lies[asked](self)
        else:
            self.wfile.write(packet(COMMIT.encode() + b" refs/heads/main\n") + FLUSH)

    def begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()


def endless_pack(handler: Handler) -> None:
    """Send objects for ever, each a valid one."""
    content = os.urandom(30_000)
    size = len(content)
    head = bytes([0xB0 | (size & 15) | 0x80, (size >> 4) & 0x7F | 0x80, size >> 11])
    entry = head + zlib.compress(content)
    handler.wfile.write(packet(b"packfile\n"))
    handler.wfile.write(packet(b"\x01PACK\0\0\0\x02\0\x0f\xff\xff"))
    while True:
        handler.wfile.write(packet(b"\x01" + entry))


def endless_refs(handler: Handler) -> None:
    for number in range(10**9):
        handler.wfile.write(packet(b"%s refs/heads/%d\n" % (COMMIT.encode(), number)))


def endless_progress(handler: Handler) -> None:
    handler.wfile.write(packet(b"packfile\n"))
    while True:
        handler.wfile.write(packet(b"\x02\x1b]52;c;eA==\x07 counting" + b"x" * 30_000 + b"\r"))
        time.sleep(0.001)


def endless_refusal(handler: Handler) -> None:
    """Ask for a password, and go on: git throws the text of such an answer away."""
    handler.send_response(401)
    handler.send_header("WWW-Authenticate", 'Basic realm="none"')
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65536)


def says_an_escape(handler: Handler) -> None:
    handler.wfile.write(packet(b"packfile\n"))
    handler.wfile.write(packet(b"\x03\x1b]52;c;eA==\x07 forged\n"))


def redirects_to(address: str) -> Lie:
    def lie(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", address)
        handler.end_headers()

    return lie


def other_object(handler: Handler) -> None:
    """Send a pack with one valid blob, and not the commit."""
    content = b"evil"
    body = b"PACK\0\0\0\x02\0\0\0\x01" + bytes([0x30 | len(content)]) + zlib.compress(content)
    handler.wfile.write(packet(b"packfile\n"))
    trailer = hashlib.sha1(body).digest()  # noqa: S324 git's own
    handler.wfile.write(packet(b"\x01" + body + trailer) + FLUSH)


Serve = Callable[..., str]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return what starts a server with lies and gives its address."""
    monkeypatch.setattr(program, "PROTOCOLS", "http:https:ssh:file")
    with ExitStack() as running:

        def start(**lies: Lie) -> str:
            handler = type("Bound", (Handler,), {"lies": lies})
            return running.enter_context(serving(handler)) + "/r.git"

        yield start


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where mirrors go, with little room for a transfer."""
    monkeypatch.setattr(transport, "LARGEST", 4_000_000)
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 1.0)
    return tmp_path / "git"


def bring(store: Path, address: str) -> SupplyError:
    pin = Pin("https://example.org/r.git", "main", COMMIT)
    with fails(SupplyError) as caught:
        mirror.fetch(pin, store, Origin(address), SILENCE, offline=False)
    return caught.value


def left(store: Path) -> int:
    return sum(path.stat().st_size for path in store.rglob("objects/pack/*"))


def test_a_pack_without_end_is_stopped_and_its_room_is_given_back(
    serve: Serve, store: Path
) -> None:
    told = bring(store, serve(fetch=endless_pack))
    assert "it wrote more than 4,000,000 bytes" in told.what
    assert left(store) == 0


def test_a_clone_and_an_archive_are_bounded_alike(serve: Serve, store: Path) -> None:
    address = serve(fetch=endless_pack)
    with fails(SupplyError, "it wrote more than"):
        clones.fetch(Clone(address, COMMIT), store, Origin(address), offline=False)
    with fails(SupplyError, "it wrote more than"):
        archive.repository_with(COMMIT, Origin(address), store)


def test_an_answer_without_end_that_brings_nothing_is_not_waited_for(
    serve: Serve, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LONGEST_PAUSE", 1.0)
    told = bring(store, serve(advertise=endless_refusal))
    assert told.what.endswith("git was stopped: it brought nothing for 1 seconds")


def test_branches_without_end_are_not_waited_for(serve: Serve, store: Path) -> None:
    repository = GitRepository(store / "m.git").make()
    begun = time.monotonic()
    with pytest.raises(SupplyError, match=r"it took more than 1 seconds|it printed more"):
        transport.list_refs(repository, serve(refs=endless_refs))
    assert time.monotonic() - begun < 8


def test_what_commands_ask_of_a_server_is_bounded_too(serve: Serve, store: Path) -> None:
    repository = GitRepository(store / "looking.git").make()
    begun = time.monotonic()
    with pytest.raises(SupplyError, match=r"took more than|printed more"):
        Remote(store, serve(refs=endless_refs)).head("main")
    address = serve(fetch=endless_pack)
    with fails(SupplyError, "it wrote more than"):
        Remote(store, address)._fetch_texts(repository, COMMIT, ("a",))
    assert Remote(store, address).commits("0" * 40, COMMIT) == []
    assert left(store) == 0
    assert time.monotonic() - begun < 60


def test_a_branch_that_only_ends_as_the_wanted_one_is_not_it(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "r.git").make()
    name = repository.collect("mktree").decode().strip()
    repository.run("update-ref", "refs/x/refs/heads/main", name)
    with fails(SupplyError, "main"):
        Remote(tmp_path, f"file://{repository.path}").head("main")


@pytest.mark.parametrize(
    "address",
    ["file:///etc", "ext::sh -c 'touch /tmp/x'", "ssh://-oProxyCommand=x/r", "http://[::1"],
)
def test_a_redirect_leads_to_no_other_transport(serve: Serve, store: Path, address: str) -> None:
    assert bring(store, serve(advertise=redirects_to(address))).exit_status == 4
    assert left(store) == 0


def test_a_pack_without_the_commit_is_refused(serve: Serve, store: Path) -> None:
    assert COMMIT[:12] in bring(store, serve(fetch=other_object)).what


@pytest.mark.parametrize("lie", [says_an_escape, other_object])
def test_what_a_server_says_cannot_reach_the_terminal(serve: Serve, store: Path, lie: Lie) -> None:
    told = bring(store, serve(fetch=lie))
    shown = [told.what, *told.evidence.lines]
    assert all(printable_lines(text) == text and "\x1b" not in text for text in shown)


def python(code: str, place: Path) -> Command:
    return Command((sys.executable, "-c", code), place, {"PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = bytearray(300_000_000); import time; time.sleep(60)", "bytes of memory"),
        ("import time; time.sleep(60)", "more than 1 seconds"),
        ("while True: print('x' * 1000)", "it printed more than"),
        ("f = open('big', 'wb')\nwhile True: f.write(b'x' * 10000)", "it wrote more than"),
    ],
)
def test_a_program_that_takes_too_much_is_ended(tmp_path: Path, code: str, why: str) -> None:
    seconds = 1 if "seconds" in why else 30
    allowance = Allowance(
        tmp_path, growth=2_000_000, seconds=seconds, memory=150_000_000, output=1_000_000
    )
    ended = supervised.run(python(code, tmp_path), allowance, list)
    assert re.search(why, ended.excess)
    assert ended.status != 0


@pytest.mark.parametrize(
    "moves",
    ["print('.', file=sys.stderr, flush=True)", "open('a', 'a').write('a')"],
    ids=["reports", "writes"],
)
def test_a_program_that_reports_or_writes_something_is_not_idle(tmp_path: Path, moves: str) -> None:
    code = f"import sys, time\nfor _ in range(4): time.sleep(0.4); {moves}"
    allowance = Allowance(tmp_path, 1000, idle=1.25)
    ended = supervised.run(python(code, tmp_path), allowance, list)
    assert (ended.status, ended.excess) == (0, "")


def test_an_honest_program_is_left_alone(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('one\\rtwo', file=sys.stderr)"
    ended = supervised.run(python(code, tmp_path), Allowance(tmp_path, 1000), list)
    assert (ended.status, ended.printed, ended.excess) == (0, b"out\n", "")
    assert ended.complaint.split() == ["one", "two"]


@pytest.mark.slow
def test_a_real_server_gives_a_commit_through_the_same_bounds(tmp_path: Path, store: Path) -> None:
    work = tmp_path / "work"
    made = commit(work, {"file": "content"})
    pin = Pin("https://example.org/r.git", "main", made)
    place = mirror.fetch(pin, store, Origin(work.as_uri()), SILENCE, offline=False)
    assert GitRepository(place).kind(made) == "commit"
    with fails(ToolError):
        GitRepository(place).run("cat-file", "-e", COMMIT)
