"""`invoke vault --verify`: whether all that is kept for later builds still is what it was."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.errors import SupplyError, TfwrightError, invoke
from tfwright.tools import files
from tfwright.tools.git import mirror as mirrors
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.python import venv
from tfwright.vault import usage
from tfwright.vault.usage import VENV, Damage, VaultEntry


def verify(build_out: Path, others: Iterable[Damage] = (), *, repair: bool) -> list[VaultEntry]:
    """Read everything that is kept, git mirrors included; return the vault's entries.

    `others` are damages that other subjects found. Raises SupplyError naming what is damaged; with
    `repair` what can be fetched again was removed.
    """
    inventory = usage.overview(build_out)
    # Leftovers have nothing to verify; `invoke vault --gc` removes them.
    entries = [entry for entry in inventory.entries if entry.file or entry.kind == VENV]
    found = [*find_damages(build_out, entries), *others]
    if not found:
        return entries
    removed = [damage for damage in found if repair and damage.removable]
    usage.remove_entries(build_out, removed)
    paths = {damage.path for damage in found}
    users = {user for entry in entries if entry.path in paths for user in inventory.users(entry)}
    for recipe in recipes.readable_recipes():
        if mirrors.path_of(build_out / "git", recipe.source.url) in paths:
            users.add(recipe.name)
    # Say which commands restore the inputs, which `users` need.
    steps = []
    if any(damage.removable for damage in found):
        first = "" if repair else "'invoke vault --verify --repair' to remove them, then "
        named = f": --recipe {', --recipe '.join(sorted(users))}" if users else ""
        steps.append(f"Run {first}'invoke fetch' for the recipes that need them{named}.")
    # A toolkit is not removed: it is large, and a person accepted its licence.
    if not all(damage.removable for damage in found):
        steps.append(f"Install the toolkit again with '{invoke('toolkit')}'.")
    raise SupplyError(
        f"Inputs kept here: {len(found)} damaged, {len(removed)} removed",
        remedy=" ".join(steps),
        lines=[f"{damage.path}: {damage.why}" for damage in found],
    )


def find_damages(build_out: Path, entries: Iterable[VaultEntry]) -> Iterator[Damage]:
    """Yield what is damaged of the vault's entries and the git mirrors."""
    for entry in entries:
        path, file = entry.path, entry.file
        # An archive, a package and a Bazel lie in a directory named after their checksum.
        if file and files.sha256(file) != path.name:
            yield Damage(path, "its checksum is not the one that it is kept under")
        elif entry.kind == VENV and venv.was_changed(path):
            yield Damage(path, "a file of the venv is not as it was made")
    for mirror in sorted((build_out / "git").glob("*.git")):
        if why := _mirror_damage(mirror):
            yield Damage(mirror, why)


def _mirror_damage(mirror: Path) -> str:
    """Let git read every pack: a changed byte changes the pack's checksum."""
    packs = sorted(mirror.glob("objects/pack/*.idx"))
    try:
        # verify-pack reads packs only: a damaged config, HEAD, ref or list of shallow commits
        # shows in these two.
        repository = GitRepository(mirror)
        repository.run("config", "--local", "--get", "core.bare")
        repository.run("rev-list", "--all", "--count")
        if packs:
            repository.run("verify-pack", "--", *map(str, packs))
        # It does not read the objects that are files of their own.
        if damaged := sorted(name for name, sound in repository.loose_objects() if not sound):
            return f"object {damaged[0]} does not have the bytes of its id"
    except TfwrightError as fault:
        return fault.what
    return ""
