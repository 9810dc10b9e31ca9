"""What is said of a command that was typed wrongly, typed as it says."""

import gzip
import io
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.making import Maker, Read, change_text, find_text, make_file
from tests.remedies.following import QUOTED, CommandLine, commands, failing

from tfwright import tasks
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import TENSORFLOW_TARGET, WHEEL_TARGET, PackageTable
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.patch import page as answers
from tfwright.tools.git.patching import PatchHeader

pytestmark = pytest.mark.medium


OPTION = r"--[a-z]+ [\w.]*\w"
HELP = "'(invoke plan --help)'"


RETYPED = [
    ("invoke match --gpu nope", OPTION, "invoke match {shown}"),
    ("invoke match --gpu sm_x", OPTION, "invoke match {shown}"),
    ("invoke match --os Plan9", OPTION, "invoke match {shown}"),
    (
        "invoke new --gpu 12.0 --os Darwin",
        r"release that fits is TensorFlow ([\d.]+\d)",
        "invoke match --os Darwin --release {shown}",
    ),
    ("invoke smoke", QUOTED, "{shown}"),
    ("invoke plan --recipe nothing-like-it", QUOTED, "{shown}"),
    ("invoke docter", QUOTED, "{shown}"),
    ("invoke recipe", QUOTED, "{shown}"),
    ("invoke recipies", QUOTED, "{shown}"),
    ("invoke plan --json --colour", HELP, "{shown}"),
    ("invoke plan --json --jobs many", HELP, "{shown}"),
    ("invoke plan --json a-word", HELP, "{shown}"),
    ("invoke schema --document none", r"\w+(?=[,.])", "invoke schema --document {shown}"),
    ("invoke vault --gc --links", "one of them at a time", "invoke vault --gc"),
    ("invoke vault --gc --links", "one of them at a time", "invoke vault --verify"),
]


@pytest.mark.parametrize(("fails", "shows", "then"), RETYPED, ids=[row[0] for row in RETYPED])
def test_a_command_is_typed_as_its_message_shows(
    shell: CommandLine, fails: str, shows: str, then: str, tmp_path: Path
) -> None:
    shell.retype(fails, shows, then, new=str(tmp_path))


@pytest.mark.parametrize("named", ["none", ""], ids=["none is there", "it has no wheel"])
def test_a_folder_that_holds_wheels_is_named(
    shell: CommandLine, make_wheel: Maker, tmp_path: Path, named: str
) -> None:
    made = make_wheel().parent
    shell.retype(
        f"invoke index --folder {tmp_path / named}",
        "^Name a folder that holds",
        f"invoke index --folder {made}",
    )


def test_a_copy_gets_the_option_and_another_name(shell: CommandLine, tmp_path: Path) -> None:
    begun = f"invoke new --like demo --folder {tmp_path}"
    option = find_text(r"--name NAME", shell.remedy(begun))
    command = f"{begun} {option[0].replace('NAME', 'mine')}"
    shell.succeeds(command)
    assert shell.remedy(command) == "Choose another name."
    shell.succeeds(command.replace("mine", "another"))


def test_a_root_is_packed_by_the_command_that_is_shown(shell: CommandLine, tmp_path: Path) -> None:

    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "rootfs.tar").write_bytes(b"no tar")
    command = f"invoke image --add {tmp_path}/rootfs.tar"
    remedy = shell.remedy(command)
    tar = remedy.removeprefix("Make one: ")
    words = shlex.split(tar.replace("ROOT", str(tmp_path / "root")))
    subprocess.run(words, cwd=tmp_path, check=True)
    shell.succeeds(command)


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe", b"\xef\xbb\xbfjobs = 1\n", b"jobs = x\n", b"jobs = [\n"]
)
def test_a_host_file_is_corrected(shell: CommandLine, damage: bytes) -> None:
    before = shell.host_file.read_text("utf-8")
    shell.host_file.write_bytes(damage)
    assert shell.remedy("invoke recipes")
    # Each is about the file itself, which has its old content again.
    assert shell.fault
    assert str(shell.host_file) in shell.fault.what
    shell.host_file.write_text(before, "utf-8")
    shell.succeeds("invoke recipes")


@pytest.mark.parametrize("former", sorted(tasks.REPLACED))
def test_what_replaced_a_command_is_one(shell: CommandLine, out: Read, former: str) -> None:
    (command,) = commands(shell.remedy(f"invoke {former}"))
    name, *options = shlex.split(command)[1:]
    shell.succeeds(f"invoke {name} --help")
    helped = out()
    for option in options:
        assert not option.startswith("-") or option in helped


