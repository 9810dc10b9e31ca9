"""The Bazel of a new recipe: one that somebody is known to have built this TensorFlow with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_within
from tfwright.rules import tree_files


@dataclass(frozen=True)
class ChosenBazel:
    """A version, and why it is this one."""

    version: str
    reason: str


@dataclass(frozen=True)
class AllowedBazel:
    """The oldest and the newest Bazel that are allowed; an empty one sets no limit."""

    least: str = ""
    most: str = ""
    says: str = ""
    """What allows them; empty if nothing is known."""
    source: str = ""


def chosen(release: Release, texts: Mapping[str, str], asked: str = "") -> ChosenBazel:
    """Return the Bazel for a release, whose tree has these texts.

    A newer Bazel than the tested one may be allowed and still fail, so that the newest is never
    taken. Raises RecipeError if neither the tree nor a table says anything.
    """
    if asked and not re.fullmatch(r"\d+(\.\d+)+(-?rc\d+)?", asked):
        raise RecipeError(
            f"--bazel {asked!r} is not a version of Bazel", remedy="Write it as --bazel 3.1.0."
        )
    if asked:
        return ChosenBazel(asked, "what was asked for")
    tree = tree_files.bazel_of(texts)
    if tree and tree.exact:
        return ChosenBazel(tree.exact, f"what {tree.file} of this commit says")
    limits = allowed(release, tree)
    tested = compatibility.tested_bazel(release)
    if tested and is_within(tested.version, limits.least, limits.most):
        parts = [f"TensorFlow {release} was tested with it", limits.says]
        return ChosenBazel(tested.version, f"{'; '.join(filter(None, parts))}: {tested.source}")
    if limits.least:
        reason = f"the oldest that is allowed, since newer ones are untested; {limits.says}"
        if limits.source:
            reason += f": {limits.source}"
        return ChosenBazel(limits.least, reason)
    raise RecipeError(
        f"Neither the tree nor a table says which Bazel TensorFlow {release} needs",
        remedy="Look into .bazelversion of the tree, and add --bazel VERSION.",
    )


def allowed(release: Release, tree: tree_files.TreeBazel | None) -> AllowedBazel:
    """Return the Bazels that a tree allows; those of its release where it names none or just one.

    The tree decides about the pinned commit; the table is about the release.
    """
    if tree and not tree.exact:
        end = f"to {tree.most}" if tree.most else "or later"
        says = f"{tree.file} of this commit takes {tree.least} {end}"
        return AllowedBazel(tree.least, tree.most, says)
    if known := compatibility.bazel(release):
        says = f"./configure takes {known}"
        return AllowedBazel(known.least, known.most, says, known.source)
    return AllowedBazel()
