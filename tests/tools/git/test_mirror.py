"""Mirrors: what is transferred, what is told, and what happens when something is not to be had."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import upstream as repositories
from tests.failing import fails
from tests.making import Serve, make_file, make_folder
from tests.results import Notebook
from tests.upstream import run_git

from tfwright.errors import RecipeError, SupplyError
from tfwright.tools.git import mirror, program
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository

pytestmark = pytest.mark.medium


def plain_git(*arguments: str, cwd: Path, date: str = "2018-04-27T12:00:00Z") -> str:
    """Run git as a user does, at a given time."""
    return run_git(*arguments, cwd=cwd, GIT_COMMITTER_DATE=date)


def commit(repository: Path, files: dict[str, str], *, year: int) -> str:
    """Write and commit some files; return the commit."""
    for name, text in files.items():
        make_file(repository / name, text)
    plain_git("add", "--all", cwd=repository)
    plain_git(
        "commit",
        "--quiet",
        "--allow-empty",
        f"--message={year}",
        cwd=repository,
        date=f"{year}-01-01T00:00:00Z",
    )
    return plain_git("rev-parse", "HEAD", cwd=repository)


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Make a repository whose branch r1.8 has a history, and is at commit 2018."""
    path = make_folder(tmp_path / "upstream")
    plain_git("init", "--quiet", "--initial-branch=r1.8", cwd=path)
    commit(path, {"old.txt": "old" * 5000}, year=2017)
    (path / "old.txt").unlink()
    commit(
        path,
        {"configure": "#!/bin/sh\n", "core/op.cc": "int op;\n", "core/testdata/big": "big\n"},
        year=2018,
    )
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "git"


@pytest.fixture
def old_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speak git's protocol of before 2018, in which a server refuses what its branches do not name."""
    config = make_file(
        tmp_path / "gitconfig", program.CONFIG.read_text("utf-8") + "[protocol]\n\tversion = 0\n"
    )
    monkeypatch.setattr(program, "CONFIG", config)


def allow(upstream: Path, *, filters: bool, any_id: bool) -> None:
    plain_git("config", "uploadpack.allowFilter", str(filters).lower(), cwd=upstream)
    plain_git("config", "uploadpack.allowAnySHA1InWant", str(any_id).lower(), cwd=upstream)


def pin_of(upstream: Path, *exclude: str, name: str = "HEAD") -> Pin:
    return Pin(f"file://{upstream}", "r1.8", plain_git("rev-parse", name, cwd=upstream), exclude)


Bring = Callable[..., Path]


@pytest.fixture
def bring(store: Path, listener: Notebook) -> Bring:
    """Return what brings a pin into the store; the listener has what it reports."""

    def bring(pin: Pin, *, offline: bool = False, named: str = "") -> Path:
        origin = Origin.of(named or pin.url)
        return mirror.fetch(pin, store, origin, listener, offline=offline, about_branch=True)

    return bring


def paths_of(repository: Path, pin: Pin) -> set[str]:
    """Return the paths whose content is there."""
    missing = GitRepository(repository).missing_ids(pin.commit)
    return {
        entry.path
        for entry in GitRepository(repository).entries(pin.commit)
        if entry.blob not in missing
    }


def objects_in(repository: Path) -> int:
    return len(
        plain_git("cat-file", "--batch-all-objects", "--batch-check", cwd=repository).splitlines()
    )