@pytest.mark.parametrize("way", ["plain", "gzip", "-"])
def test_a_log_is_named_as_is_said(
    shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    text = b"x.cc:1:10: fatal error: y.h: No such file or directory\n"
    log = make_file(tmp_path / "log", gzip.compress(text)[:-9])
    shell.remedy(f"invoke diagnose {log}", way)
    log.write_bytes(gzip.compress(text) if way == "gzip" else text)
    if way == "-":
        with log.open("rb") as stream:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
            shell.status("invoke diagnose -")
    else:
        shell.status(f"invoke diagnose {log}")
    assert shell.fault is None


# Options


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("bundle --into /tmp", "--unpack /absent"),
        ("toolkit --recipe demo-cuda --cuda-sha256 0", "--cuda /absent"),
    ],
)
def test_an_option_gets_the_one_that_it_needs_or_is_left_out(
    shell: CommandLine, command: str, needed: str
) -> None:
    shell.remedy(f"invoke {command}", needed.split(maxsplit=1)[0])
    # Then it is about the file, which is not there.
    assert "/absent" in refusal(shell, f"invoke {command} {needed}")
    alone = f"invoke {command.rsplit(maxsplit=2)[0]} {needed}"
    assert "/absent" in refusal(shell, alone)


def refusal(shell: CommandLine, command: str) -> str:
    """Type a command that fails; return what its message says is wrong."""
    shell.remedy(command)
    assert shell.fault
    return shell.fault.what


def test_a_file_whose_name_is_like_an_option_is_named_as_is_shown(
    shell: CommandLine, make_wheel: Maker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odd = "--odd-1.0-py3-none-any.whl"
    shutil.copy(make_wheel(), tmp_path / odd)
    monkeypatch.chdir(tmp_path)
    remedy = shell.remedy(f"invoke inspect {odd}")
    (listing,) = commands(remedy)
    shell.succeeds(listing)
    named = find_text(r"a file of that name is (\S+)\.$", remedy)
    # It is read, and then its name is found not to be one of a wheel.
    assert "unknown option" not in refusal(shell, f"invoke inspect {named[1]}")


def test_a_bundle_is_named_as_is_shown(shell: CommandLine, tmp_path: Path) -> None:
    remedy = shell.remedy("invoke bundle --recipe demo")
    shown = find_text(r"^Name it: (invoke bundle .* --output) FILE$", remedy)
    # A folder in the place of a file is the next thing to be refused.
    assert str(tmp_path) in refusal(shell, f"{shown[1]} {tmp_path}")


# Answers


def test_the_command_is_run_again_where_no_answer_came(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = PatchHeader("", "", "")
    lines = iter(["", *["a text\n"] * 3])

    class Typing(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, *_: object) -> str:  # type: ignore[override]
            return next(lines)

    monkeypatch.setattr("sys.stdin", Typing())
    fault = failing(lambda: answers.ask_header(empty), RecipeError)
    assert fault.remedy == "Run the command again."
    assert answers.ask_header(empty).why == "a text"


# Files that people write


@pytest.mark.parametrize("line", ["branch = ", "branch r1.8"])
def test_a_line_of_a_recipe_is_corrected(recipe_file: Path, line: str) -> None:
    right = 'branch = "r1.8"'
    change_text(recipe_file, right, line)
    fault = failing(lambda: recipes.read(str(recipe_file)), RecipeError)
    number = re.search(r":(\d+): ", fault.what)
    shown = re.search(r'key = ("value")', fault.remedy)
    assert number
    assert shown
    lines = recipe_file.read_text("utf-8").splitlines()
    assert lines[int(number[1]) - 1] == line
    lines[int(number[1]) - 1] = f"branch = {shown[1].replace('value', 'r1.8')}"
    recipe_file.write_text("\n".join(lines), "utf-8")
    assert recipes.read(str(recipe_file))


@pytest.mark.parametrize("release", ["1.8", "2.20"])
def test_the_target_that_makes_a_wheel_of_a_release_is_written(release: str) -> None:
    numbers = Release.parse(release)
    wrong = WHEEL_TARGET if release == "1.8" else TENSORFLOW_TARGET

    def insist(target: str) -> None:
        recipes.check_makes_wheel(target, PackageTable(), numbers)

    fault = failing(lambda: insist(wrong), RecipeError)
    line = find_text(r"Write (target = \"\S+\") into \[compile\]", fault.remedy)
    insist(tomllib.loads(line[1])["target"])
