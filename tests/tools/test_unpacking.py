"""Foreign archives, real ones: what is unpacked, and what is refused."""

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest
import zstandard
from tests.failing import fails
from tests.making import make_file, make_folder

from tfwright.errors import HostError, SupplyError
from tfwright.tools import unpacking

SCRIPT = """\
#!/bin/sh
# Unpacks what stands behind this script; made for a test.
filesizes="{size}"
skip="5"
offset=`head -n 5 "$0" | wc -c`; tail -c +$((offset + 1)) "$0" | head -c {size} | tar -xzf -; touch @RAN@; exit 0
"""


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "into")


def tarred(path: Path, mode: str, *members: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]  # a mode that the test chose
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                header = tarfile.TarInfo(member[0])
                header.size, header.mode = len(member[1]), 0o755
                tar.addfile(header, io.BytesIO(member[1]))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


def self_extracting(path: Path, payload: bytes, ran: Path) -> Path:
    """Write an archive as makeself does: a script, and a tar behind it."""
    path.write_bytes(
        SCRIPT.replace("@RAN@", str(ran)).format(size=len(payload)).encode()
        + payload
        + b"a signature"
    )
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_tar_is_unpacked_in_any_compression(tmp_path: Path, into: Path, mode: str) -> None:
    unpacking.unpack(
        tarred(tmp_path / "a", mode, ("cuda/bin/nvcc", b"x"), link("cuda/lib", "bin")), into
    )
    assert (into / "cuda/lib/nvcc").read_bytes() == b"x"
    assert (into / "cuda/bin/nvcc").stat().st_mode & 0o111


def test_a_wheel_is_unpacked(tmp_path: Path, into: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("nvidia/cudnn/include/cudnn.h", "x")
    unpacking.unpack(tmp_path / "a.whl", into)
    assert (into / "nvidia/cudnn/include/cudnn.h").read_text("utf-8") == "x"


def test_of_a_self_extracting_archive_only_the_payload_is_read_and_nothing_is_run(
    tmp_path: Path, into: Path
) -> None:
    payload = tarred(tmp_path / "payload", "w:gz", ("EULA.txt", b"be good")).read_bytes()
    unpacking.unpack(self_extracting(tmp_path / "cuda.run", payload, tmp_path / "ran"), into)
    assert (into / "EULA.txt").read_text("utf-8") == "be good"
    assert not (tmp_path / "ran").exists()


def test_the_stand_in_for_makeself_really_extracts_itself(tmp_path: Path, into: Path) -> None:
    payload = tarred(tmp_path / "payload", "w:gz", ("EULA.txt", b"be good")).read_bytes()
    subprocess.run(
        ["sh", self_extracting(tmp_path / "cuda.run", payload, tmp_path / "ran")],
        cwd=into,
        check=True,
    )
    assert (into / "EULA.txt").is_file()
    assert (tmp_path / "ran").exists()


@pytest.mark.skipif(not shutil.which("makeself"), reason="makeself is not here")
@pytest.mark.parametrize("compression", ["--gzip", "--xz", "--bzip2", "--nocomp"])
def test_what_the_real_makeself_writes_is_unpacked(
    tmp_path: Path, into: Path, compression: str
) -> None:
    source = make_folder(tmp_path / "source")
    (source / "EULA.txt").write_text("be good", "utf-8")
    subprocess.run(
        ["makeself", "--quiet", compression, source, tmp_path / "cuda.run", "CUDA", "true"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    unpacking.unpack(tmp_path / "cuda.run", into)
    assert (into / "EULA.txt").read_text("utf-8") == "be good"


def test_only_what_is_wanted_is_unpacked(tmp_path: Path, into: Path) -> None:
    unpacking.unpack(
        tarred(tmp_path / "a", "w:gz", ("EULA.txt", b"x"), ("big", b"y")),
        into,
        lambda path: path.name == "EULA.txt",
    )
    assert [path.name for path in into.iterdir()] == ["EULA.txt"]


def device(name: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type = tarfile.CHRTYPE
    return header


@pytest.mark.parametrize(
    "member",
    [
        ("../out", b"x"),
        link("l", "/etc"),
        link("l", "../../etc"),
        link("l", "../out", tarfile.LNKTYPE),
        device("null"),
    ],
    ids=["upwards", "absolute link", "link upwards", "hard link upwards", "device"],
)
def test_what_reaches_outside_is_refused(
    tmp_path: Path, into: Path, member: tarfile.TarInfo | tuple[str, bytes]
) -> None:
    with fails(SupplyError, tmp_path / "a"):
        unpacking.unpack(tarred(tmp_path / "a", "w:gz", member), into)
    assert list(into.iterdir()) == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "..\\out"])
def test_a_zip_that_reaches_outside_is_refused(tmp_path: Path, into: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(name, "x")
    with fails(SupplyError, repr(name)):
        unpacking.unpack(tmp_path / "a.zip", into)


@pytest.mark.parametrize("name", ["", "."])
def test_a_zip_with_a_member_without_a_name_is_refused(
    tmp_path: Path, into: Path, name: str
) -> None:
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w") as packed,
        packed.open(zipfile.ZipInfo(name), "w") as member,
    ):
        member.write(b"x")
    with fails(SupplyError, "no name"):
        unpacking.unpack(tmp_path / "a.zip", into)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda _: b"",
        lambda _: b"#!/bin/sh\nexit 1\n",
        lambda _: b'#!/bin/sh\nskip="9999999999999999999"\n',
        lambda _: b"\0" * 99,
    ],
)
def test_a_damaged_archive_is_reported(
    tmp_path: Path, into: Path, damage: Callable[[bytes], bytes]
) -> None:
    archive = tarred(tmp_path / "a", "w:gz", ("big", bytes(range(256)) * 999))
    archive.write_bytes(damage(archive.read_bytes()))
    with fails(SupplyError, archive):
        unpacking.unpack(archive, into)


