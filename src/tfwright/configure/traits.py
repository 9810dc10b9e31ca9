"""What one ./configure writes and another does not, by version or by reading the script itself."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tfwright.documents.names import Line
from tfwright.documents.release import ExactRelease
from tfwright.documents.toml import Table, load

FILE = Path(__file__).with_name("traits.toml")
SCRIPT = "configure.py"
"""Where signs are looked for; releases up to 1.3 have a script in bash instead."""

Scripts = Mapping[str, str]
"""Texts of the tree's files that have signs, by path; empty until the tree is there."""
OWN_FUNCTION = "def write_to_bazelrc("
"""In TensorFlow's own script of every release that has signs, and of its forks."""


def are_of_tensorflow(scripts: Scripts) -> bool:
    """Say whether signs can be looked for; a script of other authors has none."""
    return OWN_FUNCTION in scripts.get(SCRIPT, "")


def scripts_in(tree: Path) -> Scripts:
    """Return the files of a tree that show what its ./configure asks and writes."""
    # By name only: what a script of the tree says is read, and nothing of it runs.
    found = {name: tree / name for name in files_with_signs()}
    return {
        name: path.read_text("utf-8", "replace")
        for name, path in found.items()
        if path.is_file() and not path.is_symlink()
    }


class Trait(Table):
    """One difference, in one range of versions."""

    name: Line
    since: Line = "0.0"
    until: Line = "99.0"
    fork: Line = ""
    """How the fork of such a version begins; empty for upstream's and all forks'."""
    holds: bool = True
    sign: str = ""
    """Regular expression that only a script with this trait contains."""
    file: Line = SCRIPT

    def covers(self, version: ExactRelease) -> bool:
        """Say whether a version lies in this range."""
        if not version.is_within(self.since, self.until):
            return False
        family = re.match(r"[a-z]*", self.fork)
        # Branches of a fork are dated, so their names sort by age: nv21.04 < nv22.12.
        return not family or (version.fork.startswith(family[0]) and version.fork >= self.fork)


class TraitTable(Table):
    """The document."""

    trait: tuple[Trait, ...]


@lru_cache
def all_traits() -> tuple[Trait, ...]:
    """Return all entries of the table."""
    return load(FILE, TraitTable).trait


def files_with_signs() -> tuple[str, ...]:
    """Return the paths, in a tree, of the files that hold signs."""
    return tuple(dict.fromkeys(trait.file for trait in all_traits()))


def traits_of(version: ExactRelease, scripts: Scripts) -> dict[str, bool]:
    """Return every trait's name, and whether this ./configure has it.

    What its script shows counts more than its version: a commit between two releases, or a patch of
    the recipe, may have changed the script.
    """
    traits = dict[str, bool]()
    for trait in all_traits():
        # The entries of a trait are read in order, so a narrow range comes after the wide one.
        traits.setdefault(trait.name, False)
        if trait.covers(version):
            traits[trait.name] = trait.holds
    for trait in all_traits() if are_of_tensorflow(scripts) else ():
        if trait.sign and trait.file in scripts:
            found = re.search(trait.sign, scripts[trait.file], re.MULTILINE)
            traits[trait.name] = found is not None
    return traits
