"""The lock: every input of a build by its checksum, in a TOML file next to the recipe."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, Field, StringConstraints

from tfwright.documents.names import (
    LONGEST_URL,
    URL,
    Commit,
    InnerPath,
    Line,
    Sha256,
    Version,
    pattern_validator,
)
from tfwright.documents.toml import Table, load
from tfwright.errors import RecipeError
from tfwright.printable import shell_word
from tfwright.rules import modules
from tfwright.rules.listings import BY_VERSION
from tfwright.rules.model import Repository, Rules
from tfwright.rules.recognisers import DOWNLOADS, NAME
from tfwright.tools.git.clones import Clone
from tfwright.vault import registries

HEADER = (
    "# Written by `invoke lock`; `invoke build` refuses an input that differs. "
    "Not meant to be edited.\n\n"
)
LARGEST = 64 * 2**30
"""Bytes that one input may have."""

Pin = TypeVar("Pin", str, Clone)


class Entry(Table):
    """One input among others of its kind; as a text it is called so in messages."""

    @property
    def key(self) -> str:
        """What stays the same while the entry's values change."""
        return str(self)


Entries = TypeVar("Entries", bound=tuple[Entry, ...])


def _sorted(entries: Entries) -> Entries:
    """Bring entries into the order of their names, and refuse two of one name.

    A new lock then differs from the old one only in what changed, whatever order the rules were
    read in.
    """
    for name, count in Counter(map(str, entries)).items():
        if count > 1:
            raise ValueError(f"{name} is there {count} times")
    return cast("Entries", tuple(sorted(entries, key=str)))


Sorted = AfterValidator(_sorted)
# Locks come with bundles and repositories of strangers, and an address reaches Bazel and git.
_url = pattern_validator(
    f"{URL}|{registries.PATTERN}",
    "must be one http, https, ftp or file url, or a package url, without blanks",
    LONGEST_URL,
)
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


class LockedArchive(Entry):
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

    def __str__(self) -> str:
        return f"archive {', '.join(self.names) or 'without a name'} ({self.sha256[:16]}…)"

    @property
    def key(self) -> str:
        """Its checksum: several repositories may be made of it."""
        return self.sha256


class Cloned(Entry):
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

    def __str__(self) -> str:
        return f"commit {self.commit[:12]} of {self.remote}"


