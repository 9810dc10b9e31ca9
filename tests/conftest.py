"""What most tests need: a recipe that fits anywhere, a job in a directory of its own, small wheels."""

import gc
import http.server
import importlib.util
import os
import re
import signal
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from tests.making import Maker, Read, make_file, make_program
from tests.nightly.wheels import write_wheel
from tests.records import record_of
from tests.remedies.following import CommandLine
from tests.results import Notebook
from tests.serving import QuietHandler, serving

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import SupplyError
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import Listener
from tfwright.tools.bazel import binary
from tfwright.tools.http import downloads
from tfwright.tools.process.command import Command, RunningContainer, inside_container
from tfwright.wheel.seal import build_record, sealing
from tfwright.wheel.seal.build_record import BuildRecord

# A suite that a script starts in its background ignores Ctrl-C, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

MINIMAL = """\
summary = "A recipe for tests"

[source]
url = "https://example.org/tensorflow.git"
branch = "r1.8"
commit = "0123456789012345678901234567890123456789"

[host]
system = "any"
machine = "any"
python = "any"

[bazel]
version = "0.26.1"
"""


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """Write a small valid recipe."""
    return make_file(tmp_path / "small.toml", MINIMAL)


@pytest.fixture
def recipe() -> Recipe:
    """Return a small recipe."""
    return Recipe.model_validate({"name": "small", **tomllib.loads(MINIMAL)})


@pytest.fixture
def job(recipe: Recipe, tmp_path: Path, listener: Listener) -> RecipeJob:
    """Return a job that works in a directory of its own, and whose notes are kept."""
    host_file = HostFile(build_out=tmp_path / "build_out")
    return RecipeJob(recipe=recipe, host_file=host_file, listener=listener)


@pytest.fixture
def listener() -> Notebook:
    """Return a listener that keeps what it is told."""
    return Notebook()


@pytest.fixture
def notes(listener: Notebook) -> list[str]:
    """Return what `listener` was told so far."""
    return listener.notes


@pytest.fixture(scope="session")
def bazel_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which Bazel's binaries and their unpacked selves outlive a test."""
    return tmp_path_factory.mktemp("bazels")


@pytest.fixture(scope="session")
def obtain_bazel(bazel_store: Path) -> Callable[[str], Path]:
    """Return what obtains a real Bazel of a version: of $TFWRIGHT_BAZELS, else whatever way leads to one."""

    def obtain(version: str) -> Path:
        folder = os.environ.get("TFWRIGHT_BAZELS")
        given = (
            next(iter(sorted(Path(folder).glob(f"**/bazel-{version}-*"))), None) if folder else None
        )
        try:
            return binary.obtain(
                version, {}, (bazel_store,), given=given, offline=False, note=print
            ).path
        except SupplyError as fault:
            pytest.skip(f"no Bazel {version}: {'; '.join(fault.evidence.lines)}")

    return obtain


@pytest.fixture
def a_record(recipe: Recipe) -> BuildRecord:
    """Return a build record as the seal stage makes it."""
    return record_of(recipe)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Return a command line with a host file of its own."""
    path = make_file(tmp_path / "host.toml", f'build_out = "{tmp_path}/build_out"\n')
    # A command sets it for itself.
    before = os.umask(0o022)
    yield CommandLine(path, monkeypatch)
    os.umask(before)


@pytest.fixture
def nightly_file(shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of nightly.toml, which is not written yet."""
    assert shell
    path = tmp_path / "nightly.toml"
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(path))
    return path


@pytest.fixture
def nightly_directory(nightly_file: Path, tmp_path: Path) -> Path:
    """Write a nightly.toml of one recipe; return its directory."""
    folder = tmp_path / "host"
    nightly_file.write_text(f'directory = "{folder}"\n[[recipe]]\nname = "demo"\n', "utf-8")
    return folder


@pytest.fixture
def make_wheel(tmp_path: Path) -> Maker:
    """Return a function that makes a real wheel, which pip installs, from the files that it is given."""

    def make(
        content: Mapping[str, str] | None = None,
        name: str = "small-1.0-py3-none-any.whl",
        folder: str = "made",
    ) -> Path:
        project, version, tag = name.removesuffix(".whl").split("-", 2)
        texts = content or {"small.py": "ANSWER = 42\n"}
        files = {path: text.encode() for path, text in texts.items()}
        return write_wheel(tmp_path / folder, project, version, tag, body=None, files=files)

    return make


