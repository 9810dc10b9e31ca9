"""The external repositories of a recipe's tree: rules, files, and the lock that fits."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from tfwright.documents.recipe import BazelTable, FetchTable, Recipe, SourceTable
from tfwright.host import hermetic
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Inputs, Programs, Unpinned
from tfwright.progress import Progress
from tfwright.rules import listings, modules, patched_tree, repositories
from tfwright.rules.listings import Environment
from tfwright.rules.model import Rules
from tfwright.rules.patched_tree import PatchedTree, Readings
from tfwright.tools import files, json_text, trees
from tfwright.tools.bazel.binary import platform_name, release_url, workspace_texts
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.git.repository import GitRepository
from tfwright.vault import lock, locking, origins, reach, shortage, substitutes
from tfwright.vault.lock import Lock, LockedBazel, LockedBinary, LockedFile, Tensorflow
from tfwright.vault.origins import Origins, Supply, WantedArchive
from tfwright.vault.reach import Reached, Suppliers
from tfwright.vault.store import Store


@dataclass(frozen=True)
class RecipePins:
    """The tables of a recipe that decide which external repositories there are, and their bytes."""

    source: SourceTable
    bazel: BazelTable
    fetch: FetchTable
    environment: Environment = field(default_factory=Environment)
    """What chooses among the files that rules list by version and platform."""

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """Return those of a whole recipe."""
        environment = hermetic.environment(
            recipe.source, recipe.host, recipe.configure, recipe.compile
        )
        return cls(recipe.source, recipe.bazel, recipe.fetch, environment)


def store(job: Job) -> Store:
    """Return where the compile stage lets Bazel look before it downloads."""
    return Store(job.places.archives)


def origin(job: Job, url: str) -> Origin:
    """Return the repository that is asked for a url: the host file may name a mirror of it."""
    return Origin.of(job.host_file.mirror_of(url) or url)


def fetch_commit(job: Job, source: SourceTable, *, about_branch: bool = False) -> Path:
    """Bring the pinned commit into the mirror of its repository, and return the mirror.

    `about_branch` says whether to note where the branch is now. Raises SupplyError if the
    repository does not give the commit.
    """
    return mirror.fetch(
        Pin.of(source),
        job.places.git,
        origin(job, source.url),
        job.listener,
        offline=job.offline,
        about_branch=about_branch,
    )


def rules_of(
    readings: Readings, tree: Path, table: SourceTable, content: str, starts: Sequence[str]
) -> Rules:
    """Return the rules of a content of the patched tree, from the files that Bazel begins with."""
    # git's ids decide the texts: where those are as before, the files are not even taken out.
    names = patched_tree.rule_files(tree, table, content)
    begun = [name for name in starts if name in names] or starts
    found = readings.read_once(
        [names, begun],
        lambda: repositories.read(patched_tree.rule_texts(tree, table, content), begun),
        Rules,
    )
    return found or Rules((), ())


@dataclass(frozen=True)
class ExternalRules:
    """The external repositories of a recipe's tree, as its pins and this host's programs are."""

    job: Job
    pins: RecipePins
    repository: Path
    """The mirror that holds the pinned commit."""
    programs: Programs | None = None

    @property
    def origins(self) -> Origins:
        """Where their files are looked for."""
        job = self.job
        return Origins(job.host_file, job.places.git, job.offline, self.pins.fetch)

    @cached_property
    def content(self) -> str:
        """Git's id of the commit as the recipe's patches leave it; no file is checked out."""
        table = self.pins.source
        return PatchedTree(
            self.job.places.patched, table, self.repository, table.commit
        ).apply_all()

    def text(self, path: str) -> str:
        """Return a file of that content; empty if it has none."""
        return patched_tree.text(self.job.places.patched, self.content, path)

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The files of that content from which Bazel reads dependencies."""
        bazelrc = self.text(patched_tree.BAZELRC)
        return modules.starting_files(bazelrc, self.pins.environment.flags, self.pins.bazel.version)

    @cached_property
    def environment(self) -> Environment:
        """What chooses among the files that rules list, as .bazelrc of the content also says."""
        return self.pins.environment.of_tree(self.text(patched_tree.BAZELRC))

    def rules(self) -> Rules:
        """Return the rules of that content, and Bazel's own; what was read is not read again."""
        table, tree, content = self.pins.source, self.job.places.patched, self.content
        readings = Readings(self.job.places.readings)
        found = rules_of(readings, tree, table, content, self.starts)
        found = substitutes.with_checksums(found, self.pins.fetch.substitutes)
        if self.programs is None or patched_tree.WORKSPACE not in self.starts:
            return found
        # Bazel downloads archives that no WORKSPACE names, such as rules_cc from 0.29 on.
        texts = workspace_texts(self.programs.bazel.path)
        of_bazel = readings.read_once(
            ["Bazel", texts], lambda: repositories.read_bazel(texts), Rules
        )
        return found + of_bazel if of_bazel else found

    def without_unneeded(self, locked: Lock | None) -> Self:
        """Return the same without the substitutes whose pinned archives can be had.

        Those are the ones that say ``only_if_missing``. The lock decides, where there is one.
        """
        fetch = self.pins.fetch
        tables = {name: one for name, one in fetch.other_bytes.items() if one.only_if_missing}
        if not tables:
            return self
        found = self.rules().repositories
        pinned = {name: substitutes.replaced_archive(name, found) for name in tables}
        wanted = [WantedArchive(name, one.sha256, one.urls) for name, one in pinned.items()]
        if locked:
            replaced = {one.sha256 for one in locked.substitutes}
            had = [one.name for one in wanted if one.sha256 not in replaced]
        else:
            progress = self.job.listener.progress
            ways = origins.obtain(wanted, store(self.job), self.origins, progress).ways
            had = [one.name for one in wanted if one.sha256 in ways]
        return replace(self, pins=replace(self.pins, fetch=fetch.without(had)))

    def fetch(self, locked: Lock | None) -> Reached:
        """Bring what the rules lead to into the vault.

        Without a lock it is not known yet what Bazel will want, so that a file which no source gave
        is only noted. Raises SupplyError naming everything that is known to be needed and is
        missing, RecipeError for what has no checksum.
        """
        job, pins, found = self.job, self.pins, self.rules()
        tables = pins.fetch.substitutes
        # Before any download: a substitute for an archive that the tree does not pin is a mistake.
        substitutes.check_replaced(tables, found.repositories)
        obtain = partial(
            origins.obtain, store=store(job), origins=self.origins, report=job.listener.progress
        )
        suppliers = self._suppliers(obtain, offline=job.offline)
        reached = reach.obtain_all(found, locked, suppliers)
        # What such a file declares is not known: the list of what is missing would not be whole,
        # and the lock would seem to know too much.
        substitutes.check_loads(tables, reached.rules, reached.unread)
        # Bazel applies the tree's patches only when it comes to the archive.
        unfit = reach.unfit_hunks(reached, pins.fetch.other_bytes, suppliers)
        notes = [*substitutes.check_patches(unfit), *reached.notes()]
        if loose := reached.needed_unpinned(locked):
            raise substitutes.unpinned_error(job.argument, loose, locked=locked is not None)
        missing = reached.needed_missing_archives(locked)
        refused = reached.needed_missing_clones(locked)
        idle = pins.environment.idle
        # A lock says what Bazel wants, and whoever wrote it has read this note.
        for text in () if locked else reach.left_to_bazel(reached.rules, idle):
            job.listener.note(text)
        if (compiler := listings.TARS["LLVM"]) in self.environment.tars and not locked:
            job.listener.note(
                f"{compiler} is set: with a network Bazel downloads a clang that is not "
                "compressed; without one it takes the pinned archive, which fetch brings"
            )
        # All at once: a build that stops for one archive after the other costs a minute each.
        if missing or refused:
            log = job.log("fetch-missing")
            raise shortage.error(job.argument, missing, refused, job.host_file, log)
        # Said in every build, since such a wheel is not made from what upstream pinned.
        if names := ", ".join(sorted(pins.fetch.other_bytes)):
            notes.append(f"Not the pinned bytes, for the reasons that the recipe states: {names}")
        for text in notes:
            job.listener.note(text)
        return reached

    def from_vault(self) -> Reached:
        """Read what the rules lead to with the files that are in the vault; nothing is obtained."""
        kept = store(self.job)

        def supply(wanted: Sequence[WantedArchive]) -> Supply:
            held = [archive.sha256 for archive in wanted if kept.holds(archive.sha256)]
            return Supply(dict.fromkeys(held, origins.VAULT), ())

        # Without the lock: what it calls unused may have become needed since it was written.
        return reach.obtain_all(self.rules(), None, self._suppliers(supply, offline=True))

    def _suppliers(
        self, obtain: Callable[[Sequence[WantedArchive]], Supply], *, offline: bool
    ) -> Suppliers:
        job, pins = self.job, self.pins
        cloning = partial(fetch_clone, job, offline=offline)
        readings, tables = Readings(job.places.readings), pins.fetch.substitutes
        return Suppliers(store(job), obtain, cloning, tables, readings, self.environment, self.text)

    def lock(self, reached: Reached, wanted: Mapping[str, str] | None = None) -> Lock:
        """Return the lock that fits what the inputs are now.

        `wanted` are the repositories that Bazel was seen to want, by name.
        """
        source, bazel = self.pins.source, self.pins.bazel
        binaries: dict[str, LockedBinary] = {}
        # A host of another system has no binary that could be looked at.
        if self.programs:
            stored = self.programs.bazel
            # The official address, also where a mirror gave the file: a lock holds for every host.
            binaries[platform_name()] = LockedBinary(
                url=release_url(bazel.version),
                sha256=stored.sha256,
                size=stored.path.stat().st_size,
            )
        # The tree as well: the commit's id changes when history is rewritten, the content need not.
        tree = GitRepository(self.repository).tree_of(source.commit)
        pinned = replaced_checksums(self.pins, reached.rules)
        digests = patched_tree.file_digests(source).items()
        known = Lock(
            tensorflow=Tensorflow(commit=source.commit, tree=tree),
            bazel=LockedBazel(version=bazel.version, binaries=binaries),
            files=tuple(LockedFile(path=path, sha256=sha256) for path, sha256 in digests),
            substitutes=locking.substitutes(self.pins.fetch.other_bytes, pinned),
            packages=locking.packages_of(listings.pip_pins(reached.rules, self.environment)),
        )
        return lock.with_downloads(known, reached.rules, store(self.job).sizes(), wanted)


