import re
import tomllib
from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, root_of
from tests.failing import fails

from tfwright.diagnosis import learn
from tfwright.diagnosis.families import Family
from tfwright.diagnosis.log import decoded
from tfwright.errors import RecipeError

LOG = """\
INFO: Analyzed target //x (1 packages loaded).
ERROR: /home/a/t/BUILD:12:1: Compiling a.cc failed: (Exit 1): gcc failed
t/a.cc:10:2: error: the flux capacitor 'delta' wants 1.21 gigawatts at 0xdeadbeef
t/a.cc:11:2: error: another
"""
LEARNED = sorted(Path(__file__).with_name("learned").glob("*.log"))


def taught(log: str = LOG) -> learn.Lesson:
    return learn.lesson(diagnose(log), "a.log")


def test_a_lesson_is_a_refinement_that_reads_its_own_sample() -> None:
    entry = tomllib.loads(taught().entry)["failure"][0]
    family = Family.model_validate(entry)
    assert family.regex.search(family.sample)
    assert family.id.startswith("host-source-error-")


def test_a_lesson_reads_the_same_message_of_another_build() -> None:
    family = Family.model_validate(tomllib.loads(taught().entry)["failure"][0])
    assert family.regex.search(
        "t/a.cc:7:31: error: the flux capacitor 'gamma' wants 9.9 gigawatts at 0x12"
    )
    assert not family.regex.search("t/a.cc:7:31: error: another")


def test_the_winning_line_of_a_fixture_is_marked() -> None:
    marked = [line for line in taught().fixture.splitlines() if line.startswith(learn.MARK)]
    assert marked == [learn.MARK + LOG.splitlines()[2]]


def test_a_log_without_an_error_teaches_nothing() -> None:
    with fails(RecipeError, "a.log"):
        taught("all is well\n")


def test_paths_numbers_and_names_become_gaps() -> None:
    made = learn.pattern("/usr/lib/a.so: undefined symbol 'foo' (error 12)")
    assert re.fullmatch(made, "/opt/b.so: undefined symbol 'bar' (error 7)")


KNOWN = "a/log.cc:43:13: error: ambiguating new declaration of 'long int gettid()'\n"


def test_a_failure_that_the_catalogue_describes_makes_no_second_entry() -> None:
    learned = taught(KNOWN)
    assert (learned.name, learned.entry) == ("compile-gettid", "")
    assert learned.fixture == learn.MARK + KNOWN


def test_a_name_repeats_no_word_of_its_family_and_fits_a_file() -> None:
    log = 'k.cu(1): error: identifier "error_name" undefined error name\n'
    words = taught(log).name.split("-")
    assert len(words) == len(set(words))
    assert len(taught("ERROR: /w/BUILD:1:1: " + "A" * 5000 + "\n").name) < 100


@pytest.mark.parametrize(
    "said",
    [
        "quotes ''' and \"\"\" and a back\\slash, then '",
        "tab \t bell \a escape \x1b[31mred\x1b[0m \udcff",
        "тест \u202e 漢字 {braces} (brackets) [set] a+b* ^$ |",
        "x" * 100_000,
    ],
)
@pytest.mark.medium
def test_an_entry_of_a_hostile_message_is_valid_and_reads_the_log(said: str) -> None:
    log = f"t/a.cc:10:2: error: refuses {said}\n".encode("utf-8", "surrogateescape")
    learned = learn.lesson(diagnose(log), "a.log")
    family = Family.model_validate(tomllib.loads(learned.entry)["failure"][0])
    assert family.regex.search(family.sample)
    assert family.regex.search(decoded(log))


def test_a_name_holds_no_part_of_a_path() -> None:
    learned = taught("/home/maria/x/a.cc:3:1: error: refuses /home/maria/y.h because\n")
    assert learned.name == "host-source-error-refuses-because"


def test_a_log_that_only_says_that_something_failed_teaches_nothing() -> None:
    with fails(RecipeError, "FAILED: Build did NOT complete"):
        taught("FAILED: Build did NOT complete successfully\n")


def test_a_fixture_of_another_log_is_kept(tmp_path: Path) -> None:
    found = [diagnose(each) for each in (KNOWN, "x\n" + KNOWN)]
    paths = [learn.write(each, "a.log", tmp_path)[1] for each in (*found, found[0])]
    assert [path.name for path in paths] == [
        "compile-gettid.log",
        "compile-gettid-2.log",
        "compile-gettid.log",
    ]


@pytest.mark.parametrize("path", LEARNED, ids=lambda path: path.stem)
def test_the_marked_line_of_every_fixture_is_the_root(path: Path) -> None:
    text = path.read_text("utf-8")
    wanted = next(line for line in text.splitlines() if line.startswith(learn.MARK))
    assert (
        root_of(text.replace(learn.MARK, "").encode()).what
        == wanted.removeprefix(learn.MARK).strip()
    )
