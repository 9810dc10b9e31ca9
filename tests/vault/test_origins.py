"""The ways to obtain an archive, each with what it really needs: servers, repositories, folders."""

import hashlib
import os
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Serve, make_file, make_folder
from tests.upstream import commit, run_git

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable
from tfwright.errors import SilentServerError, SupplyError
from tfwright.progress import SILENCE
from tfwright.tools import files, trees
from tfwright.tools.git import transport
from tfwright.tools.git.archive import Pack, write_archive
from tfwright.vault import origins, shortage
from tfwright.vault.origins import (
    DROP,
    GIT,
    MIRROR,
    PACKED,
    RECIPE,
    URL,
    VAULT,
    Attempt,
    Missing,
    Origins,
    Servers,
    Source,
    Supply,
    WantedArchive,
)
from tfwright.vault.store import Store

pytestmark = pytest.mark.medium

NOWHERE = "http://127.0.0.1:9"
"""Port 9 is out of use: whoever asks there is refused at once."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def served(tmp_path: Path, serve: Serve) -> tuple[str, Path]:
    """Serve a folder; return its address and the folder."""
    folder = make_folder(tmp_path / "served")
    return serve(folder), folder


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a repository with one tagged commit, of which one file can be left out."""
    work = tmp_path / "mirrors/o/r"
    commit(work, {"file.txt": "content", "test.txt": "large"})
    run_git("tag", "v1.0", cwd=work)
    return work / ".git"


def lose(repository: Path, name: str) -> None:
    """Remove the content of a file from a repository."""
    blob = run_git("rev-parse", f"HEAD:{name}", cwd=repository)
    (repository / "objects" / blob[:2] / blob[2:]).unlink()


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
    make_file(tmp_path / "drop/a", b"archive")
    wanted = WantedArchive("a", digest(b"archive"), (f"{address}a.tar.gz",))
    assert obtain(wanted, store, HostFile(drop=tmp_path / "drop")).ways == {wanted.sha256: URL}
    assert store.path(wanted.sha256).read_bytes() == b"archive"


def test_the_host_file_puts_another_beginning_before_the_rest_of_a_url(
    store: Store, served: tuple[str, Path]
) -> None:
    address, folder = served
    (folder / "a.tar.gz").write_bytes(b"archive")
    wanted = WantedArchive("a", digest(b"archive"), (f"{NOWHERE}/a.tar.gz",))
    host_file = HostFile(downloads={f"{NOWHERE}/": address})
    assert obtain(wanted, store, host_file).ways == {wanted.sha256: MIRROR}


