"""Commands that keep inputs, as a user types them."""

import json
import tarfile
from pathlib import Path

import pytest
from tests.making import Read, make_file
from tests.remedies.following import CommandLine

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError


def test_an_empty_vault_says_what_fills_it(shell: CommandLine, out: Read) -> None:
    shell.succeeds("invoke vault")
    printed = out()
    assert printed == "The vault is empty: 'invoke fetch' fills it.\n"


def test_a_recipe_that_does_not_load_hides_the_vault_from_nobody(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: Read
) -> None:
    (tmp_path / "broken.toml").write_text("summary = 3\n")
    monkeypatch.setattr(recipes, "RECIPES", tmp_path)
    make_file(host_file.read().build_out / "vault/bazel/aa/bazel", "not whole")
    shell.succeeds("invoke vault")
    assert "invoke lint --recipe broken" in out()
    assert shell.status("invoke vault --gc") == RecipeError.exit_status


def test_a_vault_without_leftovers_has_nothing_to_remove(shell: CommandLine, out: Read) -> None:
    shell.succeeds("invoke vault --gc")
    assert out() == ("Everything in the vault is needed by a recipe or a lock.\n")


def test_a_cache_that_no_build_has_used_is_shown_as_empty(shell: CommandLine, out: Read) -> None:
    shell.succeeds("invoke cache --json")
    shown = json.loads(out())
    assert (shown["held"], shown["builds"]) == (0, [])


def test_the_images_of_the_vault_are_listed(shell: CommandLine, tmp_path: Path, out: Read) -> None:
    shell.succeeds("invoke image --json")
    assert json.loads(out()) == []
    (tmp_path / "etc").mkdir()
    with tarfile.open(tmp_path / "rootfs.tar", "w") as archive:
        archive.add(tmp_path / "etc", "etc")
    shell.succeeds(f"invoke image --add {tmp_path}/rootfs.tar --json")
    (added,) = json.loads(out())
    shell.succeeds("invoke image --json")
    assert json.loads(out()) == [added]