def test_the_pinned_commit_comes_without_its_history_and_the_bill_is_told(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    found = bring(pin_of(upstream))
    assert plain_git("rev-list", "--all", cwd=found).splitlines() == [pin_of(upstream).commit]
    assert objects_in(found) == 1 + 3 + 3  # the commit, its directories and its files
    assert "Fetched r1.8 at" in listener.notes[0]
    assert listener.notes[0].endswith(" MB")
    assert listener.steps


def test_what_is_there_is_kept_and_serves_when_the_repository_is_gone(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    pin = pin_of(upstream)
    first = bring(pin)
    shutil.rmtree(upstream)
    assert bring(pin, offline=True) == first
    assert bring(pin) == first
    assert listener.notes[1:] == [
        "The server did not say whether branch r1.8 has moved; the pinned commit is in the mirror"
    ]


def test_a_second_pin_of_a_repository_shares_the_mirror_and_brings_the_difference(
    upstream: Path, bring: Bring
) -> None:
    first, one = pin_of(upstream), bring(pin_of(upstream))
    before = objects_in(one)
    commit(upstream, {"core/op.cc": "int up;\n"}, year=2019)
    assert bring(pin_of(upstream)) == one
    assert objects_in(one) == before + 1 + 2 + 1  # a commit, two directories, a file
    assert paths_of(one, first) == {"configure", "core/op.cc", "core/testdata/big"}


def test_offline_a_commit_that_is_not_there_is_not_asked_for(upstream: Path, bring: Bring) -> None:
    with fails(SupplyError, "invoke fetch"):
        bring(pin_of(upstream), offline=True)


@pytest.mark.parametrize("any_id", [True, False])
@pytest.mark.parametrize("filters", [True, False])
def test_left_out_files_are_not_transferred_where_the_server_can_filter(
    upstream: Path, bring: Bring, *, filters: bool, any_id: bool
) -> None:
    allow(upstream, filters=filters, any_id=any_id)
    pin = pin_of(upstream, "core/testdata")
    wanted = {"configure", "core/op.cc"}
    assert paths_of(bring(pin), pin) == (wanted if filters else wanted | {"core/testdata/big"})


@pytest.mark.usefixtures("old_protocol")
@pytest.mark.parametrize("any_id", [True, False])
@pytest.mark.parametrize("filters", [True, False])
def test_an_old_server_gives_the_tip_of_a_branch_too(
    upstream: Path, bring: Bring, *, filters: bool, any_id: bool
) -> None:
    allow(upstream, filters=filters, any_id=any_id)
    pin = pin_of(upstream, "core/testdata")
    assert paths_of(bring(pin), pin) >= {"configure", "core/op.cc"}


@pytest.mark.usefixtures("old_protocol")
def test_an_old_server_that_gives_branches_only_is_asked_for_the_whole_branch(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    allow(upstream, filters=False, any_id=False)
    pin = pin_of(upstream)
    commit(upstream, {"core/op.cc": "int up;\n"}, year=2019)
    assert paths_of(bring(pin), pin) == {"configure", "core/op.cc", "core/testdata/big"}
    assert listener.notes[0] == "The server gives whole branches only, so all of r1.8 is fetched"


def test_a_pin_without_exceptions_completes_what_another_left_out(
    upstream: Path, bring: Bring
) -> None:
    bring(pin_of(upstream, "core/testdata"))
    pin = pin_of(upstream)
    assert "core/testdata/big" in paths_of(bring(pin), pin)


@pytest.mark.parametrize("any_id", [True, False])
def test_a_file_that_differs_from_one_that_another_pin_left_out_comes_whole(
    upstream: Path, bring: Bring, *, any_id: bool
) -> None:
    allow(upstream, filters=True, any_id=any_id)
    made = random.Random(1)
    lines = [str(made.random()) for _ in range(2000)]
    commit(upstream, {"core/testdata/big": "\n".join(lines)}, year=2019)
    bring(pin_of(upstream, "core/testdata"))
    commit(upstream, {"core/testdata/big": "\n".join([*lines, "more"])}, year=2020)
    plain_git("repack", "-adfq", cwd=upstream)
    pin = pin_of(upstream)
    assert "core/testdata/big" in paths_of(bring(pin), pin)


def test_a_moved_branch_is_reported_and_never_followed(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    pin = pin_of(upstream)
    tip = commit(upstream, {"core/op.cc": "int up;\n"}, year=2019)
    found = bring(pin)
    assert (
        listener.notes[-1]
        == f"Branch r1.8 is at {tip[:12]} now; {pin.commit[:12]} is built, as pinned"
    )
    assert not GitRepository(found).kind(tip)


@pytest.mark.parametrize("year", [2016, 2020])
def test_a_branch_that_was_taken_elsewhere_is_reported(
    upstream: Path, bring: Bring, store: Path, listener: Notebook, year: int
) -> None:
    pin = pin_of(upstream)
    plain_git("checkout", "--quiet", "--orphan", "other", cwd=upstream)
    tip = commit(upstream, {"core/op.cc": "int up;\n"}, year=year)
    plain_git("branch", "--force", "r1.8", "other", cwd=upstream)
    bring(pin)
    assert listener.notes[-1] == (
        f"Branch r1.8 is at {tip[:12]} now and does not contain the pinned "
        "commit (it never did, or it was rewritten); "
        f"{pin.commit[:12]} is built, as pinned"
    )
    assert [path.suffix for path in sorted(store.iterdir())] == [".git", ".lock"]


def test_a_branch_that_is_gone_is_reported(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    pin = pin_of(upstream)
    plain_git("branch", "--move", "r1.9", cwd=upstream)
    bring(pin)
    assert listener.notes[-1] == "The server has no branch r1.8; the pinned commit decides"


def test_a_commit_that_nobody_has_is_named_with_who_was_asked(
    upstream: Path, bring: Bring, listener: Notebook
) -> None:
    pin = Pin(f"file://{upstream}", "r1.8", "0123456789" * 4)
    with fails(SupplyError, "012345678901", f"file://{upstream}", "not our ref", "[mirrors]"):
        bring(pin)
    assert not [note for note in listener.notes if "whole branches" in note]


def test_a_mirror_of_the_host_file_is_asked_instead_of_the_url(
    upstream: Path, bring: Bring, store: Path
) -> None:
    pin = Pin("https://nowhere.invalid/tensorflow.git", "r1.8", pin_of(upstream).commit)
    found = bring(pin, named=str(upstream))
    assert found == mirror.path_of(store, pin.url)
    with fails(SupplyError, "file:///nowhere"):
        bring(Pin(pin.url, "r1.8", "0123456789" * 4), named="/nowhere")


def test_a_mirror_that_lacks_files_is_told_so_by_name_and_serves_when_they_are_left_out(
    upstream: Path, bring: Bring
) -> None:
    name = plain_git("rev-parse", "HEAD:core/testdata/big", cwd=upstream)
    (upstream / ".git/objects" / name[:2] / name[2:]).unlink()
    with fails(SupplyError, 'exclude = ["core/testdata/big"]'):
        bring(pin_of(upstream))
    pin = pin_of(upstream, "core/testdata")
    assert paths_of(bring(pin), pin) == {"configure", "core/op.cc"}
    assert bring(pin, offline=True)
    with fails(SupplyError, "1"):
        bring(pin_of(upstream))


def test_a_tag_is_no_commit(upstream: Path, bring: Bring) -> None:
    plain_git("tag", "--annotate", "--message=eight", "v1.8.0", cwd=upstream)
    with fails(RecipeError, "tag"):
        bring(pin_of(upstream, name="v1.8.0"))


def test_leaving_out_what_is_not_there_is_a_mistake(upstream: Path, bring: Bring) -> None:
    with fails(RecipeError, "source.exclude", "core/testdata/bog"):
        bring(pin_of(upstream, "core/testdata/bog"))


def test_a_commit_with_submodules_is_refused(upstream: Path, bring: Bring) -> None:
    plain_git(
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{'1' * 40},third_party/protobuf",
        cwd=upstream,
    )
    plain_git("commit", "--quiet", "--message=sub", cwd=upstream)
    with fails(RecipeError, "third_party/protobuf"):
        bring(pin_of(upstream))


@pytest.mark.parametrize(
    "named",
    [
        "--upload-pack=touch made",
        "ext::touch made",
        "relative/path",
        "git@github.com:tensorflow/tensorflow",
        "bundled:other",
        "ssh://-oProxyCommand=x/r",
    ],
)
def test_what_git_might_take_for_an_option_or_a_command_is_no_origin(named: str) -> None:
    with fails(RecipeError, "https://"):
        Origin.of(named)


def test_two_urls_of_one_name_have_mirrors_of_their_own(tmp_path: Path) -> None:
    one, other = (
        mirror.path_of(tmp_path, f"https://example.org/{owner}/tensorflow.git")
        for owner in ("a", "b")
    )
    assert one != other
    assert one.name.startswith("tensorflow-")


BRING = """
import sys
from pathlib import Path
from tfwright.progress import SILENCE
from tfwright.tools.git import mirror
from tfwright.tools.git.mirror import Origin, Pin
url, commit, store = sys.argv[1:]
mirror.fetch(Pin(url, "r1.8", commit), Path(store), Origin.of(url), SILENCE, offline=False)
"""


def start(pin: Pin, store: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", BRING, pin.url, pin.commit, str(store)], start_new_session=True
    )


def test_a_faulty_configuration_of_the_callers_git_does_not_end_a_fetch(
    upstream: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[broken\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    # A process of its own: this one has imported GitPython already.
    assert start(pin_of(upstream), store).wait(60) == 0


@pytest.mark.slow
def test_recipes_that_fetch_at_once_wait_for_each_other(upstream: Path, store: Path) -> None:
    pins = [pin_of(upstream)]
    for year in range(2019, 2022):
        commit(upstream, {"core/op.cc": f"int op{year};\n"}, year=year)
        pins.append(pin_of(upstream))
    processes = [start(pin, store) for pin in pins]
    assert [process.wait(60) for process in processes] == [0] * len(pins)
    found = mirror.path_of(store, pins[0].url)
    assert all("core/op.cc" in paths_of(found, pin) for pin in pins)


@pytest.mark.slow
def test_a_fetch_killed_in_the_middle_leaves_a_usable_mirror(
    upstream: Path, bring: Bring, store: Path
) -> None:
    (upstream / "noise").write_bytes(random.Random(8).randbytes(30_000_000))
    commit(upstream, {}, year=2019)
    pin = pin_of(upstream)
    found = mirror.path_of(store, pin.url)
    with start(pin, store) as process:
        while not list(found.glob("objects/pack/tmp_pack_*")):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    (found / "shallow.lock").touch()  # as git leaves it when it is killed a little later
    assert "noise" in paths_of(bring(pin), pin)
    assert not list(found.glob("objects/pack/tmp_*"))


@pytest.mark.parametrize("name", ["HEAD", "config", "packed-refs"])
def test_a_mirror_whose_settings_were_damaged_is_mended_and_keeps_its_objects(
    tmp_path: Path, name: str
) -> None:
    place = tmp_path / "mirror.git"
    with mirror.locked_repository(place, "test"):
        pass
    blob = GitRepository(place).run("hash-object", "-w", "--", str(place / "config")).strip()
    (place / name).write_bytes(b"\x00damaged")
    with mirror.locked_repository(place, "test") as repository:
        assert repository.kind(blob) == "blob"


@pytest.mark.parametrize("content", [b"", b"\x00damaged"])
def test_a_pin_that_was_damaged_is_written_again(
    upstream: Path, bring: Bring, content: bytes
) -> None:
    pin = pin_of(upstream)
    place = bring(pin)
    ref = make_file(place / "refs/pins" / pin.commit, content)
    assert bring(pin) == place
    assert ref.read_text("ascii").strip() == pin.commit


@pytest.mark.parametrize(("which", "text"), [("HEAD", "two\n"), ("HEAD~1", "one\n")])
def test_a_server_of_files_that_knows_no_git_is_asked_for_the_whole_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve, which: str, text: str
) -> None:
    monkeypatch.setattr(program, "PROTOCOLS", "http:https:ssh:file")
    work = tmp_path / "work"
    repositories.commit(work, {"WORKSPACE": "one\n"})
    repositories.commit(work, {"WORKSPACE": "two\n"}, "two")
    run_git("update-server-info", cwd=work)
    address = f"{serve(work)}.git"
    pin = Pin(address, "main", run_git("rev-parse", which, cwd=work), ())
    origin = Origin(address)
    place = mirror.fetch(pin, tmp_path / "git", origin, Notebook(), offline=False)
    assert GitRepository(place).text(f"{pin.commit}:WORKSPACE") == text
