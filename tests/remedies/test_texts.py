"""What remedies say: each names commands, options and tables that exist."""

import re

import pytest
from tests.remedies.collected import collected

from tfwright import tasks
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.documents.recipe import ROOT, Recipe

FOREIGN = {"--list"}
"""What invoke itself understands in place of a command."""


def options(command: str) -> set[str]:
    """Return the options that a command takes."""
    task = tasks.collection()[command]
    flags = {flag for argument in task.get_arguments() for flag in argument.names}
    return {f"--{flag.replace('_', '-')}" for flag in flags} | {"--help"}


@pytest.mark.medium
def test_the_package_says_hundreds_of_remedies() -> None:
    assert len(collected()) > 300


@pytest.mark.medium
def test_no_command_runs_into_the_end_of_a_sentence() -> None:
    # A full stop would be typed with the last argument.
    programs = "invoke|openssl|chmod|tar|skopeo|python -m"
    running = re.compile(rf"\b(?:{programs}) \S[^.]*(?:\.\w[^.\s]*)*[^.\s)]\.(?:\s|$)")
    wrong = [
        f"{remedy.file}:{remedy.line}: {remedy.text}"
        for remedy in collected()
        if running.search(re.sub(r"'[^']*'", "Q", remedy.text))
    ]
    assert wrong == []


@pytest.mark.medium
def test_every_file_of_ours_that_a_remedy_names_exists() -> None:
    pages = {Recipe.PAGE, HostFile.PAGE, NightlyFile.PAGE}
    named = re.compile(r"\b(?:docs/[\w-]+\.md|requirements[\w-]*\.txt|tasks\.py)")
    found = [name for remedy in collected() for name in named.findall(remedy.text)]
    assert found
    wrong = [name for name in {*found, *pages} if not (ROOT / name).is_file()]
    assert wrong == []


@pytest.mark.medium
def test_every_command_that_a_remedy_names_exists_with_its_options() -> None:
    known = {name for group in tasks.names().values() for name in group}
    wrong = []
    for remedy in collected():
        for command, given in remedy.commands:
            if command in FOREIGN:
                continue
            if command not in known:
                wrong.append(f"{remedy.file}:{remedy.line}: no command {command!r}")
                continue
            unknown = set(given) - options(command)
            wrong += [f"{remedy.file}:{remedy.line}: {command} {flag}" for flag in sorted(unknown)]
    assert wrong == []


def test_no_text_names_a_command_of_an_earlier_version() -> None:
    # Notes and pages name commands, too, and nothing else holds those against the list.
    words = "|".join(tasks.REPLACED)
    gone = re.compile(rf"invoke (?:{words})\b")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]
    naming = [
        page.relative_to(ROOT).as_posix() for page in pages if gone.search(page.read_text("utf-8"))
    ]
    assert not naming


@pytest.mark.medium
def test_every_table_that_a_remedy_names_is_one_of_a_document() -> None:
    tables = {
        *Recipe.model_fields,
        *HostFile.model_fields,
        *NightlyFile.model_fields,
        # Of pyproject.toml, which remedies for developers name.
        "tool",
    }
    wrong = [
        f"{remedy.file}:{remedy.line}: [{name}]"
        for remedy in collected()
        for name in re.findall(r"(?<![\w\]=])\[{1,2}([a-z_]+)(?:\.[\w.…]+)?\]", remedy.text)
        if name not in tables
    ]
    assert wrong == []


ABOUT_ALL = {"vault", "lint", "nightly"}
"""Commands that take a recipe, and are about all of them without it."""


@pytest.mark.medium
def test_each_command_of_a_remedy_that_takes_a_recipe_gets_one() -> None:
    # Without it, the command would be about the demo.
    left = [
        f"{remedy.file}:{remedy.line}: {command}"
        for remedy in collected()
        for command, given in remedy.commands
        if command not in FOREIGN | ABOUT_ALL
        and not {"--add", "--containerfile", "--help", "--json"} & set(given)
        and "--recipe" in options(command) - set(given)
    ]
    assert left == []
