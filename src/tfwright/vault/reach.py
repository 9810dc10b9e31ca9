"""What a recipe's tree downloads, and how it gets into the vault.

An archive may hold rules that declare more: they are read once the archive is there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from tfwright.documents.recipe import SubstituteTable
from tfwright.errors import RecipeError, SupplyError, TfwrightError
from tfwright.printable import listed
from tfwright.rules import listings, repositories
from tfwright.rules.listings import BY_VERSION, PYTHON_URL, Environment
from tfwright.rules.model import Linked, Reference, Repository, Rules
from tfwright.rules.patched_tree import Readings, is_relevant
from tfwright.rules.starlark.language import LONGEST_FILE
from tfwright.tools import files, unpacking
from tfwright.tools.git import patching
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.patching import HunkPlace
from tfwright.tools.git.repository import GitRepository
from tfwright.vault import substitutes
from tfwright.vault.lock import Lock
from tfwright.vault.origins import SHOWN, Missing, Supply, WantedArchive
from tfwright.vault.store import Store

MOST_RULES = 64 * 2**20
"""Characters of rules that are read of one archive; TensorFlow's have less than five million."""
_PYTHONS = ("python_register_toolchains:", "python_repository:")
"""Rules of rules_python that declare an interpreter."""


@dataclass(frozen=True)
class Suppliers:
    """What brings files and commits to this host, and decides which."""

    store: Store
    obtain: Callable[[Sequence[WantedArchive]], Supply]
    clone: Callable[[Clone], Path]
    """Brings a commit that a rule clones and returns its repository, or raises SupplyError or
    RecipeError."""
    substitutes: Mapping[str, SubstituteTable] = field(default_factory=dict)
    """What replaces archives, by the names of those."""
    readings: Readings = field(default_factory=lambda: Readings(None))
    """The rules that earlier runs read."""
    environment: Environment = field(default_factory=Environment)
    """What chooses among the files that rules list."""
    text: Callable[[str], str] = lambda _: ""
    """Returns a file of the tree, such as a patch that its rules apply; empty if there is none."""


@dataclass
class Reached:
    """What the rules of a tree lead to, and what of it could be obtained."""

    rules: Rules
    supply: Supply
    clone_results: dict[Clone, Path | TfwrightError]
    """The commits that rules clone: the repository that holds each, or why none does."""
    unread: Sequence[Reference] = ()
    """Loads of archives and commits that are here, and have no such file."""

    @property
    def clones(self) -> dict[Clone, Path]:
        """The commits that are here, and their repositories."""
        return {
            clone: found for clone, found in self.clone_results.items() if isinstance(found, Path)
        }

    @property
    def missing_clones(self) -> dict[Clone, TfwrightError]:
        """The commits that are not, and why."""
        return {
            clone: why for clone, why in self.clone_results.items() if not isinstance(why, Path)
        }

    def needed_missing_archives(self, lock: Lock | None) -> list[Missing]:
        """Return the missing archives that the build is known to need.

        Those are the ones that Bazel was seen to want when the lock was written; the ones that hold
        a file which WORKSPACE loads, without which Bazel reads no other rule; and every substitute.
        """
        archives, replaced = (lock.archives, lock.substitutes) if lock else ((), ())
        # The lock speaks of the archives that the tree pins, the supply of what replaces them.
        used = {substitute.sha256: substitute.used for substitute in replaced}
        needed = {used.get(one.sha256, one.sha256) for one in archives if one.needed}
        needed.update(one.sha256 for one in _repositories_with_rules(self.rules) if one.sha256)
        return [
            missing
            for missing in self.supply.missing
            if missing.wanted.sha256 in needed or missing.wanted.substitute
        ]

    def needed_missing_clones(self, lock: Lock | None) -> dict[Clone, TfwrightError]:
        """Return the commits that could not be obtained and that the build is known to need."""
        needed = {clone.clone for clone in (lock.clones if lock else ()) if clone.needed}
        needed |= {one.clone for one in _repositories_with_rules(self.rules) if one.clone}
        return {clone: why for clone, why in self.missing_clones.items() if clone in needed}

    def needed_unpinned(self, lock: Lock | None) -> list[Repository]:
        """Return the declarations without a checksum that the build is known to need."""
        entries = lock.unlockable if lock else ()
        needed = {(entry.name, entry.file, entry.line) for entry in entries if entry.needed}
        # Where a name is declared twice, the pinned one may be the one that Bazel takes.
        pinned = {repository.name for repository in self.rules.repositories if repository.pinned}
        loaded = _names_with_rules(self.rules) - pinned
        return [
            repository
            for repository in self.rules.repositories
            if not repository.pinned
            and (
                (repository.name, repository.file, repository.line) in needed
                or (repository.reached and repository.name in loaded)
            )
        ]

    def notes(self) -> Iterator[str]:
        """Say it in a few sentences; nothing if nothing was wanted."""
        yield from self.supply.notes()
        if self.clones:
            remotes = ", ".join(clone.remote for clone in self.clones)
            yield f"The commits that rules clone are on this host: {remotes}"
        for clone, fault in self.missing_clones.items():
            yield (
                f"{clone.commit[:12]} of {clone.remote} was not found, "
                f"and Bazel will say if it wants it: {fault.what}"
            )


