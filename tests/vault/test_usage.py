"""Care of a vault made of real small files: what is needed, damaged and removed."""

import hashlib
import os
from pathlib import Path

import pytest
from tests.making import make_file, make_folder

from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazel
from tfwright.tools.process import file_lock
from tfwright.tools.python import packages
from tfwright.vault import usage, verification
from tfwright.vault.store import Store
from tfwright.vault.usage import Inventory

OLD = 10**9
ENTRY = '[[archives]]\nsha256 = "{sha256}"\n'


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def archive(build_out: Path, content: str) -> Path:
    """Put an archive into the vault long ago."""
    store = Store(build_out / "vault/repository_cache")
    with store.admitting(sha256(content), "a test") as path:
        path.write_text(content, "utf-8")
    return aged(store.path(sha256(content)))


def aged(file: Path) -> Path:
    for path in (file, file.parent):
        os.utime(path, (OLD, OLD))
    return file


@pytest.fixture
def build_out(tmp_path: Path) -> Path:
    return tmp_path / "build_out"


@pytest.fixture
def locked(recipe: Recipe, recipe_file: Path) -> tuple[Recipe, Path]:
    """Return a recipe whose lock needs one archive."""
    recipe_file.with_suffix(".lock").write_text(
        f'commit = "{recipe.source.commit}"\n{ENTRY.format(sha256=sha256("needed"))}', "utf-8"
    )
    return recipe, recipe_file


def taken(build_out: Path, *recipes: tuple[Recipe, Path]) -> list[str]:
    heard: list[str] = []
    usage.collect(build_out, recipes, lambda things: heard.extend(thing.name for thing in things))
    return heard


