"""What is said of a recipe's source, done to the letter."""

import re
import shlex
from pathlib import Path

import pytest
from tests.making import find_text, make_file
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


def replace(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")


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


@pytest.mark.parametrize("way", ["Correct", "drop"])
def test_a_path_that_leaves_nothing_out_is_corrected_or_dropped(
    shell: CommandLine, recipe: Path, build: str, way: str
) -> None:
    add(recipe, 'exclude = ["doc"]', after=RELEASE)
    assert way in shell.remedy(build)
    if way == "drop":
        replace(recipe, 'exclude = ["doc"]', "")
    else:
        replace(recipe, '"doc"', '"docs"')
    shell.succeeds(build)


def test_a_commit_with_another_repository_gives_way_to_one_without(
    shell: CommandLine, recipe: Path, upstream: Path, build: str
) -> None:
    before = run_git("rev-parse", "HEAD", cwd=upstream)
    inner = f"160000,{before},third_party/inner"
    run_git("update-index", "--add", "--cacheinfo", inner, cwd=upstream)
    run_git("commit", "--quiet", "--message=x", cwd=upstream)
    pin(recipe, run_git("rev-parse", "HEAD", cwd=upstream))
    assert "pin a commit that has none" in shell.remedy(build)
    pin(recipe, before)
    shell.succeeds(build)


@pytest.mark.parametrize("way", ["Correct the recipe", "[mirrors]"])
def test_a_source_that_is_gone_is_corrected_or_gets_a_mirror(
    shell: CommandLine, recipe: Path, upstream: Path, build: str, way: str
) -> None:
    moved = upstream.rename(upstream.with_name("moved"))
    shell.remedy(build, "[mirrors]")
    if way == "[mirrors]":
        add(shell.host_file, f'{way}\n"file://{upstream}" = "{moved}"\n')
    else:
        replace(recipe, str(upstream), str(moved))
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
    replace(recipe, right, wrong)
    remedy = shell.remedy(build)
    assert shell.fault
    # Of the recipe's own url, what is wrong says how it is written.
    begins = re.findall(r"\w+://", f"{shell.fault.what} {remedy}")
    assert "file://" in begins
    replace(recipe, f'"{wrong}"', f'"{right}"')
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
        replace(recipe, RELEASE, 'release = "1.13"')
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


def test_an_asset_is_a_new_file(shell: CommandLine, recipe: Path, build: str) -> None:
    make_file(recipe.parent / "patches/main/asset", "x")
    lines = '[source.assets]\n"{}" = "main/asset"\n'
    before = recipe.read_text("utf-8")
    add(recipe, lines.format("op.cc"))
    shell.remedy(build, "Assets")
    recipe.write_text(before + lines.format("op.cc/new"), "utf-8")
    shell.remedy(build, "Choose")
    recipe.write_text(before + lines.format("third_party/new"), "utf-8")
    shell.succeeds(build)
