"""Every reader of what strangers wrote, and samples of what each reads.

A reader ends with a result, or with an error that says what is wrong. ValueError is such an error
only where a caller is documented to catch it: below `wheel.inspect.library`.
"""

import io
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.making import make_file, make_folder
from tests.records import record_of
from tests.vault.test_bundle import manifest

from tfwright.diagnosis import reader
from tfwright.documents import recipe
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.documents.toml import load
from tfwright.errors import TfwrightError
from tfwright.progress import SILENCE
from tfwright.rules import repositories
from tfwright.tools import unpacking
from tfwright.tools.bazel.output import built_files
from tfwright.tools.git import patching
from tfwright.vault import bundle, lock
from tfwright.wheel import archive as wheel_archive
from tfwright.wheel import record
from tfwright.wheel.binary import elf, fatbin, macho
from tfwright.wheel.compare import comparison
from tfwright.wheel.inspect import cuda, inspection, library, tags
from tfwright.wheel.inspect.leaks import HostDirectory, LeakSearch
from tfwright.wheel.seal import build_record

CORPUS = Path(__file__).parents[1] / "wheel/corpus"
NAME = "small-1.0-cp36-cp36m-manylinux1_x86_64.whl"
INFO = "small-1.0.dist-info"


@dataclass(frozen=True)
class Target:
    """A reader."""

    read: Callable[[bytes], object]
    samples: Callable[[], list[bytes]]
    allowed: tuple[type[Exception], ...] = (TfwrightError,)
    """The errors by which it may refuse."""


def corpus(pattern: str) -> Callable[[], list[bytes]]:
    """Return what reads samples from the folder of libraries."""
    return lambda: [path.read_bytes() for path in sorted(CORPUS.glob(pattern))]


def files(folder: Path, pattern: str) -> Callable[[], list[bytes]]:
    """Return what reads samples from a folder of the checkout."""
    return lambda: [path.read_bytes() for path in sorted(folder.glob(pattern))]


@contextmanager
def written(content: bytes, name: str) -> Iterator[Path]:
    """Write content to a file of a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_file(Path(folder) / name, content)
        yield path


def by_path(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """Return a reader of content that a reader of files reads."""

    def reader(content: bytes) -> object:
        with written(content, name) as path:
            return read(path)

    return reader


def wheel_with(name: str, content: bytes) -> bytes:
    """Return a wheel in which one file is as given."""
    members = {
        "small/a.so": (CORPUS / "elf-code").read_bytes(),
        "small/b.dylib": (CORPUS / "macho-symbols").read_bytes(),
        "small/platform/build_info.py": b"build_info = {'cuda_version': '9.0'}\nx = ('a', 1)\n",
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nTag: cp36-cp36m-manylinux1_x86_64\n",
        f"{INFO}/RECORD": b"small/a.so,sha256=x,1\n",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, own in (members | ({name: content} if name else {})).items():
            archive.writestr(zipfile.ZipInfo(member), own, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def member(name: str, read: Callable[[zipfile.ZipFile], object]) -> Callable[[bytes], object]:
    """Return a reader of content that is a file of a wheel."""

    def reader(content: bytes) -> object:
        with zipfile.ZipFile(io.BytesIO(wheel_with(name, content))) as archive:
            return read(archive)

    return reader


def leaking(content: bytes) -> object:
    """Search a library for paths of the builder."""
    search = LeakSearch([HostDirectory("/srv/out", "", "")], guess=True)
    return list(search.notes(list(search.leaks("a.so", content, library=True))))


def inspected(path: Path) -> None:
    """Inspect a wheel whose names may be there twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inspection.inspect(path)


def compared(content: bytes) -> object:
    """Compare a damaged library with a sound one."""
    sound = (CORPUS / "elf-code").read_bytes()
    return comparison.content_difference("a.so", sound, content)


def unpacking_by(unpack: Callable[[Path, Path], object]) -> Callable[[Path], None]:
    """Return a reader that unpacks a file; nothing may land outside of the folder for it."""

    def reader(path: Path) -> None:
        into = make_folder(path.parent / "into")
        unpack(path, into)
        others = {entry.name for entry in path.parent.iterdir()} - {path.name, "into"}
        assert not others, f"it wrote {others}"

    return reader


def unbundle(path: Path, into: Path) -> None:
    bundle.unpack(path, bundle.read(path), into, SILENCE.progress)


def a_bundle() -> list[bytes]:
    """Return a sound bundle."""
    with written(b"content", "a.txt") as path:
        sources = dict([bundle.member_of("patch", path, "demo/0001-a.patch")])
        bundle.write(path.parent / "a.tar", manifest(tuple(sources)), sources, SILENCE.progress)
        return [(path.parent / "a.tar").read_bytes()]