class LockedRequirement(Entry):
    """A package of the target Python that the build imports."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    version: Version
    hashes: Annotated[tuple[Sha256, ...], Field(min_length=1)]
    """Of the files that pip may choose."""

    @property
    def pin(self) -> str:
        """As a recipe pins it, without checksums."""
        return f"{self.name}=={self.version}"

    def __str__(self) -> str:
        return f"requirement {self.name}"


class RulesPackage(LockedRequirement):
    """A package that rules of the tree let pip install."""

    def __str__(self) -> str:
        return f"package {self.name} {self.version}"


class LockedFile(Entry):
    """A patch or an asset."""

    path: InnerPath
    """Under patches/."""
    sha256: Sha256

    def __str__(self) -> str:
        return f"file {self.path}"


class LockedPackage(Entry):
    """A package of the toolkit."""

    part: Line
    """``cuda``, ``cudnn``, ``compiler`` and so on."""
    name: Line
    """Of the file, or its address."""
    sha256: Sha256

    def __str__(self) -> str:
        return f"toolkit {self.part}: {self.name}"


class LockedImage(Table):
    """The container image that the build runs in."""

    name: Line
    digest: ImageDigest
    parts: Annotated[tuple[ImageDigest, ...], Field(min_length=1)]
    """Of its configuration and its layers, on the host that wrote the lock."""
    size: Size


class Unlockable(Entry):
    """Something that is downloaded, or may be, and that no digest holds."""

    name: Line
    file: InnerPath
    line: Annotated[int, Field(ge=1, strict=True)]
    why: Line
    needed: bool | None = None
    """Whether Bazel was seen to want it for this recipe's target; missing if Bazel was not asked,
    or cannot tell."""

    def __str__(self) -> str:
        return f"unlockable {self.name} ({self.file}:{self.line}: {self.why})"


class LockedSubstitute(Entry):
    """Bytes that replace an archive: the wheel is then not built from the pinned ones."""

    sha256: Sha256
    """Of the archive that they stand in for."""
    source: Line
    reason: Annotated[Line, Field(min_length=1)]
    used: Sha256
    """Of what is used instead."""

    def __str__(self) -> str:
        return f"substitute for {self.sha256[:16]}…"


class Lock(Table):
    """Every input of one recipe."""

    format: Literal[1] = 1
    tensorflow: Tensorflow
    bazel: LockedBazel
    archives: Annotated[tuple[LockedArchive, ...], Sorted] = ()
    clones: Annotated[tuple[Cloned, ...], Sorted] = ()
    requirements: Annotated[tuple[LockedRequirement, ...], Sorted] = ()
    files: Annotated[tuple[LockedFile, ...], Sorted] = ()
    unlockable: Annotated[tuple[Unlockable, ...], Sorted] = ()
    substitutes: Annotated[tuple[LockedSubstitute, ...], Sorted] = ()
    toolkit: Annotated[tuple[LockedPackage, ...], Sorted] = ()
    image: LockedImage | None = None
    packages: Annotated[tuple[RulesPackage, ...], Sorted] = ()
    """What rules of the tree let pip install during the build."""

    @property
    def knows_needs(self) -> bool:
        """Whether Bazel was asked when it was written."""
        needs = [*(one.needed for one in self.archives), *(one.needed for one in self.clones)]
        return any(need is not None for need in needs)


def with_downloads(
    known: Lock, rules: Rules, sizes: Mapping[str, int], wanted: Mapping[str, str] | None = None
) -> Lock:
    """Return a lock of programs and files with what rules download.

    Nested calls that were followed are to be joined to the rules before. `sizes` are the bytes of
    the archives that were obtained, by digest; `wanted` are the repositories that Bazel wants for
    the recipe's target, with the digest or commit where Bazel reports it; None if it was not asked.
    """
    taken = None
    if wanted is not None:
        # Bazel reports the substitute's digest; the lock has the archive that the tree pins.
        pinned = {entry.used: entry.sha256 for entry in known.substitutes}
        taken = {name: pinned.get(pin, pin) for name, pin in wanted.items()}
    found = {
        "archives": tuple(_archives(rules, sizes, taken)),
        "clones": tuple(_clones(rules, taken)),
        "unlockable": tuple(dict.fromkeys(_unlockable_entries(rules, taken))),
    }
    # Validated, which brings all entries into their order.
    return Lock.model_validate({**vars(known), **found})


def write(lock: Lock) -> str:
    """Return the lock as TOML: the same text for the same lock, one item of a list per line."""
    # Every command reads locks and few write one: the import would cost all of them.
    import tomli_w

    # exclude_defaults would leave out the format, by which later versions know what they read.
    return HEADER + tomli_w.dumps(lock.model_dump(exclude_defaults=True) | {"format": lock.format})


def read(path: Path) -> Lock:
    """Read a lock. Raises RecipeError naming file, line and remedy for what is wrong in it."""
    try:
        return load(path, Lock)
    except RecipeError as fault:
        # A command wrote it, so a person cannot correct it by hand.
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
    no Bazel runs, what it declares is not known either. Requirements, which only `invoke lock`
    resolves, are for `locking.requirement_differences` to compare.
    """
    known, found = lock.bazel.binaries, now.bazel.binaries
    lines = [
        *_value_differences("TensorFlow", lock.tensorflow, now.tensorflow),
        *_value_differences("Bazel", lock.bazel, now.bazel, but="binaries"),
    ]
    for platform in sorted(known.keys() & found.keys()):
        # A mirror may give the same binary, so its address does not count.
        name = f"Bazel for {platform}"
        lines += _value_differences(name, known[platform], found[platform], but="url")
    # Only a Bazel that runs on this host can be asked which archives it declares by itself.
    archives = [entry for entry in lock.archives if now.bazel.binaries or not entry.of_bazel]
    lines += _entry_differences(archives, now.archives)
    for name in ("clones", "files", "unlockable", "substitutes"):
        lines += _entry_differences(getattr(lock, name), getattr(now, name))
    # A lock of an earlier version lists no packages.
    return [*lines, *_entry_differences(lock.packages, now.packages if lock.packages else ())]


Taken = Mapping[str, str] | None
"""What Bazel took for each repository that it wants: digest or commit, where it reports one."""


