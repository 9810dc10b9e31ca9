"""GitHub's archives, made again."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.upstream import run_git

from tfwright.errors import SupplyError
from tfwright.tools.git import archive
from tfwright.tools.git import repository as repositories
from tfwright.tools.git.archive import Pack, write_archive
from tfwright.tools.git.repository import GitRepository


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a bare repository with one tagged commit."""
    work, bare = tmp_path / "work", tmp_path / "bare"
    stamp = "2018-01-01T12:00:00Z"
    make_file(work / "file.txt", "content")
    run_git("init", "--quiet", cwd=work)
    run_git("add", ".", cwd=work)
    run_git("commit", "--quiet", "-m", "One", cwd=work, GIT_COMMITTER_DATE=stamp)
    run_git("tag", "v1.0", cwd=work)
    run_git("clone", "--quiet", "--bare", work, bare, cwd=tmp_path)
    return bare


@pytest.mark.parametrize(
    ("url", "repository", "prefix"),
    [
        ("github.com/NVlabs/cub/archive/v1.8.0.tar.gz", "github.com/NVlabs/cub", "cub-1.8.0/"),
        # The repository is that of the forge, and not of its mirror.
        ("mirror.example/github.com/a/b/archive/1.8.zip", "github.com/a/b", "b-1.8/"),
        ("github.com/LMDB/lmdb/archive/LMDB_0.9.tar.gz", "github.com/LMDB/lmdb", "lmdb-LMDB_0.9/"),
        ("github.com/a/b/archive/refs/tags/v2.0.tar.gz", "github.com/a/b", "b-2.0/"),
        ("github.com/google/vault/archive/vaults.zip", "github.com/google/vault", "vault-vaults/"),
        ("github.com/a/b/archive/v2.0/b-2.0.tar.gz", "github.com/a/b", "b-2.0/"),
        ("codeload.github.com/a/b/tar.gz/refs/tags/v2.0", "github.com/a/b", "b-2.0/"),
        ("codeload.github.com/a/b/zip/v2.0", "github.com/a/b", "b-2.0/"),
        ("github.com/a/b/releases/download/v2.0/b-v2.0.tar.gz", "github.com/a/b", "b-2.0/"),
        ("github.com/a/b/releases/download/2.0/b-2.0.tar.gz", "github.com/a/b", "b-2.0/"),
        ("github.com/a/b/releases/download/2.0/b.2.0.tar.gz", "github.com/a/b", "b-2.0/"),
        ("gitlab.com/a/b/-/archive/v3.3.9/b-v3.3.9.tar.gz", "gitlab.com/a/b", "b-v3.3.9/"),
        ("m.example/x/gitlab.com/a/b/c/-/archive/1/c-1.tar.bz2", "gitlab.com/a/b/c", "c-1/"),
        ("salsa.example/a/c/-/archive/feature/x/c-x.zip", "salsa.example/a/c", "c-feature-x/"),
    ],
)
def test_an_address_of_a_forge_says_which_repository_is_packed_below_which_directory(
    url: str, repository: str, prefix: str
) -> None:
    found = Pack.of(f"https://{url}")
    assert found is not None
    assert (found.repository, found.prefix) == (f"https://{repository}.git", prefix)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/o/r/releases/download/v1/x.tar.gz",
        "https://example.org/o/r/archive/v1.tar.gz",
        "https://github.com/o/r/archive/--output=x.tar.gz",
        "https://github.com/o/r/archive/-o.tar.gz",
    ],
)
def test_another_address_is_no_source_archive(url: str) -> None:
    assert Pack.of(url) is None


@pytest.mark.usefixtures("host_and_container")
def test_a_tar_archive_has_the_prefix_and_a_gzip_header_without_name_or_time(
    mirror: Path, tmp_path: Path
) -> None:
    write_archive(Pack("r", "v1.0", "r-1.0/"), mirror, tmp_path / "made")
    made = (tmp_path / "made").read_bytes()
    assert made[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(made))) as tar:
        assert tar.getnames() == ["r-1.0", "r-1.0/file.txt"]


@pytest.mark.usefixtures("host_and_container")
def test_a_zip_archive_is_written_in_californian_time(mirror: Path, tmp_path: Path) -> None:
    write_archive(Pack("r", "v1.0", "r-1.0/", form="zip"), mirror, tmp_path / "made")
    with zipfile.ZipFile(tmp_path / "made") as made:
        assert made.getinfo("r-1.0/file.txt").date_time == (2018, 1, 1, 4, 0, 0)
        assert made.read("r-1.0/file.txt") == b"content"


@pytest.mark.medium
def test_a_gitlab_writes_zip_archives_in_greenwich_time_and_compresses_by_bzip2(
    mirror: Path, tmp_path: Path
) -> None:
    made, forge = tmp_path / "made", "https://gitlab.com/o/r/-/archive/v1.0"
    for form in ("zip", "tar.bz2", "tar", "tar.gz"):
        found = Pack.of(f"{forge}/r-v1.0.{form}")
        assert found
        write_archive(found, mirror, made)
        if form == "zip":
            with zipfile.ZipFile(made) as made_of:
                assert made_of.getinfo("r-v1.0/file.txt").date_time[3] == 12
        else:
            with tarfile.open(made) as made_of:
                assert "r-v1.0/file.txt" in made_of.getnames()


@pytest.mark.usefixtures("mirror")
def test_a_commit_whose_files_repeat_each_other_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    for number in range(50):
        (work / str(number)).write_bytes(bytes(100_000))
    run_git("add", ".", cwd=work)
    run_git("commit", "--quiet", "-m", "Many", cwd=work)
    head = run_git("rev-parse", "HEAD", cwd=work)
    monkeypatch.setattr(archive, "LARGEST", 4_000_000)
    with fails(SupplyError, "5,000,007"):
        write_archive(Pack("r", head, "r/"), work / ".git", tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.usefixtures("mirror")
def test_a_file_of_a_repository_is_written_as_it_is_and_not_through_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(256)) * 40 + b"\r\nlast\n"
    (tmp_path / "work/a.tar.gz").write_bytes(content)
    run_git("add", ".", cwd=tmp_path / "work")
    run_git("commit", "--quiet", "-m", "Add", cwd=tmp_path / "work")
    blob = run_git("rev-parse", "HEAD:a.tar.gz", cwd=tmp_path / "work")
    monkeypatch.setattr(repositories, "LARGEST_TEXTS", 1000)
    archive.write_blob(blob, tmp_path / "work/.git", tmp_path / "made")
    assert (tmp_path / "made").read_bytes() == content
    with fails(SupplyError, "1,000"):
        GitRepository(tmp_path / "work/.git").blobs([blob])
