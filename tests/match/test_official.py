from dataclasses import replace

import pytest

from tfwright.documents.host_file import HostFile
from tfwright.facts import wheels
from tfwright.index import matching
from tfwright.match import fit, official
from tfwright.match.wish import Wish
from tfwright.wheel.inspect.inspection import Inspection
from tfwright.wheel.inspect.needs import Summary, WheelNeed

HERE = {"system": "Linux", "machine": "x86_64"}
MAC = {"system": "Darwin", "machine": "arm64"}
WINDOWS = {"system": "Windows", "machine": "AMD64"}


def first(**wanted: str) -> official.OfficialMatch:
    return official.matches(Wish(**{**HERE, **wanted}))[0]


@pytest.mark.parametrize(
    ("wanted", "install"),
    [
        ({"gpu": "6.1", "cuda": "11.8"}, "tensorflow[and-cuda]==2.14.1"),
        # The newest cuDNN 9, which its metadata lets pip install, is for 7.5 and later.
        ({"gpu": "7.0", "python": "3.12"}, "tensorflow[and-cuda]==2.21.0 nvidia-cudnn-cu12<9.11"),
        ({"gpu": "7.5", "python": "3.12"}, "tensorflow[and-cuda]==2.21.0"),
        ({"gpu": "7.0", "release": "2.19"}, "tensorflow[and-cuda]==2.19.1"),
        # Only the TensorRT that 1.7.1 holds has code for it.
        ({"gpu": "3.0", "python": "3.6"}, "tensorflow-gpu==1.4.1 protobuf<3.21 numpy<1.17"),
        # Of the TensorRT that 2.14 asks for there is no file for this Python, and of that of 2.15.0 none.
        ({"gpu": "3.5", "python": "3.11"}, "tensorflow==2.14.1"),
        ({"gpu": "6.1", "release": "2.15.0"}, "tensorflow==2.15.0"),
        # Its wheel does not look for CUDA's libraries where pip puts them.
        ({"gpu": "8.6", "release": "2.16.1"}, "tensorflow==2.16.1"),
        ({"gpu": "8.6", "python": "3.8"}, "tensorflow==2.13.1"),
        ({"python": "3.13"}, "tensorflow-cpu==2.21.0"),
        # The release that was asked for, and not the newest of its line: 1.5.1 needs AVX.
        ({"release": "1.5.0", "cpu": "sse4.2"}, "tensorflow==1.5.0 protobuf<3.21 numpy<1.17"),
        # numpy 2 stops it at its import, and its metadata lets pip install that.
        ({"release": "2.10.0", "python": "3.9"}, "tensorflow-cpu==2.10.0 wrapt<1.15 numpy<1.24"),
        # A file of 2 KB is there for each of these Pythons, and not the wheel that it requires.
        (
            {"machine": "aarch64", "release": "2.11", "python": "3.10"},
            "tensorflow==2.11.0 wrapt<1.15 numpy<1.24",
        ),
        ({"machine": "aarch64", "glibc": "2.26"}, "tensorflow==2.20.0"),
        (WINDOWS | {"release": "2.13", "python": "3.8"}, "tensorflow-cpu==2.13.0"),
        (MAC | {"release": "2.13", "python": "3.8"}, "tensorflow==2.13.0"),
        (WINDOWS | {"gpu": "8.9"}, "tensorflow==2.10.1 wrapt<1.15 numpy<1.24"),
        (
            {"system": "Darwin", "machine": "x86_64", "macos": "10.13", "python": "3.8"},
            "tensorflow-cpu==2.7.4 protobuf<3.21 wrapt<1.15 numpy<1.24",
        ),
        ({"system": "Darwin", "gpu": "3.0"}, "tensorflow-gpu==1.1.0 protobuf<3.21 numpy<1.17"),
        # 2.11.1 is for Python 3.8 and later.
        ({"python": "3.7"}, "tensorflow-cpu==2.11.0 wrapt<1.15 numpy<1.24"),
        ({"gpu": "8.9", "release": "2.10"}, "tensorflow==2.10.1 wrapt<1.15 numpy<1.24"),
        # Later files of these lines have other GPU code: 1.12.3 has only that of one card, 1.15.5 none.
        (
            {"gpu": "6.1", "release": "1.12.0", "python": "3.6"},
            "tensorflow-gpu==1.12.0 protobuf<3.21 numpy<1.17 gast<0.3 h5py<3",
        ),
        (
            {"gpu": "6.1", "release": "1.15.0", "python": "3.7"},
            "tensorflow==1.15.0 protobuf<3.21 wrapt<1.15 numpy<1.20 h5py<3",
        ),
        (MAC | {"python": "3.12"}, "tensorflow==2.21.0"),
    ],
)
def test_the_newest_official_wheel_that_fits_is_named(wanted: dict[str, str], install: str) -> None:
    found = first(**wanted)
    assert not found.differs
    # cmd takes a ' for a letter.
    quote = '"' if wanted.get("system") == "Windows" else "'"
    assert found.install == f"pip install {quote}{install.replace(' ', f'{quote} {quote}')}{quote}"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"gpu": "12.0", "python": "3.12"}, "code for 6.0"),
        ({"cpu": "sse4.2", "python": "3.10"}, "needs a CPU with avx"),
        ({"gpu": "8.6", "release": "1.15"}, "code for 3.5"),
        ({"glibc": "2.12", "release": "2.20"}, "needs glibc 2.17"),
        ({"python": "3.5", "release": "2.20"}, "for Python 3.9 to 3.13"),
        ({"gpu": "8.6", "cuda": "10.1", "release": "2.13"}, "made with CUDA 11.8"),
        ({"machine": "riscv64"}, "for manylinux"),
        ({"release": "2.10.7"}, "another release"),
        ({"machine": "aarch64", "release": "2.11.1"}, "another release"),
        ({"machine": "aarch64", "glibc": "2.12", "release": "2.20"}, "needs glibc 2.17"),
        ({"machine": "aarch64", "gpu": "8.7"}, "no GPU code on this platform"),
        ({**MAC, "macos": "11.7"}, "needs macOS 12.0; 11.7 is there"),
        # Wheels for Windows have other GPU code than those for Linux: tensorflow#22594.
        ({**WINDOWS, "gpu": "3.5", "release": "1.11"}, "code for 3.7"),
        ({**WINDOWS, "gpu": "8.9", "release": "2.18"}, "no GPU code on this platform"),
    ],
)
def test_a_wheel_that_does_not_fit_says_why(wanted: dict[str, str], reason: str) -> None:
    assert any(said.startswith(reason) for said in first(**wanted).differs)


