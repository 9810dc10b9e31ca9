"""Bundles: written and read back, cut, corrupted, and made by somebody who means harm."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder

from tfwright.errors import HostError, SupplyError
from tfwright.progress import SILENCE, Progress
from tfwright.vault import bundle
from tfwright.vault.bundle import BundleMember, Content, Manifest

FILES = {"one.whl": b"one" * 1000, "two.whl": b"", "three.whl": b"3" * 512}


def manifest(members: tuple[BundleMember, ...]) -> Manifest:
    return Manifest(
        tfwright="0.1.0",
        recipe="small",
        platform="linux-x86_64",
        python="3.11",
        bazel="0.26.1",
        members=members,
    )


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a bundle of three files."""
    return make(tmp_path, "made.tar")


def make(folder: Path, name: str) -> Path:
    sources = [make_file(folder / file, content) for file, content in FILES.items()]
    return write(folder / name, *(bundle.member_of("tool", source) for source in sources))


def write(path: Path, *contents: Content) -> Path:
    sources = dict(contents)
    bundle.write(path, manifest(tuple(sources)), sources, SILENCE.progress)
    return path


def unpack(path: Path, folder: Path) -> dict[str, bytes]:
    into = make_folder(folder / "into")
    placed = bundle.unpack(path, bundle.read(path), into, SILENCE.progress)
    return {member.name: file.read_bytes() for member, file in placed.items()}


def forged(
    folder: Path,
    described: Mapping[str, object],
    pack: Callable[[tarfile.TarFile], None] = lambda _: None,
) -> Path:
    """Write a tar with a manifest that says one thing, and members that may be another."""
    path = folder / "forged.tar"
    values = {**manifest(()).model_dump(), **described}
    content = (json.dumps(values, indent=1) + "\n").encode()
    with tarfile.open(path, "w:", format=tarfile.GNU_FORMAT) as archive:
        add(archive, bundle.MANIFEST, content)
        pack(archive)
    cut = path.read_bytes().rstrip(b"\0")
    path.write_bytes(cut + bytes(-len(cut) % 512) + bundle.END)
    return path


def add(
    archive: tarfile.TarFile,
    name: str,
    content: bytes = b"",
    kind: bytes = tarfile.REGTYPE,
    link: str = "",
) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.type, info.linkname = (len(content), bundle.MEMBER_TIME, kind, link)
    archive.addfile(info, io.BytesIO(content))


def described(name: str = "one.whl", content: bytes = b"x", **more: object) -> dict[str, Any]:
    return {
        "kind": "tool",
        "name": name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
        **more,
    }


def test_what_was_packed_comes_out(made: Path, tmp_path: Path) -> None:
    assert unpack(made, tmp_path) == FILES


def test_the_same_files_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    assert make(tmp_path, "again.tar").read_bytes() == made.read_bytes()


def test_it_is_a_tar_that_any_tar_reads(made: Path) -> None:
    with tarfile.open(made, "r:") as archive:
        assert archive.getnames() == ["manifest.json", *(f"tool/{name}" for name in FILES)]


def test_a_file_that_changes_while_it_is_packed_leaves_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"before")
    content = bundle.member_of("tool", tmp_path / "one.whl")
    (tmp_path / "one.whl").write_bytes(b"beyond")
    with fails(SupplyError, tmp_path / "one.whl"):
        write(tmp_path / "made.tar", content)
    assert not (tmp_path / "made.tar").exists()


def test_a_name_longer_than_a_header_takes_is_carried_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    content = bundle.member_of("patch", tmp_path / "file", "/".join(["folder"] * 40))
    made = write(tmp_path / "made.tar", content)
    assert unpack(made, tmp_path) == {content[0].name: b"x"}