def fetch_clone(job: Job, wanted: Clone, *, offline: bool) -> Path:
    """Bring a commit that a rule clones to this host, and return its repository."""
    if not offline:
        job.listener.progress(Progress(0, 1, "commits", wanted.remote))
    return clones.fetch(wanted, job.places.git, origin(job, wanted.remote), offline=offline)


def lock_of_inputs(job: Job, pins: RecipePins, inputs: Inputs) -> Lock:
    """Return the lock that would fit what was brought for a recipe that has none.

    Nothing is downloaded, and nothing is reported.
    """
    # The stage that asks, seal, was promised no network; fetch has brought everything.
    pins = replace(pins, fetch=inputs.used_substitutes(pins.fetch))
    external = ExternalRules(job, pins, inputs.mirror, inputs.programs)
    return external.lock(external.from_vault())


def registry_files(job: Job, found: Rules) -> dict[str, str]:
    """Return the files of module registries that are in the vault, checksum by path."""
    kept = store(job)
    return {
        modules.registry_path(file.urls[0]): file.sha256
        for file in found.repositories
        if file.rule in {modules.REGISTRY, modules.PATCH} and kept.path(file.sha256).is_file()
    }


def unpinned_downloads(found: Rules) -> list[Unpinned]:
    """Return what rules download without a checksum, in case that a build fails for it."""
    return [
        Unpinned(
            name=entry.name,
            urls=entry.urls,
            lines=tuple(substitutes.declaration_lines(entry)),
            by_table=bool(substitutes.table_lines(entry)),
        )
        for entry in reach.unpinned_downloads(found)
    ]