def by_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Return a reader of content that a reader of text reads."""
    return lambda content: read(content.decode("utf-8", "replace"))


def archives() -> list[bytes]:
    """Return a tar and a zip with a directory, a file, a link and a long name."""
    plain, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, to in (
            ("a", tarfile.DIRTYPE, ""),
            ("a/f", tarfile.REGTYPE, ""),
            ("a/l", tarfile.SYMTYPE, "f"),
            ("a/" + "x" * 120, tarfile.LNKTYPE, "a/f"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, to
            tar.addfile(info)
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a/f", b"content")
    return [plain.getvalue(), zipped.getvalue()]


def a_wheel() -> list[bytes]:
    return [wheel_with("", b"")]


OUTPUTS = (
    b'{"id":{"namedSet":{"id":"0"}},"namedSetOfFiles":{"files":[{"uri":"file:///a"}]}}\n'
    b'{"id":{"targetCompleted":{}},"completed":{"outputGroup":'
    b'[{"name":"default","fileSets":[{"id":"0"}]}]}}\n'
)
RESOLVED = b'resolved = [{"original_attributes": {"name": "a", "sha256": "00"}}]\n'
NIGHTLY_FILE = b"""\
directory = "/srv/tfwright"
url = "https://wheels.example/"
hours = 7.5
on = "here"

[[recipe]]
name = "demo"
local = "cpu"
follow = {tags = "v2.*"}
python = ["3.9", "3.10"]

[[notices.mail]]
to = ["a@b.example"]
sender = "c@b.example"

[[notices.program]]
command = ["/usr/bin/logger", "-t", "tfwright"]

[retention]
count = 9
free = 1000

[projects.demo]
status = "archived"
reason = "no more"
"""
TREE = recipe.ROOT / "src/tfwright/demo/tree"
HOST_FILE = b"""\
build_out = "/x"
jobs = 2

[mirrors]
"https://github.com/{owner}/{name}.git" = "/mirrors/{owner}/{name}"

[downloads]
"https://github.com/" = "https://mirror.example/github/"

[pythons]
"3.6" = "/usr/bin/python3.6"

[cache]
size = 50
server = "http://cache.example:8080"

[[workers]]
name = "big"
address = "builder@big.example"
directory = "/srv/tfwright"
inputs = true
build_out = "/srv/out"

[slurm]
directory = "/shared/tfwright"
options = ["--partition=long"]
"""
TARGETS = {
    "elf": Target(elf.read, corpus("elf-*"), (ValueError,)),
    "mach-o": Target(macho.read, corpus("macho-*"), (ValueError,)),
    "fat binary": Target(fatbin.architectures, corpus("fatbin-*"), (ValueError,)),
    "registered operations": Target(
        by_path(library.stub_reason, "a.so"), corpus("elf-*"), (ValueError,)
    ),
    "NCCL's version": Target(library.nccl_version, lambda: [b"\0NCCL version 2.4.7+cuda10.0\0"]),
    "directories of the host": Target(
        leaking, lambda: [b"\0/home/me/a.cc\0/srv/out/a.cc\0-I/srv/out\0"]
    ),
    "library compared": Target(compared, corpus("elf-code")),
    "wheel": Target(by_path(inspected, NAME), a_wheel),
    "RECORD": Target(
        member(f"{INFO}/RECORD", record.faults), lambda: [b"small/a.so,sha256=x,1\n" * 9]
    ),
    "METADATA": Target(
        member(
            f"{INFO}/METADATA", lambda archive: wheel_archive.headers(archive, "METADATA").items()
        ),
        lambda: [b"Name: small\nVersion: 1.0\nRequires-Dist: a; python_version<'3'\n\nText\n"],
    ),
    "WHEEL": Target(
        member(f"{INFO}/WHEEL", tags.stated_tags), lambda: [b"Wheel-Version: 1.0\nTag: a.b-c-d\n"]
    ),
    "build_info": Target(
        member("small/platform/build_info.py", cuda.build_info_texts),
        lambda: [b"build_info = {'cuda_version': '9.0'}\nx = ('a', 1)\n"],
    ),
    "build record": Target(
        member(f"{INFO}/tfwright.json", build_record.read),
        lambda: [build_record.write(record_of(recipe.read("demo")))],
    ),
    "recipe": Target(
        by_path(lambda path: recipe.read(str(path)), "mine.toml"), files(recipe.RECIPES, "*.toml")
    ),
    "host file": Target(
        by_path(lambda path: load(path, HostFile), "host.toml"), lambda: [HOST_FILE]
    ),
    "patch": Target(by_path(patching.read, "a.patch"), files(recipe.PATCHES, "*/*.patch")),
    "lock": Target(by_path(lock.read, "a.lock"), files(recipe.RECIPES, "*.lock*")),
    "bundle": Target(by_path(unpacking_by(unbundle), "a.bundle"), a_bundle),
    "archive": Target(by_path(unpacking_by(unpacking.unpack), "a.tar"), archives),
    "outputs of Bazel": Target(by_path(built_files, "events.json"), lambda: [OUTPUTS]),
    "resolved rules": Target(by_text(repositories.resolved_pins), lambda: [RESOLVED]),
    "nightly file": Target(
        by_path(lambda path: load(path, NightlyFile), "nightly.toml"), lambda: [NIGHTLY_FILE]
    ),
    "log": Target(
        lambda content: reader.read(io.BytesIO(content)),
        lambda: [b"ERROR: a.cc:1:2: error: 'x' was not declared\nFAILED: Build did NOT complete\n"],
    ),
    "Bazel rules": Target(
        by_text(lambda text: repositories.read({"WORKSPACE": text})), files(TREE, "WORKSPACE")
    ),
}
