"""The Bazel of a new recipe: one that somebody is known to have built this TensorFlow with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.host import compatibility, versions
from tfwright.rules import tree_bazel


@dataclass(frozen=True)
class ChosenBazel:
    """A version, and why it is this one."""

    version: str
    reason: str


def chosen(
    release: Release, texts: Mapping[str, str], asked: str = ""
) -> ChosenBazel:
    """Return the Bazel for a release, whose tree has these texts.

    A newer Bazel than the tested one may be allowed and still fail, so that the newest is never
    taken. Raises RecipeError if neither the tree nor a table says anything.
    """
    if asked and not re.fullmatch(r"\d+(\.\d+)+(-?rc\d+)?", asked):
        raise RecipeError(
            f"--bazel {asked!r} is not a version of Bazel",
            remedy="Write it as --bazel 3.1.0.",
        )
    if asked:
        return ChosenBazel(asked, "what was asked for")
    tree = tree_bazel.stated(texts)
    if tree and tree.exact:
        return ChosenBazel(tree.exact, f"what {tree.file} of this commit says")
    known = compatibility.bazel(release)
    limits = (known.least, known.most) if known else ("", "")
    allowed = f"./configure takes {known}" if known else ""
    source = known.source if known else ""
    # The tree decides about the pinned commit; the table is about the release.
    if tree:
        limits = tree.least, tree.most
        span = (
            f"{tree.least} to {tree.most}"
            if tree.most
            else f"{tree.least} or later"
        )
        allowed, source = f"{tree.file} of this commit takes {span}", ""
    tested = compatibility.tested_bazel(release)
    if tested and versions.within(tested.version, *limits):
        parts = [f"TensorFlow {release} was tested with it", allowed]
        return ChosenBazel(
            tested.version, f"{'; '.join(filter(None, parts))}: {tested.source}"
        )
    if limits[0]:
        reason = f"the oldest that is allowed, since newer ones are untested; {allowed}"
        return ChosenBazel(limits[0], f"{reason}: {source}" if source else reason)
    raise RecipeError(
        f"Neither the tree nor a table says which Bazel TensorFlow {release} needs",
        remedy="Look into .bazelversion of the tree, and add --bazel VERSION.",
    )
