"""Inputs that are gone: named at once and for what they are, and there again once they were given."""

import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.making import make_file, make_tar
from tests.results import Notebook
from tests.upstream import commit

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable, Recipe
from tfwright.errors import RecipeError, SupplyError, TfwrightError
from tfwright.lock import inputs as pinning
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs
from tfwright.tools import files
from tfwright.vault import lock

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("no_pauses")]

RULE = (
    'http_archive(name = "{name}", urls = ["https://nowhere.invalid/{name}.tar.gz"], '
    'sha256 = "{sha256}", strip_prefix = "{name}")\n'
)
NESTED = 'load("@{name}//:{name}.bzl", "{name}")\n'


@dataclass
class Chain:
    """A tree whose WORKSPACE leads through an archive to a second and to a third one."""

    job: RecipeJob
    drop: Path
    lock: Path

    def fetched(self, **changes: object) -> Inputs:
        job = replace(self.job, until="fetch", **changes)  # type: ignore[arg-type]
        return engine.build(job).of(Inputs)

    def locked(self) -> RecipeJob:
        """Write the lock with everything at hand, as one that asked Bazel does."""
        found = pinning.write(self.job, self.lock)
        known = tuple(archive.changed(needed=False) for archive in found.archives)
        text = lock.write(found.changed(archives=known))
        files.write(self.lock, text)
        self.job = replace(self.job, locked=self.lock)
        return self.job

    def lose(self, name: str) -> Path:
        """Take an archive out of the vault and the drop folder, and return where it is now."""
        path = self.drop / f"{name}.tar.gz"
        kept = path.rename(self.drop.parent / path.name)
        vault = self.job.places.vault / "repository_cache/content_addressable"
        files.remove(vault / "sha256" / files.sha256(kept))
        return kept

    def give(self, path: Path) -> None:
        path.rename(self.drop / "any name")


Make = Callable[..., Chain]


@pytest.fixture
def make(recipe: Recipe, tmp_path: Path) -> Make:
    """Return what makes such a tree; its recipe is another system's, which asks for no Bazel."""

    def chain(way: str = "an archive", strip_prefix: str | None = None, *, more: str = "") -> Chain:
        drop = tmp_path / "drop"
        last = make_tar(drop / "last.tar.gz", {"last/BUILD": ""})
        third = RULE.format(name="last", sha256=files.sha256(last))
        third = "".join(f"    {line}\n" for line in third.splitlines())
        deep = make_tar(drop / "deep.tar.gz", {"deep/deep.bzl": f"def deep():\n{third}"})
        outer_texts = {
            "outer.bzl": 'load(":more.bzl", "more")\ndef outer():\n  more()\n',
            "more.bzl": NESTED.format(name="deep") + "def more():\n  deep()\n",
        }
        outer = make_tar(
            drop / "outer.tar.gz", {f"outer/{name}": text for name, text in outer_texts.items()}
        )
        sha256, table = files.sha256(outer), {}
        if way == "a substitute":
            sha256 = "9" * 64
            table["outer"] = {
                "reason": "gone",
                "replaces": sha256,
                "sha256": files.sha256(outer),
                "urls": ["https://nowhere.invalid/other.tar.gz"],
                "strip_prefix": strip_prefix,
            }
        rule = RULE.format(name="outer", sha256=sha256)
        mirrors = {}
        if way == "a clone":
            remote = "https://nowhere.invalid/outer.git"
            pinned = commit(tmp_path / "outer", outer_texts)
            mirrors[remote] = str(tmp_path / "outer")
            rule = f'git_repository(name = "outer", remote = "{remote}", commit = "{pinned}")\n'
        workspace = (
            rule
            + RULE.format(name="deep", sha256=files.sha256(deep))
            + NESTED.format(name="outer")
            + "outer()\n"
            + more
        )
        upstream = tmp_path / "upstream"
        source = recipe.source.changed(
            url=upstream.as_uri(), branch="main", commit=commit(upstream, {"WORKSPACE": workspace})
        )
        other = "Darwin" if os.uname().sysname == "Linux" else "Linux"
        mine = recipe.changed(
            source=source,
            host=recipe.host.changed(system=other),
            fetch=FetchTable.model_validate({"substitutes": table}),
        )
        host_file = HostFile(build_out=tmp_path / "build_out", drop=drop, mirrors=mirrors)
        job = RecipeJob(recipe=mine, host_file=host_file)
        return Chain(job, drop, tmp_path / "small.lock")

    return chain


def failure(act: Callable[[], object]) -> TfwrightError:
    with pytest.raises(TfwrightError) as caught:
        act()
    return caught.value


def test_what_fetch_cannot_bring_is_said_although_an_input_is_missing(make: Make) -> None:
    loose = 'http_archive(name = "loose", urls = ["https://nowhere.invalid/loose.zip"])\n'
    chain = make(more=loose)
    chain.lose("outer")
    listener = Notebook()
    fault = failure(lambda: chain.fetched(listener=listener))
    assert "outer" in fault.what
    assert any("Bazel downloads it by itself: loose" in note for note in listener.notes)


