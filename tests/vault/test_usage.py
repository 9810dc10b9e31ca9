"""Care of a vault made of real small files: what is needed, and what is removed."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.making import make_file, make_folder

from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazel
from tfwright.tools.process import file_lock
from tfwright.tools.python import packages
from tfwright.vault import usage
from tfwright.vault.store import Store
from tfwright.vault.usage import Inventory

OLD = 10**9
ENTRY = '[[archives]]\nsha256 = "{sha256}"\n'


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def aged(file: Path) -> Path:
    for path in (file, file.parent):
        os.utime(path, (OLD, OLD))
    return file


@dataclass
class Vault:
    """A vault, and a recipe whose lock needs one archive."""

    build_out: Path
    locked: Recipe

    def archive(self, content: str) -> Path:
        """Put an archive into the vault long ago."""
        store = Store(self.build_out / "vault/repository_cache")
        with store.admitting(sha256(content), "a test") as path:
            path.write_text(content, "utf-8")
        return aged(store.path(sha256(content)))

    def look(self, *others: Recipe) -> Inventory:
        return usage.take_inventory(self.build_out, [self.locked, *others])

    def taken(self, *others: Recipe) -> list[str]:
        """Collect what neither the recipe nor others need; return its names."""
        return [thing.name for thing in usage.remove_unused(self.build_out, (self.locked, *others))]


@pytest.fixture
def vault(recipe_file: Path, tmp_path: Path) -> Vault:
    recipe = recipes.read(str(recipe_file))
    needed = ENTRY.format(sha256=sha256("needed"))
    make_file(recipe_file.with_suffix(".lock"), f'commit = "{recipe.source.commit}"\n{needed}')
    return Vault(tmp_path / "build_out", recipe)


def test_what_a_lock_needs_stays_and_what_nobody_needs_goes(vault: Vault) -> None:
    needed, idle = vault.archive("needed"), vault.archive("idle")
    assert vault.taken() == [sha256("idle")]
    assert needed.is_file()
    assert not idle.parent.exists()


def test_looking_takes_nothing(vault: Vault) -> None:
    idle = vault.archive("idle")
    assert [thing.name for thing in vault.look().unused] == [sha256("idle")]
    assert idle.is_file()


def test_as_long_as_the_archives_of_one_recipe_are_unknown_no_archive_goes(
    vault: Vault, tmp_path: Path
) -> None:
    text = (tmp_path / "small.toml").read_text("utf-8").replace("for tests", "without a lock")
    unlocked = recipes.read(str(make_file(tmp_path / "other.toml", text)))
    idle = vault.archive("idle")
    seen = vault.look(unlocked)
    assert (seen.unknown, [thing.file for thing in seen.undecided]) == (["other"], [idle])
    assert vault.taken(unlocked) == []


def test_a_lock_of_another_commit_does_not_tell_what_the_recipe_needs_now(vault: Vault) -> None:
    moved = vault.locked.changed(source=vault.locked.source.changed(commit="f" * 40))
    assert usage.take_inventory(vault.build_out, [moved]).unknown == ["small"]


def test_what_was_built_of_a_recipe_elsewhere_counts(vault: Vault) -> None:
    vault.archive("of a stranger")
    files.write(
        vault.build_out / "stranger/stamps/fetch.json", f'{{"sha256": "{sha256("of a stranger")}"}}'
    )
    assert vault.taken() == []


def test_what_is_new_stays_for_it_may_be_on_its_way_to_somebody(vault: Vault) -> None:
    os.utime(vault.archive("idle"))
    assert vault.taken() == []


def test_while_a_build_runs_nothing_goes(vault: Vault) -> None:
    idle = vault.archive("idle")
    with (
        file_lock.locked(vault.build_out / "small/lock", "invoke build"),
        pytest.raises(HostError, match="has to wait for process"),
    ):
        vault.taken()
    assert idle.is_file()


def test_what_bazel_downloaded_by_itself_stays(vault: Vault) -> None:
    vault.archive("by Bazel").chmod(0o644)
    assert vault.taken() == []


def test_an_unfinished_download_goes_with_the_need_for_it(vault: Vault) -> None:
    for content in ("needed", "idle"):
        file = vault.archive(content)
        aged(file.rename(file.with_name("partial")))
    assert vault.taken() == [sha256("idle")]


def test_a_bazel_that_a_recipe_pins_stays_and_another_goes(vault: Vault, tmp_path: Path) -> None:
    for version in ("0.26.1", "0.14.0"):
        (tmp_path / version).write_text(version, "utf-8")
        binary = bazel.add_to_store(
            tmp_path / version, version, "linux-x86_64", vault.build_out / "vault", "a test"
        ).path
        aged(binary.with_name("about.json"))
        aged(binary)
    assert vault.taken() == ["0.14.0 for linux-x86_64"]


def test_what_a_bundle_brought_stays_with_its_recipe_alone(vault: Vault, tmp_path: Path) -> None:
    brought = {}
    for owner in ("small", "stranger"):
        (tmp_path / "bazel").write_text(owner, "utf-8")
        store = vault.build_out / "vault/bundles" / owner
        made = bazel.add_to_store(tmp_path / "bazel", "0.26.1", "linux-x86_64", store, "a test")
        aged(made.path.with_name("about.json"))
        brought[owner] = aged(made.path)
    assert vault.taken() == ["0.26.1 for linux-x86_64"]
    assert brought["small"].is_file()
    assert not brought["stranger"].exists()


@pytest.mark.parametrize("store", ["vault", "vault/bundles/small"])
def test_half_a_bazel_is_a_leftover(vault: Vault, store: str) -> None:
    half = make_folder(vault.build_out / store / "bazel/0123")
    (half / "about.json").write_text("{}", "utf-8")
    aged(half / "about.json")
    assert vault.taken() == ["0123"]


def test_a_package_that_a_recipe_pins_stays_and_pip_is_shown_no_other(
    vault: Vault, tmp_path: Path
) -> None:
    pins = ("Keras_Preprocessing==1.0.5", "six==1.11.0")
    vault.locked = vault.locked.changed(host=vault.locked.host.changed(requirements=pins))
    for name in (
        "keras_preprocessing-1.0.5-py2.py3-none-any.whl",
        "six-1.11.0.tar.gz",
        "six-1.16.0-py3-none-any.whl",
    ):
        (tmp_path / name).write_text(name, "utf-8")
        packages.store_files({tmp_path / name: (name, sha256(name))}, vault.build_out / "vault")
        aged(packages.package_folder(vault.build_out / "vault") / sha256(name) / name)
    assert vault.taken() == ["six-1.16.0-py3-none-any.whl"]
    assert "six-1.16.0" not in (
        packages.package_folder(vault.build_out / "vault") / packages.PAGE
    ).read_text("utf-8")


def test_recipes_that_need_the_same_thing_share_it(vault: Vault) -> None:
    vault.archive("needed")
    files.write(vault.build_out / "stranger/bundle.json", sha256("needed"))
    seen = vault.look()
    assert seen.users(seen.entries[0]) == ["small", "stranger"]


def test_a_vault_that_is_not_there_is_empty(vault: Vault) -> None:
    assert usage.take_inventory(vault.build_out, []) == Inventory((), ())


@pytest.mark.parametrize("name", ["stamps/fetch.json", "bundle.json"])
def test_a_named_pipe_among_the_records_is_an_error_and_no_wait(vault: Vault, name: str) -> None:
    place = vault.build_out / vault.locked.name / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    with pytest.raises(OSError, match="named pipe"):
        vault.taken()


def test_packages_of_toolkits_are_counted_and_never_taken(vault: Vault) -> None:
    store = Store(vault.build_out / "vault/toolkit")
    with store.admitting(sha256("cuda"), "a test") as path:
        path.write_text("cuda", "utf-8")
    aged(store.path(sha256("cuda")))
    (entry,) = usage.take_inventory(vault.build_out, ()).entries
    assert (entry.kind, entry.size) == (usage.TOOLKIT, 4)
    assert vault.taken() == []