def test_a_bundle_cut_anywhere_is_refused_with_the_member_where_it_ends(
    made: Path, tmp_path: Path
) -> None:
    whole, cut = made.read_bytes(), tmp_path / "cut.tar"
    for length in range(0, len(whole), 256):
        cut.write_bytes(whole[:length])
        with pytest.raises(
            SupplyError, match=r"at (manifest\.json|tool/(one|two|three)\.whl|its end)"
        ):
            bundle.read(cut)


@pytest.mark.parametrize("name", ["one.whl", "three.whl"])
def test_one_wrong_bit_is_refused_with_the_member_that_has_it(
    made: Path, tmp_path: Path, name: str
) -> None:
    content = bytearray(made.read_bytes())
    content[content.index(FILES[name]) + 5] ^= 1
    made.write_bytes(content)
    with fails(SupplyError, f"tool/{name}"):
        unpack(made, tmp_path)


@pytest.mark.medium
def test_no_wrong_byte_anywhere_is_taken(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    for position in range(0, len(whole), 97):
        wrong = bytearray(whole)
        wrong[position] ^= 0x20
        made.write_bytes(wrong)
        folder = make_folder(tmp_path / str(position))
        with fails(SupplyError, "bundle"):
            unpack(made, folder)


def test_more_behind_the_end_is_refused(made: Path) -> None:
    made.write_bytes(made.read_bytes() + bytes(512))
    with fails(SupplyError, "at its end"):
        bundle.read(made)


def test_something_else_is_no_bundle(tmp_path: Path) -> None:
    for content in (b"", b"no tar at all", bytes(2048), b"9" * 4096):
        (tmp_path / "other").write_bytes(content)
        with fails(SupplyError, "manifest.json"):
            bundle.read(tmp_path / "other")
    with fails(SupplyError, tmp_path / "missing"):
        bundle.read(tmp_path / "missing")


NAMES = ("../one.whl", "/one.whl", "a/../../b", "a/b.whl", "", ".", "-r", "~/x", "a\nb", "a\\b")
RECIPES = (
    "../small",
    "/etc/passwd",
    ".",
    "",
    "a/b",
    "vault",
    "unbundling.lock",
    "Demo.trials.JSON",
)


@pytest.mark.parametrize(
    ("says", "described"),
    [
        # Names that lead out of the bundle, recipes that are named like a path.
        *(("manifest.json", {"members": [described(name)]}) for name in (*NAMES, "\ud800")),
        *(("recipe", {"recipe": recipe}) for recipe in RECIPES),
        # Versions that no program has.
        ("tfwright", {"tfwright": "0." + "1" * 5000}),
        ("bazel", {"bazel": "0." + "1" * 5000}),
        ("platform", {"platform": "linux-" + "a" * 300}),
        ("platform", {"platform": "linux-x86_64\N{LATIN SMALL LETTER E WITH ACUTE}"}),
        ("python", {"python": "3." + "1" * 5000}),
        ("python", {"python": "3.\N{ARABIC-INDIC DIGIT ONE}"}),
        # Sizes that no file has, a member twice, and one text written in two ways.
        *(
            ("members.0.size", {"members": [described(size=size)]})
            for size in (-1, 2**40, "1", 1.5, None, True)
        ),
        ("members", {"members": [described(), described()]}),
        ("manifest.json", {"format": True}),
    ],
)
def test_a_manifest_that_says_what_none_may_is_refused(
    tmp_path: Path, says: str, described: dict[str, object]
) -> None:
    with fails(SupplyError, "manifest.json", says):
        bundle.read(forged(tmp_path, described))


@pytest.mark.medium
def test_a_manifest_of_ten_thousands_of_files_is_refused(tmp_path: Path) -> None:
    many = [described(f"f{number}") for number in range(bundle.MOST_MEMBERS + 1)]
    with fails(SupplyError, "members", 10000):
        bundle.read(forged(tmp_path, {"members": many}))


def test_progress_ends_at_all_bytes(made: Path, tmp_path: Path) -> None:
    heard: list[Progress] = []
    manifest = bundle.read(made)
    (tmp_path / "room").mkdir()
    bundle.unpack(made, manifest, tmp_path / "room", heard.append)
    assert heard[-1].done == heard[-1].total == manifest.size
    assert heard == sorted(heard, key=lambda progress: progress.done)


ONE = "tool/one.whl"


@pytest.mark.parametrize(
    ("content", "member"),
    [
        # What is no plain file.
        (b"", (ONE, b"", tarfile.SYMTYPE, "/etc/passwd")),
        (b"", (ONE, b"", tarfile.LNKTYPE, "../outside")),
        (b"", (ONE, b"", tarfile.CHRTYPE)),
        (b"", (ONE, b"", tarfile.BLKTYPE)),
        (b"", (ONE, b"", tarfile.FIFOTYPE)),
        (b"", (ONE, b"", tarfile.DIRTYPE)),
        (b"x", (ONE, b"x", tarfile.GNUTYPE_SPARSE)),
        # Other names than the manifest says.
        (b"x", ("../one.whl", b"x")),
        (b"x", ("/tool/one.whl", b"x")),
        (b"x", ("tool/two.whl", b"x")),
        (b"x", ("tool/../../one.whl", b"x")),
    ],
)
def test_a_member_with_another_header_than_the_manifest_asks_for_is_refused(
    tmp_path: Path, content: bytes, member: tuple[Any, ...]
) -> None:
    members = {"members": [described(content=content)]}
    path = forged(tmp_path, members, lambda archive: add(archive, *member))
    with fails(SupplyError, ONE, "header"):
        unpack(path, tmp_path)


def test_a_member_that_the_manifest_does_not_name_is_refused(tmp_path: Path) -> None:
    def twice(archive: tarfile.TarFile) -> None:
        add(archive, ONE, b"x")
        add(archive, ONE, b"x")

    with fails(SupplyError, "at its end"):
        bundle.read(forged(tmp_path, {"members": [described()]}, twice))


def test_ten_gigabytes_of_zeros_are_not_unpacked(tmp_path: Path) -> None:
    info = tarfile.TarInfo("tool/one.whl")
    info.size = 10 * 2**30
    bomb = forged(tmp_path, {"members": [described()]})
    with bomb.open("r+b") as stream:
        stream.seek(-len(bundle.END), 2)
        stream.write(info.tobuf(tarfile.GNU_FORMAT))
        stream.truncate(10 * 2**30)
    with fails(SupplyError, "10,737,418,240"):
        bundle.read(bomb)


def test_a_member_that_is_larger_than_the_disk_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "into").mkdir()
    large = BundleMember(kind="tool", name="one.whl", sha256="0" * 64, size=2**36)
    many = manifest(()).changed(members=(large,) * 2000)
    with fails(HostError, tmp_path / "into"):
        bundle.unpack(tmp_path / "any", many, tmp_path / "into", SILENCE.progress)
    assert list((tmp_path / "into").iterdir()) == []


def test_a_header_that_changes_the_next_one_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path, {"members": [described()]}, lambda archive: add(archive, ONE, b"x"))
    info = tarfile.TarInfo(ONE)
    info.size, info.mtime = 1, bundle.MEMBER_TIME
    info.pax_headers = {"GNU.sparse.realsize": "10737418240"}
    before = path.read_bytes()[: -len(bundle.END) - 1024]
    member = info.tobuf(tarfile.PAX_FORMAT) + b"x" + bytes(511)
    path.write_bytes(before + member + bundle.END)
    with fails(SupplyError, "at its end"):
        bundle.read(path)


def test_a_manifest_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = make_file(tmp_path / "forged.tar", bundle._header(bundle.MANIFEST, 2**31))
    with path.open("r+b") as stream:
        stream.truncate(2**31 + 4096)
    with fails(SupplyError, "manifest.json"):
        bundle.read(path)