def test_what_a_lock_needs_stays_and_what_nobody_needs_goes(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    needed, idle = archive(build_out, "needed"), archive(build_out, "idle")
    assert taken(build_out, locked) == [sha256("idle")]
    assert needed.is_file()
    assert not idle.parent.exists()


def test_looking_takes_nothing(build_out: Path, locked: tuple[Recipe, Path]) -> None:
    idle = archive(build_out, "idle")
    assert [thing.name for thing in usage.look(build_out, [locked]).garbage] == [sha256("idle")]
    assert idle.is_file()


def test_as_long_as_the_archives_of_one_recipe_are_unknown_no_archive_goes(
    build_out: Path, locked: tuple[Recipe, Path], tmp_path: Path
) -> None:
    other = make_file(tmp_path / "other.toml", "another recipe")
    idle, unlocked = (archive(build_out, "idle"), locked[0].changed(name="other"))
    seen = usage.look(build_out, [locked, (unlocked, other)])
    assert (seen.unknown, [thing.file for thing in seen.undecided]) == (["other"], [idle])
    assert taken(build_out, locked, (unlocked, other)) == []


def test_a_lock_of_another_commit_does_not_tell_what_the_recipe_needs_now(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    recipe, path = locked
    moved = recipe.changed(source=recipe.source.changed(commit="f" * 40))
    assert usage.look(build_out, [(moved, path)]).unknown == ["small"]


def test_what_was_built_of_a_recipe_elsewhere_counts(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    archive(build_out, "of a stranger")
    files.write(
        build_out / "stranger/stamps/fetch.json", f'{{"sha256": "{sha256("of a stranger")}"}}'
    )
    assert taken(build_out, locked) == []


def test_what_is_new_stays_for_it_may_be_on_its_way_to_somebody(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    os.utime(archive(build_out, "idle"))
    assert taken(build_out, locked) == []


def test_while_a_build_runs_nothing_goes(build_out: Path, locked: tuple[Recipe, Path]) -> None:
    idle = archive(build_out, "idle")
    with (
        file_lock.held(build_out / "small/lock", "invoke build"),
        pytest.raises(HostError, match="has to wait for process"),
    ):
        taken(build_out, locked)
    assert idle.is_file()


def test_what_bazel_downloaded_by_itself_stays(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    archive(build_out, "by Bazel").chmod(0o644)
    assert taken(build_out, locked) == []


def test_an_unfinished_download_goes_with_the_need_for_it(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    for content in ("needed", "idle"):
        file = archive(build_out, content)
        aged(file.rename(file.with_name("partial")))
    assert taken(build_out, locked) == [sha256("idle")]


def test_a_bazel_that_a_recipe_pins_stays_and_another_goes(
    build_out: Path, locked: tuple[Recipe, Path], tmp_path: Path
) -> None:
    for version in ("0.26.1", "0.14.0"):
        (tmp_path / version).write_text(version, "utf-8")
        binary = bazel.put(
            tmp_path / version, version, "linux-x86_64", build_out / "vault", "a test"
        ).path
        aged(binary.with_name("about.json"))
        aged(binary)
    assert taken(build_out, locked) == ["0.14.0 for linux-x86_64"]


def test_what_a_bundle_brought_stays_with_its_recipe_alone(
    build_out: Path, locked: tuple[Recipe, Path], tmp_path: Path
) -> None:
    brought = {}
    for owner in ("small", "stranger"):
        (tmp_path / "bazel").write_text(owner, "utf-8")
        store = build_out / "vault/bundles" / owner
        made = bazel.put(tmp_path / "bazel", "0.26.1", "linux-x86_64", store, "a test")
        aged(made.path.with_name("about.json"))
        brought[owner] = aged(made.path)
    assert taken(build_out, locked) == ["0.26.1 for linux-x86_64"]
    assert brought["small"].is_file()
    assert not brought["stranger"].exists()


@pytest.mark.parametrize("store", ["vault", "vault/bundles/small"])
def test_half_a_bazel_is_a_leftover(
    build_out: Path, locked: tuple[Recipe, Path], store: str
) -> None:
    half = make_folder(build_out / store / "bazel/0123")
    (half / "about.json").write_text("{}", "utf-8")
    aged(half / "about.json")
    assert taken(build_out, locked) == ["0123"]


def test_a_package_that_a_recipe_pins_stays_and_pip_is_shown_no_other(
    build_out: Path, locked: tuple[Recipe, Path], tmp_path: Path
) -> None:
    recipe, path = locked
    pinned = recipe.changed(
        host=recipe.host.changed(requirements=("Keras_Preprocessing==1.0.5", "six==1.11.0"))
    )
    for name in (
        "keras_preprocessing-1.0.5-py2.py3-none-any.whl",
        "six-1.11.0.tar.gz",
        "six-1.16.0-py3-none-any.whl",
    ):
        (tmp_path / name).write_text(name, "utf-8")
        packages.keep({tmp_path / name: (name, sha256(name))}, build_out / "vault")
        aged(packages.shelf(build_out / "vault") / sha256(name) / name)
    assert taken(build_out, (pinned, path)) == ["six-1.16.0-py3-none-any.whl"]
    assert "six-1.16.0" not in (packages.shelf(build_out / "vault") / packages.PAGE).read_text(
        "utf-8"
    )


def test_a_file_that_is_no_longer_what_it_was_is_found(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    archive(build_out, "needed")
    file = archive(build_out, "also")
    file.chmod(0o644)
    file.write_text("damaged", "utf-8")
    entries = usage.look(build_out, [locked]).entries
    found = list(verification.damages(build_out, entries))
    assert [damage.path.name for damage in found] == [sha256("also")]


def test_recipes_that_need_the_same_thing_share_it(
    build_out: Path, locked: tuple[Recipe, Path]
) -> None:
    archive(build_out, "needed")
    files.write(build_out / "stranger/bundle.json", sha256("needed"))
    seen = usage.look(build_out, [locked])
    assert seen.users(seen.entries[0]) == ["small", "stranger"]


def test_a_vault_that_is_not_there_is_empty(build_out: Path) -> None:
    assert usage.look(build_out, []) == Inventory((), ())


@pytest.mark.parametrize("name", ["stamps/fetch.json", "bundle.json"])
def test_a_named_pipe_among_the_records_is_an_error_and_no_wait(
    build_out: Path, locked: tuple[Recipe, Path], name: str
) -> None:
    place = build_out / locked[0].name / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    with pytest.raises(OSError, match="named pipe"):
        taken(build_out, locked)


def test_packages_of_toolkits_are_counted_and_never_taken(build_out: Path) -> None:
    store = Store(build_out / "vault/toolkit")
    with store.admitting(sha256("cuda"), "a test") as path:
        path.write_text("cuda", "utf-8")
    aged(store.path(sha256("cuda")))
    (entry,) = usage.look(build_out, ()).entries
    assert (entry.kind, entry.size) == (usage.TOOLKIT, 4)
    assert taken(build_out) == []
