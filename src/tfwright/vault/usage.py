"""The vault's content: what is in it, which recipes need it, and what is unused.

What a recipe needs is read generously: every digest that its text, its lock, its stamps or its
bundle name, for whatever reason. So a need that is not known here keeps its file as well.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from tfwright.documents.recipe import Recipe
from tfwright.tools import files, json_text, trees
from tfwright.tools.process import file_lock
from tfwright.tools.python import packages
from tfwright.tools.python.venv import DONE

ARCHIVE = "archive"
BY_BAZEL = "by Bazel"
BAZEL = "bazel"
PACKAGE = "package"
VENV = "venv"
LEFTOVER = "leftover"
"""Kinds of things. What Bazel has put into the store by itself is named by no document, and so is
never taken."""
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
    file: Path | None = None
    """What the digest, which is the directory's name, belongs to."""

    @property
    def parts(self) -> list[Path]:
        """Its files."""
        return [path for path, _ in trees.files_below(self.path)]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(state.st_size for _, state in trees.files_below(self.path))

    @property
    def recent(self) -> bool:
        """Whether it was put there, or changed, a short time ago."""
        times = [state.st_mtime for _, state in trees.files_below(self.path)]
        return time.time() - max(self.path.stat().st_mtime, *times) < RECENT


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

    things: tuple[VaultEntry, ...]
    needs: tuple[Needs, ...]

    def users(self, thing: VaultEntry) -> list[str]:
        """Return the recipes that need a thing."""
        return [need.recipe for need in self.needs if not need.keys.isdisjoint(thing.keys)]

    @property
    def unknown(self) -> list[str]:
        """The recipes whose archives are not known yet."""
        return [need.recipe for need in self.needs if not need.complete]

    @property
    def undecided(self) -> list[VaultEntry]:
        """The archives that stay because one of those recipes may need them."""
        return [thing for thing in self._idle if thing.kind == ARCHIVE and self.unknown]

    @property
    def garbage(self) -> list[VaultEntry]:
        """What no recipe needs."""
        return [thing for thing in self._idle if thing.kind != ARCHIVE or not self.unknown]

    @property
    def _idle(self) -> list[VaultEntry]:
        return [
            thing
            for thing in self.things
            if thing.kind != BY_BAZEL and not self.users(thing) and not thing.recent
        ]


def look(
    build_out: Path, recipes: Iterable[tuple[Recipe, Path]], locks: Iterable[Path] = ()
) -> Inventory:
    """Look through the vault of `build_out`; `recipes` come with their files.

    What else was built there counts too, and what `locks` pin beyond that.
    """
    known = {recipe.name: _needs(build_out, recipe, path) for recipe, path in recipes}
    pinned = [Needs(path.name, _named([files.text(path)]), complete=True) for path in locks]
    traces = [*build_out.glob("*/stamps"), *build_out.glob("*/bundle.json")]
    built = {path.parent.name for path in traces}
    # A recipe of another checkout, or one that was renamed, may share this directory.
    strangers = []
    for name in sorted(built - known.keys()):
        keys = _named(_records(build_out, name)) | {_bundle_of(name)}
        strangers.append(Needs(name, keys, complete=True))
    return Inventory(tuple(_things(build_out / "vault")), (*known.values(), *strangers, *pinned))


def collect(
    build_out: Path,
    recipes: Sequence[tuple[Recipe, Path]],
    report: Callable[[Sequence[VaultEntry]], None],
    locks: Sequence[Path] = (),
) -> None:
    """Remove what neither a recipe nor one of `locks` needs, and report it before.

    Raises HostError if a build is running: it may be about to need something.
    """
    with ExitStack() as stack:
        # Every recipe has a lock of its own, and any of their builds may be about to
        # need an entry.
        for path in sorted(build_out.glob("*/lock")):
            stack.enter_context(file_lock.held(path, "invoke vault --gc"))
        taken = look(build_out, recipes, locks).garbage
        report(taken)
        remove(build_out, taken)


def remove(build_out: Path, things: Iterable[VaultEntry]) -> None:
    """Remove entries; on a full disk that makes room for the page, which is written last."""
    taken = list(things)
    for entry in taken:
        files.remove(entry.path)
    if any(entry.kind == PACKAGE for entry in taken):
        rewrite_pages(build_out)


def rewrite_pages(build_out: Path) -> None:
    """Write pip's pages again: they must not link packages that are gone."""
    for store in _stores(build_out / "vault"):
        if packages.shelf(store).is_dir():
            packages.write_page(store)


