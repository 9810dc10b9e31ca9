"""Files out of packages: with clients on PATH that behave like the registries' own."""

import io
import os
import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_folder, make_program, make_tar

from tfwright.errors import SupplyError
from tfwright.tools import apt, registry
from tfwright.tools.registry import RegistryPackage


def package(path: Path) -> Path:
    """Make a package of npm's form with one archive in it."""
    return make_tar(path, {"package/deps/a.tar.gz": "bytes", "../evil": "evil"})


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a directory of programs first on PATH."""
    folder = make_folder(tmp_path / "clients")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def program(path: Path, text: str) -> None:
    make_program(path, f"#!/bin/sh\n{text}\n")


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("pkg:npm/sqlite3@4.0.4", RegistryPackage("npm", "sqlite3", "4.0.4")),
        ("pkg:npm/@bazel/x@1.0", RegistryPackage("npm", "@bazel/x", "1.0")),
        ("pkg:pypi/six@1.10.0", RegistryPackage("pypi", "six", "1.10.0")),
        ("pkg:deb/debian/pcre3", RegistryPackage("deb", "pcre3", "")),
        ("pkg:deb/debian/pcre3@2:8.39-15", RegistryPackage("deb", "pcre3", "2:8.39-15")),
    ],
)
def test_a_package_url_is_read(url: str, read: RegistryPackage) -> None:
    assert RegistryPackage.of(url) == read


@pytest.mark.parametrize("url", ["pkg:npm/--x@1", "pkg:gem/a@1", "npm:a", "pkg:npm/a@1 --x"])
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not a package URL"):
        RegistryPackage.of(url)


@pytest.mark.usefixtures("host_and_container")
def test_a_member_of_an_npm_package_is_copied_and_nothing_is_unpacked(
    clients: Path, tmp_path: Path
) -> None:
    # It writes what it keeps for itself next to the package, not into a home that may be missing.
    says = f'[ "$2" = --ignore-scripts ] && cp {package(tmp_path / "p.tgz")} x.tgz'
    keeps = 'for each; do case $each in --cache=*) mkdir "${each#--cache=}" && exit;; esac; done; exit 1'
    program(clients / "npm", f"{says} || exit 1; {keeps}")
    wanted = RegistryPackage("npm", "a", "1")
    registry.extract(wanted, "package/deps/a.tar.gz", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"bytes"
    with fails(SupplyError, "npm package a 1", "nothing"):
        registry.extract(wanted, "nothing", tmp_path / "target")


@pytest.mark.parametrize("damage", ["cut", "flipped", "a zip"])
def test_a_damaged_package_is_called_so(clients: Path, tmp_path: Path, damage: str) -> None:
    content = bytearray(package(tmp_path / "p.tgz").read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    else:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as made:
            made.writestr("package/deps/a.tar.gz", b"bytes")
        content = bytearray(packed.getvalue().replace(b"bytes", b"other"))
    (tmp_path / "damaged").write_bytes(content)
    program(clients / "npm", f"cp {tmp_path}/damaged x.tgz")
    with fails(SupplyError, "npm package a 1"):
        registry.extract(RegistryPackage("npm", "a", "1"), "package/deps/a.tar.gz", tmp_path / "t")


@pytest.mark.usefixtures("host_and_container")
def test_a_source_package_is_asked_of_the_hosts_own_servers_with_lists_of_its_own(
    clients: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        apt, "host_archives", lambda form: [form.replace("$(SITE)", "http://m.example")]
    )
    program(
        clients / "apt-get",
        'case "$*" in *update) cat "$(dirname "$APT_CONFIG")/sources.list" '
        f"> {tmp_path}/asked;; *) printf orig > a.orig.tar.bz2;; esac",
    )
    registry.extract(RegistryPackage("deb", "a", ""), "a.orig.tar.bz2", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"orig"
    assert (tmp_path / "asked").read_text().startswith("deb-src [trusted=yes] http://m.example ")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (("npm error code E404",), "npm error code E404"),
        # Its own code and its stack say nothing.
        (
            (
                "npm error     at onSocketNT (node:904:5)",
                "npm error code ERR_INVALID_URL",
                "npm error Invalid URL",
            ),
            "npm error code ERR_INVALID_URL; npm error Invalid URL",
        ),
    ],
)
def test_a_client_that_fails_is_quoted(
    clients: Path, tmp_path: Path, said: tuple[str, ...], shown: str
) -> None:
    lines = "; ".join(f"echo '{line}'" for line in said)
    program(clients / "npm", f"{lines}; exit 1")
    with fails(SupplyError, shown):
        registry.extract(RegistryPackage("npm", "a", "1"), "b", tmp_path / "target")
