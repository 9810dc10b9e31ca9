"""What is said of a recipe's source, done to the letter."""

import re
import shlex
from pathlib import Path

import pytest
from tests.making import change_text, find_text, make_file
from tests.remedies.following import CommandLine, add, commands, write_recipe
from tests.upstream import commit, run_git

from tfwright.lint import recipes as linting

pytestmark = pytest.mark.medium

RELEASE = 'release = "1.12"'


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with one file and a folder."""
    folder = tmp_path / "upstream"
    commit(folder, {"WORKSPACE": "", "op.cc": "1\n2\n", "docs/page": "x"})
    return folder


@pytest.fixture
def recipe(upstream: Path, tmp_path: Path) -> Path:
    path = tmp_path / "my recipes/small.toml"
    head = run_git("rev-parse", "HEAD", cwd=upstream)
    return write_recipe(path, upstream, head)


@pytest.fixture
def build(recipe: Path) -> str:
    """Return the command that checks the source out."""
    return f"invoke build --recipe {shlex.quote(str(recipe))} --until source"


def pin(path: Path, name: str) -> None:
    """Pin another commit."""
    text = path.read_text("utf-8")
    path.write_text(re.sub(r'commit = "\w*"', f'commit = "{name}"', text), "utf-8")


def test_a_tag_gives_way_to_the_commit_that_is_named(
    shell: CommandLine, recipe: Path, upstream: Path, build: str
) -> None:
    run_git("tag", "--annotate", "--message=x", "v1.12.0", cwd=upstream)
    pin(recipe, run_git("rev-parse", "v1.12.0", cwd=upstream))
    remedy = shell.remedy(build)
    line = find_text(r'Write commit = "(\w{40})" into \[source\]', remedy)
    pin(recipe, line[1])
    shell.succeeds(build)


def test_a_build_without_a_network_is_preceded_by_the_command_that_is_named(
    shell: CommandLine, build: str
) -> None:
    (fetch, *_) = commands(shell.remedy(f"{build} --offline"))
    shell.succeeds(fetch)
    shell.succeeds(f"{build} --offline")


@pytest.mark.parametrize("wrong", ["upstream", "ftp://h/x", "bundled:x"])
def test_an_address_is_written_as_is_said(
    shell: CommandLine, recipe: Path, upstream: Path, build: str, wrong: str
) -> None:
    right = f"file://{upstream}"
    change_text(recipe, right, wrong)
    remedy = shell.remedy(build)
    assert shell.fault
    # Of the recipe's own url, what is wrong says how it is written.
    begins = re.findall(r"\w+://", f"{shell.fault.what} {remedy}")
    assert "file://" in begins
    change_text(recipe, f'"{wrong}"', f'"{right}"')
    shell.succeeds(build)


VERSION = "tensorflow/tools/pip_package/setup.py"


@pytest.mark.parametrize("way", ["commit", "release"])
def test_a_tree_of_another_release_is_pinned_or_said(
    shell: CommandLine, recipe: Path, upstream: Path, build: str, way: str
) -> None:
    other = commit(upstream, {VERSION: "_VERSION = '1.12.0'\n"})
    pin(recipe, commit(upstream, {VERSION: "_VERSION = '1.13.1'\n"}))
    remedy = shell.remedy(build, "branch")
    if way == "commit":
        pin(recipe, other)
    else:
        assert "source.release" in remedy
        change_text(recipe, RELEASE, 'release = "1.13"')
    shell.succeeds(build)


def test_a_patch_begins_with_the_lines_that_are_shown(
    shell: CommandLine, recipe: Path, upstream: Path, build: str
) -> None:
    (upstream / "op.cc").write_text("1\nedited\n", "utf-8")
    diff = run_git("diff", "HEAD", cwd=upstream)
    patch = make_file(recipe.parent / "patches/main/0001-why.patch", f"{diff}\n")
    add(recipe, 'patches = ["main/0001-why.patch"]', after=RELEASE)
    (finding,) = [found for found in linting.lint(str(recipe)) if found.rule == "patch"]
    found = re.findall(r"'((?:Why|Upstream|Drop when): \.\.\.)'", finding.remedy)
    assert len(found) == 3
    head = "".join(f"{line.replace('...', 'a text')}\n" for line in found)
    patch.write_text(f"{head}\n{diff}\n", "utf-8")
    shell.succeeds(build)