def test_an_archive_of_github_is_made_again_from_a_mirror_and_no_network_is_needed(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    write_archive(Pack("r", "v1.0", "r-1.0/"), mirror, made)
    wanted = WantedArchive("r", files.sha256(made), ("https://github.com/o/r/archive/v1.0.tar.gz",))
    places = f"{tmp_path}/mirrors/{{owner}}/{{name}}/.git"
    host_file = HostFile(mirrors={"https://github.com/{owner}/{name}.git": places})
    assert obtain(wanted, store, host_file, offline=True).ways == {wanted.sha256: GIT}


def test_a_packed_commit_has_the_same_bytes_again_without_the_files_that_were_left_out(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    head = run_git("rev-parse", "HEAD", cwd=mirror)
    wanted = Pack("https://example.org/r.git", head, "r-1.0/", ("test.txt",))
    write_archive(wanted, mirror, tmp_path / "made")
    file = WantedArchive("r", files.sha256(tmp_path / "made"), (), pack=wanted)
    host_file = HostFile(mirrors={wanted.repository: str(mirror)})
    assert obtain(file, store, host_file, offline=True).ways == {file.sha256: PACKED}
    with tarfile.open(store.path(file.sha256)) as packed:
        assert packed.getnames() == ["r-1.0", "r-1.0/file.txt"]


def test_a_packed_commit_in_the_place_of_a_zip_file_is_one_and_not_compressed(
    mirror: Path, tmp_path: Path
) -> None:
    wanted = Pack("r", "v1.0", "r-1.0/", ("test.txt",), "zip", stored=True)
    write_archive(wanted, mirror, tmp_path / "made")
    with zipfile.ZipFile(tmp_path / "made") as made:
        assert [(member.filename, member.compress_type) for member in made.infolist()] == [
            ("r-1.0/", zipfile.ZIP_STORED),
            ("r-1.0/file.txt", zipfile.ZIP_STORED),
        ]


def test_a_mirror_that_lacks_a_left_out_file_can_still_be_packed(
    mirror: Path, tmp_path: Path
) -> None:
    lose(mirror, "test.txt")
    write_archive(Pack("r", "v1.0", "r/", ("test.txt",)), mirror, tmp_path / "made")
    with fails(SupplyError, "test.txt"):
        write_archive(Pack("r", "v1.0", "r/"), mirror, tmp_path / "made")


def test_a_dropped_file_is_found_by_its_digest_whatever_its_name_and_copied(
    store: Store, tmp_path: Path
) -> None:
    dropped = make_file(tmp_path / "drop/by hand/some name", b"given")
    wanted = WantedArchive("a", digest(b"given"), ())
    supply = obtain(wanted, store, HostFile(drop=tmp_path / "drop"), offline=True)
    assert supply.ways == {wanted.sha256: DROP}
    dropped.write_bytes(b"other")
    assert store.path(wanted.sha256).read_bytes() == b"given"


def test_a_dropped_file_that_vanishes_is_one_source_less(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drop").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"drop/{name}").write_bytes(b"given")
    looked = trees.files_below

    def racing(root: Path, *, follow: bool) -> Iterator[tuple[Path, os.stat_result]]:
        for path, state in looked(root, follow=follow):
            # As a program that copies does with the name that it used meanwhile.
            if path.name == "a":
                path.unlink()
            yield path, state

    monkeypatch.setattr(trees, "files_below", racing)
    wanted = WantedArchive("a", digest(b"given"), ())
    supply = obtain(wanted, store, HostFile(drop=tmp_path / "drop"), offline=True)
    assert supply.ways == {wanted.sha256: DROP}


def test_wrong_bytes_never_enter_whatever_the_way(
    store: Store, mirror: Path, served: tuple[str, Path], tmp_path: Path
) -> None:
    address, folder = served
    (folder / "v1.0.tar.gz").write_bytes(b"a page that says no")
    urls = (f"{address}v1.0.tar.gz", "https://github.com/o/r/archive/v1.0.tar.gz")
    host_file = HostFile(
        mirrors={"https://github.com/o/r.git": str(mirror)}, drop=tmp_path / "served"
    )
    (lacking,) = obtain(WantedArchive("r", "1" * 64, urls[:1]), store, host_file).missing
    assert "sha256" in lacking.attempts[0].why
    (lacking,) = obtain(WantedArchive("r", "1" * 64, urls), store, host_file, offline=True).missing
    assert [attempt.source.partition(",")[0] for attempt in lacking.attempts] == [GIT, DROP]
    assert store.digests() == []


def test_what_was_not_found_leaves_no_directory_behind(
    store: Store, served: tuple[str, Path]
) -> None:
    wanted = WantedArchive("r", "1" * 64, (f"{served[0]}gone.tar.gz",))
    (lacking,) = obtain(wanted, store, HostFile()).missing
    assert lacking.attempts
    assert not store.path(wanted.sha256).parent.exists()


def test_offline_no_server_is_asked(store: Store, served: tuple[str, Path]) -> None:
    address, folder = served
    (folder / "a.tar.gz").write_bytes(b"archive")
    wanted = WantedArchive("a", digest(b"archive"), (f"{address}a.tar.gz",))
    (lacking,) = obtain(wanted, store, HostFile(), offline=True).missing
    assert lacking.attempts == ()


def test_all_that_is_missing_is_named_at_once_with_each_source_in_the_log(
    store: Store, tmp_path: Path
) -> None:
    wanted = [
        WantedArchive(name, sha256 * 64, (f"{NOWHERE}/{name}.zip", f"{NOWHERE}/x/{name}.zip"), 1234)
        for name, sha256 in (("a", "1"), ("b", "2"))
    ]
    (tmp_path / "drop").mkdir()
    host_file = HostFile(drop=tmp_path / "drop")
    supply = origins.obtain(
        wanted, store, Origins(host_file, store.root, offline=True), SILENCE.progress
    )
    fault = shortage.error("small", supply.missing, {}, host_file, tmp_path / "log")
    assert fault.what == "Inputs that small needs could not be found: a, b"
    assert fault.evidence.lines == [
        f"a: the drop folder, {tmp_path}/drop: no file there has this checksum",
        f"b: the drop folder, {tmp_path}/drop: no file there has this checksum",
    ]
    assert fault.evidence.log == tmp_path / "log"
    logged = (tmp_path / "log").read_text("utf-8")
    assert f"a: sha256 {'1' * 64}, 1,234 bytes" in logged
    assert f"into {tmp_path}/drop" in fault.remedy
    assert "Then run 'invoke fetch --recipe small'." in fault.remedy


def test_a_drop_folder_that_is_a_file_is_said_to_be_none(store: Store, tmp_path: Path) -> None:
    (tmp_path / "drop").write_text("x", "utf-8")
    host_file = HostFile(drop=tmp_path / "drop")
    missing = obtain(WantedArchive("a", digest(b"a"), ()), store, host_file)
    fault = shortage.error("demo", missing.missing, {}, host_file, tmp_path / "log")
    assert fault.evidence.lines == [f"a: the drop folder, {tmp_path}/drop: it is not a directory"]
    assert 'drop = "/path/to/folder"' in fault.remedy


def test_a_file_that_has_no_url_is_not_said_to_be_offline(store: Store, tmp_path: Path) -> None:
    missing = obtain(WantedArchive("a", digest(b"a"), ()), store, HostFile())
    fault = shortage.error("demo", missing.missing, {}, HostFile(), tmp_path / "log")
    assert fault.evidence.lines == ["a: no source: it has no url"]


def test_no_password_of_a_mirror_gets_into_the_log(store: Store, tmp_path: Path) -> None:
    mirror = "http://me:secret@127.0.0.1:9/"
    host_file = HostFile(downloads={"http://up.invalid/": mirror})
    wanted = WantedArchive("a", digest(b"a"), ("http://up.invalid/a",))
    missing = obtain(wanted, store, host_file).missing
    fault = shortage.error("demo", missing, {}, host_file, tmp_path / "log")
    written = (tmp_path / "log").read_text("utf-8")
    assert "http://me:…@127.0.0.1:9/a: the host cannot be reached" in written
    assert "secret" not in written + str(fault.evidence)


def test_the_remedy_says_how_to_name_a_drop_folder_where_there_is_none(tmp_path: Path) -> None:
    lacking = Missing(WantedArchive("a", "1" * 64, (f"{NOWHERE}/a.zip",)), ())
    fault = shortage.error("small", [lacking], {}, HostFile(), tmp_path / "log")
    assert 'drop = "/path/to/folder"' in fault.remedy
    assert fault.evidence.lines == [f"a: {NOWHERE}/a.zip: not asked, this build is offline"]


def test_what_a_mirror_has_of_a_pinned_archive_is_a_substitute_to_copy(
    store: Store, tmp_path: Path
) -> None:
    made = commit(tmp_path / "upstream", {"kept.txt": "kept\n", "large.bin": "large\n"})
    lose(tmp_path / "upstream/.git", "large.bin")
    url = "https://github.com/o/r"
    host_file = HostFile(mirrors={f"{url}.git": str(tmp_path / "upstream/.git")})
    wanted = WantedArchive("a.b", "1" * 64, (f"{url}/archive/{made}.tar.gz",))
    missing = obtain(wanted, store, host_file, offline=True).missing
    fault = shortage.error("small", missing, {}, host_file, tmp_path / "log")
    table = "\n".join(line for line in missing[0].table_lines())
    assert list(fault.evidence.lines)[-6:] == table.splitlines()
    assert "'invoke pin --recipe small'" in fault.remedy
    # As it is, less the checksum that pin writes.
    values = tomllib.loads(f'{table}\nsha256 = "{"0" * 64}"')
    substitute = FetchTable.model_validate(values["fetch"]).substitutes["a.b"]
    assert (substitute.commit, substitute.exclude) == (made, ("large.bin",))
    content = Pack(f"{url}.git", made, "r/", substitute.exclude)
    write_archive(content, tmp_path / "upstream/.git", tmp_path / "packed")
    with tarfile.open(tmp_path / "packed") as packed:
        assert packed.getnames() == ["r", "r/kept.txt"]


def test_a_release_whose_own_bytes_are_not_found_has_its_tag_as_a_substitute_to_copy(
    store: Store, tmp_path: Path
) -> None:
    made = commit(tmp_path / "upstream", {"defs.bzl": "1\n"})
    run_git("tag", "v1.0", cwd=tmp_path / "upstream")
    url, drop = "https://github.com/o/r", tmp_path / "drop"
    drop.mkdir()
    host_file = HostFile(mirrors={f"{url}.git": str(tmp_path / "upstream/.git")}, drop=drop)
    wanted = WantedArchive("r", "1" * 64, (f"{url}/releases/download/v1.0/r-1.0.tar.gz",))
    missing = obtain(wanted, store, host_file, offline=True).missing
    fault = shortage.error("small", missing, {}, host_file, tmp_path / "log")
    # The drop folder was asked after it, and says nothing of this file.
    assert "a git mirror" in fault.evidence.lines[0]
    assert fault.evidence.lines[-1] == f'commit = "{made}"'


def test_a_note_counts_archives_and_names_each_repository_once() -> None:
    names = ["clang", "clang", "clang", "closure"]
    missing = tuple(Missing(WantedArchive(name, "1" * 64, ()), ()) for name in names)
    (note,) = Supply({}, missing).notes()
    assert note.startswith("Archives that were not found: 4 (clang, closure);")


def test_a_note_says_why_one_of_the_files_was_not_found() -> None:
    attempt = Attempt("https://a.example/a.zip", "no proxy answers")
    missing = Missing(WantedArchive("a", "1" * 64, ()), (attempt,))
    counted, reason = Supply({}, (missing,)).notes()
    assert counted.startswith("Archives that were not found: 1 (a);")
    assert reason.startswith("The last source of a was https://a.example/a.zip: no proxy answers")


def from_recipe(store: Store, wanted: WantedArchive, **place: object) -> Supply:
    """Obtain a file that only a source of the recipe has."""
    table = FetchTable.model_validate({"sources": [{"sha256": wanted.sha256, **place}]})
    sources = Origins(HostFile(), store.root.parent / "git", fetch=table)
    return origins.obtain([wanted], store, sources, SILENCE.progress)


def test_a_blob_of_a_repository_is_a_source(store: Store, mirror: Path) -> None:
    blob = run_git("rev-parse", "HEAD:file.txt", cwd=mirror)
    wanted = WantedArchive("a", digest(b"content"), ())
    supply = from_recipe(store, wanted, git=mirror.parent.as_uri(), blob=blob)
    assert supply.ways == {wanted.sha256: RECIPE}


def test_a_blob_that_a_repository_lacks_is_said_to_be_missing(store: Store, mirror: Path) -> None:
    wanted = WantedArchive("a", digest(b"content"), ())
    supply = from_recipe(store, wanted, git=mirror.parent.as_uri(), blob="0" * 40)
    assert "has no file with the id 000" in supply.missing[0].attempts[0].why


def test_another_repository_can_give_a_forges_archive(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    url = "https://github.com/o/r/archive/v1.0.tar.gz"
    source = Pack.of(url)
    assert source is not None
    write_archive(source, mirror, tmp_path / "made")
    wanted = WantedArchive("a", files.sha256(tmp_path / "made"), (url,))
    table = FetchTable.model_validate(
        {"sources": [{"sha256": wanted.sha256, "git": mirror.parent.as_uri()}]}
    )
    sources = Origins(HostFile(), store.root.parent / "git", fetch=table).other_sources(wanted)
    assert [source.where for source in sources] == [mirror.parent.as_uri()]
    sources[0].fill(tmp_path / "again")
    assert files.sha256(tmp_path / "again") == wanted.sha256


def test_all_files_that_a_mirror_lacks_are_named_at_once_with_the_line_to_write(
    mirror: Path, tmp_path: Path
) -> None:
    head = run_git("rev-parse", "HEAD", cwd=mirror)
    for name in ("file.txt", "test.txt"):
        lose(mirror, name)
    wanted = Pack("https://example.org/r.git", head, "r/", ())
    with fails(SupplyError, "file.txt, test.txt", 'exclude = ["file.txt", "test.txt"]'):
        write_archive(wanted, mirror, tmp_path / "packed")


def test_a_mirror_that_is_not_there_is_one_more_source_that_failed(
    store: Store, tmp_path: Path
) -> None:
    wanted = WantedArchive("a", "1" * 64, ("https://github.com/o/r/archive/v1.0.tar.gz",))
    gone = HostFile(mirrors={"https://github.com/o/r.git": str(tmp_path / "gone")})
    (lacking,) = obtain(wanted, store, gone, offline=True).missing
    assert lacking.attempts[0].why == f"{tmp_path}/gone is not a repository"


FORGES = {
    "a tar file": ("tar.gz", "git archive --prefix=r/ v1.0 | gzip -n"),
    "a zip file": ("zip", "TZ=UTC git archive --format=zip --prefix=r/ v1.0"),
    "a zip file in California": (
        "zip",
        "TZ=America/Los_Angeles git archive --format=zip --prefix=r/ v1.0",
    ),
    "bzip2": ("tar.bz2", "git archive --prefix=r/ v1.0 | bzip2"),
    "xz": ("tar.xz", "git archive --prefix=r/ v1.0 | xz -T1"),
    "not compressed": ("tar", "git archive --prefix=r/ v1.0"),
}


@pytest.mark.parametrize(("form", "command"), FORGES.values(), ids=FORGES)
def test_another_forges_archive_is_made_in_the_form_that_its_address_names(
    store: Store, mirror: Path, form: str, command: str
) -> None:
    made = subprocess.run(["sh", "-c", command], cwd=mirror, check=True, capture_output=True).stdout
    url = f"{NOWHERE}/o/r/archive/v1.0.{form}"
    wanted = WantedArchive("a", digest(made), (url,))
    supply = from_recipe(store, wanted, git=mirror.parent.as_uri(), ref="v1.0", prefix="r")
    assert supply.ways == {wanted.sha256: RECIPE}


def test_an_archive_of_a_gitlab_is_made_of_the_hosts_mirror_of_its_repository(
    store: Store, mirror: Path, tmp_path: Path
) -> None:
    url = "https://mirror.example/gitlab.com/o/r/-/archive/v1.0/r-v1.0.tar.bz2"
    source = Pack.of(url)
    assert source
    write_archive(source, mirror, tmp_path / "made")
    wanted = WantedArchive("r", files.sha256(tmp_path / "made"), (url,))
    host_file = HostFile(mirrors={"https://gitlab.com/o/r.git": str(mirror)})
    assert obtain(wanted, store, host_file, offline=True).ways == {wanted.sha256: GIT}


def silent(asked: list[str], server: str, *, answers: bool = False) -> Source:
    """Return a source whose server is out of reach, or has no such file."""

    def fill(_: Path) -> None:
        asked.append(server)
        if answers:
            raise SupplyError("it has no such file", remedy="-")
        raise SilentServerError("no route", remedy="-")

    return Source(GIT, server, remote=True, fill=fill, server=server)


def test_a_server_that_is_out_of_reach_is_not_asked_for_each_file_again(tmp_path: Path) -> None:
    asked, servers = list[str](), Servers()
    for _ in range(20):
        for server in ("a", "b"):
            with pytest.raises(SupplyError):
                servers.fill(silent(asked, server), tmp_path / "file")
    assert asked == ["a", "b", "a", "b"]
    with fails(SupplyError, "no route"):
        servers.fill(silent(asked, "a"), tmp_path / "file")


def test_a_server_that_answered_in_between_is_asked_again(tmp_path: Path) -> None:
    asked, servers = list[str](), Servers()
    for number in range(20):
        with pytest.raises(SupplyError):
            servers.fill(silent(asked, "a", answers=bool(number % 2)), tmp_path / "file")
    assert len(asked) == 20


def test_many_files_of_one_repository_that_is_gone_ask_for_it_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def insist(address: str) -> None:
        asked.append(address)
        raise SilentServerError("no route", remedy="-")

    monkeypatch.setattr(transport, "check_host", insist)
    wanted = [
        WantedArchive(number, number * 64, (f"https://github.com/o/r/archive/{number}.zip",))
        for number in "012345678"
    ]
    mirrors = {"https://github.com/o/r.git": "https://gone.invalid/o/r.git"}
    places = Origins(HostFile(mirrors=mirrors), store.root.parent / "git")
    lacking = origins.obtain(wanted, store, places, SILENCE.progress).missing
    assert len(asked) == 2
    assert lacking[8].attempts[-1].why == "not asked again: no route"