@pytest.fixture
def make_sealed(make_wheel: Maker, a_record: BuildRecord) -> Maker:
    """Return a function that makes a wheel as the seal stage does, with a record and a bill of one archive."""

    def make(
        content: Mapping[str, str] | None = None,
        name: str = "small-1.0-py3-none-any.whl",
        folder: str = "made",
    ) -> Path:
        # It takes a second, in every process that collects the tests.
        from tfwright.wheel.seal import bill

        path, source = make_wheel(content, name, folder), a_record.source
        archives = (
            build_record.ArchiveComponent(
                ("nsync",), ("https://github.com/google/nsync/archive/1.20.1.tar.gz",), "4" * 64
            ),
        )
        files = {file.path: file.sha256 for file in a_record.files}
        bom = bill.write(
            build_record.Materials(
                "small", "1.0", source.url, source.commit, source.epoch, files, archives
            )
        )
        target = path.with_name("sealed") / name
        target.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path) as wheel, target.open("wb") as stream:
            sealing.seal(
                wheel,
                stream,
                source.epoch,
                {build_record.NAME: build_record.write(a_record), build_record.BILL_NAME: bom},
            )
        return target

    return make


@pytest.fixture
def quick_python(tmp_path: Path) -> Path:
    """Return a Python whose venvs get links to a pip, not a copy of one, which takes seconds."""
    pip = Path(str(importlib.util.find_spec("pip").origin)).parent  # type: ignore[union-attr]
    return make_program(
        tmp_path / "quick",
        f'#!/bin/sh\n[ "$2" = venv ] || exec {sys.executable} "$@"\n'
        f'{sys.executable} -m venv --without-pip "$3"\n'
        f'cd "$3"/lib/python3*/site-packages && ln -s {pip} {pip}-*.dist-info .\n',
    )


@pytest.fixture
def keys(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return a function that makes a private and a public key, in PEM; another pair for each name."""

    def make(
        name: str = "key", private: PrivateKeyTypes | None = None, passphrase: bytes = b""
    ) -> tuple[Path, Path]:
        made = private or Ed25519PrivateKey.generate()
        secrecy = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        files = tmp_path / f"{name}.pem", tmp_path / f"{name}.public.pem"
        files[0].write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secrecy))
        files[1].write_bytes(
            made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        return files

    return make


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name functions by their name: the address in their text differs in each worker of xdist."""
    return str(getattr(val, "__name__", argname)) if callable(val) else None


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Read:
    """Return what reads standard output, and forgets standard error."""
    return lambda: capsys.readouterr().out


@pytest.fixture
def err(capsys: pytest.CaptureFixture[str]) -> Read:
    """Return what reads standard error, and forgets standard output."""
    return lambda: capsys.readouterr().err


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no terminal decide how wide a page is; the workers of xdist set this variable."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Leave garbage to the time between tests: finalizers fail in a recursion too deep to go on."""
    gc.disable()
    yield
    gc.enable()


class _FileHandler(QuietHandler, http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder."""


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Return a function that serves a folder over HTTP, and returns its address with a slash at the end."""
    with ExitStack() as running:

        def start(folder: Path) -> str:
            handler = partial(_FileHandler, directory=str(folder))
            return running.enter_context(serving(handler)) + "/"

        yield start


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a server that is not there up at once."""
    monkeypatch.setattr(downloads, "PAUSES", ())


@pytest.fixture(params=["on the host", "beside an open container"])
def host_and_container(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test on the host, and again while a container is open that has no programs."""
    if request.param == "on the host":
        yield
        return
    empty = Mock(spec=RunningContainer)
    empty.name = "sha256:empty"
    empty.command.return_value = Command(("/nonexistent",), Path("/"))
    with inside_container(empty):
        yield


@pytest.fixture
def image_root(tmp_path: Path) -> Path:
    """Return the folder whose files are those of the image of `container`."""
    return tmp_path / "image"


@pytest.fixture
def container(image_root: Path) -> RunningContainer:
    """Return a container with the host's programs and the image's files; it is not open yet."""

    def in_image(command: Command, **_: object) -> Command:
        program, *arguments = command.argv
        words = [re.sub("^/", f"{image_root}/", word) for word in arguments]
        script = f'"$@" | sed "s|{image_root}||g"'
        argv = ("/bin/sh", "-c", script, "sh", program, *words)
        return replace(command, argv=argv)

    fake = Mock(spec=RunningContainer)
    fake.name = f"sha256:{image_root}"
    fake.command.side_effect = in_image
    return fake