def unpinned_downloads(rules: Rules) -> list[Repository]:
    """Return what rules download without a checksum."""
    return [
        entry
        for entry in rules.repositories
        # A container's image has no url, and no wheel is made of one.
        if any("://" in url for url in entry.urls) and not entry.pinned
    ]


def left_to_bazel(rules: Rules, idle: tuple[str, ...] = ()) -> Iterator[str]:
    """Say what of the rules fetch cannot bring, so that a build needs a network for it.

    Files that end so are left out: their rules download nothing for this recipe.
    """
    own = {one.name for one in rules.repositories if one.of_tree and one.reached and one.pinned}
    names = [
        f"{entry.name or entry.rule} ({entry.file}:{entry.line})"
        for entry in unpinned_downloads(rules)
        # What the tree declares by that name comes before.
        if entry.of_tree or entry.name not in own
    ]
    if names:
        yield f"No checksum is known, so that Bazel downloads it by itself: {listed(names, SHOWN)}"
    # The interpreter that these declare is chosen by its version, as fetch knows it.
    chosen = (one for one in rules.repositories if one.rule in {BY_VERSION, PYTHON_URL})
    python = {one.name.partition("_")[0] for one in chosen}
    known = _PYTHONS if "python" in python else ()
    unread = [
        one
        for one in rules.unreadable
        if one.reached and not one.why.startswith(known) and not one.file.endswith(idle)
    ]
    leading = _names_with_rules(rules)
    alone = {one.name: one for one in unread if one.name and one.name not in leading}
    places = [f"{one.file}:{one.line} {one.why}" for one in unread if one.name not in alone]
    if places:
        yield (
            "What these places declare was not read; what a build wants of it, Bazel downloads by "
            f"itself, and without a network it fails: {listed(places, SHOWN)}"
        )
    if alone:
        wanted = [f"{name} ({one.file}:{one.line})" for name, one in alone.items()]
        yield (
            "Only a target that needs one of these wants a network for it, since a rule's code "
            f"downloads there: {listed(wanted, SHOWN)}"
        )


def obtain_all(found: Rules, lock: Lock | None, suppliers: Suppliers) -> Reached:
    """Obtain what the rules of a tree name, then what that declares, until nothing is new.

    What the lock knows that Bazel does not want is left out, unless it declares more.
    """
    environment, content = suppliers.environment, partial(_listing, suppliers.store)
    reached = Reached(listings.with_chosen_files(found, environment, content), Supply({}, ()), {})
    followed = dict[Reference, Rules]()
    while True:
        # Each round may bring archives whose rules declare more, as rules_closure does.
        before = {*reached.supply.ways, *(one.wanted.sha256 for one in reached.supply.missing)}
        archives = wanted_archives(reached.rules, suppliers.substitutes, lock)
        reached.supply += suppliers.obtain([one for one in archives if one.sha256 not in before])
        for commit in wanted_clones(reached.rules, lock):
            if commit not in reached.clone_results:
                try:
                    reached.clone_results[commit] = suppliers.clone(commit)
                except (SupplyError, RecipeError) as fault:
                    reached.clone_results[commit] = fault
        # Each round has fewer of them to read.
        unread = [reference for reference in reached.rules.references if reference not in followed]
        more = {reference: _read_reference(reference, reached, suppliers) for reference in unread}
        followed |= {reference: behind for reference, behind in more.items() if behind}
        rules = listings.with_chosen_files(
            repositories.join_rules(found, followed), environment, content
        )
        # A list of files that was brought names more as well.
        if not any(more.values()) and {*rules.repositories} <= {*reached.rules.repositories}:
            break
        reached.rules = rules
    here = {
        one.name for one in reached.rules.repositories if _content_reader(one, reached, suppliers)
    }
    loads = reached.rules.loads
    reached.unread = [load for load in loads if load not in followed and load.archive in here]
    return reached


