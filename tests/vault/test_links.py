"""The link-rot report, against a server that has some files, other ones, and none."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.making import make_file
from tests.serving import QuietHandler, serving

from tfwright.documents.host_file import HostFile
from tfwright.progress import SILENCE
from tfwright.vault import links
from tfwright.vault.links import ANSWERS, GONE, OTHER, SERVES, SILENT
from tfwright.vault.origins import Origins, Source, WantedArchive
from tfwright.vault.store import Store

CONTENT = b"an archive"
FILES = {"/good.zip": CONTENT, "/other.zip": b"another archive", "/same-size.zip": b"no archive"}
NO_HEAD = "/no-head.zip"


class Handler(QuietHandler):
    """Has a few files, one for which it refuses HEAD, one that it does not measure; one is busy."""

    def do_HEAD(self) -> None:
        if self.path == NO_HEAD:
            self.send_error(405)
        elif self.path == "/busy.zip":
            self.send_error(503)
        elif self.path == "/unmeasured.zip":
            self._answer(b"")
        else:
            self._answer(FILES.get(self.path))

    def do_GET(self) -> None:
        content = CONTENT if self.path == NO_HEAD else FILES.get(self.path)
        self._answer(content)
        self.wfile.write(content or b"")

    def _answer(self, content: bytes | None) -> None:
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()


@pytest.fixture
def address() -> Iterator[str]:
    with serving(Handler) as address:
        yield address


def states(
    address: str, store: Store, *names: str, deep: bool, host_file: HostFile | None = None
) -> list[str]:
    wanted = WantedArchive(
        "a",
        hashlib.sha256(CONTENT).hexdigest(),
        tuple(f"{address}/{name}.zip" for name in names),
        size=len(CONTENT),
    )
    (row,) = links.ask_sources(
        [(wanted, Origins(host_file or HostFile(), store.root))], store, SILENCE.progress, deep=deep
    )
    return [link.state for link in row.links]


@pytest.mark.medium
def test_a_head_tells_what_is_gone_and_what_has_another_size(address: str, store: Store) -> None:
    assert states(address, store, "good", "other", "missing", deep=False) == [ANSWERS, OTHER, GONE]


def test_only_the_bytes_tell_another_file_of_the_same_size(address: str, store: Store) -> None:
    assert states(address, store, "same-size", deep=False) == [ANSWERS]
    assert states(address, store, "same-size", "good", deep=True) == [OTHER, SERVES]


def test_a_server_that_is_busy_or_states_no_size_has_lost_nothing(
    address: str, store: Store
) -> None:
    assert states(address, store, "busy", "unmeasured", deep=False) == [SILENT, ANSWERS]


@pytest.mark.medium
def test_a_server_that_refuses_head_is_asked_for_the_file(address: str, store: Store) -> None:
    assert states(address, store, "no-head", deep=False) == [ANSWERS]


@pytest.mark.parametrize("deep", [False, True])
def test_a_host_that_cannot_be_asked_is_not_said_to_have_lost_the_file(
    store: Store, *, deep: bool
) -> None:
    assert states("http://127.0.0.1:9", store, "good", deep=deep) == [SILENT]


@pytest.mark.medium
def test_what_is_on_this_host_is_always_read(address: str, store: Store, tmp_path: Path) -> None:
    make_file(tmp_path / "drop/it", CONTENT)
    host_file = HostFile(drop=tmp_path / "drop", mirrors={})
    assert states(address, store, "missing", deep=False, host_file=host_file) == [GONE, SERVES]
    (tmp_path / "drop/it").unlink()
    assert states(address, store, "missing", deep=False, host_file=host_file) == [GONE, GONE]


def test_an_address_that_several_recipes_name_is_asked_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(_: object, source: Source, *__: object, **___: object) -> links.Link:
        asked.append(source.where)
        return links.Link(source.way, source.where, ANSWERS)

    monkeypatch.setattr(links, "_ask_source", ask)
    pairs = [
        (WantedArchive(name, "a" * 64, (url,)), Origins(HostFile(), store.root))
        for name, url in (("a", "http://x/1"), ("b", "http://x/1"), ("c", "http://x/2"))
    ]
    rows = links.ask_sources(pairs, store, SILENCE.progress, deep=False)
    assert asked == ["http://x/1", "http://x/2"]
    assert [(row.name, row.left) for row in rows] == [("a", 1), ("b", 1), ("c", 1)]