def test_what_unpacks_to_more_than_the_disk_holds_is_refused_before_it_fills_it(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "KEPT_FREE", shutil.disk_usage(tmp_path).free - 10_000)
    with fails(HostError, into):
        unpacking.unpack(tarred(tmp_path / "a", "w:gz", ("zeros", bytes(1 << 20))), into)
    assert list(into.iterdir()) == []


def test_an_endless_number_of_members_is_refused(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 3)
    with fails(SupplyError, tmp_path / "a"):
        unpacking.unpack(
            tarred(tmp_path / "a", "w:gz", *((str(number), b"") for number in range(5))), into
        )


def ar(members: dict[str, bytes]) -> bytes:
    """Return an ar archive, as Debian packages are."""
    made = b"!<arch>\n"
    for name, content in members.items():
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made


def test_a_debian_package_is_unpacked_without_its_scripts_and_links_into_the_host(
    tmp_path: Path, into: Path
) -> None:
    profile = link("./usr/bin/nvcc.profile", "/etc/nvcc.profile")
    data = tarred(tmp_path / "a", "w:xz", ("./usr/bin/nvcc", b"x"), profile).read_bytes()
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data}
    archive = make_file(tmp_path / "cuda.deb", ar(members))
    unpacking.unpack(archive, into)
    assert [path.name for path in into.rglob("*") if path.is_file()] == ["nvcc"]
    assert not list(into.rglob("nvcc.profile"))


def test_a_debian_package_that_zstd_compressed_is_unpacked(tmp_path: Path, into: Path) -> None:
    plain = tarred(tmp_path / "a", "w", ("./usr/bin/nvcc", b"x" * 100_000)).read_bytes()
    data = zstandard.ZstdCompressor().compress(plain)
    archive = make_file(
        tmp_path / "cuda.deb", ar({"debian-binary": b"2.0\n", "data.tar.zst": data})
    )
    unpacking.unpack(archive, into)
    assert (into / "usr/bin/nvcc").read_bytes() == b"x" * 100_000


