"""Obtaining Bazel: the store, the host file, the release, npm and PATH, each a real small thing."""

import hashlib
import io
import platform
import re
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.failing import fails
from tests.making import Serve, make_file, make_folder, make_tar

from tfwright.errors import RecipeError, SupplyError
from tfwright.tools.bazel import binary as bazel
from tfwright.tools.bazel.binary import Binary
from tfwright.tools.process.command import RunningContainer, inside_container

PLATFORM = bazel.platform_name()
VERSION = "0.26.1"


def fake(version: str = VERSION) -> bytes:
    """Return a program that says its version, with a zip at its end, as Bazel has."""
    buffer = io.BytesIO()
    buffer.write(f"#!/bin/sh\necho 'Build label: {version}'\nexit\n".encode())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(zipfile.ZipInfo("A-server.jar"), "")
    return buffer.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def program(path: Path, content: bytes | str) -> Path:
    make_file(path, content if isinstance(content, bytes) else content.encode())
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let no release, npm or bazel of this machine be found; return the directory that is PATH."""
    monkeypatch.setattr(bazel, "RELEASES", "http://127.0.0.1:9")
    monkeypatch.setattr(bazel, "PAUSES", ())
    path = make_folder(tmp_path / "path")
    monkeypatch.setenv("PATH", str(path))
    return path


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> Path:
    """Serve a directory as the place of the releases."""
    folder = make_folder(tmp_path / "releases")
    monkeypatch.setattr(bazel, "RELEASES", serve(folder).rstrip("/"))
    return folder


@pytest.fixture
def obtain(tmp_path: Path, notes: list[str]) -> "Obtain":
    return Obtain(tmp_path / "store", notes)


class Obtain:
    """Obtains Bazel into one store."""

    def __init__(self, store: Path, notes: list[str]) -> None:
        self.store, self.notes = store, notes

    def __call__(
        self,
        digests: Mapping[str, str] | None = None,
        given: Path | None = None,
        *,
        offline: bool = False,
    ) -> Binary:
        return bazel.obtain(
            VERSION,
            digests or {},
            (self.store,),
            given=given,
            offline=offline,
            note=self.notes.append,
        )


def refused(obtain: Obtain, *, offline: bool = False) -> SupplyError:
    """Return the error where no way leads to a Bazel."""
    with pytest.raises(SupplyError) as caught:
        obtain(offline=offline)
    return caught.value


def publish(releases: Path, content: bytes, sha256: str) -> None:
    name = f"bazel-{VERSION}-{PLATFORM}"
    program(releases / VERSION / name, content)
    (releases / VERSION / f"{name}.sha256").write_text(f"{sha256}  {name}\n", "utf-8")


def test_the_release_is_taken_first_and_checked_by_the_digest_beside_it(
    obtain: Obtain, releases: Path, notes: list[str]
) -> None:
    publish(releases, fake(), digest(fake()))
    binary = obtain()
    assert binary == Binary(
        obtain.store / f"bazel/{digest(fake())}/bazel", digest(fake()), "the official release"
    )
    assert binary.path.stat().st_mode & 0o777 == 0o755
    assert notes == ["Bazel 0.26.1 comes from the official release"]


def test_a_binary_in_the_store_is_used_without_asking_anyone(
    obtain: Obtain, releases: Path, notes: list[str]
) -> None:
    publish(releases, fake(), digest(fake()))
    first = obtain()
    (releases / VERSION).rename(releases / "gone")
    assert obtain(offline=True) == first
    assert notes[-1] == "Bazel 0.26.1 is in the vault; it came from the official release"


@pytest.mark.medium
def test_a_binary_that_was_damaged_in_the_store_is_obtained_again(
    obtain: Obtain, releases: Path
) -> None:
    publish(releases, fake(), digest(fake()))
    make_file(obtain().path, b"half")
    assert obtain().path.read_bytes() == fake()


def test_without_a_pin_a_release_that_is_not_what_was_published_is_refused(
    obtain: Obtain, releases: Path
) -> None:
    publish(releases, b"changed", digest(fake()))
    with fails(SupplyError, "sha256", digest(b"changed"), digest(fake())):
        obtain()


def test_a_release_without_a_checksum_next_to_it_is_not_believed(
    obtain: Obtain, releases: Path
) -> None:
    publish(releases, fake(), "<html>Not here</html>")
    assert refused(obtain).evidence.lines[0].endswith(".sha256 holds no SHA-256")


def test_a_machine_for_which_npm_has_no_bazel_is_not_advised_to_install_npm(
    obtain: Obtain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    fault = refused(obtain)
    assert re.fullmatch("npm: npm has no Bazel package for .*-riscv64", fault.evidence.lines[1])
    assert fault.remedy.startswith(f"Check the network and its proxy. Or: Bring bazel-{VERSION}-")


def test_when_no_way_leads_anywhere_each_says_why_and_the_remedy_names_the_file(
    obtain: Obtain,
) -> None:
    fault = refused(obtain)
    release, npm, path = fault.evidence.lines
    assert release.startswith("the official release: ")
    assert "Connection refused" in release
    assert (npm, path) == ("npm: npm is not installed", "PATH: it has no bazel")
    assert f"bazel-{VERSION}-{PLATFORM}" in fault.remedy
    assert fault.remedy.startswith("Install npm")
    assert list((obtain.store / "bazel").iterdir()) == []


def test_an_offline_build_asks_neither_the_release_nor_npm(
    obtain: Obtain, releases: Path, elsewhere: Path
) -> None:
    publish(releases, fake(), digest(fake()))
    program(elsewhere / "npm", "#!/bin/sh\nexit 1\n")
    assert refused(obtain, offline=True).evidence.lines == ["PATH: it has no bazel"]


def npm(elsewhere: Path, member: str, content: bytes) -> None:
    """Play an npm that packs one file."""
    package = make_tar(elsewhere / "package.tgz", {member: content})
    program(
        elsewhere / "npm",
        f'#!/bin/sh\necho "$@" > {elsewhere}/asked\nexec /bin/cp {package} bazel-{VERSION}.tgz\n',
    )


@pytest.mark.usefixtures("host_and_container")
def test_npm_is_asked_when_there_is_no_release(obtain: Obtain, elsewhere: Path) -> None:
    npm(elsewhere, f"package/bazel-{VERSION}-{PLATFORM}", fake())
    assert obtain().origin == "npm"
    asked = (elsewhere / "asked").read_text("utf-8").split()
    assert asked[-1] == f"{bazel.PACKAGES[PLATFORM]}@{VERSION}"


def test_what_npm_brings_must_have_the_pinned_bytes(obtain: Obtain, elsewhere: Path) -> None:
    npm(elsewhere, f"package/bazel-{VERSION}-{PLATFORM}", fake())
    with fails(SupplyError, "sha256", digest(fake()), "0" * 64):
        obtain({PLATFORM: "0" * 64})


SAYS = "\n".join(
    f"echo 'npm error {line}'" for line in ("code E404", "404 no such package", "A complete log")
)


@pytest.mark.parametrize(
    ("brought", "why"),
    [
        ("half a package", ""),
        ("nothing", ""),
        ("a path outside", "has no file"),
        ("a link to /etc/passwd", "has no file"),
        (f"a link to bazel-{VERSION}-{PLATFORM}", "has no file"),
        ("an error", "npm error 404 no such package"),
    ],
)
def test_what_npm_brings_may_be_damaged_or_hostile_or_nothing(
    obtain: Obtain, elsewhere: Path, tmp_path: Path, brought: str, why: str
) -> None:
    name, package = f"package/bazel-{VERSION}-{PLATFORM}", elsewhere / "package.tgz"
    npm(elsewhere, "package/bazel-../../../../escaped" if "outside" in brought else name, fake())
    if brought == "half a package":
        package.write_bytes(package.read_bytes()[:60])
    elif "link" in brought:
        with tarfile.open(package, "w:gz") as archive:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, brought.rpartition(" ")[2]
            archive.addfile(entry)
    elif brought == "nothing":
        program(elsewhere / "npm", "#!/bin/sh\nexit 0\n")
    elif brought == "an error":
        program(elsewhere / "npm", f"#!/bin/sh\n{SAYS}\nexit 1\n")
    (line,) = (line for line in refused(obtain).evidence.lines if line.startswith("npm: "))
    assert why in line
    assert not list(tmp_path.rglob("escaped"))


def test_a_bazel_on_path_is_taken_only_at_exactly_this_version(
    obtain: Obtain, elsewhere: Path
) -> None:
    program(elsewhere / "bazel", fake("0.26.0"))
    (line,) = refused(obtain, offline=True).evidence.lines
    assert line.endswith("is Bazel 0.26.0, not 0.26.1")
    program(elsewhere / "bazel", fake())
    assert obtain(offline=True).origin == "PATH"


def test_beside_an_open_container_a_bazel_is_asked_there_from_the_store(
    obtain: Obtain, elsewhere: Path
) -> None:
    container = Mock(spec=RunningContainer)
    container.command.side_effect = lambda command, **_: command
    program(elsewhere / "bazel", fake())
    with inside_container(container):
        assert obtain(offline=True).origin == "PATH"
    ((asked,), _) = container.command.call_args
    assert Path(asked.argv[0]).is_relative_to(obtain.store)


def test_a_launcher_on_path_is_not_bazel_and_is_not_even_run(
    obtain: Obtain, elsewhere: Path
) -> None:
    program(elsewhere / "bazel", f"#!/bin/sh\n: > {elsewhere}/ran\necho 'Build label: {VERSION}'\n")
    assert "a script or a launcher" in refused(obtain, offline=True).evidence.lines[0]
    assert not (elsewhere / "ran").exists()


def test_the_host_files_own_binary_comes_before_the_network(
    obtain: Obtain, releases: Path, tmp_path: Path
) -> None:
    publish(releases, fake(), digest(fake()))
    mine = fake() + b"\0"
    assert obtain(given=program(tmp_path / "my/bazel", mine)) == Binary(
        obtain.store / f"bazel/{digest(mine)}/bazel", digest(mine), "the host file"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "that file does not exist"),
        ("#!/bin/sh\n", "a script or a launcher"),
        (fake("0.25.0"), "is Bazel 0.25.0, not 0.26.1"),
        (fake().replace(b"echo", b"fail"), "does not run: .*: .*fail.* not found"),
    ],
)
def test_a_host_file_that_names_something_else_is_corrected_not_passed_over(
    obtain: Obtain, tmp_path: Path, content: bytes | str | None, says: str
) -> None:
    given = tmp_path / "given"
    if content is not None:
        program(given, content)
    with pytest.raises(RecipeError, match=says):
        obtain(given=given)


def test_a_binary_of_the_host_file_with_the_pinned_checksum_is_not_run(
    obtain: Obtain, tmp_path: Path
) -> None:
    content = f"#!/bin/sh\n: > {tmp_path}/ran\n"
    given = program(tmp_path / "given", content)
    pinned = digest(content.encode())
    assert obtain({PLATFORM: pinned}, given).sha256 == pinned
    assert not (tmp_path / "ran").exists()


def test_the_plan_finds_only_what_is_in_the_store(obtain: Obtain, tmp_path: Path) -> None:
    assert bazel.find_stored(VERSION, {}, (obtain.store,)) is None
    binary = obtain(given=program(tmp_path / "given", fake()))
    assert bazel.find_stored(VERSION, {}, (obtain.store,)) == binary
    assert bazel.find_stored(VERSION, {PLATFORM: "0" * 64}, (obtain.store,)) is None
