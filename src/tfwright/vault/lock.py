"""The lock: every input of a build by its checksum, in a TOML file next to the recipe."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, StringConstraints

from tfwright.documents.names import LONGEST_URL, Commit, InnerPath, Line, Sha256, Version
from tfwright.documents.recipe import BazelTable, SourceTable
from tfwright.documents.toml import Table, load
from tfwright.errors import RecipeError
from tfwright.printable import shell_word
from tfwright.rules.model import Repository, Rules
from tfwright.rules.recognisers import DOWNLOADS, NAME, URL
from tfwright.tools.git.clones import Clone
from tfwright.vault import registries

HEADER = (
    "# Written by `invoke lock`; `invoke build` refuses an input that differs. "
    "Not meant to be edited.\n\n"
)
LARGEST = 64 * 2**30
"""Bytes that one input may have."""

Entry = TypeVar("Entry", bound=Table)
Pin = TypeVar("Pin", str, Clone)


def _url(text: str) -> str:
    # Locks come with bundles and repositories of strangers, and an address reaches
    # Bazel and git.
    if (
        not re.fullmatch(f"{URL}|{registries.PATTERN}", text)
        or not text.isprintable()
        or len(text) > LONGEST_URL
    ):
        raise ValueError(
            "must be one http, https, ftp or file url, or a package url, "
            f"without blanks and control characters, of {LONGEST_URL:,} characters at most"
        )
    return text


def _sorted(key: Callable[[Entry], str]) -> AfterValidator:
    """Bring entries into the order of their keys, and refuse two of one key."""

    def check(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        # The order is that of the keys, so that a new lock differs from the old one
        # only in what changed, whatever order the rules were read in.
        for name, count in Counter(map(key, entries)).items():
            if count > 1:
                raise ValueError(f"{name} is there {count} times")
        return tuple(sorted(entries, key=key))

    return AfterValidator(check)


Url = Annotated[str, AfterValidator(_url)]
RepositoryName = Annotated[str, StringConstraints(pattern=f"^{NAME}$")]
Size = Annotated[int, Field(ge=0, le=LARGEST, strict=True)]
"""In bytes."""
ImageDigest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Platform = Annotated[str, StringConstraints(pattern=r"^(linux|darwin)-(x86_64|arm64)$")]


class LockedBinary(Table):
    """A Bazel binary."""

    url: Url
    """Where it is published."""
    sha256: Sha256
    size: Size


class Tensorflow(Table):
    """The source."""

    commit: Commit
    tree: Commit
    """Git's id of the commit's tree: it stays when history is rewritten or the repository moves."""


class LockedBazel(Table):
    """Which Bazel."""

    version: Version
    binaries: dict[Platform, LockedBinary] = {}


class LockedArchive(Table):
    """A file that a repository rule downloads."""

    names: tuple[RepositoryName, ...]
    """The repositories that are made from it."""
    urls: tuple[Url, ...]
    """Where the rules look for it; a file of a package registry by its package URL, whatever host
    it is asked of."""
    sha256: Sha256
    size: Size | None = None
    """Missing until it was obtained once."""
    needed: bool | None = None
    """Whether Bazel was seen to want it for this recipe's target, or reads a file of it before it
    makes any repository; missing if Bazel was not asked, or cannot tell."""
    of_bazel: bool = False
    """Whether the pinned Bazel declares it, and not the tree."""


class Cloned(Table):
    """A commit that a repository rule clones: its id stands for all its files."""

    names: tuple[RepositoryName, ...]
    """The repositories that are made from it."""
    remote: Line
    """As the rules spell it."""
    commit: Commit
    needed: bool | None = None
    """Whether Bazel was seen to want it for this recipe's target; missing if Bazel was not
    asked."""

    @property
    def clone(self) -> Clone:
        """What there is to clone."""
        return Clone(self.remote, self.commit)


class LockedRequirement(Table):
    """A package of the target Python that the build imports."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    version: Version
    hashes: Annotated[tuple[Sha256, ...], Field(min_length=1)]
    """Of the files that pip may choose."""


