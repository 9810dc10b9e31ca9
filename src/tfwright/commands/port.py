"""`invoke port`: a recipe carried to another release, and what that takes.

The new file is the old one with the new commit, without [verified]. The report says of everything
that the old recipe pins whether it still fits: patches, substitutes, answers, Bazel and Python.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright.configure import expected, validation
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, TfwrightError
from tfwright.host import compatibility
from tfwright.pipeline import external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import BuildRequest
from tfwright.rules.model import Rules
from tfwright.tools import files, git
from tfwright.tools.git import mirror, patching, remote
from tfwright.tools.git.mirror import Pin

Kind = Literal["patch", "substitute", "answer", "archive", "tool", "requirement"]
State = Literal["fits", "look", "change"]
"""``look``: a person should compare. ``change``: the new recipe cannot stay as it is."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True)
class PortedPin:
    """One thing that the old recipe pins, in the new release."""

    kind: Kind
    name: str
    state: State
    says: str


@dataclass(frozen=True)
class Port:
    """A recipe that was carried to another release."""

    path: Path
    """The new recipe."""
    commit: str
    pins: tuple[PortedPin, ...]


def port(old: BuildRequest, path: Path, to: str) -> Port:
    """Write a recipe for another tag or branch next to `path`, and judge each of its pins.

    Raises RecipeError if the new recipe exists already, SupplyError if the server has no such name.
    """
    commit = _commit(old, to)
    target = path.with_name(f"{_name(old.recipe.name, old.recipe.source.release, to)}.toml")
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Rename it, or delete it.")
    files.write(target, _text(path.read_text("utf-8"), to, commit))
    new = BuildRequest(recipe=recipes.read(str(target)), host_file=old.host_file)
    return Port(target, commit, tuple(_judged(old, new)))


def _commit(job: BuildRequest, to: str) -> str:
    """Return the commit of a tag or a branch, as the repository or its mirror names it."""
    source = job.recipe.source
    address = job.host_file.mirror_of(source.url) or source.url
    job.places.own.mkdir(parents=True, exist_ok=True)
    return remote.commit_of(job.places.own, address, to)


def _name(old: str, release: Release, to: str) -> str:
    """Return the recipe's name with the new release in the place of the old one."""
    # Not 2.1 in 2.10, and only once: the name may hold CUDA's version too.
    found = _VERSION.search(to)
    new = f"{found[1]}.{found[2]}" if found else to.replace("/", "-")
    return re.sub(rf"{release.major}\.{release.minor}(?!\d)", new, old, count=1)


def _text(old: str, to: str, commit: str) -> str:
    """Return a recipe's text with another commit; what was verified is left out."""
    found = _VERSION.search(to)
    branch = f"r{found[1]}.{found[2]}" if found and to.startswith("v") else to
    # Edited as text, not through a TOML writer: the reasons stand in the comments.
    text = re.sub(r'(?m)^commit = "[0-9a-f]{40}"', f'commit = "{commit}"', old, count=1)
    text = re.sub(r'(?m)^branch = "[^"]*"', f'branch = "{branch}"', text, count=1)
    text = re.sub(r"(?ms)^\[verified\]\n.*?(?=^\[|\Z)", "", text)
    head = f"# Ported to {to}; 'invoke lint' and the comments below say what is left to decide.\n\n"
    return head + text.rstrip() + "\n"


def _judged(old: BuildRequest, new: BuildRequest) -> Iterator[PortedPin]:
    """Yield the verdict about each pin, in the order in which a build would meet it."""
    yield from _tools(new.recipe)
    yield from _answers(new.recipe)
    # From here on the new commit is needed, which may be a long download.
    repository = _repository(new)
    yield from _patches(new, repository)
    rules = _rules(old, _repository(old)), _rules(new, repository)
    yield from _substitutes(new.recipe, *rules)
    yield from _archives(*rules)
    yield from _requirements(old, new, repository)


def _repository(job: BuildRequest) -> Path:
    source = job.recipe.source
    pin = Pin(source.url, source.branch, source.commit, source.exclude)
    origin = external.origin(job.job, source.url)
    return mirror.bring(pin, job.places.git, origin, job.listener, offline=job.offline)


def _tools(recipe: Recipe) -> Iterator[PortedPin]:
    """Compare Bazel and Python with the ranges of the new release."""
    release = recipe.source.release
    for name, version, known in (
        ("Bazel", recipe.bazel.version, compatibility.bazel(release)),
        ("Python", recipe.host.python, compatibility.python(release)),
    ):
        if known is None:
            yield PortedPin("tool", name, "look", f"{version}; no range is known for {release}")
        elif known.holds(version):
            yield PortedPin("tool", name, "fits", f"{version} is in {known}")
        else:
            yield PortedPin("tool", name, "change", f"{version}; {release} wants {known}")


