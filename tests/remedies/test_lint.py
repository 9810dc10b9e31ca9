"""What is found in a recipe, corrected as each finding says."""

import re
import shutil
from pathlib import Path

import pytest
from tests.making import change_text, find_text
from tests.remedies.following import CommandLine, commands, enter, failing, write_recipe
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.lint import changes
from tfwright.lint import recipes as linting
from tfwright.lint.recipes import LintFinding

pytestmark = pytest.mark.medium

CPU = "linux-r1.8-cpu"
GPU = "macos-r1.8-cuda9.2"


def copied(name: str, folder: Path) -> Path:
    """Return a copy of a recipe outside the checkout, with the documents that it names; no lock."""
    found = recipes.find(name)
    for part in ("archives", "toolkits"):
        shutil.copytree(recipes.ROOT / part, folder / part)
    if (pins := found.with_suffix(".pins")).is_file():
        shutil.copy(pins, folder)
    path = Path(shutil.copy(found, folder))
    text = path.read_text("utf-8")
    # One answer on a line of its own, where the recipe only lists those that are no.
    answers = "[configure.answers]\n# No clouds, and any x86-64.\nTF_NEED_GCP = false\n"
    text = text.replace('"TF_NEED_GCP", ', "").replace(
        "answers.CC_OPT_FLAGS", f"\n{answers}CC_OPT_FLAGS"
    )
    path.write_text(text, "utf-8")
    return path


def remove(path: Path, variable: str) -> None:
    """Remove an answer."""
    text = path.read_text("utf-8")
    path.write_text(re.sub(rf"(?m)^{variable} = .*\n", "", text), "utf-8")


def follow(path: Path, finding: LintFinding) -> None:
    """Do what one finding says."""
    do, variable = finding.remedy, finding.what.partition(":")[0]
    if "below a header that it has already" in do:
        enter(path, do.partition(":\n")[2])
    elif shown := re.match(r"Write (\w+ = (?:true|false)) or", do):
        remove(path, variable)
        enter(path, f"[configure.answers]\n{shown[1]}")
    elif shown := re.search(r'answers, and add "(.*)VERSION" to compile', do):
        remove(path, variable)
        change_text(path, "flags = [", f'flags = ["{shown[1]}3.6", ')
    elif shown := re.match(r'Write a text in quotes: (\w+ = )"\.\.\."', do):
        remove(path, variable)
        enter(path, f'[configure.answers]\n{shown[1]}"9.0"')
    elif do.startswith("Write behind it"):
        lines = path.read_text("utf-8").splitlines()
        lines[finding.line - 1] += "  # a reason"
        path.write_text("\n".join([*lines, ""]), "utf-8")
    elif shown := re.match(r"(?:Correct or r|R)emove (\w+)", do):
        remove(path, shown[1])
    else:
        raise AssertionError(do)


GCP = "TF_NEED_GCP = false\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GCP, ""),
        (GCP, 'TF_NEED_GCP = "no"\n'),
        (GCP, f"{GCP}TF_BANANA = true\n"),
        (GCP, f"{GCP}TF_NEED_ROCM = true\n"),
        (GCP, f"{GCP}TF_CUDA_CLANG = true\n"),
        (GCP, f'{GCP}PATH = "/usr/bin"\n'),
        (GCP, f'{GCP}HERMETIC_PYTHON_VERSION = "3.6"\n'),
    ],
    ids=lambda text: text.replace("\n", " ").strip() or "nothing",
)
def test_an_answer_is_corrected(tmp_path: Path, before: str, after: str) -> None:
    path = copied(CPU, tmp_path)
    change_text(path, before, after)
    assert linting.lint(str(path))
    # A line that is written as is shown still lacks its reason.
    for _ in range(3):
        for found in linting.lint(str(path))[:1]:
            follow(path, found)
    assert linting.lint(str(path)) == []


@pytest.mark.parametrize(
    ("variable", "wrong", "shows"),
    [
        ("TF_CUDA_COMPUTE_CAPABILITIES", '"3.5;7.0"', r"such as ([\d.,]+\d)"),
        ("TF_CUDA_COMPUTE_CAPABILITIES", '"sm_35"', r"^Write ([\d.]+)\.$"),
        ("TF_CUDA_COMPUTE_CAPABILITIES", '"2.0,3.5"', r"^Remove 2\.0 from the list()\.$"),
        ("TF_CUDNN_VERSION", '"seven"', r"such as ([\d.]+\d)"),
        ("TF_CUDNN_VERSION", "true", r'= "(\.\.\.)"'),
    ],
)
def test_an_answer_about_cuda_is_corrected(
    tmp_path: Path, variable: str, wrong: str, shows: str
) -> None:
    path = copied(GPU, tmp_path)
    text = path.read_text("utf-8")

    def answer(value: str) -> list[LintFinding]:
        path.write_text(re.sub(rf"(?m)^{variable} = .*", f"{variable} = {value}", text), "utf-8")
        # Lint also wants it to be what [host] says.
        found = linting.lint(str(path))
        return [finding for finding in found if finding.what.startswith(f"{variable}:")]

    (found,) = answer(wrong)
    shown = find_text(shows, found.remedy)[1]
    right = {"": "3.5", "...": "7.0"}.get(shown, shown)
    assert answer(f'"{right}"') == []


