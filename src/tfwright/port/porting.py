"""`invoke port`: a recipe carried to another release, and what that takes.

The new file is the old one with the new commit, without [verified]. The report says of everything
that the old recipe pins whether it still fits: patches, substitutes, answers, Bazel and Python.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from packaging.utils import canonicalize_name

from tfwright.configure import expected, validation
from tfwright.develop import schemas
from tfwright.documents import recipe as recipes
from tfwright.documents.composing import (
    ARCHIVES,
    PINS,
    Composing,
    PinsFile,
    copied_pins,
    named_packages,
    other_paths,
    pins_head,
    pins_text,
    recipe_values,
)
from tfwright.documents.faults import line_of
from tfwright.documents.filesystem import ROOT
from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError, TfwrightError
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_of_line, is_within
from tfwright.host import hermetic
from tfwright.match import pins as new_pins
from tfwright.patch import writing as patch_command
from tfwright.pipeline import containers, engine, external
from tfwright.pipeline.external import RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import configure
from tfwright.port import archives, patches, target
from tfwright.port.patches import Fate, TriedPatch
from tfwright.port.target import Kind, PortedPin, State
from tfwright.printable import shell_word
from tfwright.rules import configurations, tree_files
from tfwright.rules.configurations import BAZELRCS
from tfwright.rules.dropping import DropFacts
from tfwright.rules.model import Rules
from tfwright.tools import files, toml_editing
from tfwright.tools.bazel import binary
from tfwright.tools.git import mirror
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.http import client
from tfwright.tools.python.packages import name_of

MOST_ADDED = 9
"""Files that a server lacks of a commit; one that lacks more is broken."""
_STATES: dict[Fate, State] = {
    "kept": "fits",
    "dropped": "look",
    "compare": "look",
    "done": "change",
    "redo": "change",
    "lacking": "change",
}


@dataclass(frozen=True)
class Port:
    """A recipe that was carried to another release."""

    path: Path
    """The new recipe."""
    commit: str
    pins: tuple[PortedPin, ...]


def port(old: RecipeJob, path: Path, to: str) -> Port:
    """Write a recipe for another tag or branch next to `path`, and judge each of its pins.

    `to` is a tag, a branch or a version, and may name the commit behind an @. Raises RecipeError if
    the new recipe exists already or could not be read, SupplyError if the server has no such name.
    """
    wanted = target.find_target(old, to)
    place = path.with_name(f"{wanted.recipe_name(old.recipe)}.toml")
    if place.exists():
        raise RecipeError(f"{place} exists already", remedy=_move_remedy(place))
    head = target.HEAD.format(old=old.recipe.name, to=wanted.name)
    files.write(place, schemas.with_comment(head, path.read_text("utf-8"), place.parent))
    porting = _Porting(old, place)
    try:
        porting.copy_documents(path, wanted.branch)
        pins = [*target.write_keys(wanted, old.recipe, place), *porting.judge_pins()]
        porting.settle_archives()
        pins.append(porting.run_configure(pins))
    except (TfwrightError, KeyboardInterrupt):
        # It was not judged to the end. The next attempt would stop at the recipe, and take the
        # copied patches for ones that somebody has redone.
        for file in porting.made:
            files.remove(file)
        raise
    return Port(place, wanted.commit, tuple(pins))


def _move_remedy(place: Path) -> str:
    old, new = shell_word(str(place)), shell_word(f"{place}.old")
    return f"Use it as it is; or, to port again, move it first: mv {old} {new}"


class _Porting:
    """A new recipe whose pins are judged; what follows from a verdict is written into it."""

    def __init__(self, old: RecipeJob, path: Path) -> None:
        self.old, self.path = old, path
        self.substitutes = archives.Substitutes(path)
        self.made = [path]
        """The files that are created, which a failure leaves behind."""
        self.taken: list[archives.OtherSubstitute] = []
        """Substitutes of other recipes, whose patches may belong to them."""
        self.shared = path
        """The archives' document of the old recipe, if it names one."""
        self.repository = Path()
        """The mirror of both commits, once it has them."""

    def copy_documents(self, old: Path, branch: str) -> None:
        """Give the new recipe packages of its own, and archives that may change."""
        for place, text in copied_pins(old, self.path):
            self.made.append(place)
            files.write(place, text)
        named = self.old.recipe.fetch.archives
        if not named:
            return
        shared = Composing(old).find(ARCHIVES, named, ("fetch", "archives"))
        folder = shared.parent
        if not named.endswith(".toml"):
            # A document that recipes share may lie elsewhere; the new one comes with its recipe.
            here = self.path.resolve().parent
            folder = (ROOT if here == recipes.RECIPES.resolve() else here) / ARCHIVES
        names = (branch.replace("/", "-"), self.path.stem)
        own = next(
            (place for name in names if not (place := folder / f"{name}.toml").exists()), None
        )
        if own is None:
            raise RecipeError(
                f"{folder / self.path.stem}.toml exists already",
                remedy=_move_remedy(folder / f"{self.path.stem}.toml"),
            )
        self.made.append(own)
        files.write(own, shared.read_bytes())
        self._name_archives(named, own)
        self.substitutes = archives.Substitutes(self.path, own)
        self.shared = shared

    def _name_archives(self, named: str, path: Path) -> None:
        """Write the name of the archives' document, or its path, as the old recipe has it."""
        name = str(Path(named).with_name(path.name)) if named.endswith(".toml") else path.stem
        toml_editing.put(self.path, ("fetch", "archives"), name)

    def settle_archives(self) -> None:
        """Go back to the document of the old recipe where nothing of it had to change."""
        own, named = self.substitutes.archives, self.old.recipe.fetch.archives
        if own and named and own.read_bytes() == self.shared.read_bytes():
            self._name_archives(named, self.shared)
            files.remove(own)

    def run_configure(self, pins: Sequence[PortedPin]) -> PortedPin:
        """Run ./configure of the new tree with the patches that fit, where this host can."""
        if missing := expected.unanswered_error(expected.interview(self.new.recipe, HostFile())):
            return PortedPin("tool", "./configure", "look", f"was not run: {missing.what}")
        kept = tuple(pin.name for pin in pins if pin.kind == "patch" and pin.state == "fits")
        # With the Bazel that this host has in place of the pinned one.
        here = RecipeJob.of(str(self.path), self.old.host_file)
        recipe = here.recipe.changed(source=here.recipe.source.changed(patches=kept))
        pinned = here.pinned_bazel
        new = replace(self.new, recipe=recipe, pinned_bazel=pinned, until="configure")
        state: State = "fits"
        try:
            with engine.recipe_lock(new):
                parts = engine.prepare_tree(new)
                with containers.stage_container(new, "configure"):
                    made = configure.run(new.job, recipe, *parts)
            says = f"writes what the recipe says; it asked {len(made.asked)} questions"
        except (HostError, SupplyError) as fault:
            # The remedies of findings are indented further than the findings.
            lines = re.sub(r"\n {5}.*", ";", fault.what).strip(";")
            state, says = "look", f"was not run on this host: {lines}"
        except TfwrightError as fault:
            state = "change"
            says = "; ".join((fault.what, *fault.evidence.lines[:3]))
        return PortedPin("tool", "./configure", state, " ".join(says.split()))

    @property
    def new(self) -> RecipeJob:
        """The new recipe as its file is now."""
        return replace(self.old, recipe=recipes.read(str(self.path)), locked=None)

    def judge_pins(self) -> Iterator[PortedPin]:
        """Yield the verdict about each pin, in the order in which a build would meet it."""
        yield from self._judge_answers()
        # From here on the new commit is needed, which may be a long download.
        yield from self._judge_exclusions()
        new = self.new
        source = new.recipe.source
        self.repository = external.fetch_commit(new, source, about_branch=True)
        tree_files.check_release(self.repository, source.commit, source)
        # Both recipes name one url, so that its mirror then holds both commits.
        external.fetch_commit(self.old, self.old.recipe.source)
        held = GitRepository(self.repository)
        paths = (*tree_files.BAZELS, *tree_files.SETUPS, *BAZELRCS)
        texts = held.texts_at(source.commit, paths)
        yield self._judge_bazel(texts)
        old_texts = held.texts_at(self.old.recipe.source.commit, (*tree_files.SETUPS, *BAZELRCS))
        yield from self._remove_flags(old_texts, texts)
        new = self.new
        yield from self._judge_tools()
        after = self._read_rules(new)
        # The mirror in build_out has single commits; one that the host file names may have all.
        local = external.origin(new, source.url).local
        history = local if local and local.is_dir() else None
        facts = DropFacts.of(new.recipe, after, history)
        tried = list(patches.try_patches(new.job, new.recipe, self.repository, facts))
        # What the patches declare counts as well as what the bare tree does.
        kept = [patch.name for patch in tried if patch.fate == "kept"]
        before = self._read_rules(self.old, self.old.recipe.source.patches)
        after = self._read_rules(new, kept) or after
        compared = None
        if before and after:
            compared = archives.ComparedArchives.of(before, after, new, self.old.locked)
        judged = list(self._judge_substitutes(before, after, compared))
        yield from self._enter_patches(self._with_taken_patches(tried))
        yield from self._add_programs()
        yield from judged
        if compared:
            substitutes = new.recipe.fetch.substitutes, self.new.recipe.fetch.substitutes
            yield from compared.pins({*chain(*substitutes)})
        else:
            yield PortedPin("archive", "all", "look", "the rules of a tree cannot be read")
        yield from self._judge_requirements(old_texts, texts)
        for test in new.recipe.verify.tests:
            if not held.text(f"{source.commit}:{test}"):
                yield PortedPin("test", test, "change", "the new tree has no such file")

    def _read_rules(self, job: RecipeJob, applied: Sequence[str] = ()) -> Rules | None:
        """Read the rules of a commit with those of its patches that fit."""
        source = job.recipe.source.changed(patches=tuple(applied), assets={})
        pins = RecipePins(source, job.recipe.bazel, job.recipe.fetch)
        try:
            return external.ExternalRules(job, pins, self.repository).rules()
        except TfwrightError:
            # Each patch fits by itself, and may need another one; or the rules can only be read
            # with patches that do not fit: the report says so and goes on.
            return self._read_rules(job) if applied else None

    def _judge_bazel(self, texts: Mapping[str, str]) -> PortedPin:
        """Pin a Bazel that can be had where the new commit, with these texts, refuses the old."""
        recipe = self.new.recipe
        version, release = recipe.bazel.version, recipe.source.release
        tree = tree_files.bazel_of(texts)
        limits, known = new_pins.allowed_bazels(release, tree)
        tested = compatibility.tested_bazel(release)
        exact, usual = tree.exact if tree else "", tested.version if tested else ""
        # Where ./configure compares nothing, .bazelversion is all that upstream says.
        held = not exact or version == exact or limits.least
        if held and limits.contains(version):
            hint = f"; tested with {usual}" if usual else ""
            if exact:
                hint = f"; .bazelversion says {exact}"
            says = f"{version}; {known or f'no range is known for {release}'}{hint}"
            says += self._proven
            # Without limits nothing says that another Bazel works than the tested one.
            wanted = exact or ("" if limits.least else usual)
            sure = self._proven or (version == wanted if wanted else limits.least)
            return PortedPin("tool", "Bazel", "fits" if sure else "look", says)
        new = new_pins.bazel_pin(release, texts)
        copies = [
            copy
            for copy in compatibility.bazel_copies()
            # The copies that the table lists are for Linux.
            if recipe.host.system != "Darwin" and limits.least and limits.contains(copy)
        ]
        if copies and new.value not in copies and not self._has_bazel(new.value):
            why = f"npm has it, and not {new.value}, which upstream names; {known}"
            # A much newer one may be allowed and still fail.
            newer = (copy for copy in copies if is_within(copy, new.value, ""))
            new = new_pins.DerivedPin("bazel.version", next(newer, copies[-1]), why)
        toml_editing.put(self.path, ("bazel", "version"), new.value, new.reason)
        # The checksum is that of the other Bazel.
        toml_editing.remove_key(self.path, ("bazel", "sha256"))
        says = f"{version} does not fit; the recipe has {new.value} now ({new.reason}). "
        says += f"Pin its checksum: invoke pin --recipe {recipe.argument}"
        return PortedPin("tool", "Bazel", "look", says)

    def _remove_flags(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> Iterator[PortedPin]:
        """Remove flags for a configuration of the old tree that the new one lacks: Bazel stops."""
        was, stays = (
            configurations.defined_configs("\n".join(texts.get(path, "") for path in BAZELRCS))
            for texts in (before, after)
        )
        for flag in self.new.recipe.compile.flags:
            if flag.startswith("--config=") and flag.partition("=")[2] in was - stays:
                toml_editing.replace_item(self.path, ("compile", "flags"), flag)
                says = "removed; .bazelrc of the new tree has no such configuration"
                yield PortedPin("tool", flag, "look", says)
        recipe = self.new.recipe
        if flag := recipes.lacking_python_flag(recipe):
            toml_editing.put(self.path, ("compile", "flags"), [*recipe.compile.flags, flag])
            says = "added; Bazel downloads the Python that it builds for"
            yield PortedPin("tool", flag, "look", says)

    @property
    def _proven(self) -> str:
        """Says that a wheel of the same release was tried with what the old recipe pins, if so."""
        old = self.old.recipe
        tried = old.verified and old.verified.until in {"publish", "verify"}
        same = old.source.release == self.new.recipe.source.release
        return f", and {old.name} was built and tried with it" if tried and same else ""

    def _judge_tools(self) -> Iterator[PortedPin]:
        """Compare Python, CUDA and the target with what the new release takes."""
        recipe, proven = self.new.recipe, self._proven
        release, python, cuda = recipe.source.release, recipe.host.python, recipe.host.cuda
        state: State = "look"
        says = f"{python}; no range is known for {release}"
        if known := compatibility.python(release, recipe.source.exact.fork[:2]):
            rows = map(str, other_paths(self.path))
            pythons = [python, *(recipes.read(row).host.python for row in rows)]
            wrong = [each for each in pythons if not (each == "any" or known.contains(each))]
            says = f"{', '.join(wrong or pythons)}; {release} takes {known}"
            says += proven if wrong else ""
            state = "change" if wrong and not proven else "fits"
        yield PortedPin("tool", "Python", state, says)
        tested = compatibility.tested_with(release)
        if cuda and tested:
            same = is_of_line(cuda, tested.cuda)
            says = f"{cuda}; tested with {tested.cuda} and cuDNN {tested.cudnn}"
            says += "" if same else proven
            yield PortedPin("tool", "CUDA", "fits" if same or proven else "look", says)
        try:
            recipes.check_makes_wheel(recipe.compile.target, recipe.package, release)
        except RecipeError as fault:
            made = [recipes.TENSORFLOW_TARGET, recipes.WHEEL_TARGET]
            state, says = "change", f"{fault.what}. {fault.remedy}"
            if recipe.compile.target in made:
                made.remove(recipe.compile.target)
                toml_editing.put(self.path, ("compile", "target"), *made)
                state, says = "look", f"now {made[0]}; {fault.what}"
            yield PortedPin("tool", "compile.target", state, says)
        downloads = hermetic.downloads(self.new.recipe, self.new.job.host_file)
        for found in hermetic.contradictions(self.new.recipe, downloads):
            *tables, name = found.key
            kind: Kind = "answer" if "answers" in tables else "tool"
            name = name if kind == "answer" else ".".join(found.key)
            yield PortedPin(kind, name, "change", f"{found.what}. {found.remedy}")

    def _has_bazel(self, version: str) -> bool:
        """Return whether this host has a Bazel, or reaches the server of its releases."""
        job = self.new.job
        return bool(
            job.host_file.bazel(version)
            or binary.find_stored(version, {}, job.places.stores)
            or (not job.offline and client.ask(binary.release_url(version)).there)
        )

    def _judge_answers(self) -> Iterator[PortedPin]:
        """Remove answers that nothing asks for any more, and list the questions that are new."""
        recipe = self.new.recipe
        interview = expected.interview(recipe, HostFile())
        for fault in validation.faults(interview):
            name, answer = fault.variable, recipe.configure.answers.get(fault.variable, False)
            if "does not ask" in fault.what and (fault.now or not answer):
                # "No" to a question that is gone decides nothing; to one of another name, the same.
                toml_editing.remove_key(self.path, ("configure", "answers", name))
                if name in recipe.configure.no:
                    toml_editing.replace_item(self.path, ("configure", "no"), name, fault.now)
                elif fault.now:
                    toml_editing.put(self.path, ("configure", "answers", fault.now), answer)
                what = f"now {fault.now}" if fault.now else "removed"
                yield PortedPin("answer", name, "look", f"{what}; {fault.what}")
            else:
                state: State = "look" if fault.harmless else "change"
                yield PortedPin("answer", name, state, f"{fault.what}. {fault.remedy}")
        for prompt in expected.interview(self.new.recipe, HostFile()).unanswered():
            if prompt.empty:
                toml_editing.put(self.path, ("configure", "answers", prompt.variable), "")
                says = 'is asked, and has the answer "" now, for its default'
                yield PortedPin("answer", prompt.variable, "look", says)
                continue
            value = "false" if prompt.yes_no else '"..."'
            says = f"is asked, and has no answer. Add {prompt.variable} = {value}, or what you want"
            yield PortedPin("answer", prompt.variable, "change", says)

    def _judge_exclusions(self) -> Iterator[PortedPin]:
        """Remove the paths of ``source.exclude`` that the new commit does not have.

        Those of a few files that the server lacks are added.
        """
        while True:
            new = self.new
            try:
                external.fetch_commit(new, new.recipe.source)
            except mirror.IdleExclusionError as fault:
                toml_editing.replace_item(self.path, ("source", "exclude"), fault.path)
                says = "removed; the new tree has no such path"
                yield PortedPin("exclude", fault.path, "look", says)
            except mirror.IncompleteError as fault:
                if len(fault.paths) > MOST_ADDED:
                    raise
                added = [*new.recipe.source.exclude, *fault.paths]
                toml_editing.put(self.path, ("source", "exclude"), added)
                for path in fault.paths:
                    says = "added; the server lacks this file. See that the build does not need it"
                    yield PortedPin("exclude", path, "look", says)
            else:
                return

    def _add_programs(self) -> Iterator[PortedPin]:
        """Add the programs that the patches of other recipes run."""
        own = self.new.recipe.host.programs
        run = dict.fromkeys(program for other in self.taken for program in other.programs)
        if added := [program for program in run if program not in own]:
            toml_editing.put(self.path, ("host", "programs"), [*own, *added])
            says = f"{', '.join(added)}: added; a patch of a substitute that was taken over runs it"
            yield PortedPin("tool", "host.programs", "look", says)

    def _enter_patches(self, tried: Sequence[TriedPatch]) -> Iterator[PortedPin]:
        """Enter the patches into the new recipe, and say of each what became of it."""
        placed = [self._place_patch(patch) for patch in tried]
        names = {patch.name: patch.now for patch in placed if patch.now}
        # The author's layout of a list that stays as it is stays as well.
        before = self.new.recipe
        if (named := [*names.values()]) != [*before.source.patches]:
            toml_editing.put(self.path, ("source", "patches"), named)
        for substitute, table in before.fetch.substitutes.items():
            belonging = [names[patch] for patch in table.patches if patch in names]
            if belonging != [*table.patches]:
                self.substitutes.put_patches(substitute, belonging)
        recipe = self.new.recipe
        for patch in placed:
            says, name = patch.says, patch.now or patch.name
            if patch.fate == "redo":
                which = f"--recipe {recipe.argument} --refresh {shell_word(name)}"
                says += f"; merge it: invoke patch {which}"
            elif patch.fate == "done":
                says += "; if that does the same, or nothing needs it now, take it out of the list"
            yield PortedPin("patch", name, _STATES[patch.fate], says)

    def _try_patch(self, name: str) -> TriedPatch:
        """Try a patch that the old recipe does not have."""
        recipe = self.new.recipe
        recipe = recipe.changed(source=recipe.source.changed(patches=(name,)))
        (patch,) = patches.try_patches(self.new.job, recipe, self.repository, None)
        return patch

    def _place_patch(self, patch: TriedPatch) -> TriedPatch:
        """Return a patch with its name in the new recipe; one to redo is copied for that."""
        if patch.fate == "dropped":
            return replace(patch, says=f"removed; {patch.says}")
        if patch.fate != "redo":
            return replace(patch, now=patch.name)
        source, folder = self.new.recipe.source, patch_command.patches_of(self.path)
        place = patches.patch_path(folder / source.branch.replace("/", "-"), patch.name)
        moved = replace(patch, now=str(place.relative_to(folder)))
        if place.exists():
            # Another recipe was ported to this branch; its patch may be redone there by now.
            there = self._try_patch(moved.now)
            fate: Fate = "compare" if there.fate == "kept" else "redo"
            says = "is in the folder of the new branch already; see that it makes the same change"
            return replace(moved, fate=fate, says=f"{says}; {there.says}")
        self.made.append(place)
        # That of another recipe was made for another commit.
        bases = {name: other.commit for other in self.taken for name in other.patches}
        bases |= dict.fromkeys(self.old.recipe.source.patches, self.old.recipe.source.commit)
        patches.copy_for_redo(source.file(patch.name), place, bases[patch.name])
        return moved

    def _with_taken_patches(self, tried: Sequence[TriedPatch]) -> list[TriedPatch]:
        """Put the patch of a substitute that was taken over in the place of the old one's.

        Both make what the archive lacks, so that a report of each would be two findings for one.
        """
        found = list(tried)
        for other in self.taken:
            for name in other.patches:
                what = Path(name).name.partition("-")[2]
                old = [patch for patch in found if Path(patch.name).name.partition("-")[2] == what]
                if any(patch.name == name for patch in old):
                    continue
                patch = self._try_patch(name)
                if patch.fate != "kept" and old and old[0].fate == "kept":
                    says = f"{old[0].says}; it was made for another archive of {other.name}"
                    found[found.index(old[0])] = replace(old[0], fate="compare", says=says)
                    continue
                says = f"{patch.says}; it belongs to the substitute {other.name}"
                if old:
                    says += f", and replaces {old[0].name}"
                place = found.index(old[0]) if old else len(found)
                found[place : place + len(old)] = [replace(patch, says=says)]
        return found

    def _judge_substitutes(
        self, old: Rules | None, new: Rules | None, compared: archives.ComparedArchives | None
    ) -> Iterator[PortedPin]:
        """Say of each substitute whether the archive that it replaces is still the pinned one.

        Where another recipe replaces the new one already, its substitute is taken over.
        """
        recipe = self.new.recipe
        others = archives.other_substitutes(recipe.source.url)
        for name, table in recipe.fetch.substitutes.items():
            before = archives.pins_named(old, name)
            after = archives.pins_named(new, name)
            state: State = "look"
            if before & after or table.replaces in after:
                state, says = "fits", "the tree still pins the same archive"
            elif other_name := archives.name_of_archive(new, table.replaces):
                self.substitutes.replace_texts(name, {f".{name}]": f".{other_name}]"})
                state, says = "fits", f"now {other_name}, as the new tree names the same archive"
            elif new is not None and not after:
                self.substitutes.put_table(name)
                says = "removed; the new tree pins no archive of this name"
            elif compared and compared.is_available(name):
                self.substitutes.put_table(name)
                says = "removed; a source on this host has the archive that the new tree pins"
            elif changes := archives.commit_changes(self.new, name, table, old, new):
                self.substitutes.replace_texts(name, changes)
                says = "packs the commit that the new tree pins now, as the old one's before"
            elif other := archives.find_substitute(after, others):
                self.substitutes.put_table(name, other.lines)
                says = f"the tree pins another archive; taken over from {other.recipe}"
                self.taken.append(other)
            else:
                # Without the substitute, the pinned archive is asked for like any other.
                state, says = "change", archives.unreplaced_remedy(new, name)
            yield PortedPin("substitute", name, state, says)
        lacking = compared.lost - compared.unneeded if compared else set()
        for name in sorted(lacking - recipe.fetch.substitutes.keys()):
            if other := archives.find_substitute(archives.pins_named(new, name), others):
                self.substitutes.put_table(name, other.lines)
                self.taken.append(other)
                says = f"no source on this host has the archive; taken over from {other.recipe}"
                yield PortedPin("substitute", name, "look", says)

    def _remove_build_packages(self) -> None:
        """Remove the packages of the build, those that `invoke pin` resolved included."""
        toml_editing.remove_key(self.path, ("host", "requirements"))
        values = recipe_values(self.path)
        for place in (file for file in self.made if file.suffix == PINS):
            pins = load(place, PinsFile)
            verify = sorted((*pins.both, *pins.verify))
            files.write(place, pins_text(pins_head(place), values, (), verify))

    def _judge_requirements(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> Iterator[PortedPin]:
        """Hold the packages against setup.py, and name the command that resolves them."""
        recipe = self.new.recipe
        pins, python = recipe.verify.requirements, recipe.host.python
        old, setup = tree_files.setup_of(before), tree_files.setup_of(after)
        found = list(tree_files.judge_pins(pins, setup, python))
        if fitting := ", ".join(pin.name for pin in found if not pin.asks):
            yield PortedPin("requirement", "of setup.py", "fits", fitting)
        lists = named_packages(recipe_values(self.path))
        # A recipe may name none of them, and only have what pip resolved.
        direct = chain(*lists.values(), () if lists["verify.requirements"] else pins)
        gone = {canonicalize_name(each.name) for each in tree_files.required_packages(old, python)}
        gone.difference_update(pin.name for pin in found)
        if idle := found and gone.intersection(map(name_of, direct)):
            says = "setup.py no longer requires this: remove it, unless the build imports it"
            yield PortedPin("requirement", ", ".join(sorted(idle)), "look", says)
        built, lacking = {name_of(pin) for pin in recipe.host.requirements}, set[str]()
        if recipes.hermetic_python(recipe.source.release):
            if built:
                self._remove_build_packages()
                says = "removed; Bazel builds with its own Python and packages"
                yield PortedPin("requirement", "host.requirements", "look", says)
            built.clear()
        elif built and (required := tree_files.required_packages(setup, python)):
            lacking = {*tree_files.build_packages(recipe.source.release, required)} - built
        redo = [pin for pin in found if pin.asks or pin.name in lacking]
        redo += map(tree_files.JudgedPin, sorted(lacking.difference(pin.name for pin in found)))
        if redo:
            own = self.path.with_suffix(PINS)
            line = line_of(self.path.read_text("utf-8"), ("verify", "requirements"))
            where = own.name if own.is_file() else f"line {line}"
            asked = tree_files.pin_options(redo, built | lacking)
            reasons = [pin.says or f"{pin.name} (the build imports it)" for pin in redo]
            says = (
                f"it requires {', '.join(reasons)}. Resolve {where} again: "
                f"invoke pin --recipe {recipe.argument} {asked}"
            )
            yield PortedPin("requirement", "of setup.py", "change", says)