@pytest.mark.parametrize("offline", [False, True], ids=["", "offline"])
@pytest.mark.parametrize(
    ("way", "gone"),
    [
        ("an archive", "outer"),
        ("an archive", "deep"),
        ("a substitute", "outer"),
        ("a substitute", "deep"),
        ("a clone", "deep"),
    ],
)
def test_what_rules_are_loaded_through_is_named_where_it_is_missing_and_the_lock_stays(
    make: Make, way: str, gone: str, *, offline: bool
) -> None:
    chain = make(way)
    chain.locked()
    text = chain.lock.read_text("utf-8")
    assert len(chain.fetched().archives) == (1 if way == "a clone" else 2)
    kept = chain.lose(gone)
    fault = failure(lambda: chain.fetched(offline=offline))
    assert isinstance(fault, SupplyError)
    assert fault.what == f"Inputs that small needs could not be found: {gone}"
    # Neither does a new lock replace the one that knows it.
    failure(lambda: pinning.write(chain.job, chain.lock))
    assert chain.lock.read_text("utf-8") == text
    chain.give(kept)
    assert chain.fetched(offline=offline).archives


def test_a_commit_that_rules_are_loaded_through_is_named_where_its_mirror_lacks_it(
    make: Make, tmp_path: Path
) -> None:
    chain = make("a clone")
    chain.locked()
    chain.fetched()
    files.remove(chain.job.places.git)
    (tmp_path / "outer").rename(tmp_path / "away")
    fault = failure(chain.fetched)
    assert fault.what == (
        "Inputs that small needs could not be found: https://nowhere.invalid/outer.git"
    )
    (tmp_path / "away").rename(tmp_path / "outer")
    assert chain.fetched().clones


@pytest.mark.parametrize("with_lock", [False, True], ids=["", "a lock"])
def test_a_substitute_without_the_file_that_is_loaded_from_it_is_said_to_lack_it(
    make: Make, *, with_lock: bool
) -> None:
    chain = make("a substitute")
    if with_lock:
        chain.locked()
    recipe = chain.job.recipe
    table = recipe.fetch.substitutes["outer"]
    wrong = table.changed(strip_prefix="outer-2.0")
    fetch = FetchTable(substitutes={"outer": wrong})
    fault = failure(lambda: chain.fetched(recipe=recipe.changed(fetch=fetch)))
    assert isinstance(fault, RecipeError)
    assert fault.what.endswith("no file that Bazel loads from it: outer")
    assert "WORKSPACE:3 loads @outer//outer.bzl" in fault.evidence.lines
    assert "strip_prefix" in fault.remedy
    assert len(chain.fetched().archives) == (2 if with_lock else 3)


def client(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a registry's client first on PATH that gives what a command makes."""
    make_file(folder / name, f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("way", ["npm", "deb"])
def test_a_source_that_the_recipe_adds_gives_what_was_missing(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    chain = make()
    chain.locked()
    kept = chain.lose("deep")
    fault = failure(chain.fetched)
    assert "[[fetch.sources]]" in fault.remedy
    source: dict[str, str] = {"sha256": files.sha256(kept)}
    if way == "npm":
        package = tmp_path / "package.tgz"
        with tarfile.open(package, "w:gz") as packed:
            packed.add(kept, "package/deps/deep.tar.gz")
        client(tmp_path / "bin", "npm", f"cp {package} x.tgz", monkeypatch)
        source |= {"package": "pkg:npm/a@1", "member": "package/deps/deep.tar.gz"}
    else:
        given = f'case "$*" in *source*) cp {kept} deep_1.orig.tar.gz;; esac'
        client(tmp_path / "bin", "apt-get", given, monkeypatch)
        source |= {"package": "pkg:deb/debian/deep", "member": "deep_1.orig.tar.gz"}
    recipe = chain.job.recipe
    fetch = FetchTable.model_validate({"sources": [source]})
    found = chain.fetched(recipe=recipe.changed(fetch=fetch))
    assert files.sha256(kept) in {archive.sha256 for archive in found.archives}


def test_a_substitute_for_what_was_missing_needs_a_new_lock_and_each_step_is_named(
    make: Make,
) -> None:
    chain = make()
    chain.locked()
    before = files.sha256(chain.lose("deep"))
    fault = failure(chain.fetched)
    assert "[fetch.substitutes]" in fault.remedy
    other = make_tar(chain.drop / "b.tar.gz", {"b-1/deep.bzl": "def deep():\n    pass\n"})
    table = {
        "reason": "gone",
        "replaces": before,
        "sha256": files.sha256(other),
        "urls": ["https://nowhere.invalid/b.tar.gz"],
        "strip_prefix": "b-1",
    }
    fetch = FetchTable.model_validate({"substitutes": {"deep": table}})
    recipe = chain.job.recipe.changed(fetch=fetch)
    chain.job = replace(chain.job, recipe=recipe)
    fault = failure(chain.fetched)
    assert "small.lock does not fit the inputs" in fault.what
    assert "run 'invoke lock --recipe small'" in fault.remedy
    # Only the recipe's own system can ask its Bazel, and the lock knows what that said.
    fault = failure(lambda: pinning.write(chain.job, chain.lock))
    assert f"remove {chain.lock} first" in fault.remedy
    chain.lock.unlink()
    pinning.write(chain.job, chain.lock)
    assert chain.fetched().archives
