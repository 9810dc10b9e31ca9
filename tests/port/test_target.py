from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import find_text, make_file
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline.job import RecipeJob
from tfwright.port import target

SETUP = "tensorflow/tools/pip_package/setup.py"
RECIPE = """\
summary = "TensorFlow 1.8 for CUDA 11.8"  # why

# What the tag v1.8.0 is, with CUDA 11.8.

[fetch.substitutes.nasm]
reason = "x"
git = "https://example.org/nasm.git"
commit = "1111111111111111111111111111111111111111"
sha256 = "2222222222222222222222222222222222222222222222222222222222222222"

[source]
url = "file://{repository}"
branch = 'r1.8'  # why this branch
commit='{commit}'  # why this one
version = "1.8.1"

[host]
system = "Linux"
python = "3.6"

[bazel]
version = "0.17.2"

[nccl]
rebuild = true  # why

[verified]
until = "publish"
on = 2026-01-01
host = "x"
by = "Ada"
"""


@pytest.fixture
def job(tmp_path: Path) -> RecipeJob:
    """Return a recipe of a repository with tags and branches of some releases."""
    repository = tmp_path / "upstream"
    repository.mkdir()
    run_git("init", "--quiet", "--initial-branch=master", cwd=repository)
    for kind, name in (
        ("tag", "v1.12.0"),
        ("tag", "v1.12.0-rc0"),
        ("tag", "v0.11.0rc1"),
        ("tag", "v1.12.3"),
        ("branch", "r1.12"),
        ("branch", "r1.15.5+nv22.12"),
        ("branch", "r1.14-own"),
    ):
        version = "1.14.0" if name == "r1.14-own" else ExactRelease.parse(name)
        commit(repository, {SETUP: f"_VERSION = '{version}'\n"})
        run_git(kind, name, cwd=repository)
    text = RECIPE.format(repository=repository, commit=run_git("rev-parse", "HEAD", cwd=repository))
    path = make_file(tmp_path / "linux-r1.8-cpu.toml", text)
    return RecipeJob(
        recipe=recipes.read(str(path)), host_file=HostFile(build_out=tmp_path / "build_out")
    )


def ported(job: RecipeJob, to: str, folder: Path) -> tuple[Path, set[str]]:
    """Port the recipe; return the new file and the names of what was decided."""
    wanted = target.find_target(job, to)
    path = folder / f"{wanted.recipe_name(job.recipe)}.toml"
    old = folder / "linux-r1.8-cpu.toml"
    path.write_text(old.read_text("utf-8"), "utf-8")
    return path, {key.name for key in target.write_keys(wanted, job.recipe, path)}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("to", "name", "branch", "version", "release"),
    [
        ("v1.12.0", "linux-r1.12-cpu", "r1.12", "1.12.0", "1.12"),
        ("v1.12.0-rc0", "linux-r1.12-rc0-cpu", "r1.12", "1.12.0-rc0", "1.12"),
        ("1.12-rc0", "linux-r1.12-rc0-cpu", "r1.12", "1.12.0-rc0", "1.12"),
        ("v1.12.3", "linux-r1.12-cpu", "r1.12", "1.12.3", "1.12"),
        ("0.11.0-rc1", "linux-r0.11-rc1-cpu", "r0.11", "0.11.0-rc1", "0.11"),
        ("r1.12", "linux-r1.12-cpu", "r1.12", "1.12.0", "1.12"),
        ("1.12", "linux-r1.12-cpu", "r1.12", "1.12.0", "1.12"),
        ("r1.15.5+nv22.12", "linux-r1.15-cpu", "r1.15.5+nv22.12", "1.15.5+nv22.12", "1.15"),
        ("r1.14-own", "linux-r1.14-own-cpu", "r1.14-own", "1.14.0", "1.14"),
        ("master", "linux-rmaster-cpu", "master", "1.14.0", "1.14"),
    ],
)
def test_a_recipe_says_the_release_that_it_was_ported_to(  # noqa: PLR0913, PLR0917 a table
    job: RecipeJob, tmp_path: Path, to: str, name: str, branch: str, version: str, release: str
) -> None:
    path, _ = ported(job, to, tmp_path)
    recipe = recipes.read(str(path))
    assert (recipe.name, recipe.source.branch) == (name, branch)
    assert str(recipe.source.exact) == version
    assert str(recipe.source.release) == release
    assert recipe.verified is None


def test_only_the_keys_of_the_source_change(job: RecipeJob, tmp_path: Path) -> None:
    path, _ = ported(job, f"v1.12.0@{'3' * 40}", tmp_path)
    text = path.read_text("utf-8")
    recipe = recipes.read(str(path))
    assert recipe.source.commit == "3" * 40
    assert recipe.fetch.substitutes["nasm"].commit == "1" * 40
    assert "# why this branch" in text
    assert "# why this one" in text
    assert "[nccl]" in text


