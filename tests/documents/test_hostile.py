"""Recipes of strangers: refused in a moment, with file and line, never with a traceback."""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import change_text

from tfwright.documents import recipe, toml
from tfwright.documents.names import inner_path
from tfwright.errors import RecipeError

pytestmark = pytest.mark.medium


LONGEST = 2 if sys.gettrace() is None else 60
"""Seconds of processor time; coverage notes each call of Python's TOML reader, one for a character."""


def refused(path: Path, text: str) -> RecipeError:
    """Append a text to a valid recipe, and return what reading it says.

    Reading may take two seconds of processor time, more only while coverage is measured.
    """
    path.write_text(path.read_text("utf-8") + text, "utf-8")
    begun = time.process_time()
    with pytest.raises(RecipeError) as caught:
        recipe.read(str(path))
    assert time.process_time() - begun < LONGEST
    return caught.value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "9" * 5000, "a number of more than 100 digits"),
        ("x = 0x" + "f" * 5000, "a number of more than 100 digits"),
        ("x = " + "[" * 100_000, "more than 32 brackets within brackets"),
        ("x = " + "{a=" * 100_000, "more than 32 brackets within brackets"),
        (".".join("a" * 100_000) + " = 1", "a key of more than 32 parts"),
        ("[" + ".".join("a" * 100_000) + "]", "a key of more than 32 parts"),
        ("x = {" + ".".join("a" * 100_000) + " = 1}", "a key of more than 32 parts"),
        (".".join(['"a"'] * 100_000) + " = 1", "a key of more than 32 parts"),
        ("\n".join(f"k{number} = 1" for number in range(40_000)), "40000 faults"),
        ("".join(f"[a{number}]\n" for number in range(40_000)), "40000 faults"),
        ("x = '''" + "[" * 100_000, "not valid TOML"),
        ("x = 2026-99-99", "not valid TOML"),
        # Patterns that begin again at each character take hours for some megabytes of these.
        ("z" * 500_000, "not valid TOML"),
        (" " * 500_000 + "z", "not valid TOML"),
        ("\t" * 500_000 + "z", "not valid TOML"),
        ('"' + "\\" * 500_001, "not valid TOML"),
        ('x = """' + '\\"""' * 120_000, "not valid TOML"),
        ("#\n" * 250_000 + "x", "not valid TOML"),
        ("\n" * 2_000_000, "is larger than"),
        ("#" * (toml.LARGEST + 1), "is larger than"),
    ],
    ids=lambda value: value[:20],
)
def test_a_text_that_would_keep_the_parser_busy_is_refused(
    recipe_file: Path, text: str, why: str
) -> None:
    told = refused(recipe_file, text)
    assert why in told.what
    assert len(told.what) < 4000


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "host.toml"
    os.mkfifo(pipe)
    with fails(RecipeError, "named pipe"):
        toml.load(pipe, toml.Table)


def test_brackets_and_dots_in_strings_and_comments_count_for_nothing(recipe_file: Path) -> None:
    odd = "A" + "[" * 40 + "." * 40 + "9" * 200
    change_text(recipe_file, '"A recipe for tests"', f'"{odd}"  # {odd}')
    assert recipe.read(str(recipe_file)).summary == odd


@pytest.mark.parametrize(
    "name", ["vault", "git", "wheelhouse", "disk_cache", "bazel_install", "Vault", "toolkits"]
)
def test_a_recipe_cannot_be_named_like_a_directory_that_all_recipes_share(
    recipe_file: Path, name: str
) -> None:
    path = recipe_file.rename(recipe_file.with_name(f"{name}.toml"))
    with fails(RecipeError, "recipes"):
        recipe.read(str(path))


@pytest.mark.parametrize(
    "line",
    [
        "--log=/tmp/x",
        "--index-url=https://example.org",
        "-r/etc/hostname",
        "-e .",
        "numpy>=1",
        "numpy",
        "numpy==1.0 --index-url=x",
        "numpy @ https://example.org/numpy.whl",
        "numpy==1.0; python_version > '3'",
        "numpy==1.*",
        "./numpy==1",
    ],
)
@pytest.mark.parametrize("table", ["host", "verify", "plugins"])
def test_nothing_but_an_exact_pin_reaches_pip(recipe_file: Path, line: str, table: str) -> None:
    tables = {
        "host": f'requirements = ["{line}"]\n[bazel]',
        "verify": f'[verify]\nrequirements = ["{line}"]\n[bazel]',
        "plugins": f'[verify]\nplugins = ["{line}"]\n[bazel]',
    }
    change_text(recipe_file, "[bazel]", tables[table])
    told = refused(recipe_file, "")
    assert "must be an exact pin" in told.what


@pytest.mark.parametrize(
    "path",
    [".git", "a/.GIT/config", ".git./x", ".git /x", "GIT~1/hooks", ".git::$INDEX/x", "a/.Git"],
)
def test_no_path_leads_into_what_a_file_system_takes_for_git(path: str) -> None:
    with pytest.raises(ValueError, match=r"take for \.git"):
        inner_path(path)


def test_a_name_that_no_file_system_has_is_an_unknown_recipe() -> None:
    with fails(RecipeError, "Unknown recipe"):
        recipe.find("x" * 5000)
