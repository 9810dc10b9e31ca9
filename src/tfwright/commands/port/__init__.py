"""`invoke port`: a recipe carried to another release, and what that takes.

The new file is the old one with the new commit, without [verified]. The report says of everything
that the old recipe pins whether it still fits: patches, substitutes, answers, Bazel and Python.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tfwright.commands import patch as patch_command
from tfwright.commands import schema, verified
from tfwright.commands.port import archives, patches
from tfwright.commands.port.patches import Fate, TriedPatch
from tfwright.configure import expected, validation
from tfwright.configure.prompt import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, TfwrightError
from tfwright.host import compatibility
from tfwright.pipeline import external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import BuildRequest
from tfwright.rules.dropping import DropFacts
from tfwright.rules.model import Rules
from tfwright.tools import files, git, toml_editing
from tfwright.tools.git import remote

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
    name, _, stated = to.partition("@")
    # A mirror may have the history and not the tags; then the maintainer names the commit too.
    commit = stated or _commit(old, name)
    to = name
    target = path.with_name(
        f"{_name(old.recipe.name, old.recipe.source.release, to)}.toml"
    )
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Rename it, or delete it.")
    files.write(target, _text(path.read_text("utf-8"), to, commit))
    new = replace(old, recipe=recipes.read(str(target)), locked=None)
    return Port(target, commit, tuple(_judged(old, new, target)))


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
    text = verified.removed_from(text)
    head = f"# Ported to {to}; 'invoke lint' and the comments below say what is left to decide."
    return schema.headed(head, text)


def _judged(old: BuildRequest, new: BuildRequest, path: Path) -> Iterator[PortedPin]:
    """Yield the verdict about each pin, in the order in which a build would meet it.

    What follows from a verdict without a doubt is written into the new recipe.
    """
    yield from _tools(new.recipe)
    yield from _answers(new.recipe, path)
    # From here on the new commit is needed, which may be a long download.
    repository = external.repository(new.job, new.recipe.source)
    # Both recipes name one url, so that its mirror then holds both commits.
    external.repository(old.job, old.recipe.source)
    before, after = _rules(old, repository), _rules(new, repository)
    facts = DropFacts.of(new.recipe, after, _history(new))
    tried = list(patches.tried(new.job, new.recipe, repository, facts))
    yield from _patches(old, new, path, tried)
    yield from _substitutes(new.recipe, path, before, after)
    yield from _archives(replace(new, recipe=recipes.read(str(path))), before, after)
    yield from _requirements(old, new, repository)


def _tools(recipe: Recipe) -> Iterator[PortedPin]:
    """Compare Bazel and Python with the ranges of the new release."""
    release = recipe.source.release
    for name, version, known in (
        ("Bazel", recipe.bazel.version, compatibility.bazel(release)),
        ("Python", recipe.host.python, compatibility.python(release)),
    ):
        if known is None:
            yield PortedPin(
                "tool", name, "look", f"{version}; no range is known for {release}"
            )
        elif known.holds(version):
            yield PortedPin("tool", name, "fits", f"{version} is in {known}")
        else:
            yield PortedPin(
                "tool", name, "change", f"{version}; {release} wants {known}"
            )


def _answers(recipe: Recipe, path: Path) -> Iterator[PortedPin]:
    """Remove the answers that nothing asks for any more, and list the questions that are new."""
    interview = expected.interview(recipe, HostFile())
    for fault in validation.faults(interview):
        says = f"{fault.what}. {fault.remedy}"
        if (
            recipe.configure.answers.get(fault.variable) is False
            and "does not ask" in fault.what
        ):
            # "No" to a question that is gone decides nothing.
            toml_editing.without_key(path, ("configure", "answers", fault.variable))
            yield PortedPin("answer", fault.variable, "look", f"removed; {fault.what}")
        else:
            state: State = "look" if fault.harmless else "change"
            yield PortedPin("answer", fault.variable, state, says)
    for prompt in interview.unanswered():
        yield PortedPin("answer", prompt.variable, "change", _asked_for(prompt))


def _asked_for(prompt: Prompt) -> str:
    value = "false" if prompt.yes_no else '"..."'
    return f"is asked, and has no answer. Add {prompt.variable} = {value}, or what you want"


def _patches(
    old: BuildRequest, new: BuildRequest, path: Path, tried: Sequence[TriedPatch]
) -> Iterator[PortedPin]:
    """Enter the patches into the new recipe, and say of each what became of it."""
    source = new.recipe.source
    named = []
    for patch in tried:
        name = patch.name
        if patch.fate == "redo":
            name = patches.moved(patch.name, source.branch)
            target = patch_command.patches_of(path) / name
            patches.copy(source.file(patch.name), target, old.recipe.source.commit)
        if patch.fate != "dropped":
            named.append(name)
        yield PortedPin("patch", name, _STATES[patch.fate], _outcome(patch, new.name))
    if tried:
        toml_editing.put_list(path, ("source", "patches"), named)


_STATES: dict[Fate, State] = {
    "kept": "fits",
    "dropped": "look",
    "compare": "look",
    "redo": "change",
}


def _outcome(patch: TriedPatch, recipe: str) -> str:
    if patch.fate == "dropped":
        return f"removed; {patch.says}"
    if patch.fate == "redo":
        number = Path(patch.name).name.partition("-")[0].lstrip("0")
        return (
            f"{patch.says}; merge it: invoke patch --recipe {recipe} --refresh {number}"
        )
    return patch.says


def _history(job: BuildRequest) -> Path | None:
    """Return a repository on this host with the history of the source, if there is one."""
    source = job.recipe.source
    local = external.origin(job.job, source.url).local
    # The mirror in build_out has single commits; one that the host file names may have all.
    return local if local and local.is_dir() else None


def _rules(job: BuildRequest, repository: Path) -> Rules | None:
    """Read the rules of a commit without its patches, which may not fit."""
    bare = job.recipe.source.model_copy(update={"patches": (), "assets": {}})
    pins = RecipePins(bare, job.recipe.bazel, job.recipe.fetch)
    try:
        return external.read(job.job, pins, repository, None)
    except TfwrightError:
        # Some rules can only be read with the patches; the report says so and goes on.
        return None


def _substitutes(
    recipe: Recipe, path: Path, old: Rules | None, new: Rules | None
) -> Iterator[PortedPin]:
    """Say of each substitute whether the archive that it replaces is still the pinned one.

    Where another recipe replaces the new one already, its substitute is taken over.
    """
    for name, table in recipe.fetch.substitutes.items():
        before, after = archives.checksums(old, name), archives.checksums(new, name)
        if before & after or table.replaces in after:
            yield PortedPin(
                "substitute", name, "fits", "the tree still pins the same archive"
            )
        elif new is not None and not after:
            archives.remove(path, name)
            says = "removed; the new tree pins no archive of this name"
            yield PortedPin("substitute", name, "look", says)
        elif other := archives.replacing(after):
            archives.take_over(path, name, other)
            says = f"the tree pins another archive; taken over from {other.path.stem}"
            if other.patches:
                says += f", whose patches may belong to it: {', '.join(other.patches)}"
            yield PortedPin("substitute", name, "look", says)
        else:
            pinned = ", ".join(sorted(after)) or "which one cannot be read"
            says = f"the tree pins another archive now ({pinned}): find that one"
            yield PortedPin("substitute", name, "change", says)


def _archives(
    job: BuildRequest, old: Rules | None, new: Rules | None
) -> Iterator[PortedPin]:
    """List the archives that are new, changed or gone, and those that no server has any more."""
    if old is None or new is None:
        yield PortedPin(
            "archive", "all", "look", "the rules of one of the trees cannot be read"
        )
        return
    change = archives.compared(old, new, job)
    yield PortedPin("archive", "unchanged", "fits", str(change.unchanged))
    for kind in ("changed", "new", "gone"):
        names = getattr(change, kind)
        if names:
            state: State = "fits" if kind == "gone" else "look"
            yield PortedPin("archive", kind, state, ", ".join(names))
    if change.lost:
        # Bazel wants only some of them, so that a missing one need not stop the build.
        listed = ", ".join(change.lost)
        yield PortedPin("archive", "from no source on this host", "look", listed)


def _requirements(
    old: BuildRequest, new: BuildRequest, repository: Path
) -> Iterator[PortedPin]:
    """Compare what the two setup.py require, since verify.requirements pins that."""
    before = _required(repository, old.recipe.source.commit)
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
