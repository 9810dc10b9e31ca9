import re
from collections import Counter
from pathlib import Path

import pytest

from tfwright.diagnosis.catalogue import Clue, Entry, everything
from tfwright.documents.toml import load
from tfwright.errors import RecipeError

CLEAN = sorted(Path(__file__).with_name("clean").iterdir())
NAMED = [
    "dyld: Library not loaded: @rpath/libcudart.9.2.dylib",
    "ImportError: dlopen(_pywrap_tensorflow_internal.so, 6): Library not loaded: @rpath/libcublas.9.2.dylib",
    "pyext/descriptor_pool.cc:51:22: note: expanded from macro 'PyString_AsStringAndSize'",
    "nvcc fatal   : The version ('9.1') of the host compiler ('Apple clang') is not supported",
    "Symbol not found: _ncclAllReduce",
    "Segmentation fault: 11",
    "Not found: TF GPU device with id 0 was not registered",
    "OverflowError: Size does not fit in an unsigned int",
]
ENTRY = {
    "id": "x",
    "stage": "any",
    "retry": "no",
    "sample": "a",
    "cause": "c",
    "remedy": "r",
    "sources": ("s",),
}


def test_it_holds_more_than_120_failures_each_with_its_own_name() -> None:
    names = Counter(entry.id for entry in everything())

    assert len(names) >= 120
    assert set(names.values()) == {1}


@pytest.mark.parametrize("entry", everything(), ids=lambda entry: entry.id)
def test_a_pattern_matches_its_own_sample_and_no_other_but_the_declared_ones(entry: Entry) -> None:
    matched = {other.id for other in everything() if entry.matches(other.sample)}

    assert matched == {entry.id, *entry.also}


@pytest.mark.parametrize("entry", everything(), ids=lambda entry: entry.id)
def test_an_entry_says_why_what_helps_and_who_met_it(entry: Entry) -> None:
    assert entry.cause.endswith((".", "…"))
    assert entry.remedy.endswith(".")
    assert all(link.startswith(("https://", "seen ")) for link in entry.links)


@pytest.mark.parametrize("line", NAMED)
def test_what_the_users_documents_name_is_known(line: str) -> None:
    assert [entry.id for entry in everything() if entry.matches(line)]


@pytest.mark.parametrize("log", CLEAN, ids=lambda path: path.name)
def test_no_entry_fires_on_the_log_of_a_good_build(log: Path) -> None:
    lines = log.read_text("utf-8").splitlines()

    assert [
        (entry.id, line) for entry in everything() for line in lines if entry.matches(line)
    ] == []


@pytest.mark.parametrize(
    "pattern",
    ["a.*b", "a(?:b+)c", "a{2,}", "a(?:b{1,2}){3}", "ab{1,5000}", ".{0,3}a", "[ab]c", "a(b"],
)
def test_a_pattern_that_could_be_slow_or_has_no_beginning_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape("pattern")):
        Entry.model_validate({**ENTRY, "pattern": pattern})


def test_a_faulty_catalogue_is_refused_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.toml"
    path.write_text('id = "x"\n', "utf-8")

    with pytest.raises(RecipeError, match=re.escape(path.name)):
        load(path, Entry)


def test_a_clue_is_taken_apart_into_its_first_literal_and_the_rest() -> None:
    assert [(clue.literal, clue.rest) for clue in map(Clue, ("^Please", ": error", r"\] x"))] == [
        (rb"\n", b"Please"),
        (b": ", b"error"),
        (rb"\] ", b"x"),
    ]
