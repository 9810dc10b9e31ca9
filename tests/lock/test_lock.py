"""`invoke lock` and what a build does with it, on a small tree of the test's own."""

import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker, Serve, change_text, make_file, make_folder, make_program
from tests.upstream import commit

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable, Recipe
from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.lock import checksums
from tfwright.lock import inputs as pinning
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, Inputs
from tfwright.pipeline.stage import Stage
from tfwright.pipeline.stages import fetch
from tfwright.progress import Listener
from tfwright.tools import files
from tfwright.vault import lock

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("no_pauses")]

RULE = (
    'http_archive(name = "{name}", urls = ["https://nowhere.invalid/{name}.zip"], sha256 = '
    '"{sha256}")\n'
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Make an archive, and give it by hand."""
    path = tmp_path / "drop/archive"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("one/BUILD", 'exports_files(["BUILD"])\n')
    return path


@pytest.fixture
def job(recipe: Recipe, tmp_path: Path, archive: Path) -> RecipeJob:
    """Return a job for a tree that names one archive that can be had and one that cannot.

    It is another system's: what runs during the build is not looked for.
    """
    upstream = tmp_path / "upstream"
    rules = RULE.format(name="one", sha256=files.sha256(archive)) + RULE.format(
        name="two", sha256="2" * 64
    )
    pinned = {
        "url": upstream.as_uri(),
        "branch": "main",
        "commit": commit(upstream, {"WORKSPACE": rules}),
    }
    source = recipe.source.changed(**pinned)
    other = "Darwin" if os.uname().sysname == "Linux" else "Linux"
    host = recipe.host.changed(system=other)
    host_file = HostFile(build_out=tmp_path / "build_out", drop=archive.parent)
    return RecipeJob(recipe=recipe.changed(source=source, host=host), host_file=host_file)


def inputs(job: RecipeJob) -> Inputs:
    return engine.build(replace(job, until="fetch")).of(Inputs)


def test_what_can_be_had_is_in_the_vault_where_bazel_looks_and_the_rest_is_left_to_it(
    job: RecipeJob, archive: Path
) -> None:
    (artefact,) = inputs(job).archives
    assert artefact.sha256 == files.sha256(archive)
    assert (
        artefact.path
        == job.places.vault
        / "repository_cache/content_addressable/sha256"
        / artefact.sha256
        / "file"
    )


def test_the_lock_names_every_archive_and_the_same_inputs_give_the_same_text(
    job: RecipeJob, archive: Path, tmp_path: Path
) -> None:
    path = tmp_path / "small.lock"
    pinning.write(job, path)
    written = path.read_text("utf-8")
    one, two = sorted(lock.read(path).archives, key=lambda one: one.names)
    assert (one.names, one.sha256, one.size, one.needed) == (
        ("one",),
        files.sha256(archive),
        archive.stat().st_size,
        None,
    )
    assert (two.names, two.size) == (("two",), None)
    pinning.write(replace(job, locked=path), path)
    assert path.read_text("utf-8") == written


def test_a_lock_without_the_packages_of_another_systems_python_is_not_written(
    job: RecipeJob, tmp_path: Path
) -> None:
    wanting = job.recipe.changed(host=job.recipe.host.changed(requirements=("numpy==1.14.5",)))
    with fails(HostError, "Darwin", "numpy==1.14.5"):
        pinning.write(replace(job, recipe=wanting), tmp_path / "r.lock")
    assert not (tmp_path / "r.lock").exists()


def test_no_lock_is_written_with_another_bazel_than_the_recipe_pins(
    job: RecipeJob, tmp_path: Path
) -> None:
    with fails(HostError, "5.1.1", job.recipe.bazel.version):
        pinning.write(replace(job, pinned_bazel="5.1.1"), tmp_path / "r.lock")
    assert not (tmp_path / "r.lock").exists()


def test_a_build_that_fits_its_lock_goes_on_and_one_that_differs_is_refused_with_the_entry(
    job: RecipeJob, tmp_path: Path
) -> None:
    path = tmp_path / "small.lock"
    pinning.write(job, path)
    held = replace(job, locked=path)
    inputs(held)
    change_text(path, "2" * 64, "3" * 64)
    with fails(SupplyError, "small.lock", "3333333333333333"):
        inputs(held)


def test_what_the_lock_knows_to_be_needed_is_named_at_once_if_it_cannot_be_had(
    job: RecipeJob, tmp_path: Path
) -> None:
    path = tmp_path / "small.lock"
    known = pinning.write(job, path)
    needed = tuple(archive.changed(needed=True) for archive in known.archives)
    files.write(path, lock.write(known.changed(archives=needed)))
    with fails(SupplyError, "small", "two") as caught:
        inputs(replace(job, locked=path, offline=True))
    log = caught.value.evidence.log
    assert log is not None
    assert "2" * 64 in log.read_text("utf-8")


def test_a_lock_that_knows_the_needs_is_not_replaced_where_bazel_cannot_be_asked(
    job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.lock"
    monkeypatch.setattr(pinning, "_wanted_repositories", lambda *_: ({"one": ""}, None))
    pinning.write(job, path)
    text = path.read_text("utf-8")
    assert "needed = true" in text
    why = ToolError("the target cannot be analysed", remedy="Read the log.")
    monkeypatch.setattr(pinning, "_wanted_repositories", lambda *_: (None, why))
    with fails(HostError, "small.lock", "cannot be analysed", "write") as caught:
        pinning.write(replace(job, locked=path), path)
    assert path.read_text("utf-8") == text
    # As it says: remove the lock first. A script sees that the new one knows less.
    path.unlink()
    with fails(HostError, "small.lock") as caught:
        pinning.write(job, path)
    assert caught.value.remedy == "Read the log. Then run 'invoke lock' again."
    assert "needed" not in path.read_text("utf-8")
    # Lines that are there to be copied end where the sentence begins.
    why.template = "Add to the recipe:\n[configure.answers]\nA = false"
    with pytest.raises(HostError) as caught:
        pinning.write(job, path)
    assert caught.value.remedy.splitlines()[2:] == ["A = false", "Then run 'invoke lock' again."]
    monkeypatch.setattr(pinning, "_wanted_repositories", lambda *_: ({"one": ""}, None))
    pinning.write(replace(job, locked=path), path)
    assert path.read_text("utf-8") == text


def test_a_substitute_is_noted_locked_planned_and_put_into_the_tree(
    job: RecipeJob, archive: Path, tmp_path: Path
) -> None:
    substitute = {
        "reason": "its server is gone",
        "replaces": "2" * 64,
        "sha256": files.sha256(archive),
        "urls": ["https://nowhere.invalid/other.zip"],
    }
    table = FetchTable.model_validate({"substitutes": {"two": substitute}})
    mine = replace(job, recipe=job.recipe.changed(fetch=table))
    made = inputs(mine)
    assert made.substitutes == {"two": "2" * 64}
    (locked,) = pinning.write(mine, tmp_path / "small.lock").substitutes
    assert (locked.reason, locked.source) == (
        "its server is gone",
        "https://nowhere.invalid/other.zip",
    )
    assert "Not the pinned bytes: two: its server is gone" in {
        vars(step).get("content") for step in Stage(fetch).steps(mine, {})
    }
    engine.build(replace(mine, until="source"))
    text = (mine.places.tree / "WORKSPACE").read_text("utf-8")
    assert (
        RULE.format(name="two", sha256=files.sha256(archive)).replace("two.zip", "other.zip")
        in text
    )


def test_an_archive_that_was_changed_in_the_vault_is_fetched_again(job: RecipeJob) -> None:
    (artefact,) = inputs(job).archives
    artefact.path.chmod(0o644)
    artefact.path.write_bytes(b"bad")
    (again,) = inputs(job).archives
    assert files.sha256(again.path) == again.sha256


def test_the_report_of_links_covers_every_archive(job: RecipeJob) -> None:
    rows = {row.name: row for row in pinning.ask_sources(job, deep=False)}
    assert (rows["one"].left, rows["one"].kept) == (1, True)
    assert (rows["two"].left, rows["two"].kept) == (0, False)


def test_no_server_is_asked_for_a_package_url_of_a_lock(job: RecipeJob, tmp_path: Path) -> None:
    path = tmp_path / "small.lock"
    pinning.write(job, path)
    change_text(path, "https://nowhere.invalid/one.zip", "pkg:pypi/one@1.0")
    (rows,) = pinning.ask_sources_together([replace(job, locked=path)])
    assert [row.name for row in rows] == ["two"]


def test_the_sources_of_an_archive_are_asked_although_its_substitute_is_of_another_one(
    job: RecipeJob, tmp_path: Path
) -> None:
    substitute = {
        "reason": "its server is gone",
        "replaces": "3" * 64,
        "sha256": "4" * 64,
        "urls": [f"file://{tmp_path}/other.zip"],
    }
    unknown = substitute | {"replaces": "5" * 64}
    table = FetchTable.model_validate({"substitutes": {"two": substitute, "three": unknown}})
    mine = replace(job, recipe=job.recipe.changed(fetch=table))
    with pytest.raises(RecipeError):
        inputs(mine)
    rows = {row.name: row for row in pinning.ask_sources(mine, deep=False)}
    assert rows["one"].left == 1
    assert rows["two"].sha256 == "2" * 64


OWN = """\
summary = "A tree with two archives, of which its target needs one"

[source]
url = "{url}"
branch = "main"
commit = "{commit}"
interface = "own"

[host]
system = "any"
machine = "any"
python = "any"
requirements = ["small==1.0"]

[bazel]
version = "0.26.1"

[configure]
writes = ".bazelrc"

[compile]
target = "//:wheel"

[package]
program = "wheel"
"""


LOAD = 'load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")\n'


def own_recipe(folder: Path, rules: Sequence[str], needed: Sequence[str]) -> Path:
    """Write a recipe of a tree with these rules, whose target needs some files; return its path."""
    tree = folder / "tree"
    make_program(tree / "configure", "#!/bin/sh\n: > .bazelrc\n")
    build = f'filegroup(name = "wheel", srcs = {json.dumps(needed)})\n'
    pinned = commit(tree, {"WORKSPACE": LOAD + "".join(rules), "BUILD": build})
    return make_file(folder / "small.toml", OWN.format(url=tree.as_uri(), commit=pinned))


@pytest.mark.slow
def test_a_lock_says_what_bazel_needs_and_which_files_pip_takes(
    tmp_path: Path,
    archive: Path,
    obtain_bazel: Callable[[str], Path],
    make_wheel: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheel = make_wheel()
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    digests = {"one": files.sha256(archive), "two": "2" * 64}
    rules = [RULE.format(name=name, sha256=sha256) for name, sha256 in digests.items()]
    recipe = own_recipe(tmp_path, rules, ["@one//one:BUILD"])
    settings = HostFile(
        build_out=tmp_path / "build_out",
        drop=archive.parent,
        bazels={"0.26.1": obtain_bazel("0.26.1")},
    )
    job = RecipeJob.of(str(recipe), settings)
    locked = pinning.write(job, tmp_path / "small.lock")
    needs = {each.names: each.needed for each in locked.archives}
    assert (needs[("one",)], needs[("two",)]) == (True, False)
    (requirement,) = locked.requirements
    assert requirement.hashes == (files.sha256(wheel),)


LOOSE = 'http_archive(name = "{name}", urls = ["{server}{name}.zip"])\n'


@pytest.mark.slow
def test_what_the_target_needs_without_a_checksum_is_named_before_a_build_and_pinned_as_said(
    tmp_path: Path,
    serve: Serve,
    obtain_bazel: Callable[[str], Path],
    listener: Listener,
    notes: list[str],
) -> None:
    served = make_folder(tmp_path / "served")
    names = ("one", "other", "idle")
    for name in names:
        with zipfile.ZipFile(served / f"{name}.zip", "w") as packed:
            packed.writestr("BUILD", f'exports_files(["BUILD"]) # {name}\n')
    server = serve(served)
    rules = [LOOSE.format(name=name, server=server) for name in names]
    recipe = own_recipe(tmp_path, rules, ["@one//:BUILD", "@other//:BUILD"])
    change_text(recipe, 'requirements = ["small==1.0"]\n', "")
    settings = HostFile(build_out=tmp_path / "build_out", bazels={"0.26.1": obtain_bazel("0.26.1")})
    inputs(job := RecipeJob.of(str(recipe), settings))
    # Without a lock only Bazel knows what the target needs: the build stops where Bazel asks.
    with fails(RecipeError, "small", "invoke pin") as stopped:
        engine.build(replace(job, until="compile", offline=True))

    path = tmp_path / "small.lock"
    gone = (served / "other.zip").rename(tmp_path / "other.zip")
    with fails(HostError, "other.zip"):
        pinning.write(job, path)
    # What Bazel made before it failed is there for the next time, which names it all the same.
    assert (job.places.asked / "external/one").is_dir()
    gone.rename(served / "other.zip")
    gone = (served / "one.zip").rename(tmp_path / "one.zip")
    locked = pinning.write(job, path)
    gone.rename(served / "one.zip")
    needs = {entry.name: entry.needed for entry in locked.unlockable}
    assert needs == {"one": True, "other": True, "idle": False}
    assert not job.places.asked.exists()
    with fails(RecipeError, "one, other") as told:
        inputs(RecipeJob.of(str(recipe), settings))
    lines = list(told.value.evidence.lines)
    assert lines[0] == "WORKSPACE:2: one: http_archive names no sha256"
    assert told.value.remedy.startswith(stopped.value.remedy)
    # The old lock file does not fit what the recipe pins from now on.
    assert told.value.remedy.endswith(f"'invoke lock --recipe {recipe}'.")

    # The remedy, followed to the letter.
    tables = [line for line in lines if not line.startswith("WORKSPACE:")]
    recipe.write_text("\n".join([recipe.read_text("utf-8"), *tables, ""]), "utf-8")
    checksums.pin(recipe, settings, listener)
    again = RecipeJob.of(str(recipe), settings)
    locked = pinning.write(again, path)
    # Bazel declares archives of its own.
    own = [entry for entry in locked.archives if not entry.of_bazel]
    assert {entry.names[0]: entry.needed for entry in own} == {"one": True, "other": True}
    assert not locked.substitutes
    assert [entry.name for entry in locked.unlockable] == ["idle"]
    offline = replace(RecipeJob.of(str(recipe), settings), until="compile", offline=True)
    (served / "one.zip").unlink()
    assert Built in engine.build(offline)
    assert not any("Not the pinned bytes" in note for note in notes)
