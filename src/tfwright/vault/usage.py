"""The vault's content: what is in it, which recipes need it, and what is unused.

What a recipe needs is read generously: every digest that its text, its lock, its stamps or its
bundle name, for whatever reason. So a need that is not known here keeps its file as well.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import file_of
from tfwright.documents.recipe import Recipe
from tfwright.tools import files, json_text, trees
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.bazel.binary import AboutBinary
from tfwright.tools.process import file_lock
from tfwright.tools.python import packages
from tfwright.tools.python.venv import DONE
from tfwright.vault import bundle

ARCHIVE = "archive"
BY_BAZEL = "by Bazel"
BAZEL = "bazel"
PACKAGE = "package"
TOOLKIT = "toolkit package"
VENV = "venv"
LEFTOVER = "leftover"
"""Kinds of things. What Bazel has put into the store by itself is named by no document, and so is
never taken; nor are packages of toolkits, which are large, and for which licences were accepted."""
RECENT = 86400.0
"""Seconds for which an unused entry is kept: a build that runs now may have fetched it, and not
have recorded that yet."""
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_VENV = re.compile(r"/pythons/([\w.-]+)/")
_PACKAGE = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*?)(-.*\.whl|\.tar\.\w+|\.zip)")


@dataclass(frozen=True)
class VaultEntry:
    """A directory of the vault that is needed, or not, as a whole."""

    kind: str
    name: str
    path: Path
    keys: frozenset[str]
    """Each way in which a recipe may say that it needs this."""
    size: int
    """Bytes of its files."""
    file: Path | None = None
    """What the digest, which is the directory's name, belongs to."""

    @property
    def recent(self) -> bool:
        """Whether it was put there, or changed, a short time ago."""
        times = [state.st_mtime for _, state in trees.files_below(self.path)]
        return time.time() - max(self.path.stat().st_mtime, *times) < RECENT


@dataclass(frozen=True)
class Damage:
    """Something that is not what it was."""

    path: Path
    why: str
    removable: bool = True
    """Whether `--repair` may remove it: a toolkit is large, and its licence was accepted by
    hand."""


@dataclass(frozen=True)
class Needs:
    """What one recipe needs of the vault."""

    recipe: str
    keys: frozenset[str]
    complete: bool
    """Whether that is all: before a lock, a fetch or a bundle says so, its archives are
    not known."""


@dataclass(frozen=True)
class Inventory:
    """What is in a vault, and who needs it."""

    entries: tuple[VaultEntry, ...]
    needs: tuple[Needs, ...]
    broken: tuple[str, ...] = ()
    """The recipes that do not load: what they need is not known."""

    def users(self, entry: VaultEntry) -> list[str]:
        """Return the recipes that need an entry."""
        return [need.recipe for need in self.needs if not need.keys.isdisjoint(entry.keys)]

    @property
    def unknown(self) -> list[str]:
        """The recipes whose archives are not known yet."""
        return [need.recipe for need in self.needs if not need.complete]

    @property
    def undecided(self) -> list[VaultEntry]:
        """The archives that stay because one of those recipes may need them."""
        return [entry for entry in self._unused if entry.kind == ARCHIVE and self.unknown]

    @property
    def unused(self) -> list[VaultEntry]:
        """What no recipe needs."""
        if self.broken:
            return []
        return [entry for entry in self._unused if entry.kind != ARCHIVE or not self.unknown]

    @property
    def _unused(self) -> list[VaultEntry]:
        return [
            entry
            for entry in self.entries
            if entry.kind not in {BY_BAZEL, TOOLKIT} and not self.users(entry) and not entry.recent
        ]


def known_recipes(names: Sequence[str] = ()) -> list[Recipe]:
    """Return the recipes of this checkout, and `names`."""
    return [recipes.read(name) for name in dict.fromkeys((*recipes.names(), *names))]


def overview(build_out: Path) -> Inventory:
    """Take the inventory also where recipes do not load."""
    loaded = list(recipes.readable_recipes())
    broken = sorted({*recipes.names()} - {recipe.name for recipe in loaded})
    return replace(take_inventory(build_out, loaded), broken=tuple(broken))


def take_inventory(
    build_out: Path, known: Iterable[Recipe], locks: Iterable[Path] = ()
) -> Inventory:
    """Look through the vault of `build_out` for what recipes need.

    What else was built there counts too, and what `locks` pin beyond that.
    """
    needs = {recipe.name: _recipe_needs(build_out, recipe) for recipe in known}
    pinned = [Needs(path.name, _keys_in([files.text(path)]), complete=True) for path in locks]
    traces = [*build_out.glob("*/stamps"), *build_out.glob("*/bundle.json")]
    # A recipe of another checkout, or one that was renamed, may share this directory.
    strangers = []
    for name in sorted({path.parent.name for path in traces} - needs.keys()):
        keys = _keys_in(_record_texts(build_out, name)) | {_bundle_key(name)}
        strangers.append(Needs(name, keys, complete=True))
    return Inventory(tuple(_entries(build_out / "vault")), (*needs.values(), *strangers, *pinned))


