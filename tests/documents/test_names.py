"""What may be a name, a path or an address in a document."""

from collections.abc import Callable

import pytest

from tfwright.documents import names


@pytest.mark.parametrize(
    ("accept", "text", "message"),
    [
        (names.statement, " \t", "must say something"),
        (names.inner_path, "a/" + "b" * 201, "a component of more than 200 bytes"),
        # Bytes and not characters: file systems count them.
        (names.inner_path, "\u00e9" * 101, "a component of more than 200 bytes"),
        (names.inner_path, "/".join(["a" * 100] * 10), "longer than 1,000 bytes"),
        (names.inner_path, "", "must be a relative path"),
        (names.inner_path, "a/.GIT:x/config", "some file systems take for .git"),
        (names.git_url, "https://x/" + "a" * 2000, "longer than 2,000 characters"),
        (names.download_url, "http://x/" + "a" * 2000, "longer than 2,000 characters"),
        (names.download_url, "https://host/a b", "url without blanks"),
        (names.download_url, "gopher://host/a", "must be one http, https, ftp or file url"),
        (names.package_url, "pkg:cargo/serde@1", "must be a package URL"),
        (names.exact_pin, "numpy>=1", "must be an exact pin"),
        (names.recipe_name, "Vault", "that all recipes share"),
        (names.recipe_name, "a.lock", "must not end in .json or .lock"),
        (names.file_name, "-rf", "must be a file's name"),
    ],
)
def test_what_a_program_or_a_file_system_could_misread_is_refused(
    accept: Callable[[str], str], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        accept(text)


@pytest.mark.parametrize(
    ("accept", "text"),
    [
        (names.inner_path, "a/" + "b" * 200),
        (names.inner_path, "third_party/nccl/nccl.h"),
        (names.inner_path, "r1.8/0001-x.patch"),
        (names.inner_path, ".gitignore"),
        (names.inner_path, "a/.github/x"),
        (names.inner_path, "digit~1"),
        (names.download_url, "file:///srv/a.tar.gz"),
        (names.git_url, "ssh://git@host/a.git"),
        (names.package_url, "pkg:npm/@scope/name@1.2"),
        (names.package_url, "pkg:deb/debian/libcudart"),
        (names.exact_pin, "numpy==1.14.5"),
        (names.exact_pin, "numpy==1.14.5 --hash=sha256:" + "a" * 64),
        (names.exact_pin, "a-b.c[d,e]==1!2.0.post1+cpu"),
        (names.recipe_name, "linux-r1.8-cpu"),
    ],
)
def test_what_is_sound_is_kept_as_it_is(accept: Callable[[str], str], text: str) -> None:
    assert accept(text) == text