def _listing(store: Store, sha256: str) -> bytes | None:
    """Return a list of files that is in the vault; None if it is not, or is none."""
    path = store.path(sha256)
    listing = path.is_file() and path.stat().st_size <= LONGEST_FILE
    return files.content(path) if listing else None


def wanted_archives(
    found: Rules, tables: Mapping[str, SubstituteTable], lock: Lock | None
) -> list[WantedArchive]:
    """Return the files that WORKSPACE leads to, each once, or their substitutes."""
    # Bazel may not want an archive, and still WORKSPACE loads a file of it.
    leading = _names_with_rules(found)
    locked = lock.archives if lock else ()
    idle = {
        archive.sha256
        for archive in locked
        if archive.needed is False and leading.isdisjoint(archive.names)
    }
    needed = {archive.sha256 for archive in locked if archive.needed}
    sizes = {archive.sha256: archive.size for archive in locked}
    found_files: dict[str, WantedArchive] = {}
    for repository in found.repositories:
        name, sha256 = repository.name, repository.sha256
        # The lock knows of archives that Bazel wants although reading did not find the way to them.
        sought = repository.reached or sha256 in needed
        if not (repository.lockable and sought) or sha256 in idle:
            continue
        if table := tables.get(name):
            file = substitutes.wanted_archive(name, table, repository)
        else:
            size, own = sizes.get(sha256), repository.of_tree
            file = WantedArchive(name, sha256, repository.urls, size, of_tree=own)
        # A file from which several repositories are made is obtained once, from all urls.
        if before := found_files.get(file.sha256):
            names = dict.fromkeys([*before.name.split(", "), name])
            urls = dict.fromkeys((*before.urls, *file.urls))
            file = replace(before, name=", ".join(names), urls=tuple(urls))
        found_files[file.sha256] = file
    return list(found_files.values())


def wanted_clones(found: Rules, lock: Lock | None) -> list[Clone]:
    """Return the commits that rules clone to which WORKSPACE leads, each once."""
    leading = _names_with_rules(found)
    idle = {
        cloned.clone
        for cloned in (lock.clones if lock else ())
        if cloned.needed is False and leading.isdisjoint(cloned.names)
    }
    pinned = [repository.clone for repository in found.repositories if repository.reached]
    return list(dict.fromkeys(clone for clone in pinned if clone and clone not in idle))


def _names_with_rules(found: Rules) -> set[str]:
    """Return the repositories without which Bazel cannot read all rules."""
    leading = {reference.archive for reference in found.references}
    # @python is made of the interpreter for a platform, whose repository has another name.
    if "python" in leading:
        chosen = (one.name for one in found.repositories if one.rule == BY_VERSION)
        leading.update(name for name in chosen if name.startswith("python_"))
    return leading


def _repositories_with_rules(found: Rules) -> list[Repository]:
    """Return what declares these repositories, as Bazel takes it."""
    leading = _names_with_rules(found)
    own = {one.name for one in found.repositories if one.reached and one.of_tree}
    own |= {link.name for link in found.linked if not link.archive}
    return [
        one
        for one in found.repositories
        if one.name in leading and (one.of_tree or one.name not in own)
    ]


def _read_reference(reference: Reference, reached: Reached, suppliers: Suppliers) -> Rules | None:
    """Return what is behind a nested call or a load, read unless an earlier run read the same.

    None if its repository is not here, or has no rules.
    """
    links = (link for link in reached.rules.linked if link.name == reference.archive)
    link = next(links, Linked(reference.archive, reference.archive, ""))
    contents = (
        (repository, _content_reader(repository, reached, suppliers))
        for repository in reached.rules.repositories
        if repository.name == link.archive and repository.reached
    )
    found = next(((one, content) for one, content in contents if content), None)
    if found is None:
        return None
    repository, (where, read) = found
    beginning = f"{link.folder}/" if link.folder else ""
    # The tree's patches may pin other files than the archive does.
    patches = _patch_texts(repository, reached, suppliers)

    def follow() -> Rules | None:
        found = {
            path.removeprefix(beginning): text
            for path, text in patching.patch_texts(read(None), patches, is_relevant)[0].items()
            if path.startswith(beginning)
        }
        return repositories.follow(reference, found) if found else None

    # The digest of an archive decides all of its files, so that it is not even opened again.
    what = [*where, *patches.values(), link.folder, asdict(reference)]
    return suppliers.readings.read_once(what, follow, Rules)