def _needs(build_out: Path, recipe: Recipe, path: Path) -> Needs:
    """Read what a recipe needs off everything that speaks of it."""
    locked = path.with_suffix(".lock")
    records = [
        *_records(build_out, recipe.name),
        *([files.text(locked)] if locked.is_file() else []),
    ]
    # By pattern and not by field: a digest in a table of the future keeps its file,
    # too.
    keys = _named([files.text(path), *records])
    verify = recipe.verify
    installed = (*recipe.host.requirements, *verify.requirements, *verify.plugins)
    # Packages of pip are kept under digests that a recipe without hashes does not know.
    pins = {_pin(line) for line in installed}
    own = {
        f"bazel {recipe.bazel.version}",
        _venv(recipe.host.requirements),
        _bundle_of(recipe.name),
    }
    # A record of an earlier state of the recipe is not all that it needs now.
    complete = files.sha256(path) in keys or any(recipe.source.commit in text for text in records)
    return Needs(recipe.name, keys | pins | own, complete)


def _records(build_out: Path, name: str) -> list[str]:
    """Return what was written down when a recipe was built, or came as a bundle."""
    own = build_out / name
    return [
        files.text(path) for path in (*sorted(own.glob("stamps/*.json")), *own.glob("bundle.json"))
    ]


def _named(texts: Iterable[str]) -> frozenset[str]:
    """Return the digests and venvs that texts name."""
    return frozenset(
        key for text in texts for pattern in (_DIGEST, _VENV) for key in pattern.findall(text)
    )


def _pin(line: str) -> str:
    name, _, version = line.partition(" ")[0].partition("==")
    return f"{canonicalize_name(name.partition('[')[0])}=={version}"


def _venv(requirements: Iterable[str]) -> str:
    return "venv of " + ", ".join(sorted(map(_pin, requirements)))


def _stores(vault: Path) -> list[Path]:
    """Return the vault and, within it, what bundles brought for one recipe each."""
    return [vault, *sorted((vault / "bundles").glob("*/"))]


def _things(vault: Path) -> Iterator[VaultEntry]:
    """Walk through a vault."""
    for path in sorted((vault / "repository_cache/content_addressable/sha256").glob("*/")):
        yield _archive(path)
    yield from _programs(vault)
    for store in _stores(vault)[1:]:
        # Another recipe with the same pins takes nothing from here.
        own = frozenset({_bundle_of(store.name)})
        for entry in _programs(store):
            yield entry if entry.kind == LEFTOVER else replace(entry, keys=own)


def _bundle_of(recipe: str) -> str:
    return f"bundle of {recipe}"


def _programs(store: Path) -> Iterator[VaultEntry]:
    """Yield what runs during builds: Bazel, packages, venvs."""
    for path in sorted((store / "bazel").glob("*/")):
        yield _bazel(path)
    for file in packages.kept(store):
        yield _package(file)
    for path in sorted((store / "pythons").glob("*/")):
        yield _installed(path)


def _package(file: Path) -> VaultEntry:
    found = _PACKAGE.fullmatch(file.name)
    pin = _pin(f"{found['name']}=={found['version']}") if found else file.name
    # Locks name the checksum, recipes the pin.
    keys = frozenset({file.parent.name, pin})
    return VaultEntry(PACKAGE, file.name, file.parent, keys, file)


def _installed(path: Path) -> VaultEntry:
    marker = path / DONE
    # pip may have been killed: only a venv with its marker is whole.
    if not marker.is_file():
        return _entry(LEFTOVER, path)
    return _entry(VENV, path, _venv(files.text(marker).splitlines()))


def _entry(kind: str, path: Path, *keys: str, file: Path | None = None) -> VaultEntry:
    """Return an entry that is named by its directory, and needed by that name or by others."""
    return VaultEntry(kind, path.name, path, frozenset({path.name, *keys}), file)


def _archive(path: Path) -> VaultEntry:
    file = path / "file"
    if not file.is_file():
        return _entry(LEFTOVER, path)
    # What tfwright admits is read-only; Bazel writes what it downloads by itself as any
    # other file.
    kind = BY_BAZEL if file.stat().st_mode & 0o222 else ARCHIVE
    return _entry(kind, path, file=file)


def _bazel(path: Path) -> VaultEntry:
    about = path / "about.json"
    file = path / "bazel"
    if not (about.is_file() and file.is_file()):
        return _entry(LEFTOVER, path)
    known = json_text.record(about)
    # A damaged file of ours: the binary is obtained again, and written next to it.
    if not known.keys() >= {"version", "platform"}:
        return _entry(LEFTOVER, path)
    name = f"{known['version']} for {known['platform']}"
    key = f"bazel {known['version']}"
    return VaultEntry(BAZEL, name, path, frozenset({path.name, key}), file)
