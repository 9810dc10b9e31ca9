"""Bundles: written and read back, cut, corrupted, and made by somebody who means harm."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
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
    contents = []
    for file, content in FILES.items():
        (folder / file).write_bytes(content)
        contents.append(Content.of("tool", folder / file))
    bundle.write(
        folder / name,
        manifest(tuple(content.member for content in contents)),
        {content.member: content.source for content in contents},
        SILENCE.progress,
    )
    return folder / name


def unpack(path: Path, folder: Path) -> dict[str, bytes]:
    into = make_folder(folder / "into")
    placed = bundle.unpack(path, bundle.read(path), into, SILENCE.progress)
    return {member.name: file.read_bytes() for member, file in placed.items()}


def forged(
    folder: Path, described: dict[str, Any], pack: Callable[[tarfile.TarFile], None]
) -> Path:
    """Write a tar with a manifest that says one thing, and members that may be another."""
    path = folder / "forged.tar"
    members = {
        "format": 1,
        "tfwright": "0.1.0",
        "recipe": "small",
        "platform": "linux-x86_64",
        "python": "3.11",
        "bazel": "0.26.1",
        "members": [],
        "clones": [],
        "absent": [],
    }
    content = (json.dumps({**members, **described}, indent=1) + "\n").encode()
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
    info.size, info.mtime, info.type, info.linkname = (len(content), bundle.DATED, kind, link)
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
        assert archive.getnames() == [
            "manifest.json",
            "tool/one.whl",
            "tool/two.whl",
            "tool/three.whl",
        ]


def test_a_file_that_changes_while_it_is_packed_leaves_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"before")
    content = Content.of("tool", tmp_path / "one.whl")
    (tmp_path / "one.whl").write_bytes(b"beyond")
    with fails(SupplyError, tmp_path / "one.whl"):
        bundle.write(
            tmp_path / "made.tar",
            manifest((content.member,)),
            {content.member: content.source},
            SILENCE.progress,
        )
    assert not (tmp_path / "made.tar").exists()


def test_a_name_longer_than_a_header_takes_is_carried_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    content = Content.of("patch", tmp_path / "file", "/".join(["folder"] * 40))
    bundle.write(
        tmp_path / "made.tar",
        manifest((content.member,)),
        {content.member: content.source},
        SILENCE.progress,
    )
    assert unpack(tmp_path / "made.tar", tmp_path) == {content.member.name: b"x"}


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


@pytest.mark.parametrize(
    "name",
    [
        "../one.whl",
        "/one.whl",
        "a/../../b",
        "a/b.whl",
        "",
        ".",
        "-r",
        "~/x",
        "a\nb",
        "a\\b",
        "\ud800",
    ],
)
def test_a_manifest_that_names_a_place_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = forged(tmp_path, {"members": [described(name)]}, lambda _: None)
    with fails(SupplyError, "manifest.json"):
        bundle.read(path)


@pytest.mark.parametrize(
    "recipe",
    ["../small", "/etc/passwd", ".", "", "a/b", "vault", "unbundling.lock", "Demo.trials.JSON"],
)
def test_a_recipe_named_like_a_path_is_refused(tmp_path: Path, recipe: str) -> None:
    with fails(SupplyError, "manifest.json", "recipe"):
        bundle.read(forged(tmp_path, {"recipe": recipe}, lambda _: None))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("tfwright", "0." + "1" * 5000),
        ("bazel", "0." + "1" * 5000),
        ("platform", "linux-" + "a" * 300),
        ("platform", "linux-x86_64\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("python", "3." + "1" * 5000),
        ("python", "3.\N{ARABIC-INDIC DIGIT ONE}"),
    ],
)
def test_a_version_that_none_has_is_refused(tmp_path: Path, field: str, text: str) -> None:
    with fails(SupplyError, "manifest.json", field):
        bundle.read(forged(tmp_path, {field: text}, lambda _: None))


@pytest.mark.medium
def test_a_manifest_of_ten_thousands_of_files_is_refused(tmp_path: Path) -> None:
    many = [described(f"f{number}") for number in range(bundle.MOST_MEMBERS + 1)]
    with fails(SupplyError, "members", 10000):
        bundle.read(forged(tmp_path, {"members": many}, lambda _: None))


def test_progress_ends_at_all_bytes(made: Path, tmp_path: Path) -> None:
    heard: list[Progress] = []
    manifest = bundle.read(made)
    (tmp_path / "room").mkdir()
    bundle.unpack(made, manifest, tmp_path / "room", heard.append)
    assert heard[-1].done == heard[-1].total == manifest.size
    assert heard == sorted(heard, key=lambda progress: progress.done)


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "../outside"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.DIRTYPE, ""),
    ],
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes, link: str) -> None:
    path = forged(
        tmp_path,
        {"members": [described(content=b"")]},
        lambda archive: add(archive, "tool/one.whl", b"", kind, link),
    )
    with fails(SupplyError, "tool/one.whl"):
        unpack(path, tmp_path)


@pytest.mark.parametrize(
    "name", ["../one.whl", "/tool/one.whl", "tool/two.whl", "tool/../../one.whl"]
)
def test_a_member_with_another_name_than_the_manifest_says_is_refused(
    tmp_path: Path, name: str
) -> None:
    path = forged(tmp_path, {"members": [described()]}, lambda archive: add(archive, name, b"x"))
    with fails(SupplyError, "tool/one.whl"):
        unpack(path, tmp_path)


def twice_over(archive: tarfile.TarFile) -> None:
    add(archive, "tool/one.whl", b"x")
    add(archive, "tool/one.whl", b"x")


def test_a_member_twice_is_refused(tmp_path: Path) -> None:
    twice = forged(tmp_path, {"members": [described(), described()]}, lambda _: None)
    with fails(SupplyError, "members"):
        bundle.read(twice)
    hidden = forged(tmp_path, {"members": [described()]}, twice_over)
    with fails(SupplyError, "at its end"):
        bundle.read(hidden)


def test_ten_gigabytes_of_zeros_are_not_unpacked(tmp_path: Path) -> None:
    info = tarfile.TarInfo("tool/one.whl")
    info.size = 10 * 2**30
    bomb = forged(tmp_path, {"members": [described()]}, lambda _: None)
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
    large = manifest(
        (
            BundleMember(kind="tool", name="one.whl", sha256="0" * 64, size=2**36),
            BundleMember(kind="tool", name="two.whl", sha256="0" * 64, size=2**36),
        )
    )
    many = large.model_copy(update={"members": large.members * 1000})
    with fails(HostError, tmp_path / "into"):
        bundle.unpack(tmp_path / "any", many, tmp_path / "into", SILENCE.progress)
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize("size", [-1, 2**40, "1", 1.5, None, True])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: object) -> None:
    with fails(SupplyError, "manifest.json", "members.0.size"):
        bundle.read(forged(tmp_path, {"members": [described(size=size)]}, lambda _: None))


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    path = forged(
        tmp_path,
        {"members": [described()]},
        lambda archive: add(archive, "tool/one.whl", b"x", tarfile.GNUTYPE_SPARSE),
    )
    with fails(SupplyError, "header"):
        unpack(path, tmp_path)


def test_a_header_that_changes_the_next_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "forged.tar"
    whole = forged(
        tmp_path, {"members": [described()]}, lambda archive: add(archive, "tool/one.whl", b"x")
    ).read_bytes()
    info = tarfile.TarInfo("tool/one.whl")
    info.size, info.mtime, info.pax_headers = (
        1,
        bundle.DATED,
        {"GNU.sparse.realsize": "10737418240"},
    )
    path.write_bytes(
        whole[: -len(bundle.END) - 1024]
        + info.tobuf(tarfile.PAX_FORMAT)
        + b"x"
        + bytes(511)
        + bundle.END
    )
    with fails(SupplyError, "at its end"):
        bundle.read(path)


def test_a_manifest_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = make_file(tmp_path / "forged.tar", bundle._header(bundle.MANIFEST, 2**31))
    with path.open("r+b") as stream:
        stream.truncate(2**31 + 4096)
    with fails(SupplyError, "manifest.json"):
        bundle.read(path)


def test_a_manifest_written_in_another_way_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path, {"format": True}, lambda _: None)
    with fails(SupplyError, "manifest.json"):
        bundle.read(path)
