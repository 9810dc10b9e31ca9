import platform
import sys
from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, explaining
from tests.making import make_file, make_folder

from tfwright.diagnosis import evidence
from tfwright.diagnosis.families import Fact, all_families

ASKS_FOR_CUDA = next(family for family in all_families() if "cuda" in family.evidence)
ASKS_FOR_DISK = next(family for family in all_families() if "disk" in family.evidence)
LOOKS_AT_NOTHING = next(family for family in all_families() if not family.evidence)


def test_a_cuda_home_that_cannot_be_looked_at_is_no_evidence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A name of more than 255 bytes: the system refuses to look, also for root.
    monkeypatch.setenv("CUDA_HOME", f"/{'x' * 300}")

    seen = evidence.visible_evidence(ASKS_FOR_CUDA, tmp_path)
    assert not any("xxx" in text for text in seen)


def test_a_place_that_is_gone_is_no_evidence(tmp_path: Path) -> None:
    seen = evidence.visible_evidence(ASKS_FOR_DISK, tmp_path / "gone")
    assert not any("GiB are free on the disk" in text for text in seen)


@pytest.mark.parametrize("fact", evidence._LOOK)
def test_every_fact_is_one_sentence_or_nothing(fact: Fact, tmp_path: Path) -> None:
    assert "\n" not in evidence._LOOK[fact](tmp_path)


def test_a_library_of_another_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "libcudart.so.7.5").touch()
    wanted = tmp_path / "libcudart.so.7.0"

    (seen,) = evidence.visible_evidence(LOOKS_AT_NOTHING, tmp_path, {"path": str(wanted)})
    assert seen == f"{wanted} is not on this host; libcudart.so.7.5 is there"


def test_a_link_that_leads_nowhere_is_named_with_its_target(tmp_path: Path) -> None:
    link = tmp_path / "libcuda.so"
    link.symlink_to(tmp_path / "gone")

    seen = evidence.visible_evidence(LOOKS_AT_NOTHING, tmp_path, {"path": str(link)})
    assert seen == (f"{link} is a link to {tmp_path}/gone, which is not there",)


def test_a_missing_header_has_no_other_versions(tmp_path: Path) -> None:
    (tmp_path / "nccl.hpp").touch()
    wanted = tmp_path / "nccl.h"

    seen = evidence.visible_evidence(LOOKS_AT_NOTHING, tmp_path, {"path": str(wanted)})
    assert seen == (f"{wanted} is not on this host",)


@pytest.mark.parametrize("content", ["NVRM version: 535.104\nGCC version: 12\n", ""])
def test_a_loaded_driver_is_named_by_its_first_line(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_DRIVER", tmp_path / "version")
    assert evidence._driver(tmp_path) == "no NVIDIA driver is loaded"
    (tmp_path / "version").write_text(content, "ascii")
    assert evidence._driver(tmp_path) == content[:21]


def test_a_toolkit_is_named_with_the_version_that_it_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, bare = tmp_path / "cuda-9.2", tmp_path / "bare"
    bare.mkdir()
    make_file(old / "version.json", "{}")
    make_file(old / "version.txt", "CUDA Version 9.2.148\n")
    monkeypatch.setenv("CUDA_HOME", str(old))
    monkeypatch.setattr(evidence, "_CUDA", (str(bare), str(tmp_path / "gone")))

    seen = evidence._cuda(tmp_path)
    assert seen == f"CUDA is in {old} (version 9.2.148), {bare}"


@pytest.mark.parametrize(
    ("system", "said"), [("linux", "no CUDA toolkit is in the usual places"), ("darwin", "")]
)
def test_a_missing_toolkit_is_evidence_only_where_one_can_be(
    system: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(evidence, "_CUDA", ())
    monkeypatch.setattr(sys, "platform", system)
    assert evidence._cuda(tmp_path) == said


def test_each_of_several_files_is_looked_at(tmp_path: Path) -> None:
    gone, there = tmp_path / "a.h", tmp_path / "b.h"
    there.touch()
    both = {"path": f"{gone} or {there}"}
    assert evidence.visible_evidence(LOOKS_AT_NOTHING, tmp_path, both) == (
        f"{gone} is not on this host",
    )


def test_a_label_is_no_file(tmp_path: Path) -> None:
    target = {"target": "//tensorflow/core:lib"}
    assert evidence.visible_evidence(LOOKS_AT_NOTHING, tmp_path, target) == ()


@pytest.mark.medium
def test_the_file_that_gives_an_option_is_named(tmp_path: Path) -> None:
    log = (
        b"INFO: Reading rc options for 'build' from /t/.bazelrc:\n"
        b"  'build' options: --define=a=b\n"
        b"INFO: Reading rc options for 'build' from /home/u/.bazelrc:\n"
        b"  Inherited 'common' options: --gone_option --x=1\n"
        b"ERROR: Unrecognized option: --gone_option\n"
    )
    match = next(match for match in diagnose(log).matches if match.explains)

    seen = evidence.visible_evidence(match.entry, tmp_path, match.parameters)
    assert "the log shows that /home/u/.bazelrc gives it" in seen


@pytest.mark.parametrize(
    ("family", "name"), [("link-library-missing", "library"), ("host-driver", "message")]
)
def test_cuda_is_named_only_where_a_message_is_about_it(
    family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = make_folder(tmp_path / "cuda")
    monkeypatch.setattr(evidence, "_CUDA", (str(cuda),))
    found = next(each for each in all_families() if each.id == family)
    known = found.changed(evidence=("cuda",))
    assert evidence.visible_evidence(known, tmp_path, {name: "-lpthread"}) == ()
    assert str(cuda) in evidence.visible_evidence(known, tmp_path, {name: "-lcudart"})[0]


def test_a_log_of_another_system_says_nothing_of_this_host(tmp_path: Path) -> None:
    assert evidence.visible_evidence(ASKS_FOR_DISK, tmp_path, {"system": platform.system()})
    assert not evidence.visible_evidence(ASKS_FOR_DISK, tmp_path, {"system": "Windows"})


def test_a_log_with_folders_of_another_machine_says_nothing_of_this_host(tmp_path: Path) -> None:
    make_folder(tmp_path / "site-packages")
    for place, here in ((tmp_path, True), (tmp_path / "gone", False)):
        log = f"File {place}/site-packages/a.py\nOSError: [Errno 28] No space left on device\n"
        match = explaining(log)[0]

        assert bool(evidence.visible_evidence(match.entry, tmp_path, match.parameters)) is here
