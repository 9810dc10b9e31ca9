"""The release that a recipe is ported to: the commit behind a name, and the keys that follow."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.build import verified
from tfwright.documents.recipe import NAMED_SINCE, SEPARATE_NCCL, Recipe
from tfwright.documents.release import NO_RELEASE, ExactRelease, Release, is_version
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline.job import RecipeJob
from tfwright.rules import tree_files
from tfwright.tools import files, toml_editing
from tfwright.tools.git.remote import Remote, named_commit

HEAD = "# Ported from {old} to {to}. Not built yet."


Kind = Literal[
    "source", "exclude", "patch", "substitute", "answer", "archive", "tool", "requirement", "test"
]
State = Literal["fits", "look", "change"]
"""``look``: a person should compare. ``change``: the new recipe cannot stay as it is."""


@dataclass(frozen=True)
class PortedPin:
    """One thing that the old recipe pins, in the new release."""

    kind: Kind
    name: str
    state: State
    says: str


@dataclass(frozen=True)
class PortTarget:
    """A tag, a branch or a commit of the source's repository."""

    name: str
    commit: str
    branch: str
    release: Release | None
    """The release of the tree; None if nothing says it."""
    version: ExactRelease | None
    """The exact version, where the name says one."""

    @property
    def exact(self) -> ExactRelease | None:
        """The version, if it is that of a patch level or a candidate and not of a branch."""
        version = self.version
        return version if version and (version.patch or version.candidate) else None

    def recipe_name(self, old: Recipe) -> str:
        """Return the old recipe's name with the new release in the place of the old one."""
        release = old.source.release
        new = _name_part(self.name)
        if self.version:
            candidate = f"-{self.version.candidate}" if self.version.candidate else ""
            new = f"{self.version.line}{candidate}"
            # Of another tag of the same release, what tells the two apart.
            if self.version.line == release:
                old_tag, tag = old.source.exact.fork, self.version.fork
                if old_tag and old_tag in old.name and tag:
                    return old.name.replace(old_tag, tag)
                return f"{old.name}-{tag or _name_part(self.name)}"
        # Not 2.1 in 2.10, and only once: the name may hold CUDA's version too.
        pattern = rf"{release.major}\.{release.minor}(-(?:rc|alpha|beta)\d*)?(?!\d)"
        name = re.sub(pattern, new, old.name, count=1)
        return name if name != old.name else f"{old.name}-{new}"


def _name_part(name: str) -> str:
    """Return a tag or branch as a part of a recipe's name, which has the r already: ``1.8.1``."""
    return re.sub(r"^[rv](?=\d)", "", name.replace("/", "-"))


def find_target(old: RecipeJob, to: str) -> PortTarget:
    """Return what a name means: ``v1.12.0``, ``r1.12``, ``1.12.0-rc0``, ``master@COMMIT``.

    Raises RecipeError for a commit that is none, SupplyError if the repository lacks the name.
    """
    source = old.recipe.source
    if source.bundled:
        raise RecipeError(
            f"{source.url} comes with tfwright, and has no other release",
            remedy=f"Copy the recipe instead: invoke new --like {old.argument} --name NAME",
        )
    name, commit = named_commit(to)
    if not re.fullmatch(r"(?!-)[\w./+-]+", name) or ".." in name:
        raise RecipeError(
            f"{name!r} is not the name of a tag or a branch",
            remedy="Write --to v1.12.0, --to r1.12 or --to v1.12.0@COMMIT.",
        )
    # git needs a directory to run in, and a recipe that was never built has none.
    old.places.own.mkdir(parents=True, exist_ok=True)
    remote = Remote(old.places.own, old.host_file.mirror_of(source.url) or source.url)
    if not commit:
        name, commit = _find_commit(remote, name)
    texts = remote.texts(commit, tuple(tree_files.RELEASES))
    if not is_version(name):
        # The tree says the release where the name does not: of master, or a fork.
        return PortTarget(name, commit, name, tree_files.release_of(texts), None)
    version = ExactRelease.parse(name)
    if source.interface == "tensorflow":
        tree_files.check_named_release(texts, version, commit, remote, "--to")
    branch = name if name.startswith("r") else f"r{version.line}"
    return PortTarget(name, commit, branch, version.line, version)


