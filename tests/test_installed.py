"""An installed tfwright: away from any checkout, with recipes and templates in the package."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import find_text

from tfwright import __version__
from tfwright.documents import filesystem as home

pytestmark = pytest.mark.medium

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the package out as its wheel does; .ci/installed does the same with a real wheel."""
    place = tmp_path_factory.mktemp("site")
    project = tomllib.loads((home.SHIPPED / "pyproject.toml").read_text("utf-8"))
    build = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {home.SHIPPED / "src/tfwright": "tfwright"}
    copied |= {home.SHIPPED / name: to for name, to in build["force-include"].items()}
    for source, to in copied.items():
        if source.is_dir():
            shutil.copytree(source, place / to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, place / to)
    return place


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Return what runs `tfwright` in a directory of its own, or in one below it."""

    def started(*words: str, below: str = ".") -> "subprocess.CompletedProcess[str]":
        (tmp_path / below).mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-m", "tfwright", *words],
            cwd=tmp_path / below,
            env={**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return started


def test_it_says_its_own_version_and_lists_commands_that_need_no_checkout(run: Run) -> None:
    assert run("--version").stdout.strip() == f"tfwright {__version__}"
    listed = run().stdout
    assert "\n  init " in listed
    assert "\n  build " in listed
    assert "\n  types " not in listed
    helped = run("--help").stdout
    # Not the options of invoke that no command follows.
    assert (listed in helped, "--dry" in helped) == (True, False)


def test_messages_name_the_program_that_was_started(run: Run) -> None:
    done = run("build", "--recpie", "demo")
    assert (done.returncode, "invoke" in done.stderr) == (2, False)
    assert "'tfwright build'" in done.stderr
    done = run("build", "--recipe", "dmo", "--json")
    assert "'tfwright recipes'" in json.loads(done.stdout)["remedy"]


def test_the_host_file_of_init_names_a_page_that_exists(run: Run, tmp_path: Path) -> None:
    run("init")
    page = find_text(r"\S+host\.md", (tmp_path / "host.toml").read_text("utf-8"))[0]
    assert "[pythons]" in Path(page).read_text("utf-8")


def test_a_night_is_described_next_to_the_host_file(run: Run, tmp_path: Path) -> None:
    run("init")
    remedy = json.loads(run("nightly", "--json").stdout)["remedy"]
    assert Path(find_text(r"\S+build-host\.md", remedy)[0]).is_file()
    (tmp_path / "nightly.toml").write_text('directory = "site"\n', "utf-8")
    assert "nightly.toml:1: directory" in run("nightly").stderr


def test_it_has_the_recipes_of_the_package_and_those_of_its_directory(
    run: Run, tmp_path: Path
) -> None:
    assert run("init").returncode == 0
    assert run("new", "--like", "linux-r1.8-cpu", "--name", "linux-r1.8-mine").returncode == 0
    (tmp_path / "host.toml").write_text("jobs = 3\n", "utf-8")
    for below in (".", "deeper"):
        names = [row["recipe"] for row in json.loads(run("recipes", "--json", below=below).stdout)]
        assert {"demo", "linux-r1.8-mine"} <= {*names}
        done = run("lint", "--recipe", "linux-r1.8-mine", below=below)
        assert done.returncode == 0, done.stdout
    plan = run("plan", "--recipe", "linux-r1.8-mine", "--until", "source").stdout
    assert f"{tmp_path}/build_out" in plan


def test_a_recipe_of_another_directory_is_said_to_be_found_there(run: Run) -> None:
    where = "in the directory of 'tfwright init' and below it"
    assert where in " ".join(run("plan", "--recipe", "zzz", below="elsewhere").stderr.split())
    run("init")
    assert where not in " ".join(run("plan", "--recipe", "zzz").stderr.split())


def test_lint_checks_the_recipes_alone_and_needs_no_developers_tools(run: Run) -> None:
    done = run("lint")
    assert (done.returncode, "Failed" in done.stderr) == (0, False)


def test_init_says_how_to_enter_a_directory_that_is_elsewhere(run: Run) -> None:
    done = run("init", "my wheels")
    assert 'Then: cd "my wheels"\n      tfwright recipes\n' in done.stdout + done.stderr
    assert "cd " not in run("init", below="my wheels").stderr


def test_init_keeps_what_exists(run: Run, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text("jobs = 3\n", "utf-8")
    done = run("init", ".", "--json")
    assert [Path(path).name for path in json.loads(done.stdout)["written"]] == [
        "recipes",
        "patches",
    ]
    assert (tmp_path / "host.toml").read_text("utf-8") == "jobs = 3\n"


def test_a_recipe_of_the_package_is_not_written_to(run: Run) -> None:
    done = run("lock", "--recipe", "demo")
    assert done.returncode == 2
    assert "'tfwright new --like demo --name NAME'" in done.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", "build"),
        ("build --recipe", "linux-r1.8-cpu"),
        ("build --recipe linux", "linux-r1.8-cpu"),
        ("build --recipe demo", "--until"),
        ("plan --until", "configure"),
        ("match --gpu", "RTX-3090"),
        # A quote that is still open.
        ('match --gpu "RTX --', "--python"),
        ("build -", "--recipe"),
    ],
)
def test_a_shell_is_offered_what_may_come_next(typed: str, offered: str, run: Run) -> None:
    done = run("--complete", "--", "tfwright", *typed.split())
    assert offered in done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(shell: str, run: Run) -> None:
    script = run("--print-completion-script", shell).stdout
    assert "_complete_tfwright" in script