def test_a_wheel_of_another_minor_version_of_cuda_is_nearer_than_of_another_major_one() -> None:
    found = first(gpu="6.1", python="3.6", cuda="9.1")
    assert (found.wheel.version, found.differs) == ("1.12.3", ("made with CUDA 9.0",))


def test_where_pip_brings_another_cuda_than_the_one_asked_for_the_command_names_the_extra() -> None:
    found = first(gpu="8.9", python="3.10", cuda="12.4")
    assert found.install == "pip install 'tensorflow[and-cuda]==2.21.0'"
    assert found.differs[0].startswith("made with CUDA 12.5.1, which pip installs with it")


def test_of_a_release_that_is_not_known_yet_the_newest_wheel_is_the_nearest() -> None:
    assert first(release="3.0").install == "pip install 'tensorflow-cpu==2.21.0'"


@pytest.mark.parametrize(
    "wanted",
    [
        {"gpu": "8.6", "driver": "470.82"},
        {"gpu": "12.0"},
        {"gpu": "9.0", "cuda": "11.8"},
        {"python": "3.13", "cpu": "sse4.2", "glibc": "2.12"},
        {"glibc": "none"},
        {"release": "2.16"},
    ],
)
def test_a_wheel_gets_one_answer_from_the_table_from_an_index_and_from_its_own_bytes(
    wanted: dict[str, str],
) -> None:
    wish = Wish(**{**HERE, **wanted})
    name = "tensorflow-2.15.1-cp310-cp310-manylinux_2_17_x86_64.whl"
    needs = {"GLIBC": WheelNeed("2.17", "a.so"), "CPU": WheelNeed("avx", "a.so")}
    (row,) = (row for row in wheels.official() if (row.project, row.line) == ("tensorflow", "2.15"))
    report = Inspection(
        name,
        1,
        project="tensorflow",
        version=row.version,
        tags=(name.removesuffix(".whl").split("-", 2)[2],),
        stated=(("cuda_version", row.cuda), ("cudnn_version", row.cudnn)),
        summary=Summary(needs, (), dict.fromkeys(row.gpu, 1), (), 0),
    )
    project = {"project": "tensorflow", "version": row.version, "filename": name, "url": name}
    file = {"sha256": "0" * 64, "size": 1, "recipe": "", "state": "", "python": (), "platform": ()}
    data = {**project, **file, "needs": report.needs_of_machine()}
    entry = matching.MatchEntry.model_validate(data)
    text = matching.MatchDocument(wheels=(entry,)).model_dump_json().encode()
    (listed,) = matching.rank_wheels(text, wish)
    (found,) = (found for found in official.matches(wish) if found.wheel == row)
    judged = fit.verdict(report, wish, None, HostFile()).judgements
    # The table knows the wheels for all Pythons and platforms, and a file is for one.
    apart = {"Python", "platform"}
    lacking = {one.says for one in judged if one.holds is False and one.what not in apart}
    assert lacking <= set(found.differs)
    assert len(listed.differs) == sum(one.holds is False for one in judged)
    assert bool(listed.differs) == bool(found.differs)


