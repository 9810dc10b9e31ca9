"""GitHub's archives, made again."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.upstream import run_git

from tfwright.errors import SupplyError
from tfwright.tools.git.archive import SourceArchive, regenerate


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a bare repository with one tagged commit."""
    work, bare = tmp_path / "work", tmp_path / "bare"
    stamp = "2018-01-01T12:00:00Z"
    work.mkdir()
    (work / "file.txt").write_text("content", "utf-8")
    run_git("init", "--quiet", cwd=work)
    run_git("add", ".", cwd=work)
    run_git("commit", "--quiet", "-m", "One", cwd=work, GIT_COMMITTER_DATE=stamp)
    run_git("tag", "v1.0", cwd=work)
    run_git("clone", "--quiet", "--bare", work, bare, cwd=tmp_path)
    return bare


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        (
            "https://github.com/glennrp/libpng/archive/v1.6.34.tar.gz",
            "libpng-1.6.34/",
        ),
        (
            "https://mirror.bazel.build/github.com/NVlabs/cub/archive/1.8.0.zip",
            "cub-1.8.0/",
        ),
        (
            "https://github.com/LMDB/lmdb/archive/LMDB_0.9.19.tar.gz",
            "lmdb-LMDB_0.9.19/",
        ),
        ("https://github.com/a/b/archive/refs/tags/v2.0.tar.gz", "b-2.0/"),
        ("https://github.com/google/vault/archive/vaults.zip", "vault-vaults/"),
    ],
)
def test_an_archive_unpacks_into_the_directory_that_github_names(
    url: str, prefix: str
) -> None:
    archive = SourceArchive.of(url)
    assert archive is not None
    assert archive.prefix == prefix


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
    assert SourceArchive.of(url) is None


def test_a_tar_archive_has_the_prefix_and_a_gzip_header_without_name_or_time(
    mirror: Path, tmp_path: Path
) -> None:
    regenerate(
        SourceArchive("o", "r", "v1.0", "tar.gz"), mirror, tmp_path / "made"
    )
    made = (tmp_path / "made").read_bytes()
    assert made[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(made))) as tar:
        assert tar.getnames() == ["r-1.0", "r-1.0/file.txt"]


def test_a_zip_archive_is_written_in_californian_time(
    mirror: Path, tmp_path: Path
) -> None:
    regenerate(SourceArchive("o", "r", "v1.0", "zip"), mirror, tmp_path / "made")
    with zipfile.ZipFile(tmp_path / "made") as made:
        assert made.getinfo("r-1.0/file.txt").date_time == (2018, 1, 1, 4, 0, 0)
        assert made.read("r-1.0/file.txt") == b"content"


def test_a_ref_that_the_mirror_lacks_is_told(
    mirror: Path, tmp_path: Path
) -> None:
    with pytest.raises(SupplyError, match=r"cannot give v9\.9"):
        regenerate(
            SourceArchive("o", "r", "v9.9", "tar.gz"), mirror, tmp_path / "made"
        )