class LockedFile(Table):
    """A patch or an asset."""

    path: InnerPath
    """Under patches/."""
    sha256: Sha256


class LockedPackage(Table):
    """A package of the toolkit."""

    part: Line
    """``cuda``, ``cudnn``, ``compiler`` and so on."""
    name: Line
    """Of the file, or its address."""
    sha256: Sha256


class LockedImage(Table):
    """The container image that the build runs in."""

    name: Line
    digest: ImageDigest
    parts: Annotated[tuple[ImageDigest, ...], Field(min_length=1)]
    """Of its configuration and its layers, on the host that wrote the lock."""
    size: Size


class Unlockable(Table):
    """Something that is downloaded, or may be, and that no digest holds."""

    name: Line
    file: InnerPath
    line: Annotated[int, Field(ge=1, strict=True)]
    why: Line
    needed: bool | None = None
    """Whether Bazel was seen to want it for this recipe's target; missing if Bazel was not asked,
    or cannot tell."""


class LockedSubstitute(Table):
    """Bytes that replace an archive: the wheel is then not built from the pinned ones."""

    sha256: Sha256
    """Of the archive that they stand in for."""
    source: Line
    reason: Annotated[Line, Field(min_length=1)]
    used: Sha256
    """Of what is used instead."""


def _archive(entry: LockedArchive) -> str:
    return f"archive {', '.join(entry.names) or 'without a name'} ({entry.sha256[:16]}…)"


def _clone(entry: Cloned) -> str:
    return f"commit {entry.commit[:12]} of {entry.remote}"


def _requirement(entry: LockedRequirement) -> str:
    return f"requirement {entry.name}"


def _file(entry: LockedFile) -> str:
    return f"file {entry.path}"


def _package(package: LockedPackage) -> str:
    return f"toolkit {package.part}: {package.name}"


def _unlockable(entry: Unlockable) -> str:
    return f"unlockable {entry.name} ({entry.file}:{entry.line}: {entry.why})"


def _substitute(entry: LockedSubstitute) -> str:
    return f"substitute for {entry.sha256[:16]}…"


class Lock(Table):
    """Every input of one recipe."""

    format: Literal[1] = 1
    tensorflow: Tensorflow
    bazel: LockedBazel
    archives: Annotated[tuple[LockedArchive, ...], _sorted(_archive)] = ()
    clones: Annotated[tuple[Cloned, ...], _sorted(_clone)] = ()
    requirements: Annotated[tuple[LockedRequirement, ...], _sorted(_requirement)] = ()
    files: Annotated[tuple[LockedFile, ...], _sorted(_file)] = ()
    unlockable: Annotated[tuple[Unlockable, ...], _sorted(_unlockable)] = ()
    substitutes: Annotated[tuple[LockedSubstitute, ...], _sorted(_substitute)] = ()
    toolkit: Annotated[tuple[LockedPackage, ...], _sorted(_package)] = ()
    image: LockedImage | None = None

    @property
    def knows_needs(self) -> bool:
        """Whether Bazel was asked when it was written."""
        needs = [*(one.needed for one in self.archives), *(one.needed for one in self.clones)]
        return any(need is not None for need in needs)


