"""Where a recipe is ported to: the commit behind a name, and the keys that follow from it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.build import verified
from tfwright.documents.recipe import NAMED_SINCE, SEPARATE_NCCL, Recipe
from tfwright.documents.release import NO_RELEASE, ExactRelease, Release, is_version
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline.job import BuildRequest
from tfwright.rules import tree_version
from tfwright.tools import files, toml_editing
from tfwright.tools.git.remote import Remote, named_commit

HEAD = "# Ported to {to}; 'invoke lint' and the comments below say what is left to decide."


@dataclass(frozen=True)
class SettledKey:
    """A key of the new recipe that follows from the aim, and is worth a look."""

    kind: Literal["source", "tool"]
    name: str
    says: str
    sure: bool = True
    """Whether it needs no change by a person."""


@dataclass(frozen=True)
class Aim:
    """A tag, a branch or a commit of the source's repository."""

    name: str
    commit: str
    branch: str
    release: Release | None
    """The release of the tree; None if nothing says it."""
    version: ExactRelease | None
    """The exact version, where the name says one."""
    recipe: str
    """The name of the new recipe."""


def of(old: BuildRequest, to: str) -> Aim:
    """Return what a name means: ``v1.12.0``, ``r1.12``, ``1.12.0-rc0``, ``master@COMMIT``.

    Raises RecipeError for a commit that is none, SupplyError if the repository lacks the name.
    """
    if old.recipe.source.url.startswith("bundled:"):
        raise RecipeError(
            f"{old.recipe.source.url} comes with tfwright, and has no other release",
            remedy=f"Copy the recipe instead: invoke new --like {old.argument} --name mine",
        )
    name, stated = named_commit(to)
    if not re.fullmatch(r"(?!-)[\w./+-]+", name) or ".." in name:
        raise RecipeError(
            f"{name!r} is not the name of a tag or a branch",
            remedy="Write --to v1.12.0, --to r1.12 or --to v1.12.0@COMMIT.",
        )
    if not stated:
        name, stated = _found(old, name)
    version = ExactRelease.parse(name) if is_version(name) else None
    release = version.line if version else _release_of(old, stated)
    tagged = version is not None and not name.startswith("r")
    branch = f"r{version.line}" if version and tagged else name
    named = _name(old.recipe, name, version)
    return Aim(name, stated, branch, release, version, named)


def _found(old: BuildRequest, name: str) -> tuple[str, str]:
    """Return the name as the repository spells it, and its commit."""
    remote = _remote(old)
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


def _remote(old: BuildRequest) -> Remote:
    source = old.recipe.source
    # git needs a directory to run in, and a recipe that was never built has none.
    old.places.own.mkdir(parents=True, exist_ok=True)
    return Remote(old.places.own, old.host_file.mirror_of(source.url) or source.url)


def _release_of(old: BuildRequest, commit: str) -> Release | None:
    """Read the release off the tree, where the name does not say it: of master, or a fork."""
    places = tuple(tree_version.PLACES)
    texts = _remote(old).texts(commit, places)
    return tree_version.stated(texts)


def _name(old: Recipe, to: str, version: ExactRelease | None) -> str:
    """Return the recipe's name with the new release in the place of the old one."""
    release = old.source.release
    new = to.replace("/", "-")
    if version:
        candidate = f"-{version.candidate}" if version.candidate else ""
        new = f"{version.line}{candidate}"
    # Not 2.1 in 2.10, and only once: the name may hold CUDA's version too.
    pattern = rf"{release.major}\.{release.minor}(-(?:rc|alpha|beta)\d*)?(?!\d)"
    name = re.sub(pattern, new, old.name, count=1)
    return name if name != old.name else f"{old.name}-{new}"


def enter(aim: Aim, old: Recipe, path: Path) -> Iterator[SettledKey]:
    """Write the keys that follow from the aim into the new recipe, and yield what was decided.

    What was verified is left out. The file is edited and not rewritten: the reasons for its pins
    stand in its comments.
    """
    files.write(path, verified.removed_from(path.read_text("utf-8")))
    toml_editing.put_value(path, ("source", "commit"), aim.commit)
    toml_editing.put_value(path, ("source", "branch"), aim.branch)
    changes = [*_version(aim, old, path), *_words(aim, old, path)]
    release = aim.release or old.source.release
    # The recipe would not load, and nothing of it could be judged.
    first, last = SEPARATE_NCCL
    if old.nccl.rebuild and not first <= release <= last:
        toml_editing.without_key(path, ("nccl",))
        says = f"removed; TensorFlow {release} has no separate _nccl_ops.so"
        changes.append(SettledKey("tool", "nccl.rebuild", says))
    if old.package.project_name and release < NAMED_SINCE:
        toml_editing.without_key(path, ("package", "project_name"))
        says = f"removed; build_pip_package of TensorFlow {release} does not take a name"
        changes.append(SettledKey("tool", "package.project_name", says))
    return iter(changes)


def _version(aim: Aim, old: Recipe, path: Path) -> Iterator[SettledKey]:
    """Write or remove ``release`` and ``version``, which must not stay those of the old tree."""
    for key in ("release", "version"):
        toml_editing.without_key(path, ("source", key))
    if old.source.interface == "own":
        return
    version = aim.version
    # A branch such as r1.15.5+nv22.12 says its version itself.
    exact = version and (version.patch or version.candidate) and aim.branch != aim.name
    if version and exact:
        reason = f"the tag {aim.name}"
        toml_editing.put_value(path, ("source", "version"), str(version), reason)
    if version is None:
        release = aim.release or old.source.release
        reason = f"what the tree says; {aim.name} names none"
        toml_editing.put_value(path, ("source", "release"), str(release), reason)
        if aim.release is None:
            says = f"{release}, as before: the name {aim.name} says none, and no file of the tree"
            yield SettledKey("source", "release", says, sure=False)


def _shown(aim: Aim) -> str:
    """Return how the new release is called in prose."""
    version = aim.version
    exact = version and (version.patch or version.candidate)
    return str(version if exact else aim.release or aim.name)


def _words(aim: Aim, old: Recipe, path: Path) -> Iterator[SettledKey]:
    """Put the new release into the summary, and name the comments that speak of the old one."""
    release = old.source.release
    if release == NO_RELEASE:
        return
    # 1.8 and 1.8.0, and not 11.8 or 1.80.
    named = rf"(?<![\d.]){release.major}\.{release.minor}(\.\d+(-rc\d+)?)?(?![\d.]*\d)"
    summary = re.sub(named, _shown(aim), old.summary, count=1)
    if summary != old.summary:
        toml_editing.put_value(path, ("summary",), summary)
    lines = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        _, _, comment = line.partition("#")
        if re.search(rf"(?:^|[^\w.])[rv]?{named}", comment):
            lines.append(str(number))
    if lines:
        says = f"lines {', '.join(lines)} speak of {release}: see that their reasons still hold"
        yield SettledKey("source", "comments", says)
