import re
from collections import Counter
from pathlib import Path

import pytest
from tests.diagnosis.test_tables import known_tables, places_of
from tests.failing import fails
from tests.making import make_file

from tfwright.diagnosis import families, tables
from tfwright.diagnosis.families import Family, all_families, grammars, refinements
from tfwright.documents.toml import load
from tfwright.errors import RecipeError

CLEAN = sorted(Path(__file__).with_name("clean").iterdir())
NAMED = [
    "dyld: Library not loaded: @rpath/libcudart.9.2.dylib",
    "ImportError: dlopen(x.so, 6): Library not loaded: @rpath/libcublas.9.2.dylib",
    "descriptor_pool.cc:51:22: note: expanded from macro 'PyString_AsStringAndSize'",
    "nvcc fatal   : The version ('9.1') of the host compiler ('Apple clang') is not supported",
    "Symbol not found: _ncclAllReduce",
    "Segmentation fault: 11",
    "Not found: TF GPU device with id 0 was not registered",
    "OverflowError: Size does not fit in an unsigned int",
]
FAMILY = {"id": "x", "cause": "c", "remedy": "r"}


def name(family: Family) -> str:
    return family.id


def test_every_family_has_a_name_of_its_own() -> None:
    names = Counter(family.id for family in all_families())
    assert set(names.values()) == {1}


@pytest.mark.parametrize("family", refinements(), ids=name)
def test_a_sample_is_read_by_its_own_refinement_first(family: Family) -> None:
    # A refinement that only other lines of the log decide about may stand before it.
    first = next(
        other
        for other in refinements()
        if other.regex.search(family.sample)
        and (other is family or not {"arm", "musl", "modules", "training"} & set(other.needs))
    )
    assert first.id == family.id


@pytest.mark.parametrize("family", refinements(), ids=name)
def test_a_refinement_names_who_met_it(family: Family) -> None:
    assert family.links
    assert all(link.startswith(("https://", "seen ")) for link in family.links)


@pytest.mark.parametrize("family", all_families(), ids=name)
def test_every_family_says_why_and_what_helps(family: Family) -> None:
    assert family.cause.endswith((".", "…", "}", ".>", "}>", "||>"))
    assert family.remedy.endswith((".", "}", ".>", "}>"))


@pytest.mark.parametrize("family", all_families(), ids=name)
def test_the_places_of_a_sentence_are_parameters_and_tables_that_exist(family: Family) -> None:
    places = places_of(family.cause) | places_of(family.remedy)
    assert {parameter for parameter, _ in places} <= family.parameters
    assert {table for _, table in places if table} <= known_tables()


@pytest.mark.parametrize("line", NAMED)
def test_what_the_users_documents_name_is_known(line: str) -> None:
    assert [family.id for family in all_families() if family.regex.search(line)]


@pytest.mark.parametrize("log", CLEAN, ids=lambda path: path.name)
def test_no_refinement_fires_on_the_log_of_a_good_build(log: Path) -> None:
    lines = log.read_text("utf-8").splitlines()
    fired = [
        (family.id, line) for family in refinements() for line in lines if family.regex.search(line)
    ]
    assert fired == []


@pytest.mark.parametrize(
    "pattern", ["(?:ab)*c", "(?:ab+)+c", "(?:a{2,})*bc", "abc(", "[ab][cd]", ".*"]
)
def test_a_pattern_that_could_be_slow_or_needs_no_text_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape("pattern")):
        Family.model_validate({**FAMILY, "pattern": pattern})


def test_a_faulty_file_is_refused_by_name_and_line(tmp_path: Path) -> None:
    path = make_file(tmp_path / "host.toml", '[[family]]\nid = "x"\n')
    with fails(RecipeError, path.name):
        load(path, families._Families)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("fatal error: (?P<name>.*) not found", ("fatal error: ",)),
        ("a+bcd?", ("bc",)),
        ("(?:undefined|unresolved) symbol", ("undefined", "unresolved")),
        ("(?:undefined|x.y) symbol", (" symbol",)),
        (r"\[Errno 28\] .{1,3}", ("[Errno 28] ",)),
        ("(?!ignored)needed", ("needed",)),
        ("(?i:any) case", (" case",)),
        ("[abc]+", ()),
        ("one(?:two)?", ("one",)),
    ],
)
def test_texts_that_a_pattern_requires_are_computed(pattern: str, wanted: tuple[str, ...]) -> None:
    assert families.required_texts(pattern) == wanted


@pytest.mark.parametrize("family", refinements(), ids=name)
def test_a_sample_holds_one_of_the_required_texts(family: Family) -> None:
    assert any(literal in family.sample for literal in family.literals)


def test_every_file_of_grammars_is_read() -> None:
    files = {path.stem for path in families.FOLDER.glob("*.toml")}
    assert files == set(families.ORDER)
    assert len(grammars()) > 100


def test_words_that_no_table_knows_leave_something_to_say_and_to_do() -> None:
    empty = []
    for family in all_families():
        unknown = dict.fromkeys((*family.regex.groupindex, "system"), "qqqq")
        if not all(tables.fill(text, unknown) for text in (family.cause, family.remedy) if text):
            empty.append(family.id)
    assert empty == []


@pytest.mark.parametrize("family", all_families(), ids=name)
def test_a_cause_that_lists_reasons_is_not_called_certain(family: Family) -> None:
    assert not (family.certain and "Usual reasons" in family.cause)