@pytest.mark.parametrize(
    "members",
    [{"debian-binary": b"2.0\n"}, {"data.tar.zst": b"no zstd"}, {"data.tar.xz": b"no tar"}],
    ids=["no files", "damaged zstd", "damaged"],
)
def test_a_debian_package_that_cannot_be_read_is_refused(
    tmp_path: Path, into: Path, members: dict[str, bytes]
) -> None:
    archive = make_file(tmp_path / "cuda.deb", ar(members))
    with fails(SupplyError, archive):
        unpacking.unpack(archive, into)


def test_links_that_make_a_path_too_long_to_be_resolved_lead_nowhere(
    tmp_path: Path, into: Path
) -> None:
    # Before 3.11.13, Python's filter believes a link whose real path is longer than the system
    # resolves (CVE-2025-4517): each directory is named by a short link, so that names stay short.
    members: list[tarfile.TarInfo | tuple[str, bytes]] = []
    folder, steps = "", "abcdefghijklmnop"
    for step in steps:
        long = tarfile.TarInfo(f"{folder}{'d' * 247}")
        long.type, long.mode = tarfile.DIRTYPE, 0o755
        members += [long, link(f"{folder}{step}", "d" * 247)]
        folder = f"{long.name}/"
    end = f"{'/'.join(steps)}/{'l' * 254}"
    members += [link(end, "../" * len(steps)), link("out", f"{end}/..")]
    members += [("out/planted", b"planted")]
    archive = tarred(tmp_path / "deep.tar", "w", *members)
    with fails(SupplyError, archive, "too long"):
        unpacking.unpack(archive, into)
    assert not (tmp_path / "planted").exists()


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header of a tar with a size that tarfile would not write."""
    plain = tarfile.TarInfo(name)
    plain.type = kind
    made = bytearray(plain.tobuf(tarfile.GNU_FORMAT))
    made[124:136] = (size % 256**12 | (size >= 0) << 95).to_bytes(12, "big")
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


LOOPS = {
    "a size that leads back": header("a", 0) + header("b", -512),
    "a size that an extended header turns back": header("a", 0)
    + header("x", 12, tarfile.XHDTYPE)
    + padded(b"12 size=-99\n")
    + header("b", 1)
    + bytes(512),
    "a name without end": header("x", 1 << 40, tarfile.GNUTYPE_LONGNAME),
    "a target without end": header("x", 1 << 40, tarfile.GNUTYPE_LONGLINK),
    "digits without end": header("x", 200_000, tarfile.XHDTYPE)
    + padded(b"1" * 200_000)
    + header("b", 0),
}


@pytest.fixture(params=["by frombuf", "without frombuf"])
def reads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tarfile read headers as Python 3.11 does, and as newer ones do, which skip frombuf."""
    parse = tarfile.TarInfo.frombuf.__func__  # type: ignore[attr-defined]

    def newer(cls: type[tarfile.TarInfo], tar: tarfile.TarFile) -> object:
        read = tar.fileobj.read(tarfile.BLOCKSIZE)
        header = parse(cls, read, tar.encoding, tar.errors)
        header.offset = tar.fileobj.tell() - tarfile.BLOCKSIZE
        return header._proc_member(tar)

    if request.param == "without frombuf":
        monkeypatch.setattr(tarfile.TarInfo, "fromtarfile", classmethod(newer))


@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("damage", LOOPS)
def test_a_tar_that_would_never_be_read_to_its_end_is_refused(
    tmp_path: Path, into: Path, damage: str
) -> None:
    archive = make_file(tmp_path / "a", LOOPS[damage] + bytes(4096))

    def ending() -> AbstractContextManager[object]:
        # Newer Pythons take such a header for the end of the archive.
        if "turns back" in damage:
            return suppress(SupplyError)
        return pytest.raises(SupplyError)

    with ending():
        unpacking.unpack(archive, into)
    # The other readers seek in the file.
    with ending(), unpacking.as_supply_error("a"), unpacking.Tar.open(archive) as tar:
        list(unpacking.members(tar))
