"""What to type: the lines are ones that a recipe, the host file and a shell take."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests.diagnosis.reading import explaining
from tests.diagnosis.test_tables import known_tables, places_of
from tests.making import Read, make_file

from tfwright import tasks
from tfwright.diagnosis import reader, tables
from tfwright.diagnosis.families import Family, all_families
from tfwright.diagnosis.page import tell_match
from tfwright.diagnosis.tables import Advice
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe

LINE = re.compile(r"(?:\[(?P<table>[\w.]+)\] )?(?P<rest>.+ = .+)")
PLACE = re.compile(r"\{\w+(?:\|\w+)?\}")
ADVISING = [
    family for family in all_families() if family.recipe or family.host_file or family.commands
]


def name(family: Family) -> str:
    return family.id


def keys(template: str) -> list[str]:
    """Return the tables and the key of a line, whose value must be valid TOML."""
    line = LINE.fullmatch(PLACE.sub("x", template))
    assert line, template
    (key,) = tomllib.loads(line["rest"])
    return [*(line["table"].split(".") if line["table"] else []), key]


@pytest.mark.parametrize("family", ADVISING, ids=name)
def test_the_places_of_a_line_are_parameters_and_tables_that_exist(family: Family) -> None:
    for template in (*family.recipe, *family.host_file, *family.commands):
        places = places_of(template)

        assert {parameter for parameter, _ in places} <= family.parameters
        assert {table for _, table in places if table} <= known_tables()


@pytest.mark.parametrize("family", ADVISING, ids=name)
def test_a_line_for_a_recipe_has_a_key_that_recipes_have(family: Family) -> None:
    for template in family.recipe:
        table, *others = keys(template)
        model = Recipe.model_fields[table].annotation

        # A table may give the key: {library|host_fact} is cuda, cudnn or nccl.
        assert others[0] in model.model_fields or "] {" in template  # type: ignore[union-attr]


@pytest.mark.parametrize("family", ADVISING, ids=name)
def test_a_line_for_the_host_file_has_a_key_that_it_has(family: Family) -> None:
    for template in family.host_file:
        # A table gives the key: {file|host_key} is cuda or cudnn.
        first = keys(template)[0]

        assert first in HostFile.model_fields or template.startswith("{")


@pytest.mark.parametrize("family", ADVISING, ids=name)
def test_a_command_is_one_that_a_shell_reads(family: Family) -> None:
    for template in family.commands:
        assert shlex.split(PLACE.sub("x", template))


SAID = {
    "Environment variable TF_NEED_CUDA must be set as a boolean indicator": Advice(
        recipe=("[configure.answers] TF_NEED_CUDA = true",)
    ),
    "Please downgrade your bazel installation to version 0.26.1 or lower to build TensorFlow!": (
        Advice(recipe=('[bazel] version = "0.26.1"',))
    ),
    "a.c:1:2: error: implicit declaration of function 'f' [-Wimplicit-function-declaration]": (
        Advice(
            recipe=(
                (
                    '[compile] flags = ["--copt=-Wno-error=implicit-function-declaration", '
                    '"--host_copt=-Wno-error=implicit-function-declaration"]'
                ),
            )
        )
    ),
    "/c/host_config.h:1:2: error: #error -- unsupported GNU version! gcc versions later than 8 are "
    "not supported!": Advice(
        recipe=('[host] gcc = "8"',),
        host_file=('compiler = "/usr/bin/gcc-8"',),
        commands=("apt-get install gcc-8 g++-8",),
    ),
    "nvcc fatal   : Unsupported gpu architecture 'compute_86'": Advice(
        recipe=('[host] cuda = "11.1"',)
    ),
    "bash: line 1: patch: command not found": Advice(
        recipe=('[host] programs = ["patch"]',), commands=("apt-get install patch",)
    ),
    "a.cc:3:2: error: 'uint8_t' does not name a type": Advice(
        recipe=(
            (
                '[compile] flags = ["--cxxopt=-include", "--cxxopt=cstdint", "--host_cxxopt=-include", '
                '"--host_cxxopt=cstdint"]'
            ),
        )
    ),
    "a.o: undefined reference to `clock_gettime'": Advice(
        recipe=('[compile] flags = ["--linkopt=-lrt"]',)
    ),
    "gcc: internal compiler error: Killed (program cc1plus)": Advice(
        recipe=("[compile] peak = 3.0",), host_file=("jobs = 2",)
    ),
    "Could not find any cudnn.h matching version '8' in any subdirectory": Advice(
        host_file=('cudnn = "/PREFIX"',), commands=("invoke toolkit --recipe NAME",)
    ),
    "fatal: detected dubious ownership in repository at '/src/tf'": Advice(
        commands=("git config --global --add safe.directory /src/tf",)
    ),
    "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory": Advice(
        commands=(
            "python -m pip install 'nvidia-nccl-cuNN'",
            (
                "export LD_LIBRARY_PATH=$(python -c 'import nvidia.nccl as m; print(m.__path__[0])')/lib"
                ":$LD_LIBRARY_PATH"
            ),
        )
    ),
    "ImportError: libcublas.so.10.0: cannot open shared object file: No such file or directory": (
        Advice(commands=("conda install cudatoolkit=10.0",))
    ),
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory": Advice(
        commands=("apt-get install libgl1",)
    ),
    "ModuleNotFoundError: No module named 'google.protobuf'": Advice(
        commands=("python -m pip install protobuf", "invoke pin --recipe NAME --add protobuf")
    ),
}


@pytest.mark.parametrize("log", SAID)
def test_the_lines_have_the_names_of_the_log_in_place(log: str) -> None:
    assert explaining(f"{log}\n")[0].advice == SAID[log]


@pytest.mark.parametrize(
    "log",
    [
        "ModuleNotFoundError: No module named '--index-url=http://a.example'",
        "ModuleNotFoundError: No module named 'tensorflow.python'",
        "bash: line 1: build: command not found",
        "fatal: detected dubious ownership in repository at '/a; touch /b'",
    ],
)
def test_a_name_that_is_no_plain_word_gives_no_line(log: str) -> None:
    assert not explaining(f"{log}\n")[0].advice


@pytest.mark.parametrize("value", ["a b", "a;b", "$(a)", "`a`", "-a", 'a"b', "a\nb", "a'b"])
def test_a_line_takes_nothing_that_a_shell_reads_otherwise(value: str) -> None:
    assert tables.copyable_line("type {name}", {"name": value}) == ""


def test_a_failed_build_is_told_what_the_family_advises(tmp_path: Path) -> None:
    log = make_file(tmp_path / "compile.log", "/usr/bin/env: 'python': No such file or directory\n")

    record = reader.read_failure(log, 0, killed=False, died=False)
    assert record.match is not None
    assert record.match.entry.sample
    assert record.match.advice.commands == ("apt-get install python-is-python3",)


def test_lines_to_copy_are_shown_whole(err: Read, tmp_path: Path) -> None:
    tell_match(explaining("bash: line 1: patch: command not found\n")[0], tmp_path)

    shown = err()
    assert "    type:      apt-get install patch\n" in shown
    assert '    recipe:    [host] programs = ["patch"]\n' in shown


def sentences() -> list[str]:
    texts = [text for family in all_families() for text in (family.cause, family.remedy)]
    texts += [text for family in all_families() for text in family.commands]
    return texts + [text for rows in tables._tables().values() for _, text in rows]


def test_no_sentence_names_a_command_or_an_option_that_does_not_exist() -> None:
    commands = tasks.collection().task_names
    known = {"--help", "--json"}
    faults = []
    for text in sentences():
        for command, rest in re.findall(r"`?\binvoke ([a-z-]+)([^`;.,]*)", text):
            task = tasks.collection()[command] if command in commands else None
            flags = {flag for arg in task.get_arguments() for flag in arg.names} if task else set()
            options = set(re.findall(r"--([a-z-]+)", rest)) - {flag[2:] for flag in known}
            if task is None or options - {flag.replace("_", "-") for flag in flags}:
                faults.append(text)
    assert faults == []


def test_no_sentence_names_a_key_of_a_table_that_it_does_not_have() -> None:
    faults = []
    for text in sentences():
        for key, table in re.findall(r"`(\w+)` (?:of|in)(?: a recipe's)? \[(\w+)\]", text):
            if table not in Recipe.model_fields or key not in fields_of(table):
                faults.append(text)
        named = set(re.findall(r"`(\w+)` (?:of|in) the host file", text))
        faults += [text] if named - HostFile.model_fields.keys() else []
    assert faults == []


def fields_of(table: str) -> set[str]:
    model = Recipe.model_fields[table].annotation
    return set(getattr(model, "model_fields", {}))