@pytest.mark.parametrize(
    ("wrong", "correct"),
    [
        ("-march=native", r"such as (-march=[\w-]+)"),
        ("-DX=a#b", "Put the word in quotes"),
        ("-DX='a b'", r"Use flags without blanks inside"),
    ],
)
def test_a_flag_is_corrected(tmp_path: Path, wrong: str, correct: str) -> None:
    path = copied(CPU, tmp_path)
    change_text(path, 'CC_OPT_FLAGS = "-march=x86-64', f'CC_OPT_FLAGS = "{wrong}')
    (found,) = linting.lint(str(path))
    shown = find_text(correct, found.remedy)
    right = shown[1] if shown.groups() else f"'{wrong}'"
    if "without blanks" in correct:
        right = "-DX=ab"
    change_text(path, f'"{wrong}', f'"{right}')
    assert linting.lint(str(path)) == []


def test_a_condition_is_written_as_is_shown(tmp_path: Path) -> None:
    path = copied(CPU, tmp_path)
    shutil.copytree(recipes.PATCHES / "r1.8", tmp_path / "patches/r1.8")
    patch = next(tmp_path.glob("patches/r1.8/0005-*"))
    before = patch.read_text("utf-8")

    def written(condition: str) -> list[LintFinding]:
        text = re.sub(r"(?m)^Drop when: .*\n(?: .*\n)*", "Drop when: {}\n", before)
        patch.write_text(text.replace("{}", condition), "utf-8")
        return linting.lint(str(path))

    (found,) = written("release > =1.9")
    assert found.rule == "drop-when"
    shown = find_text(r"Write (release >= [\d.]+\d), (upstream) COMMIT", found.remedy)
    assert written(shown[1]) == []
    assert written("a sentence about the release.") == []


def test_a_date_of_verification_is_written_by_the_command(tmp_path: Path) -> None:
    path = copied(CPU, tmp_path)
    text = re.sub(r"(?m)^on = .*$", "on = 1999-01-01", path.read_text("utf-8"))
    path.write_text(text, "utf-8")
    (found,) = linting.lint(str(path))
    (command,) = commands(found.remedy)
    assert command == f"invoke build --recipe {path} --verified-by NAME"


@pytest.mark.parametrize("way", ["Name one", "Fetch the missing history"])
def test_a_condition_is_checked_where_the_history_is(tmp_path: Path, way: str) -> None:
    path = copied(CPU, tmp_path)
    shutil.copytree(recipes.PATCHES / "r1.8", tmp_path / "patches/r1.8")
    upstream, mirror = tmp_path / "upstream", tmp_path / "mirror"
    first = commit(upstream, {"a": "1"})
    second = commit(upstream, {"a": "2"}, "two")
    table = recipes.read(str(path)).source
    change_text(path, table.commit, second)
    patch = next(tmp_path.glob("patches/r1.8/0005-*"))
    text = re.sub(
        r"(?m)^Drop when: .*\n(?: .*\n)*",
        f"Drop when: upstream {first}\n",
        patch.read_text("utf-8"),
    )
    patch.write_text(text, "utf-8")
    settings = HostFile()
    if way != "Name one":
        # As a shallow copy of another commit has it.
        commit(mirror, {"b": "1"})
        settings = HostFile(mirrors={table.url: str(mirror)})

    def unchecked() -> list[str]:
        found = linting.lint(str(path), settings)
        return [each.remedy for each in found if each.rule == "patch-unchecked"]

    (remedy,) = unchecked()
    assert remedy.startswith(way)
    if way == "Name one":
        settings = HostFile(mirrors={table.url: str(upstream)})
    else:
        run_git("fetch", "--quiet", str(upstream), "main", cwd=mirror)
    assert unchecked() == []


def test_an_outdated_lock_is_written_again(shell: CommandLine, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    path = write_recipe(tmp_path / "r/small.toml", upstream, commit(upstream, {"WORKSPACE": ""}))

    def outdated() -> list[str]:
        found = linting.lint(str(path))
        return [each.remedy for each in found if each.rule == "lock"]

    shell.succeeds(f"invoke lock --recipe {path}")
    assert outdated() == []
    text = path.read_text("utf-8").replace("0.17.2", "0.17.1")
    path.write_text(text, "utf-8")
    (command,) = commands(outdated()[0])
    shell.succeeds(command)
    assert outdated() == []


@pytest.mark.parametrize("way", ["Name it", "delete it"])
def test_a_patch_of_no_recipe_is_named_or_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    recipe = copied("demo", tmp_path)
    patch = tmp_path / "patches/demo/0009-why.patch"
    shutil.copytree(recipes.PATCHES / "demo", patch.parent)
    other = next(patch.parent.glob("*.patch"))
    shutil.copy(other, patch)
    monkeypatch.setattr(recipes, "RECIPES", tmp_path)
    monkeypatch.setattr(recipes, "PATCHES", tmp_path / "patches")
    (found,) = linting.findings_among(["demo"])
    assert way in found.remedy
    if way == "delete it":
        patch.unlink()
    else:
        change_text(recipe, f"demo/{other.name}", f"demo/{patch.name}")
        other.unlink()
    assert linting.findings_among(["demo"]) == []


def test_a_revision_is_named_that_the_checkout_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path / "main", {"recipes/a.toml": ""})
    run_git("branch", "-M", "main", cwd=tmp_path / "main")
    commit(tmp_path / "main", {"recipes/b.toml": ""})
    source = f"file://{tmp_path}/main"
    run_git("clone", "-q", "--depth=1", "-b", "main", source, "clone", cwd=tmp_path)
    run_git("checkout", "-q", "--detach", cwd=tmp_path / "clone")
    run_git("branch", "-D", "main", cwd=tmp_path / "clone")
    monkeypatch.setattr(changes, "ROOT", tmp_path / "clone")
    fault = failing(lambda: changes.change_since("main"), RecipeError)
    for command in re.findall(r"'git ([^']*)'", fault.remedy):
        run_git(*command.split(), cwd=tmp_path / "clone")
    name = find_text(r"then --changed (\w+)\.", fault.remedy)
    assert changes.change_since(name[1]).files == ()
