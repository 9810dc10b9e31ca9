import subprocess
from pathlib import Path

import pytest

from tfwright.commands import lint, new
from tfwright.configure.prompt import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, SupplyError
from tfwright.host.match import Wish


@pytest.fixture
def host_file(tmp_path: Path) -> HostFile:
    """Return a host file whose mirror of TensorFlow has two branches and no files of it."""
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (
        ["init", "-q", "-b", "r1.8"],
        ["commit", "-q", "--allow-empty", "-m", "Begin"],
        ["branch", "r2.6"],
    ):
        subprocess.run(["git", *identity, *command], cwd=upstream, check=True)
    return HostFile(
        build_out=tmp_path / "build_out", mirrors={new.URL: f"file://{upstream}"}
    )


def alone(_: object, default: str) -> str:
    """Answer as a shell without a terminal does."""
    return default


def test_a_new_recipe_answers_every_question_and_gives_every_reason(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", python="3.6")
    made = new.new(wish, Release(1, 8), host_file, tmp_path, alone)
    assert made.path.name == "linux-r1.8-cpu.toml"
    assert lint.lint(str(made.path)) == []
    recipe = recipes.read(str(made.path))
    assert recipe.verified is None
    assert recipe.configure.answers["TF_NEED_CUDA"] is False
    assert any("packages of the build" in line for line in made.open)


def test_a_gpu_decides_cuda_capabilities_and_answers(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", gpu="8.6", python="3.8")
    made = new.new(wish, Release(2, 6), host_file, tmp_path, alone)
    recipe = recipes.read(str(made.path))
    assert recipe.host.cuda == "11.2"
    assert recipe.configure.answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "8.6"
    assert [str(finding) for finding in lint.lint(str(made.path))] == []


def test_a_person_is_asked_and_believed(host_file: HostFile, tmp_path: Path) -> None:
    asked = []

    def ask(prompt: Prompt, default: str) -> str:
        asked.append(prompt.variable)
        return "true" if prompt.variable == "TF_NEED_S3" else default

    wish = Wish(system="Linux", python="3.6")
    made = new.new(wish, Release(1, 8), host_file, tmp_path, ask)
    assert "TF_NEED_S3" in asked
    assert recipes.read(str(made.path)).configure.answers["TF_NEED_S3"] is True


def test_nothing_is_overwritten(host_file: HostFile, tmp_path: Path) -> None:
    (tmp_path / "linux-r1.8-cpu.toml").write_text("mine\n", "utf-8")
    wish = Wish(system="Linux", python="3.6")
    with pytest.raises(RecipeError, match="exists already"):
        new.new(wish, Release(1, 8), host_file, tmp_path, alone)
    assert (tmp_path / "linux-r1.8-cpu.toml").read_text("utf-8") == "mine\n"


def test_a_python_that_the_release_was_not_made_for_is_refused(
    host_file: HostFile, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=r"was not made for Python 3\.12"):
        new.new(
            Wish(system="Linux", python="3.12"),
            Release(1, 8),
            host_file,
            tmp_path,
            alone,
        )


def test_a_branch_that_the_repository_lacks_is_named(
    host_file: HostFile, tmp_path: Path
) -> None:
    with pytest.raises(SupplyError, match=r"has no tag and no branch r1\.9"):
        new.new(
            Wish(system="Linux", python="3.6"),
            Release(1, 9),
            host_file,
            tmp_path,
            alone,
        )


def test_a_copy_is_not_verified(tmp_path: Path) -> None:
    original = tmp_path / "demo.toml"
    original.write_text(recipes.find("demo").read_text("utf-8"), "utf-8")
    made = new.copy(original, "mine")
    assert recipes.read(str(made.path)).verified is None
    with pytest.raises(RecipeError, match="exists already"):
        new.copy(original, "mine")
