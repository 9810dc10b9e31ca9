"""`invoke port`: a recipe carried to another release, and what that takes.

The new file is the old one with the new commit, without [verified]. The report says of everything
that the old recipe pins whether it still fits: patches, substitutes, answers, Bazel and Python.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tfwright.configure import expected, validation
from tfwright.configure.prompt import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.faults import line_of
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError, TfwrightError
from tfwright.host import compatibility, versions
from tfwright.match import ranking as match
from tfwright.new import bazel
from tfwright.patch import writing as patch_command
from tfwright.pipeline import external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import BuildRequest
from tfwright.port import aims, archives, patches
from tfwright.port.patches import Fate, TriedPatch
from tfwright.rules import tree_bazel, tree_requirements, tree_version
from tfwright.rules.dropping import DropFacts
from tfwright.rules.model import Rules
from tfwright.rules.tree_bazel import TreeBazel
from tfwright.schema import writing as schema
from tfwright.tools import files, toml_editing
from tfwright.tools.git import mirror
from tfwright.tools.git.repository import GitRepository

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
class Port:
    """A recipe that was carried to another release."""

    path: Path
    """The new recipe."""
    commit: str
    pins: tuple[PortedPin, ...]


def port(old: BuildRequest, path: Path, to: str) -> Port:
    """Write a recipe for another tag or branch next to `path`, and judge each of its pins.

    `to` is a tag, a branch or a version, and may name the commit behind an @. Raises RecipeError if
    the new recipe exists already or could not be read, SupplyError if the server has no such name.
    """
    named = aims.of(old, to)
    target = path.with_name(f"{named.recipe}.toml")
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Rename it, or delete it.")
    head = aims.HEAD.format(to=named.name)
    text = path.read_text("utf-8")
    files.write(target, schema.headed(head, text, target.parent))
    made = [target]
    try:
        changed = aims.enter(named, old.recipe, target)
        new = replace(old, recipe=recipes.read(str(target)), locked=None)
        pins = [
            PortedPin(key.kind, key.name, "look" if key.sure else "change", key.says)
            for key in changed
        ]
        pins += _judged(old, new, target, made)
    except (TfwrightError, KeyboardInterrupt):
        # It was not judged to the end. The next attempt would stop at the recipe, and take the
        # copied patches for ones that somebody has redone.
        for file in made:
            files.remove(file)
        raise
    return Port(target, named.commit, tuple(pins))


def _judged(
    old: BuildRequest, new: BuildRequest, path: Path, made: list[Path]
) -> Iterator[PortedPin]:
    """Yield the verdict about each pin, in the order in which a build would meet it.

    What follows from a verdict without a doubt is written into the new recipe. Files that are
    created next to it are added to `made`.
    """
    yield from _answers(new.recipe, path)
    # From here on the new commit is needed, which may be a long download.
    yield from _exclusions(new, path)
    new = replace(new, recipe=recipes.read(str(path)))
    repository = external.repository(new.job, new.recipe.source, about_branch=True)
    tree_version.insist(repository, new.recipe.source.commit, new.recipe.source)
    # Both recipes name one url, so that its mirror then holds both commits.
    external.repository(old.job, old.recipe.source)
    yield from _tools(new.recipe, repository)
    before, after = _rules(old, repository), _rules(new, repository)
    facts = DropFacts.of(new.recipe, after, _history(new))
    tried = list(patches.tried(new.job, new.recipe, repository, facts))
    yield from _patches(old, new, path, tried, made)
    yield from _substitutes(new.recipe, path, before, after)
    yield from _archives(replace(new, recipe=recipes.read(str(path))), before, after)
    yield from _requirements(new.recipe, path, repository)
    yield from _tests(new.recipe, repository)


def _exclusions(new: BuildRequest, path: Path) -> Iterator[PortedPin]:
    """Remove the paths of ``source.exclude`` that the new commit does not have."""
    source = new.recipe.source
    while True:
        try:
            external.repository(new.job, source)
        except mirror.IdleExclusionError as fault:
            kept = tuple(place for place in source.exclude if place != fault.path)
            source = source.changed(exclude=kept)
            toml_editing.put_list(path, ("source", "exclude"), kept)
            says = "removed; the new tree has no such path"
            yield PortedPin("exclude", fault.path, "look", says)
        else:
            return


def _tools(recipe: Recipe, repository: Path) -> Iterator[PortedPin]:
    """Compare Bazel, Python, CUDA and the target with what the new release takes."""
    release = recipe.source.release
    commit = recipe.source.commit
    texts = GitRepository(repository).texts_at(commit, tree_bazel.PATHS)
    yield _bazel(recipe, tree_bazel.stated(texts))
    python = recipe.host.python
    known = compatibility.python(release)
    if known is None:
        says = f"{python}; no range is known for {release}"
        yield PortedPin("tool", "Python", "look", says)
    elif python == "any" or known.holds(python):
        yield PortedPin("tool", "Python", "fits", f"{python} is in {known}")
    else:
        says = f"{python}; {release} wants {known}"
        yield PortedPin("tool", "Python", "change", says)
    yield from _cuda(recipe)
    try:
        recipes.insist_on_wheel(recipe.compile.target, recipe.package, release)
    except RecipeError as fault:
        says = f"{fault.what}. {fault.remedy}"
        yield PortedPin("tool", "compile.target", "change", says)


def _bazel(recipe: Recipe, tree: TreeBazel | None) -> PortedPin:
    """Compare the pinned Bazel with what the new commit and its release take."""
    version = recipe.bazel.version
    release = recipe.source.release
    limits = bazel.allowed(release, tree)
    says = limits.says or f"no range is known for {release}"
    tested = compatibility.tested_bazel(release)
    exact = tree.exact if tree else ""
    proven = tested.version if tested else ""
    hint = f"; tested with {proven}" if proven else ""
    if exact:
        hint = f"; .bazelversion says {exact}"
    says = f"{version}; {says}{hint}"
    if not versions.within(version, limits.least, limits.most):
        if fit := exact or proven:
            # The checksum is that of the other Bazel.
            says += (
                f'. Write version = "{fit}" into [bazel] without a sha256, then: '
                f"invoke pin --recipe {recipe.argument}"
            )
        return PortedPin("tool", "Bazel", "change", says)
    # Without limits nothing says that another Bazel works than the tested one.
    wanted = exact or ("" if limits.least else proven)
    sure = version == wanted if wanted else bool(limits.least)
    return PortedPin("tool", "Bazel", "fits" if sure else "look", says)


def _cuda(recipe: Recipe) -> Iterator[PortedPin]:
    tested = match.tested_with(recipe.source.release)
    if not (recipe.host.cuda and tested):
        return
    says = f"{recipe.host.cuda}; tested with {tested.cuda} and cuDNN {tested.cudnn}"
    same = versions.is_of(recipe.host.cuda, tested.cuda)
    yield PortedPin("tool", "CUDA", "fits" if same else "look", says)


def _answers(recipe: Recipe, path: Path) -> Iterator[PortedPin]:
    """Remove the answers that nothing asks for any more, and list the questions that are new."""
    interview = expected.interview(recipe, HostFile())
    for fault in validation.faults(interview):
        says = f"{fault.what}. {fault.remedy}"
        if recipe.configure.answers.get(fault.variable) is False and "does not ask" in fault.what:
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
    old: BuildRequest, new: BuildRequest, path: Path, tried: Sequence[TriedPatch], made: list[Path]
) -> Iterator[PortedPin]:
    """Enter the patches into the new recipe, and say of each what became of it."""
    source = new.recipe.source
    named = []
    for patch in tried:
        name, entered = patch.name, patch
        if patch.fate == "redo":
            name = patches.moved(patch.name, source.branch)
            target = patch_command.patches_of(path) / name
            if target.exists():
                # Another recipe was ported to this branch, and its patch redone there.
                entered = replace(patch, fate="compare", says=_THERE)
            else:
                made.append(target)
                original = source.file(patch.name)
                patches.copy(original, target, old.recipe.source.commit)
        if patch.fate != "dropped":
            named.append(name)
        says = _outcome(entered, new.argument)
        yield PortedPin("patch", name, _STATES[entered.fate], says)
    if tried:
        toml_editing.put_list(path, ("source", "patches"), named)


_THERE = "is in the folder of the new branch already; see that it makes the same change"
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
        return f"{patch.says}; merge it: invoke patch --recipe {recipe} --refresh {number}"
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
        before = archives.checksums(old, name)
        after = archives.checksums(new, name)
        if before & after or table.replaces in after:
            yield PortedPin("substitute", name, "fits", "the tree still pins the same archive")
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
            asked = f"invoke vault --links --recipe {recipe.argument}"
            # Without the substitute, the pinned archive is asked for like any other.
            says = (
                f"the tree pins another archive now ({pinned}). Remove the substitute "
                f"if a source has that one ({asked}); else find a file for it"
            )
            yield PortedPin("substitute", name, "change", says)


def _archives(job: BuildRequest, old: Rules | None, new: Rules | None) -> Iterator[PortedPin]:
    """List the archives that are new, changed or gone, and those that no server has any more."""
    if old is None or new is None:
        yield PortedPin("archive", "all", "look", "the rules of one of the trees cannot be read")
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


def _requirements(recipe: Recipe, path: Path, repository: Path) -> Iterator[PortedPin]:
    """Hold verify.requirements against setup.py, and name the command that resolves them again."""
    texts = GitRepository(repository).texts_at(recipe.source.commit, tree_requirements.PATHS)
    setup = tree_requirements.setup_of(texts)
    pins = recipe.verify.requirements
    python = recipe.host.python
    # Without pins a recipe installs nothing to verify with.
    found = list(tree_requirements.judged(pins, setup, python)) if pins else []
    for pin in found:
        yield PortedPin("requirement", pin.name, pin.state, pin.says)
    redo = [pin.asks for pin in found if pin.asks]
    if redo:
        line = line_of(path.read_text("utf-8"), ("verify", "requirements"))
        asked = " ".join(f"--verify {shlex.quote(asks)}" for asks in redo)
        says = (
            f"line {line} has to be resolved again: invoke pin --recipe {recipe.argument} {asked}"
        )
        yield PortedPin("requirement", "verify.requirements", "change", says)


def _tests(recipe: Recipe, repository: Path) -> Iterator[PortedPin]:
    """Name the tests of the source tree that are not where they were."""
    for test in recipe.verify.tests:
        if not GitRepository(repository).text(f"{recipe.source.commit}:{test}"):
            says = "the new tree has no such file"
            yield PortedPin("test", test, "change", says)


def worst_first(pins: Sequence[PortedPin]) -> list[PortedPin]:
    """Return what must change before what a person should look at, and what fits last."""
    order: list[State] = ["change", "look", "fits"]
    return sorted(pins, key=lambda pin: order.index(pin.state))