def replaced_checksums(pins: RecipePins, found: Rules) -> dict[str, str]:
    """Return the checksums of the pinned archives that the recipe replaces, by repository."""
    return {
        name: substitutes.replaced_archive(name, found.repositories).sha256
        for name in sorted(pins.fetch.other_bytes)
    }


def record_repositories(output_base: Path, kept: Path) -> None:
    """Write down what the external repositories hold; what was read before is not read again."""
    before = _read_record(kept)
    found = {
        name: _repository_state(path, before.get(name)) for name, path in _repositories(output_base)
    }
    files.write(kept, json.dumps(found, indent=1))


def changed_repositories(output_base: Path, kept: Path) -> list[str]:
    """Return the repositories that hold something else than Bazel left in them.

    One of a run that was killed, which is not recorded, counts as unchanged.
    """
    before = _read_record(kept)
    return [
        name
        for name, path in _repositories(output_base)
        if name in before and _repository_state(path, before[name])[1] != before[name][1]
    ]


def discard_repository(output_base: Path, name: str) -> None:
    """Remove a repository, with what tells Bazel that it is there."""
    folder = output_base / "external"
    files.remove(folder / f"@{name}.marker")
    files.remove(folder / name)


def _repositories(output_base: Path) -> Iterator[tuple[str, Path]]:
    folder = output_base / "external"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        # A link leads to a directory elsewhere: Bazel's own, or one that a rule names.
        if path.is_dir() and not path.is_symlink():
            yield path.name, path


def _repository_state(path: Path, before: tuple[str, str] | None) -> tuple[str, str]:
    glance = trees.state_digest(path)
    if before and before[0] == glance:
        return before
    return glance, trees.content_digest(path)


def _read_record(kept: Path) -> Mapping[str, tuple[str, str]]:
    """Return what was written down; nothing where that is missing or damaged."""
    return {
        name: (state[0], state[1])
        for name, state in json_text.load_object(kept).items()
        if isinstance(state, list) and [type(part) for part in state] == [str, str]
    }
