import io
import re
import tomllib
from pathlib import Path

import pytest

from tfwright.diagnosis import learn, reader
from tfwright.diagnosis.families import Family
from tfwright.errors import RecipeError

LOG = """\
INFO: Analyzed target //x (1 packages loaded).
ERROR: /home/a/t/BUILD:12:1: Compiling a.cc failed: (Exit 1): gcc failed
t/a.cc:10:2: error: the flux capacitor 'delta' wants 1.21 gigawatts at 0xdeadbeef
t/a.cc:11:2: error: another
"""
LEARNED = sorted(Path(__file__).with_name("learned").glob("*.log"))


def taught(log: str = LOG) -> learn.Lesson:
    return learn.lesson(reader.read(io.BytesIO(log.encode())), "a.log")


def test_a_lesson_is_a_refinement_that_reads_its_own_sample() -> None:
    entry = tomllib.loads(taught().entry)["failure"][0]
    family = Family.model_validate(entry)

    assert family.matches(family.sample)
    assert family.id.startswith("host-source-error-")


def test_a_lesson_reads_the_same_message_of_another_build() -> None:
    family = Family.model_validate(tomllib.loads(taught().entry)["failure"][0])

    assert family.matches(
        "t/a.cc:7:31: error: the flux capacitor 'gamma' wants 9.9 gigawatts at 0x12"
    )
    assert not family.matches("t/a.cc:7:31: error: another")


def test_the_winning_line_of_a_fixture_is_marked() -> None:
    marked = [
        line for line in taught().fixture.splitlines() if line.startswith(learn.MARK)
    ]

    assert marked == [learn.MARK + LOG.splitlines()[2]]


def test_a_log_without_an_error_teaches_nothing() -> None:
    with pytest.raises(RecipeError, match="reports an error"):
        taught("all is well\n")


def test_paths_numbers_and_names_become_gaps() -> None:
    made = learn.pattern("/usr/lib/a.so: undefined symbol 'foo' (error 12)")

    assert re.fullmatch(made, "/opt/b.so: undefined symbol 'bar' (error 7)")


@pytest.mark.parametrize("path", LEARNED, ids=lambda path: path.stem)
def test_the_marked_line_of_every_fixture_is_the_root(path: Path) -> None:
    text = path.read_text("utf-8")
    wanted = next(line for line in text.splitlines() if line.startswith(learn.MARK))
    found = reader.read(io.BytesIO(text.replace(learn.MARK, "").encode()))

    assert found.first is not None
    assert found.first.what == wanted.removeprefix(learn.MARK).strip()