def _find_commit(remote: Remote, name: str) -> tuple[str, str]:
    """Return the name as the repository spells it, and its commit."""
    try:
        return name, remote.commit_of(name)
    except SupplyError:
        if not is_version(name):
            raise
        version = ExactRelease.parse(name)
    if version.patch or version.candidate or name.count(".") > 1:
        return remote.release_of(version)
    branch = f"r{version.line}"
    return branch, remote.commit_of(branch)


def write_keys(target: PortTarget, old: Recipe, path: Path) -> Iterator[PortedPin]:
    """Write the keys that follow from the target into the new recipe, and yield what was decided.

    What was verified is left out. The file is edited and not rewritten: the reasons for its pins
    stand in its comments.
    """
    release = target.release or old.source.release
    files.write(path, verified.without_verified(path.read_text("utf-8")))
    toml_editing.put(path, ("source", "commit"), target.commit)
    toml_editing.put(path, ("source", "branch"), target.branch)
    # These must not stay those of the old tree.
    for key in ("release", "version"):
        toml_editing.remove_key(path, ("source", key))
    if not old.source.own_interface:
        # A branch such as r1.15.5+nv22.12 says its version itself.
        if target.exact and target.branch != target.name:
            reason = f"the tag {target.name}"
            toml_editing.put(path, ("source", "version"), str(target.exact), reason)
        if target.version is None:
            reason = f"what the tree says; {target.name} names none"
            toml_editing.put(path, ("source", "release"), str(release), reason)
        if target.release is None:
            says = (
                f"{release}, as before: the name {target.name} says none, and no file of the tree"
            )
            yield PortedPin("source", "release", "change", says)
    yield from _update_prose(target, old, path)
    # The recipe would not load, and nothing of it could be judged.
    first, last = SEPARATE_NCCL
    if old.nccl.rebuild and not first <= release <= last:
        toml_editing.remove_key(path, ("nccl",))
        says = f"removed; TensorFlow {release} has no separate _nccl_ops.so"
        yield PortedPin("tool", "nccl.rebuild", "look", says)
    if old.package.project_name and release < NAMED_SINCE:
        toml_editing.remove_key(path, ("package", "project_name"))
        says = f"removed; build_pip_package of TensorFlow {release} does not take a name"
        yield PortedPin("tool", "package.project_name", "look", says)


def _update_prose(target: PortTarget, old: Recipe, path: Path) -> Iterator[PortedPin]:
    """Put the new release into the summary, and name the comments that speak of the old one."""
    release = old.source.release
    if release == NO_RELEASE:
        return
    # 1.8 and 1.8.0, and not 11.8 or 1.80.
    named = rf"(?<![\d.]){release.major}\.{release.minor}(\.\d+(-rc\d+)?)?(?![\d.]*\d)"
    shown = str(target.exact or target.release or target.name)
    tag, old_tag = target.version.fork if target.version else "", old.source.exact.fork
    before = old.summary
    if tag and old_tag and old_tag.lstrip("nv") in old.summary:
        # "1.15.5 (22.12)" has the fork's tag by itself.
        shown = shown.partition("+")[0]
        before = before.replace(old_tag.lstrip("nv"), tag.lstrip("nv"))
    summary = re.sub(named, shown, before, count=1)
    if summary != old.summary:
        toml_editing.put(path, ("summary",), summary)
    spoken = str(release)
    if target.release == release:
        # Comments about the release hold; those about the old tag may not.
        spoken = old_tag.lstrip("nv") or str(old.source.exact)
        named = re.escape(spoken)
    own = HEAD.format(old=old.name, to=target.name)
    lines = [
        str(number)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if line != own and re.search(rf"(?:^|[^\w.])[rv]?{named}", line.partition("#")[2])
    ]
    if lines:
        says = f"lines {', '.join(lines)} speak of {spoken}: see that their reasons still hold"
        yield PortedPin("source", "comments", "look", says)