def _answers(recipe: Recipe) -> Iterator[PortedPin]:
    """List the questions that are new, and the answers that are no longer asked for."""
    interview = expected.interview(recipe, HostFile())
    for prompt in interview.unanswered():
        yield PortedPin("answer", prompt.variable, "change", "is asked, and has no answer")
    for fault in validation.faults(interview):
        state: State = "look" if fault.harmless else "change"
        yield PortedPin("answer", fault.variable, state, f"{fault.what}. {fault.remedy}")


def _patches(job: BuildRequest, repository: Path) -> Iterator[PortedPin]:
    """Try every patch by itself on the new commit."""
    source = job.recipe.source
    tree = job.places.own / "porting"
    for name in source.patches:
        # A clean tree each time: a patch that fails must not make the next one fail.
        git.prepare(tree, repository, source.commit, source.exclude)
        try:
            notes = patching.apply(tree, source.file(name))
        except RecipeError as fault:
            # Upstream has the change now: nothing is broken, but a person should confirm it.
            done = fault.remedy.startswith("Remove the patch")
            says = fault.what.removeprefix(f"{source.file(name)} ")
            yield PortedPin("patch", name, "look" if done else "change", says)
        else:
            yield PortedPin("patch", name, "fits", "; ".join(notes) or "applies as it is")
    # The index of the tree is kept apart from it, in a repository of its own.
    files.remove(tree)
    files.remove(git.repository_of(tree))


def _rules(job: BuildRequest, repository: Path) -> Rules | None:
    """Read the rules of a commit without its patches, which may not fit."""
    bare = job.recipe.source.model_copy(update={"patches": (), "assets": {}})
    pins = RecipePins(bare, job.recipe.bazel, job.recipe.fetch)
    try:
        return external.read(job.job, pins, repository, None)
    except TfwrightError:
        # Some rules can only be read with the patches; the report says so and goes on.
        return None


def _checksums(rules: Rules | None, name: str) -> set[str]:
    found = rules.repositories if rules else ()
    return {rule.sha256 or rule.commit for rule in found if rule.name == name}


def _substitutes(recipe: Recipe, old: Rules | None, new: Rules | None) -> Iterator[PortedPin]:
    """Say of each substitute whether the archive that it replaces is still the pinned one."""
    for name in recipe.fetch.substitutes:
        before, after = _checksums(old, name), _checksums(new, name)
        if not after:
            says = "the new tree pins no archive of this name: remove the substitute"
            yield PortedPin("substitute", name, "change", says)
        elif before & after:
            yield PortedPin("substitute", name, "fits", "the tree still pins the same archive")
        else:
            pinned = ", ".join(sorted(after))
            says = f"the tree pins another archive now ({pinned}): find that one"
            yield PortedPin("substitute", name, "change", says)


def _archives(old: Rules | None, new: Rules | None) -> Iterator[PortedPin]:
    """Count the archives that are new, gone or pinned to other bytes."""
    if old is None or new is None:
        yield PortedPin("archive", "all", "look", "the rules of one of the trees cannot be read")
        return
    # By checksum: upstream renames rules, and moves URLs, without another archive.
    before = {rule.sha256: rule.name for rule in old.repositories if rule.sha256}
    after = {rule.sha256: rule.name for rule in new.repositories if rule.sha256}
    fresh = sorted(after[sha256] for sha256 in after.keys() - before.keys())
    gone = sorted(before[sha256] for sha256 in before.keys() - after.keys())
    same = len(before.keys() & after.keys())
    yield PortedPin("archive", "unchanged", "fits", str(same))
    if fresh:
        yield PortedPin("archive", "new or changed", "look", ", ".join(dict.fromkeys(fresh)))
    if gone:
        yield PortedPin("archive", "gone", "fits", ", ".join(dict.fromkeys(gone)))


def _requirements(old: BuildRequest, new: BuildRequest, repository: Path) -> Iterator[PortedPin]:
    """Compare what the two setup.py require, since verify.requirements pins that."""
    before = _required(_repository(old), old.recipe.source.commit)
    for requirement in sorted(_required(repository, new.recipe.source.commit) - before):
        says = "is new in setup.py: see verify.requirements"
        yield PortedPin("requirement", requirement, "look", says)


def _required(repository: Path, commit: str) -> set[str]:
    # Read as text: setup.py of an old release cannot run on this Python.
    setup = git.text(repository, f"{commit}:tensorflow/tools/pip_package/setup.py")
    listed = re.search(r"REQUIRED_PACKAGES = \[(.*?)\n\]", setup, re.DOTALL)
    return set(re.findall(r"['\"]([^'\"]+)['\"]", listed[1])) if listed else set()


def worst_first(pins: Sequence[PortedPin]) -> list[PortedPin]:
    """Return what must change before what a person should look at, and what fits last."""
    order: list[State] = ["change", "look", "fits"]
    return sorted(pins, key=lambda pin: order.index(pin.state))
