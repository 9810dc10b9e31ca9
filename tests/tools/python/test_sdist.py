"""Source packages of Python, brought by pip from an index of the test's own."""

import hashlib
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_tar

from tfwright.errors import Evidence, SupplyError, ToolError
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import sdist
from tfwright.tools.python.sdist import Sdist

pytestmark = pytest.mark.medium


def packed(path: Path, text: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a source package of files, and let pip see only that."""
    folder = path.name.removesuffix(".tar.gz")
    make_tar(path, {f"{folder}/{name}": content for name, content in text.items()})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a source package whose setup.py must not be run."""
    ran = str(tmp_path / "it ran")
    setup = f"open({ran!r}, 'w')\nraise SystemExit('print \"for Python 2 only\"')\n"
    path = tmp_path / "index/old.thing-1.0rc1.tar.gz"
    return packed(path, {"setup.py": setup}, monkeypatch)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mirror.example/packages/source/s/six/six-1.10.0.tar.gz", Sdist("six", "1.10.0")),
        (
            "https://mirror.example/index.example/packages/bc/cc/3cdb/backports.weakref-1.0rc1.tar.gz",
            Sdist("backports.weakref", "1.0rc1"),
        ),
        (
            "https://index.example/packages/c5/60/6ac2/functools32-3.2.3-2.tar.gz",
            Sdist("functools32", "3.2.3.post2"),
        ),
        ("https://index.example/packages/c5/60/6ac2/six-1.10.0-py2.py3-none-any.whl", None),
        ("https://example.org/six-1.10.0.tar.gz", None),
        ("https://index.example/packages/c5/60/6ac2/-r-1.0.tar.gz", None),
    ],
)
def test_name_and_version_are_read_off_an_indexs_address(url: str, expected: Sdist | None) -> None:
    assert Sdist.of(url) == expected


@pytest.mark.usefixtures("host_and_container")
def test_pip_brings_the_very_file_and_nothing_in_it_is_run(package: Path, tmp_path: Path) -> None:
    sdist.download(Sdist("old.thing", "1.0rc1"), files.sha256(package), tmp_path / "brought")
    assert (tmp_path / "brought").read_bytes() == package.read_bytes()
    assert not (tmp_path / "it ran").exists()


@pytest.mark.usefixtures("host_and_container")
@pytest.mark.parametrize(
    "backend",
    [
        "setuptools.build_meta:__legacy__",
        "flit_core.buildapi",
        "hatchling.build",
        "poetry.core.masonry.api",
    ],
)
def test_pip_brings_a_package_whose_build_backend_this_host_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    project = f"[build-system]\nrequires = []\nbuild-backend = {backend!r}\n"
    path = packed(tmp_path / "index/newer-2.0.tar.gz", {"pyproject.toml": project}, monkeypatch)
    sdist.download(Sdist("newer", "2.0"), files.sha256(path), tmp_path / "brought")
    assert (tmp_path / "brought").read_bytes() == path.read_bytes()


def test_other_bytes_of_that_name_are_refused(package: Path, tmp_path: Path) -> None:
    with fails(SupplyError, "old.thing", "1.0rc1", "HASHES"):
        sdist.download(
            Sdist("old.thing", "1.0rc1"), hashlib.sha256(b"").hexdigest(), tmp_path / "brought"
        )
    assert not (tmp_path / "brought").exists()
    assert package.exists()


@pytest.mark.parametrize(
    ("brings", "says"),
    [
        ("true", "brought nothing"),
        ("mkdir brought", "brought nothing"),
        ("mkdir brought; touch brought/a brought/b", "brought a, b"),
    ],
)
def test_a_pip_that_brings_anything_but_one_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brings: str, says: str
) -> None:
    def command(_: Sdist, room: Path, **__: bool) -> Command:
        return Command(("/bin/sh", "-c", brings), room, {"PATH": "/bin:/usr/bin"})

    monkeypatch.setattr(sdist, "_download_command", command)
    with pytest.raises(SupplyError, match=says):
        sdist.download(Sdist("six", "1.10.0"), "", tmp_path / "brought")


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (("Traceback", "InvalidURL: no host"), "InvalidURL: no host"),
        (("ERROR: No matching distribution found for a==1",), "no index has this source package"),
        ((), "pip failed"),
    ],
)
def test_the_cause_that_pip_names_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], shown: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ToolError("pip failed", remedy="-", evidence=Evidence(lines=lines))

    monkeypatch.setattr(runner, "run", fail)
    with pytest.raises(SupplyError, match=f"pip cannot bring a 1: {shown}$"):
        sdist.download(Sdist("a", "1"), "", tmp_path / "target")
