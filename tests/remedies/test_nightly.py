"""What the commands of a build host say to do, done to the letter."""

import datetime as dt
import io
import json
import re
import shlex
import sqlite3
import subprocess
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from tests.making import Serve, change_text, find_text, make_file
from tests.nightly.fake import host_with
from tests.nightly.wheels import write_wheel
from tests.remedies.following import CommandLine, add, commands, failing
from tests.upstream import commit, run_git

from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import FollowTable, NightlyFile
from tfwright.documents.recipe import ROOT
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.index import wheels, write
from tfwright.nightly import night, notices
from tfwright.nightly import state as states
from tfwright.tools.git.remote import Remote
from tfwright.tools.process import file_lock

pytestmark = pytest.mark.medium


def test_the_file_begins_as_the_page_that_is_named(
    shell: CommandLine, nightly_file: Path, tmp_path: Path
) -> None:
    remedy = shell.remedy("invoke report")
    page = find_text(r"docs/[\w-]+\.md", remedy)
    text = (ROOT / page[0]).read_text("utf-8")
    example = find_text(r'(?m)^ {4}directory = (?:"[^"]*")(?:\n {4}.*|\n)*', text)
    nightly_file.write_text(
        textwrap.dedent(example[0]).replace("/srv/tfwright", f"{tmp_path}/host"), "utf-8"
    )
    # The file is read; what it describes has built nothing yet.
    assert "'invoke nightly' builds" in shell.remedy("invoke report")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be nobody who answers a question."""
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.mark.usefixtures("nightly_directory", "alone")
def test_a_kind_of_timer_and_a_time_are_chosen(shell: CommandLine) -> None:
    remedy = shell.remedy("invoke nightly --install weekly")
    kinds = remedy.removeprefix("Choose one of: ").removesuffix(".").split(", ")
    assert "user" in kinds
    shown = find_text(r"--at [\d:]+", shell.remedy("invoke nightly --install user --at noon"))
    # It shows what it would write, and asks; here nobody agrees.
    assert shell.status(f"invoke nightly --install user {shown[0]}") == 1
    assert shell.fault is None


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("sign", "said"),
    [
        (" ", "blanks"),
        ("'", "quotes"),
        ("\\\\", "backslashes"),
        ("%", "%"),
        ("$", "$"),
        (";", "semicolons"),
    ],
)
def test_a_directory_is_moved_to_a_path_that_a_unit_can_hold(
    shell: CommandLine, nightly_file: Path, nightly_directory: Path, sign: str, said: str
) -> None:
    before = nightly_file.read_text("utf-8")
    wrong = before.replace(nightly_directory.name, f"ho{sign}st", 1)
    nightly_file.write_text(wrong, "utf-8")
    remedy = shell.remedy("invoke nightly --install user")
    assert said in remedy.removeprefix("Move it to a path without ")
    nightly_file.write_text(before, "utf-8")
    assert shell.status("invoke nightly --install user") == 1
    assert shell.fault is None


@pytest.mark.usefixtures("alone")
def test_a_host_without_cron_takes_the_option_that_is_named(
    shell: CommandLine, nightly_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfwright.tools.process.command.SYSTEM_PATH", (str(nightly_directory),))
    remedy = shell.remedy("invoke nightly --install cron")
    option = find_text(r"--install \w+", remedy)
    assert shell.status(f"invoke nightly {option[0]}") == 1
    assert shell.fault is None


def test_a_recipe_of_the_night_is_chosen_or_added(
    nightly_file: Path, nightly_directory: Path
) -> None:
    def plan(only: str) -> None:
        host = host_with(nightly_directory, *targets())
        night.plan(host, only=only)

    def targets() -> list[str]:
        named = load(nightly_file, NightlyFile).recipe
        return [entry.name for entry in named]

    fault = failing(lambda: plan("mine"), RecipeError)
    (listed,) = re.findall(r"Choose one of: (\w+);", fault.remedy)
    plan(listed)
    assert "add a [[recipe]] with this name" in fault.remedy
    add(nightly_file, '[[recipe]]\nname = "mine"\n')
    plan("mine")


@pytest.mark.usefixtures("nightly_directory")
def test_a_build_is_named_by_what_the_page_lists(
    shell: CommandLine, nightly_directory: Path
) -> None:
    night.run(host_with(nightly_directory, "demo"))
    (build,) = (nightly_directory / "site/builds").iterdir()
    shell.remedy("invoke report --build nothing-like-it", "identifier")
    assert build.name in (nightly_directory / "site/index.html").read_text("utf-8")
    shell.succeeds(f"invoke report --build {build.name}")
    shell.succeeds("invoke report --build demo")


def test_a_flaw_of_ours_is_reported_by_the_command_that_is_named(
    shell: CommandLine, nightly_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = host_with(nightly_directory, "demo")
    night.run(host)
    builder = host.fake
    builder.clock.next_night()
    builder.parts["demo"] = {"recipe": "2", "commit": "b" * 40}
    builder.raises["demo"] = LookupError("a flaw")
    night.run(host)
    remedies = [shell.remedy("invoke bisect demo")]
    with states.open_state(nightly_directory) as state:
        (flawed,) = [found for found in state.builds() if not found.good]
        broken = state.build(flawed.id)
    assert broken
    assert broken.broken
    remedies.append(broken.broken.remedy)
    # Another night passes before a person reads of it.
    builder.clock.next_night()
    builder.raises.clear()
    night.run(host)
    for remedy in remedies:
        capsys.readouterr()
        (command,) = commands(remedy)
        shell.succeeds(command)
        assert "a flaw" in capsys.readouterr().out


def test_what_is_bisected_is_chosen_among_the_recipes(
    shell: CommandLine, nightly_directory: Path
) -> None:
    shell.remedy("invoke bisect nothing-like-it", "Choose")
    shell.remedy("invoke bisect demo", "--good", "--bad")
    host = host_with(nightly_directory, "demo")
    night.run(host)
    with states.open_state(nightly_directory) as state:
        (good,) = state.builds()
    # The page lists the only build there is, which is no failed one.
    command = f"invoke bisect demo --good {good.id} --bad {good.id}"
    assert shell.remedy(command) == "Name a failed build with --bad."


# The index


@pytest.fixture
def published(nightly_directory: Path) -> str:
    """Let a night publish a wheel; return its file name."""
    night.run(host_with(nightly_directory, "demo"))
    (wheel,) = (nightly_directory / "site/packages").glob("*.whl")
    return wheel.name


def test_a_wheel_is_yanked_by_the_name_in_the_index(
    shell: CommandLine, nightly_directory: Path, published: str
) -> None:
    absent = published.replace("1.0", "1.1")
    for wrong in (absent, published[:9], f"../packages/{published}"):
        shell.remedy(f"invoke index --yank {wrong}", "lists")
    (page,) = (nightly_directory / "site/simple").glob("*/index.json")
    (file,) = json.loads(page.read_text("utf-8"))["files"]
    shell.succeeds(f"invoke index --yank {file['filename']} --reason x")
    assert json.loads(page.read_text("utf-8"))["files"][0]["yanked"] == "x"


def test_a_wheel_of_a_build_host_is_yanked_without_naming_its_folder(
    shell: CommandLine, nightly_directory: Path, published: str
) -> None:
    command = f"invoke index --yank {published}"
    shell.remedy(f"{command} --folder {nightly_directory}/site", "--folder")
    shell.succeeds(command)


@pytest.mark.usefixtures("nightly_file")
def test_a_wheel_of_another_folder_is_deleted(shell: CommandLine, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "wheels")
    command = f"invoke index --folder {wheel.parent}"
    shell.succeeds(command)
    shell.remedy(f"{command} --yank {wheel.name}", wheel.parent)
    wheel.unlink()
    shell.succeeds(command)
    assert wheel.name not in "".join(
        page.read_text("utf-8") for page in wheel.parent.rglob("*.html")
    )


def test_a_name_that_is_taken_gets_the_local_version_that_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "site/packages"
    write_wheel(folder)
    write.refresh(tmp_path / "site")
    write_wheel(folder, body="answer = 43\n")
    (fault,) = write.refresh(tmp_path / "site").refused
    shown = find_text(r'local = "\S+"', fault.remedy)
    path = make_file(
        tmp_path / "nightly.toml",
        f'directory = "{tmp_path}"\n[[recipe]]\nname = "demo"\n{shown[0]}\n',
    )
    (entry,) = load(path, NightlyFile).recipe
    (folder / "demo-1.0-py3-none-any.whl").unlink()
    write_wheel(folder, version=f"1.0+{entry.local}", body="answer = 43\n")
    assert not write.refresh(tmp_path / "site").refused


def test_a_catalog_that_cannot_be_read_is_deleted(
    shell: CommandLine, nightly_directory: Path, published: str
) -> None:
    file = make_file(
        nightly_directory / "site/packages" / wheels.FILE,
        b"no database, but long enough to be looked at " * 99,
    )
    shell.remedy("invoke index", file)
    file.unlink()
    shell.succeeds("invoke index")
    assert (nightly_directory / "site/packages" / published).is_file()


def test_a_state_that_cannot_be_used_is_moved_away(
    shell: CommandLine, nightly_directory: Path, published: str
) -> None:
    file = make_file(
        nightly_directory / states.FILE, b"no database, but long enough to be looked at " * 99
    )
    shell.remedy("invoke index", file)
    file.rename(nightly_directory / "old")
    host = host_with(nightly_directory, "demo")
    host.fake.clock.next_night()
    night.run(host)
    assert published.split("-")[1] in (nightly_directory / "site/index.html").read_text()


def test_an_index_is_asked_at_the_address_that_is_described(
    shell: CommandLine, nightly_directory: Path, published: str, serve: Serve
) -> None:
    address = serve(nightly_directory)
    (nightly_directory / "match.json").write_text("{}", "utf-8")
    remedy = shell.remedy(f"invoke match --index {address}")
    (first, second) = re.findall(r"(\w+)/", remedy)
    assert (nightly_directory / "site" / first).is_dir()
    assert (nightly_directory / "site" / second / published).is_file()
    shell.succeeds(f"invoke match --index {address}site")


# The host


def test_a_secret_that_others_can_read_is_closed_by_the_command(tmp_path: Path) -> None:
    path = make_file(tmp_path / "my secrets/token", "token")
    path.chmod(0o644)
    fault = failing(lambda: notices.read_secret(path), HostError)
    (command,) = re.findall(r"'(chmod .*)'", fault.remedy)
    subprocess.run(shlex.split(command), check=True)
    assert notices.read_secret(path) == "token"


def test_another_night_is_waited_for(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    with file_lock.locked(tmp_path / states.LOCK, "invoke nightly"):
        fault = failing(lambda: night.run(host), HostError)
    assert fault.remedy.startswith("Wait for it, or add --wait")
    assert night.run(host, wait=True).verdicts == {"a": "good"}


def test_a_state_of_a_newer_version_is_left_by_another_directory(
    shell: CommandLine, nightly_file: Path, nightly_directory: Path, tmp_path: Path
) -> None:
    with states.open_state(nightly_directory) as state:
        state.begin_night(dt.datetime.now(dt.UTC))
    file = nightly_directory / states.FILE
    with closing(sqlite3.connect(file)) as database:
        database.execute("pragma user_version = 99")
    shell.remedy("invoke index", "directory")
    change_text(nightly_file, str(nightly_directory), str(tmp_path / "other"))
    shell.succeeds("invoke index")


# Other machines


@pytest.mark.parametrize("place", ["workers", "slurm"])
def test_other_machines_are_added_as_the_page_shows(
    shell: CommandLine, tmp_path: Path, place: str
) -> None:
    remedy = shell.remedy("invoke build --recipe demo --on elsewhere", f"--on {place}")
    remedy = shell.remedy(f"invoke build --recipe demo --on {place}")
    page = find_text(r"docs/[\w-]+\.md", remedy)
    text = (ROOT / page[0]).read_text("utf-8")
    examples = re.findall(r"(?s)```toml\n(.*?)```", text)
    (example,) = [
        shown
        for shown in examples
        if shown.lstrip().startswith(f"[{place}]") or shown.lstrip().startswith(f"[[{place}]]")
    ]
    path = make_file(tmp_path / "written.toml", example)
    assert getattr(load(path, HostFile), place)


def test_a_verified_build_stays_on_this_host(shell: CommandLine) -> None:
    command = "invoke build --recipe demo --on workers --verified-by Ada"
    remedy = shell.remedy(command)
    assert remedy
    shell.remedy("invoke build --recipe demo --on workers")
    assert shell.fault
    assert "--verified-by" not in shell.fault.what


# What is followed, and who is told


@pytest.mark.parametrize("follows", ["branch", "tags"])
def test_what_a_night_follows_is_corrected(tmp_path: Path, follows: str) -> None:
    upstream, store = tmp_path / "upstream", tmp_path / "store"
    store.mkdir()
    pinned = commit(upstream, {"WORKSPACE": ""})
    run_git("tag", "v1.12.0", cwd=upstream)

    def newest(table: FollowTable) -> str:
        address = f"file://{upstream}"
        if table.branch:
            return Remote(store, address).head(table.branch)
        return Remote(store, address).newest_tag(table.tags or "")[1]

    wrong, right = {"branch": ("r9.9", "main"), "tags": ("v9.*", "v1.*")}[follows]
    fault = failing(lambda: newest(FollowTable.model_validate({follows: wrong})), SupplyError)
    key = find_text(r"Correct follow\.(\w+) in nightly\.toml", fault.remedy)
    assert newest(FollowTable.model_validate({key[1]: right})) == pinned