def test_what_the_new_release_would_refuse_is_removed(job: RecipeJob, tmp_path: Path) -> None:
    path, changed = ported(job, "master", tmp_path)
    assert "nccl.rebuild" in changed
    assert recipes.read(str(path)).nccl.rebuild is False


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("v1.12.0@abc", "is not the 40 digits of a commit"),
        ("--upload-pack=x", "is not the name of a tag or a branch"),
        ("a b", "is not the name of a tag or a branch"),
        ("", "is not the name of a tag or a branch"),
    ],
)
def test_what_is_no_name_is_refused(job: RecipeJob, to: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        target.find_target(job, to)


@pytest.mark.medium
def test_a_version_that_the_repository_lacks_is_named(job: RecipeJob) -> None:
    with fails(SupplyError, "v1.12.0-rc7"):
        target.find_target(job, "v1.12.0-rc7")


@pytest.mark.medium
def test_a_tag_whose_tree_is_of_another_release_is_named_with_what_to_type(
    job: RecipeJob, tmp_path: Path
) -> None:
    repository = tmp_path / "upstream"
    pinned = commit(repository, {SETUP: "_VERSION = '1.13.1'\n"})
    run_git("tag", "v1.12.1", cwd=repository)
    with fails(RecipeError, "is TensorFlow 1.13.1, not 1.12.1", "v1.12.0, v1.12.3") as caught:
        target.find_target(job, "v1.12.1")
    # What it says to type works.
    told = find_text(r"--to (\S+)\. ", caught.value.remedy)[1]
    assert target.find_target(job, told).commit == pinned
    assert str(target.find_target(job, told).exact) == "1.13.1"


@pytest.mark.medium
def test_no_word_of_the_old_release_stays_unseen(job: RecipeJob, tmp_path: Path) -> None:
    path, changed = ported(job, "v1.12.0-rc0", tmp_path)
    text = path.read_text("utf-8")
    assert 'summary = "TensorFlow 1.12.0-rc0 for CUDA 11.8"  # why' in text
    assert "comments" in changed
    wanted = target.find_target(job, "r1.12")
    (said,) = [key.says for key in target.write_keys(wanted, job.recipe, path)]
    assert said.startswith("lines 3 speak of 1.8")
    assert recipes.read(str(path)).summary == "TensorFlow 1.12 for CUDA 11.8"


@pytest.mark.medium
def test_a_name_for_the_wheel_goes_where_the_release_takes_none(
    job: RecipeJob, tmp_path: Path
) -> None:
    path = tmp_path / "linux-r1.8-cpu.toml"
    text = path.read_text("utf-8").replace("1.8.1", "1.9.0")
    text = text.replace("branch = 'r1.8'", "branch = 'r1.9'")
    path.write_text(f'{text}\n[package]\nproject_name = "mine"\n', "utf-8")
    old = recipes.read(str(path))
    changed = target.write_keys(target.find_target(job, "0.11.0-rc1"), old, path)
    names = {key.name: key.says for key in changed}
    assert names["package.project_name"].startswith("removed; ")
    assert "project_name" not in path.read_text("utf-8")


@pytest.mark.medium
def test_a_tree_that_says_no_release_keeps_that_of_the_recipe_and_says_so(
    job: RecipeJob, tmp_path: Path
) -> None:
    upstream = tmp_path / "upstream"
    run_git("checkout", "--quiet", "-b", "fork", cwd=upstream)
    commit(upstream, {"tensorflow/tools/pip_package/setup.py": ""})
    path, changed = ported(job, "fork", tmp_path)
    assert "release" in changed
    assert str(recipes.read(str(path)).source.release) == "1.8"


@pytest.mark.medium
def test_a_recipe_of_another_project_gets_no_release_of_tensorflow(
    job: RecipeJob, tmp_path: Path
) -> None:
    path = tmp_path / "linux-r1.8-cpu.toml"
    text = path.read_text("utf-8").replace("[nccl]\nrebuild = true  # why\n", "")
    own = 'interface = "own"\n[compile]\ntarget = "//:wheel"\n[package]\nprogram = "tools/wheel"\n'
    path.write_text(text.replace('version = "1.8.1"\n', own), "utf-8")
    old = recipes.read(str(path))
    assert list(target.write_keys(target.find_target(job, "v1.12.0"), old, path)) == []
    assert recipes.read(str(path)).source.branch == "r1.12"
    assert "release" not in path.read_text("utf-8")