@dataclass(frozen=True)
class Gathered:
    """What is known of a recipe's inputs, apart from the recipe and the rules of its tree."""

    tree: str
    """Git's id of the commit's tree."""
    binaries: Mapping[str, LockedBinary]
    """Bazel by platform."""
    files: Mapping[str, str]
    """Digests of patches and assets, by path under patches/."""
    requirements: tuple[LockedRequirement, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the archives that were obtained, by digest."""
    wanted: Mapping[str, str] | None = None
    """The repositories that Bazel wants for the recipe's target, with the digest or commit where
    Bazel reports it; None if Bazel was not asked."""
    substitutes: tuple[LockedSubstitute, ...] = ()


def of(source: SourceTable, bazel: BazelTable, rules: Rules, gathered: Gathered) -> Lock:
    """Build the lock of a recipe.

    Nested calls that were followed are to be joined to the rules before.
    """
    return Lock(
        # The tree as well: the commit's id changes when history is rewritten, the
        # content need not.
        tensorflow=Tensorflow(commit=source.commit, tree=gathered.tree),
        bazel=LockedBazel(version=bazel.version, binaries=dict(sorted(gathered.binaries.items()))),
        archives=tuple(_archives(rules, gathered)),
        clones=tuple(_clones(rules, gathered)),
        requirements=gathered.requirements,
        files=tuple(
            LockedFile(path=path, sha256=sha256) for path, sha256 in gathered.files.items()
        ),
        unlockable=tuple(dict.fromkeys(_without_digest(rules, gathered))),
        substitutes=gathered.substitutes,
    )


def write(lock: Lock) -> str:
    """Return the lock as TOML: the same text for the same lock, one item of a list per line."""
    # Every command reads locks and few write one: the import would cost all of them.
    import tomli_w

    # exclude_defaults would leave out the format, by which later versions know what
    # they read.
    return HEADER + tomli_w.dumps(lock.model_dump(exclude_defaults=True) | {"format": lock.format})


def read(path: Path) -> Lock:
    """Read a lock. Raises RecipeError naming file, line and remedy for what is wrong in it."""
    try:
        return load(path, Lock)
    except RecipeError as fault:
        # A command wrote it, so that nobody can correct it by hand.
        recipe = shell_word(str(path.with_suffix(".toml")))
        raise RecipeError(
            fault.what,
            remedy=(
                "Take this file from version control again, or delete it and run "
                f"'invoke lock --recipe {recipe}'."
            ),
            evidence=fault.evidence,
        ) from fault


def differences(lock: Lock, now: Lock) -> list[str]:
    """Return what an input is now and what the lock says, a sentence each; nothing if they agree.

    What is not known on one side (a size before the first download, whether Bazel wants an archive,
    a binary for another platform, the place that the same binary came from) does not count. Where
    no Bazel runs, what it declares is not known either.
    """
    # Only a Bazel that runs on this host can be asked which archives it declares by
    # itself.
    archives = [entry for entry in lock.archives if now.bazel.binaries or not entry.of_bazel]
    return [
        *_changes("TensorFlow", lock.tensorflow, now.tensorflow),
        *_changes("Bazel", lock.bazel, now.bazel, but=("binaries",)),
        *_changed_binaries(lock.bazel.binaries, now.bazel.binaries),
        *_compared(archives, now.archives, lambda entry: entry.sha256, _archive),
        *_compared(lock.clones, now.clones, _clone, _clone),
        *_compared(lock.requirements, now.requirements, _requirement, _requirement),
        *_compared(lock.files, now.files, _file, _file),
        *_compared(lock.unlockable, now.unlockable, _unlockable, _unlockable),
        *_compared(lock.substitutes, now.substitutes, _substitute, _substitute),
    ]


def _changed_binaries(
    locked: Mapping[Platform, LockedBinary], found: Mapping[Platform, LockedBinary]
) -> Iterator[str]:
    """Yield what differs between the binaries for the platforms that both sides know."""
    for platform in sorted(locked.keys() & found.keys()):
        name = f"Bazel for {platform}"
        # A mirror may give the same binary, so its address does not count.
        yield from _changes(name, locked[platform], found[platform], but=("url",))


def _archives(rules: Rules, gathered: Gathered) -> Iterator[LockedArchive]:
    """Yield an archive for each digest, with all names and urls that the rules give it."""
    loaded = rules.loaded
    # By digest: WORKSPACE may make several repositories of one file.
    for sha256, users in _grouped(rules, lambda entry: entry.sha256):
        # Package URLs, since the address depends on which registry or mirror the rules
        # name.
        urls = (registries.named(url) for entry in users for url in entry.urls)
        yield LockedArchive(
            names=_names(users),
            urls=tuple(dict.fromkeys(urls)),
            sha256=sha256,
            size=gathered.sizes.get(sha256),
            needed=_needed(users, loaded, gathered),
            of_bazel=all(entry.of_bazel for entry in users),
        )


def _clones(rules: Rules, gathered: Gathered) -> Iterator[Cloned]:
    """Yield each commit that rules clone, with all names that they give it."""
    loaded = rules.loaded
    for clone, users in _grouped(rules, lambda entry: entry.clone):
        yield Cloned(
            names=_names(users),
            remote=clone.remote,
            commit=clone.commit,
            needed=_needed(users, loaded, gathered),
        )


def _grouped(
    rules: Rules, pin: Callable[[Repository], Pin | None]
) -> Iterable[tuple[Pin, list[Repository]]]:
    """Return the rules that share a pin, by it; those that have none are left out."""
    users: dict[Pin, list[Repository]] = {}
    for entry in rules.repositories:
        if found := pin(entry):
            users.setdefault(found, []).append(entry)
    return users.items()


def _names(users: Iterable[Repository]) -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in users if entry.name}))


def _needed(
    users: Sequence[Repository], loaded: Collection[str], gathered: Gathered
) -> bool | None:
    """Say whether Bazel wants an archive or commit.

    A rule that downloads in its own code may be wanted, and not have downloaded it.
    """
    if gathered.wanted is None:
        return None
    # Bazel names what the target wants, and not what it read to know the rules.
    if any(entry.name in loaded for entry in users):
        return True
    # Bazel reports the substitute's digest; the lock has the archive that the tree
    # pins.
    pinned = {entry.used: entry.sha256 for entry in gathered.substitutes}
    taken = {name: pinned.get(pin, pin) for name, pin in gathered.wanted.items()}
    made = [entry for entry in users if taken.get(entry.name) in {"", entry.sha256, entry.commit}]
    # A download in a rule's own code may depend on the host, so an unused one proves
    # nothing.
    return None if made and all(entry.rule in DOWNLOADS for entry in made) else bool(made)


def _without_digest(rules: Rules, gathered: Gathered) -> Iterator[Unlockable]:
    """Yield what no checksum holds: rules without one, unreadable places, calls not followed."""
    loaded = rules.loaded
    for entry in rules.repositories:
        # A tag or a branch may move: only a whole commit id holds what a rule clones.
        if not entry.pinned:
            # Without a name it is the code of a rule, which any repository may use.
            known = bool(entry.name)
            yield Unlockable(
                name=entry.name or entry.rule,
                file=entry.file,
                line=entry.line,
                why=_no_digest(entry),
                needed=_needed([entry], loaded, gathered) if known else None,
            )
    for fault in rules.unreadable:
        yield Unlockable(name="unreadable", file=fault.file, line=fault.line, why=fault.why)
    for call in rules.nested:
        why = f"@{call.archive}//{call.path}, which defines it, was not there to be read"
        yield Unlockable(name=call.symbol, file=call.file, line=call.line, why=why)


def _no_digest(entry: Repository) -> str:
    """Say what a rule without a digest does instead."""
    addresses = dict.fromkeys(map(registries.named, entry.urls))
    origin = ", ".join(addresses) or "an address that is not readable"
    if entry.commit:
        return f"{entry.rule} takes {entry.commit} of {origin}"
    return f"{entry.rule} takes whatever {origin} gives: it has no sha256"


def _compared(
    old: Iterable[Entry],
    new: Iterable[Entry],
    key: Callable[[Entry], str],
    name: Callable[[Entry], str],
) -> Iterator[str]:
    """Yield what differs between two lists of entries."""
    locked = {key(entry): entry for entry in old}
    found = {key(entry): entry for entry in new}
    for which, entry in locked.items():
        if which not in found:
            yield f"{name(entry)} is in the lock, and not wanted any more"
    for which, entry in found.items():
        if which not in locked:
            yield f"{name(entry)} is wanted, and not in the lock"
    for which, entry in locked.items():
        if which in found:
            yield from _changes(name(entry), entry, found[which])


def _changes(name: str, old: Table, new: Table, but: Sequence[str] = ()) -> Iterator[str]:
    """Yield which values of one entry differ."""
    for key in type(old).model_fields:
        if key in but:
            continue
        was, now = getattr(old, key), getattr(new, key)
        # None means "not known yet" in every field of a lock.
        if was != now and None not in (was, now):
            yield f"{name}: {key} is {_shown(now)}, the lock has {_shown(was)}"


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