def _archives(rules: Rules, sizes: Mapping[str, int], taken: Taken) -> Iterator[LockedArchive]:
    """Yield an archive for each digest, with all names and urls that the rules give it."""
    # By digest: WORKSPACE may make several repositories of one file.
    for sha256, users in _group_by_pin(rules, lambda entry: entry.sha256):
        # Package URLs, since the address depends on which registry or mirror the rules name.
        urls = (registries.package_url(url) for entry in users for url in entry.urls)
        yield LockedArchive(
            names=_repository_names(users),
            urls=tuple(dict.fromkeys(urls)),
            sha256=sha256,
            size=sizes.get(sha256),
            needed=_is_needed(users, rules, taken),
            of_bazel=all(entry.of_bazel for entry in users),
        )


def _clones(rules: Rules, taken: Taken) -> Iterator[Cloned]:
    """Yield each commit that rules clone, with all names that they give it."""
    for clone, users in _group_by_pin(rules, lambda entry: entry.clone):
        needed = _is_needed(users, rules, taken)
        names = _repository_names(users)
        yield Cloned(names=names, remote=clone.remote, commit=clone.commit, needed=needed)


def _group_by_pin(
    rules: Rules, pin: Callable[[Repository], Pin | None]
) -> Iterable[tuple[Pin, list[Repository]]]:
    """Return the rules that share a pin, by it; those that have none are left out."""
    users: dict[Pin, list[Repository]] = {}
    for entry in rules.repositories:
        if found := pin(entry):
            users.setdefault(found, []).append(entry)
    return users.items()


def _repository_names(users: Iterable[Repository]) -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in users if entry.name}))


def _is_needed(users: Sequence[Repository], rules: Rules, taken: Taken) -> bool | None:
    """Say whether Bazel wants an archive or commit.

    A rule that downloads in its own code may be wanted, and not have downloaded it.
    """
    if taken is None:
        return None
    # Bazel names what the target wants, and not what it read to know the rules.
    loaded = rules.loaded
    if any(entry.name in loaded or entry.rule in modules.ALWAYS for entry in users):
        return True
    # Bazel may know it by another name.
    if any(entry.rule == BY_VERSION for entry in users):
        return None
    made = [entry for entry in users if taken.get(entry.name) in {"", entry.sha256, entry.commit}]
    # A download in a rule's own code may depend on the host, so an unused one proves nothing.
    return None if made and all(entry.rule in DOWNLOADS for entry in made) else bool(made)


def _unlockable_entries(rules: Rules, taken: Taken) -> Iterator[Unlockable]:
    """Yield what no checksum holds: rules without one, unreadable places, calls not followed."""
    for entry in rules.repositories:
        # A tag or a branch may move: only a whole commit id holds what a rule clones.
        if entry.pinned:
            continue
        addresses = dict.fromkeys(map(registries.package_url, entry.urls))
        origin = ", ".join(addresses) or "an address that is not readable"
        why = f"{entry.rule} takes whatever {origin} gives: it has no sha256"
        if entry.commit:
            why = f"{entry.rule} takes {entry.commit} of {origin}"
        # Without a name it is the code of a rule, which any repository may use.
        needed = _is_needed([entry], rules, taken) if entry.name else None
        name, file, line = entry.name or entry.rule, entry.file, entry.line
        yield Unlockable(name=name, file=file, line=line, why=why, needed=needed)
    for fault in rules.unreadable:
        yield Unlockable(name="unreadable", file=fault.file, line=fault.line, why=fault.why)
    for call in rules.calls:
        why = f"@{call.archive}//{call.path}, which defines it, was not there to be read"
        yield Unlockable(name=call.symbol, file=call.file, line=call.line, why=why)


def _entry_differences(old: Iterable[Entry], new: Iterable[Entry]) -> Iterator[str]:
    locked = {entry.key: entry for entry in old}
    found = {entry.key: entry for entry in new}
    for key in [key for key in locked if key not in found]:
        yield f"{locked[key]} is in the lock, and not wanted any more"
    for key in [key for key in found if key not in locked]:
        yield f"{found[key]} is wanted, and not in the lock"
    for key, entry in locked.items():
        if key in found:
            yield from _value_differences(str(entry), entry, found[key])


def _value_differences(name: str, old: Table, new: Table, but: str = "") -> Iterator[str]:
    for key in type(old).model_fields:
        was, now = getattr(old, key), getattr(new, key)
        # None means "not known yet" in every field of a lock.
        if key != but and was != now and None not in (was, now):
            yield f"{name}: {key} is {_as_text(now)}, the lock has {_as_text(was)}"


def _as_text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