def remove_unused(
    build_out: Path, known: Iterable[Recipe], locks: Iterable[Path] = ()
) -> list[VaultEntry]:
    """Remove what neither a recipe nor one of `locks` needs, and return it.

    Raises HostError if a build is running: it may be about to need something.
    """
    # What an interrupted unpacking left behind is in no inventory.
    bundle.discard_leftovers(build_out)
    with ExitStack() as stack:
        # Every recipe has a lock of its own, and any of their builds may be about to need an entry.
        for path in sorted(build_out.glob("*/lock")):
            stack.enter_context(file_lock.locked(path, "invoke vault --gc"))
        taken = take_inventory(build_out, known, locks).unused
        remove_entries(build_out, taken)
    return taken


def remove_entries(build_out: Path, entries: Sequence[VaultEntry | Damage]) -> None:
    """Remove entries, and what is damaged."""
    for entry in entries:
        files.remove(entry.path)
    # pip's pages must not link packages that are gone. Written last: on a full disk that makes
    # space for them.
    for store in _stores(build_out / "vault"):
        if any(entry.path.is_relative_to(packages.package_folder(store)) for entry in entries):
            packages.write_page(store)


def _recipe_needs(build_out: Path, recipe: Recipe) -> Needs:
    """Read what a recipe needs off everything that speaks of it."""
    path = recipes.find(recipe.argument)
    locked, own_file = path.with_suffix(".lock"), file_of(path)
    records = _record_texts(build_out, recipe.name)
    if locked.is_file():
        records.append(files.text(locked))
    # By pattern and not by field: a digest in a table of the future keeps its file, too.
    keys = _keys_in([files.text(file) for file in (own_file, *recipe.documents)] + records)
    verify = recipe.verify
    # Packages of pip are kept under digests that a recipe without hashes does not know.
    pins = map(packages.pin_of, (*recipe.host.requirements, *verify.requirements, *verify.plugins))
    own = {
        f"bazel {recipe.bazel.version}",
        _venv_key(recipe.host.requirements),
        _bundle_key(recipe.name),
    }
    # A record of an earlier state of the recipe is not all that it needs now.
    complete = files.sha256(own_file) in keys or any(
        recipe.source.commit in text for text in records
    )
    return Needs(recipe.name, keys.union(pins, own), complete)


def _record_texts(build_out: Path, name: str) -> list[str]:
    """Return what was written down when a recipe was built, or came as a bundle."""
    own = build_out / name
    return [
        files.text(path) for path in (*sorted(own.glob("stamps/*.json")), *own.glob("bundle.json"))
    ]


def _keys_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the digests and venvs that are named."""
    return frozenset(
        key for text in texts for pattern in (_DIGEST, _VENV) for key in pattern.findall(text)
    )


def _venv_key(requirements: Iterable[str]) -> str:
    return "venv of " + ", ".join(sorted(map(packages.pin_of, requirements)))


def _stores(vault: Path) -> list[Path]:
    """Return the vault and, within it, what bundles brought for one recipe each."""
    return [vault, *sorted((vault / "bundles").glob("*/"))]


def _bundle_key(recipe: str) -> str:
    return f"bundle of {recipe}"


def _entries(vault: Path) -> Iterator[VaultEntry]:
    """Walk through a vault."""
    for path in sorted((vault / "repository_cache/content_addressable/sha256").glob("*/")):
        file = path / "file"
        # What tfwright admits is read-only; Bazel writes what it downloads as any other file.
        kind = ARCHIVE if file.is_file() and not file.stat().st_mode & 0o222 else BY_BAZEL
        yield _entry(kind, path, file)
    for path in sorted((vault / "toolkit/content_addressable/sha256").glob("*/")):
        yield _entry(TOOLKIT, path, path / "file")
    yield from _program_entries(vault)
    for store in _stores(vault)[1:]:
        # Another recipe with the same pins takes nothing from here.
        own = frozenset({_bundle_key(store.name)})
        for entry in _program_entries(store):
            yield entry if entry.kind == LEFTOVER else replace(entry, keys=own)


def _program_entries(store: Path) -> Iterator[VaultEntry]:
    """Yield what runs during builds: Bazel, packages, venvs."""
    for path in sorted((store / "bazel").glob("*/")):
        # A damaged file of ours: the binary is obtained again, and written next to it.
        if known := json_text.load_or_none(path / bazels.ABOUT, AboutBinary):
            name, key = f"{known.version} for {known.platform}", f"bazel {known.version}"
            yield _entry(BAZEL, path, path / "bazel", key, name=name)
        else:
            yield _leftover_entry(path)
    for file in packages.stored_files(store):
        found = _PACKAGE.fullmatch(file.name)
        pin = packages.pin_of(f"{found['name']}=={found['version']}") if found else file.name
        # Locks name the checksum, recipes the pin.
        yield _entry(PACKAGE, file.parent, file, pin, name=file.name)
    for path in sorted((store / "pythons").glob("*/")):
        # pip may have been killed: only a venv with its marker is whole.
        marker = path / DONE
        key = _venv_key(files.text(marker).splitlines()) if marker.is_file() else ""
        yield replace(_entry(VENV, path, marker, key), file=None)


def _entry(kind: str, path: Path, file: Path, *keys: str, name: str = "") -> VaultEntry:
    """Return an entry that is needed by the name of its directory, or by others.

    Without its file it is a leftover.
    """
    if not file.is_file():
        return _leftover_entry(path)
    known = frozenset({path.name, *keys})
    return VaultEntry(kind, name or path.name, path, known, trees.size(path), file)


def _leftover_entry(path: Path) -> VaultEntry:
    return VaultEntry(LEFTOVER, path.name, path, frozenset({path.name}), trees.size(path))