def test_the_driver_and_an_installed_cuda_are_said_where_pip_does_not_bring_them() -> None:
    known = {"gpu": "8.6", "glibc": "2.36", "cpu": "avx2"}
    python, driver, cuda = first(release="2.10", **known).notes
    assert python == "for Python 3.7 to 3.10"
    assert "455.23" in driver
    assert "CUDA 11.2" in cuda
    assert len(first(release="2.19", python="3.12", **known).notes) == 1


def test_a_wheel_fits_for_sure_where_all_that_it_needs_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"glibc": "2.36", "cpu": "avx2", "python": "3.8"}
    assert first(release="2.4.4", **known).fits is True
    assert first(release="2.4.4", glibc="2.36", python="3.8").fits is None
    assert first(release="2.4.4", glibc="2.5", cpu="avx2", python="3.8").fits is False
    # What another release of its line needs is a guess.
    (row,) = (
        row for row in wheels.official() if (row.project, row.version) == ("tensorflow", "2.4.4")
    )
    monkeypatch.setattr(wheels, "official", lambda: [replace(row, unread=("2.4.4",))])
    assert first(release="2.4.4", **known).fits is None


def test_ptx_serves_a_newer_gpu_only_as_far_as_the_cuda_of_the_wheel_knows_it() -> None:
    served = first(gpu="9.0", release="2.13")
    assert not served.differs
    assert any("first start" in note for note in served.notes)
    assert first(gpu="10.0", release="2.21").differs


def test_the_table_has_every_release_line_and_says_when_it_was_read() -> None:
    lines = {wheel.line for wheel in wheels.official() if wheel.project == "tensorflow"}
    assert {f"2.{minor}" for minor in range(22)} <= lines
    assert wheels.date_read() >= "2026-11-25"
    for wheel in wheels.official():
        assert wheel.glibc
        assert wheel.linux_x86_64
