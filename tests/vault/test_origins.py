"""The ways to obtain an archive, each with what it really needs: servers, repositories, folders."""

import hashlib
import http.server
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfwright.documents.host_file import HostFile
from tfwright.errors import SupplyError
from tfwright.progress import SILENCE
from tfwright.tools import files
from tfwright.tools.git.archive import Pack, SourceArchive, pack, regenerate
from tfwright.vault import origins
from tfwright.vault.origins import (
    DROP,
    GIT,
    MIRROR,
    PACKED,
    URL,
    VAULT,
    Origins,
    Supply,
    WantedArchive,
)
from tfwright.vault.store import Store

NOWHERE = "http://127.0.0.1:9"
"""Port 9 is out of use: whoever asks there is refused at once."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve a folder; return its address and the folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type] # the server passes the three that it should

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a repository with one tagged commit, of which one file can be left out."""
    work = tmp_path / "mirrors/o/r"
    work.mkdir(parents=True)
    (work / "file.txt").write_text("content", "utf-8")
    (work / "test.txt").write_text("large", "utf-8")
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(work))
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "One"), ("tag", "v1.0")):
        subprocess.run([*git, *command], check=True)
    return work / ".git"


def obtain(
    wanted: WantedArchive, store: Store, host_file: HostFile, *, offline: bool = False
) -> Supply:
    return origins.obtain(
        [wanted], store, Origins(host_file, store.root.parent / "git", offline), SILENCE.progress
    )


def test_what_the_vault_holds_is_not_asked_for(store: Store) -> None:
    with store.admitting(digest(b"kept"), "here") as path:
        path.write_bytes(b"kept")
    wanted = WantedArchive("a", digest(b"kept"), (f"{NOWHERE}/a.tar.gz",))
    assert obtain(wanted, store, HostFile()).ways == {wanted.sha256: VAULT}