def _patch_texts(repository: Repository, reached: Reached, suppliers: Suppliers) -> dict[str, str]:
    """Return the patches of a rule that are here, by path."""
    found = {
        path: "" if path.startswith("@") else suppliers.text(path) for path in repository.patches
    }
    for other in reached.rules.repositories:
        beginning = f"@{other.name}//"
        names = frozenset(
            path.removeprefix(beginning) for path in found if path.startswith(beginning)
        )
        # One that an archive brings for another.
        if names and other.reached and (content := _content_reader(other, reached, suppliers)):
            for name, text in content[1](names).items():
                found[beginning + name] = found[beginning + name] or text
    return {path: text for path, text in found.items() if text}


def unfit_hunks(
    reached: Reached, names: Iterable[str], suppliers: Suppliers
) -> Sequence[tuple[str, str, HunkPlace]]:
    """Return the hunks of the tree's patches that do not fit a substitute which is here.

    They come with the name of the substitute, one of `names`, and the path of the patch, and are
    looked for unless an earlier run did.
    """
    judged = []
    for name in names:
        repository = substitutes.replaced_archive(name, reached.rules.repositories)
        patches = _patch_texts(repository, reached, suppliers)
        content = _content_reader(repository, reached, suppliers) if patches else None
        if content:
            judged.append((name, patches, *content))

    def misfits() -> list[tuple[str, str, HunkPlace]]:
        found = []
        for name, patches, _, read in judged:
            wanted = frozenset(patching.named_paths(patches.values()))
            for patch, place in patching.patch_texts(read(wanted), patches, wanted.__contains__)[1]:
                found.append((name, patch, place))
        return found

    what = ["unfit", *([name, patches, where] for name, patches, where, _ in judged)]
    kind = list[tuple[str, str, HunkPlace]]
    return suppliers.readings.read_once(what, misfits, kind) or []


def _content_reader(
    repository: Repository, reached: Reached, suppliers: Suppliers
) -> tuple[list[str], Callable[[frozenset[str] | None], dict[str, str]]] | None:
    """Return what decides a repository's files, and what reads the named ones, or those of rules.

    None if it is not here.
    """
    sha256, prefix = repository.sha256, repository.strip_prefix
    if table := suppliers.substitutes.get(repository.name):
        # It may be laid out otherwise than the archive that the rule expects.
        sha256 = table.sha256
        prefix = prefix if table.strip_prefix is None else table.strip_prefix
    path, clone = suppliers.store.path(sha256), repository.clone
    if repository.lockable and path.is_file():
        return [sha256, prefix], partial(archive_texts, path, prefix)
    if clone and clone in reached.clones:
        place, commit = GitRepository(reached.clones[clone]), clone.commit
        return [commit], lambda names: place.texts(commit, _name_filter(names))
    return None


def _name_filter(names: frozenset[str] | None) -> Callable[[str], bool]:
    return is_relevant if names is None else names.__contains__


# Each call and each load of an archive reads it, and LLVM's takes a minute to unpack.
@lru_cache(maxsize=8)
def archive_texts(
    archive: Path, strip_prefix: str, names: frozenset[str] | None = None
) -> dict[str, str]:
    """Return the named files of an archive, or those of rules, by their paths below `strip_prefix`.

    A file that is not an archive has none, nor has one that cannot be read: Bazel says what is
    wrong with it.
    """
    # Bazel strips whole directories: "a" must not match "ab/".
    beginning = f"{strip_prefix}/" if strip_prefix else ""
    wanted = _name_filter(names)
    found: dict[str, str] = {}
    left = MOST_RULES
    # A file of rules is small: larger members are not even unpacked.
    largest = LONGEST_FILE if names is None else MOST_RULES
    with suppress(SupplyError), unpacking.as_supply_error(archive.name):
        for member, size, opened in unpacking.plain_files(archive):
            path = member.removeprefix("./")
            inner = path.removeprefix(beginning)
            if size <= largest and path.startswith(beginning) and wanted(inner):
                with opened() as stream:
                    found[inner] = stream.read().decode("utf-8", "replace")
                left -= len(found[inner])
            # A small archive may unpack to more than the memory.
            if left < 0:
                return {}
        return found
    return {}
