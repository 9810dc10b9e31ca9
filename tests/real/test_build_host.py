"""A build host with a real repository, a real Bazel and the demo's tree: nights and a bisection."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfwright.documents.recipe import RECIPES, ROOT
from tfwright.tools.git import demo

pytestmark = pytest.mark.real

URL = "https://git.example.org/demo.git"


class Host:
    """A build host in a folder, whose recipe builds a repository in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origin = folder / "origin"
        shutil.copytree(ROOT / "src/tfwright/demo/tree", self.origin)
        self.git("init", "-q", "-b", "main")
        self.commit("Begin")
        host = f'build_out = "{folder}/out"\n[mirrors]\n"{URL}" = "file://{self.origin}"\n'
        (folder / "host.toml").write_text(host)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        argv = ["git", *identity, *arguments]
        done = subprocess.run(argv, cwd=self.origin, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, subject: str, *options: str) -> str:
        """Commit everything; return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, *options)
        return self.git("rev-parse", "HEAD")

    def note(self, text: str, *options: str) -> str:
        """Commit a change that breaks nothing."""
        readme = self.origin / "README.md"
        readme.write_text(f"{readme.read_text()}\n{text}\n")
        return self.commit(text, *options)

    def pin(self, commit: str) -> None:
        """Write the demo's recipe with the repository and a commit."""
        text = (RECIPES / "demo.toml").read_text("utf-8").partition("[verified]")[0]
        text = text.replace(f'"{demo.URL}"', f'"{URL}"')
        text = re.sub(r'commit = "\w+".*', f'commit = "{commit}"', text)
        (self.folder / "tracked.toml").write_text(text)

    def nightly(self, extra: str = "") -> None:
        name = self.folder / "tracked.toml"
        text = f'directory = "{self.folder}/host"\nreproduce = false\nlinks = false\n'
        text += f'[retention]\nfree = 0\n[[recipe]]\nname = "{name}"\nlocal = "cpu"\n{extra}\n'
        (self.folder / "nightly.toml").write_text(text)

    def invoke(self, *arguments: str) -> dict[str, object]:
        """Run a command with --json; return what it printed."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "TFWRIGHT_HOST_FILE": str(self.folder / "host.toml"),
            "TFWRIGHT_NIGHTLY_FILE": str(self.folder / "nightly.toml"),
        }
        argv = [sys.executable, "-m", "invoke", *arguments, "--json"]
        done = subprocess.run(
            argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed: dict[str, object] = json.loads(done.stdout)
        return printed

    def night(self) -> object:
        """Run a night; return the verdict on the only target."""
        verdicts = self.invoke("nightly")["verdicts"]
        assert isinstance(verdicts, dict)
        (verdict,) = verdicts.values()
        return verdict

    def versions(self) -> list[str]:
        page = self.folder / "host/site/simple/tfwright-demo/index.json"
        found: list[str] = json.loads(page.read_text())["versions"]
        return found


def test_the_commit_that_broke_the_compiler_is_found(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.pin(host.git("rev-parse", "HEAD"))
    host.nightly()
    assert host.night() == "good"
    host.note("First")
    kernel = host.origin / "tensorflow/core/kernels/matrix.cc"
    kernel.write_text(f'#include "no/such/header.h"\n{kernel.read_text()}')
    culprit = host.commit("Speed up the kernel")
    host.note("Second")
    host.pin(host.note("Third"))
    assert host.night() == "failed"
    found = host.invoke("bisect", "--recipe", "tracked")
    assert found["commit"] == culprit
    assert found["stage"] == "compile"
    assert "no/such/header.h" in str(found["line"])
    # Every answer was written down: asking again builds nothing.
    again = host.invoke("bisect", "--recipe", "tracked")
    assert (again["commit"], again["trials"]) == (culprit, 0)


def test_two_recipes_of_one_wheel_name_get_wheels_of_their_own(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.pin(host.git("rev-parse", "HEAD"))
    shutil.copy(tmp_path / "tracked.toml", tmp_path / "other.toml")
    host.nightly(f'[[recipe]]\nname = "{tmp_path}/other.toml"\nlocal = "gpu"')
    verdicts = host.invoke("nightly")["verdicts"]
    assert verdicts == {"other": "good", "tracked": "good"}
    assert host.versions() == ["1.12.0+cpu", "1.12.0+gpu"]
    # There one would have taken the place of the other.
    assert not (tmp_path / "out/wheelhouse").exists()


def test_a_followed_branch_is_built_when_it_moves(tmp_path: Path) -> None:
    host = Host(tmp_path)
    first = host.git("rev-parse", "HEAD")
    host.pin(first)
    host.nightly('follow = { branch = "main" }')
    assert host.night() == "good"
    assert host.night() == "unchanged"
    second = host.note("More")
    assert host.night() == "good"
    rewritten = host.note("Other", "--amend")
    assert host.night() == "good"
    # Versions of one day are in the order of their local parts, which are hashes.
    commits = sorted([first, second, rewritten])
    for commit, version in zip(commits, sorted(host.versions()), strict=True):
        assert re.fullmatch(rf"1\.12\.0\.dev\d{{8}}\+g{commit[:10]}\.cpu", version)
    host.git("checkout", "-q", "--detach")
    host.git("branch", "-D", "main")
    # A branch that is gone says nothing about the wheels that there are.
    assert host.night() == "blocked"
    assert len(host.versions()) == 3