def test_the_urls_come_first(store: Store, served: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = served
    (folder / "a.tar.gz").write_bytes(b"archive")
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/a").write_bytes(b"archive")
    wanted = WantedArchive("a", digest(b"archive"), (f"{address}/a.tar.gz",))
    assert obtain(wanted, store, HostFile(drop=tmp_path / "drop")).ways == {wanted.sha256: URL}
    assert store.path(wanted.sha256).read_bytes() == b"archive"


def test_the_host_file_puts_another_beginning_before_the_rest_of_a_url(
    store: Store, served: tuple[str, Path]
) -> None:
    address, folder = served
    (folder / "a.tar.gz").write_bytes(b"archive")
    wanted = WantedArchive("a", digest(b"archive"), (f"{NOWHERE}/a.tar.gz",))
    assert obtain(wanted, store, HostFile(downloads={f"{NOWHERE}/": f"{address}/"})).ways == {
        wanted.sha256: MIRROR
    }


def test_an_archive_of_github_is_made_again_from_a_mirror_and_no_network_is_needed(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    regenerate(SourceArchive("o", "r", "v1.0", "tar.gz"), mirror, made)
    wanted = WantedArchive("r", files.sha256(made), ("https://github.com/o/r/archive/v1.0.tar.gz",))
    host_file = HostFile(
        mirrors={
            "https://github.com/{owner}/{name}.git": f"{tmp_path}/mirrors/{{owner}}/{{name}}/.git"
        }
    )
    assert obtain(wanted, store, host_file, offline=True).ways == {wanted.sha256: GIT}


def test_a_packed_commit_has_the_same_bytes_again_without_the_files_that_were_left_out(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    commit = subprocess.run(
        ["git", "-C", mirror, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    wanted = Pack("https://example.org/r.git", commit, "r-1.0/", ("test.txt",))
    pack(wanted, mirror, tmp_path / "made")
    file = WantedArchive("r", files.sha256(tmp_path / "made"), (), pack=wanted)
    assert obtain(
        file, store, HostFile(mirrors={wanted.repository: str(mirror)}), offline=True
    ).ways == {file.sha256: PACKED}
    listed = subprocess.run(
        ["tar", "--list", "--gzip", "--file", store.path(file.sha256)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert listed.split() == ["r-1.0/", "r-1.0/file.txt"]


def test_a_packed_commit_in_the_place_of_a_zip_file_is_one_and_not_compressed(
    mirror: Path, tmp_path: Path
) -> None:
    pack(
        Pack("https://example.org/r.git", "v1.0", "r-1.0/", ("test.txt",), zipped=True),
        mirror,
        tmp_path / "made",
    )
    with zipfile.ZipFile(tmp_path / "made") as made:
        assert [(one.filename, one.compress_type) for one in made.infolist()] == [
            ("r-1.0/", zipfile.ZIP_STORED),
            ("r-1.0/file.txt", zipfile.ZIP_STORED),
        ]


def test_a_mirror_that_lacks_a_left_out_file_can_still_be_packed(
    mirror: Path, tmp_path: Path
) -> None:
    blob = subprocess.run(
        ["git", "-C", mirror, "rev-parse", "HEAD:test.txt"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (mirror / "objects" / blob[:2] / blob[2:]).unlink()
    pack(Pack("r", "v1.0", "r/", ("test.txt",)), mirror, tmp_path / "made")
    with pytest.raises(SupplyError, match=r"cannot give v1\.0"):
        pack(Pack("r", "v1.0", "r/"), mirror, tmp_path / "made")


def test_a_dropped_file_is_found_by_its_digest_whatever_its_name_and_copied(
    store: Store, tmp_path: Path
) -> None:
    dropped = tmp_path / "drop/by hand/some name"
    dropped.parent.mkdir(parents=True)
    dropped.write_bytes(b"given")
    wanted = WantedArchive("a", digest(b"given"), ())
    assert obtain(wanted, store, HostFile(drop=tmp_path / "drop"), offline=True).ways == {
        wanted.sha256: DROP
    }
    dropped.write_bytes(b"other")
    assert store.path(wanted.sha256).read_bytes() == b"given"


def test_wrong_bytes_never_enter_whatever_the_way(
    store: Store, mirror: Path, served: tuple[str, Path], tmp_path: Path
) -> None:
    address, folder = served
    (folder / "v1.0.tar.gz").write_bytes(b"a page that says no")
    urls = (f"{address}/v1.0.tar.gz", "https://github.com/o/r/archive/v1.0.tar.gz")
    host_file = HostFile(
        mirrors={"https://github.com/o/r.git": str(mirror)}, drop=tmp_path / "served"
    )
    (lacking,) = obtain(WantedArchive("r", "1" * 64, urls[:1]), store, host_file).missing
    assert "sha256" in lacking.attempts[0].why
    (lacking,) = obtain(WantedArchive("r", "1" * 64, urls), store, host_file, offline=True).missing
    assert [attempt.source.partition(",")[0] for attempt in lacking.attempts] == [GIT, DROP]
    assert store.digests() == []


def test_offline_no_server_is_asked(store: Store, served: tuple[str, Path]) -> None:
    address, folder = served
    (folder / "a.tar.gz").write_bytes(b"archive")
    (lacking,) = obtain(
        WantedArchive("a", digest(b"archive"), (f"{address}/a.tar.gz",)),
        store,
        HostFile(),
        offline=True,
    ).missing
    assert lacking.attempts == ()


def test_what_no_way_gives_is_named_at_once_with_what_was_tried_and_what_it_blocks(
    store: Store,
) -> None:
    wanted = [
        WantedArchive(name, sha256 * 64, (f"https://example.org/{name}.zip",), 1234)
        for name, sha256 in (("a", "1"), ("b", "2"))
    ]
    supply = origins.obtain(
        wanted, store, Origins(HostFile(), store.root, offline=True), SILENCE.progress
    )
    fault = origins.unobtainable(supply.missing, {}, "//some:target")
    assert fault.what == "2 of the archives that //some:target needs cannot be had: a, b"
    assert fault.evidence.lines[:2] == [
        f"a: sha256 {'1' * 64}, 1,234 bytes",
        "    https://example.org/a.zip: not asked, since this is offline",
    ]
    assert "drop folder" in fault.remedy
