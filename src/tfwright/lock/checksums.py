"""The checksums that a recipe leaves open: found in its text, learned, and written there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from tfwright.documents import recipe as recipes
from tfwright.documents import toml
from tfwright.documents.composing import ARCHIVES, TOOLKITS, Composing
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import FetchTable, SubstituteTable
from tfwright.documents.toolkit import PartName, Way
from tfwright.errors import SupplyError
from tfwright.lock import packages
from tfwright.pipeline import external
from tfwright.pipeline.external import ExternalRules, RecipePins
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import Listener
from tfwright.toolkit import sources
from tfwright.toolkit.sources import Supplier
from tfwright.tools import files, toml_editing
from tfwright.vault import learning, substitutes
from tfwright.vault.learning import PLACEHOLDER, LearnedChecksum
from tfwright.vault.origins import Origins, WantedArchive
from tfwright.vault.store import Store

Key = tuple[str | int, ...]
"""Where in a document a checksum belongs."""


def pin(path: Path, host_file: HostFile, listener: Listener) -> dict[Key, LearnedChecksum]:
    """Learn each checksum that a recipe leaves out or leaves empty, and write it into the file.

    Returns what was learned; it stays written before a failure. Raises RecipeError for other faults
    of the recipe, and SupplyError if no source gives a file.
    """
    values = toml.values_of(path)
    Composing(path, _fill_open).complete(values)
    keys = list(_open_keys(values))
    if not keys:
        # Its other faults are found when it is read for building.
        return {}
    recipe = recipes.read(str(path), _fill_open)
    job = RecipeJob(recipe=recipe, host_file=host_file.of(recipe), listener=listener)
    learned: dict[Key, LearnedChecksum] = {}
    for key in keys:
        if key not in learned:
            learned |= _learn(job, key, keys)
        sha256, where = learned[key].sha256, learned[key].where
        toml_editing.put(*_document_of(path, key), sha256)
        listener.note(f"Pinned {'.'.join(map(str, key))}: {sha256}, from {where}")
    return learned


def _open_keys(values: Mapping[str, Any]) -> Iterator[Key]:
    """Yield where a checksum is missing, or empty."""
    fetch = _as_table(values.get("fetch"))
    source_list = fetch.get("sources")
    tables: list[tuple[str | int, object]] = [
        *_as_table(fetch.get("substitutes")).items(),
        *enumerate(source_list if isinstance(source_list, list) else ()),
    ]
    for name, table in tables:
        # Any other value is a fault, which reading the recipe describes.
        if isinstance(table, Mapping) and table.get("sha256", "") == "":
            yield "fetch", "sources" if isinstance(name, int) else "substitutes", name, "sha256"
    for part, table in _as_table(values.get("toolkit")).items():
        ways = _as_table(table)
        debian = _as_table(ways.get("debian"))
        for way, pins in (
            (("wheels",), ways.get("wheels")),
            (("archives",), ways.get("archives")),
            (("debian", "files"), debian.get("files")),
        ):
            for name, sha256 in _as_table(pins).items():
                if sha256 == "":
                    yield "toolkit", part, *way, name


def _document_of(path: Path, key: Key) -> tuple[Path, Key]:
    """Return the document of a recipe in which a checksum is open, and the key in it."""
    values, parts = toml.values_of(path), Composing(path)
    first, *inner = key
    if first == "toolkit":
        own = not isinstance(named := values["toolkit"], str)
        return (path, key) if own else (parts.find(TOOLKITS, named, ("toolkit",)), tuple(inner))
    table = values["fetch"]
    if "archives" not in table:
        return path, key
    shared = parts.find(ARCHIVES, table["archives"], ("fetch", "archives"))
    kind, name, last = inner
    before = toml.values_of(shared).get(str(kind), ())
    # The recipe's sources follow those of the document; of two substitutes its own counts.
    if isinstance(name, int):
        own = name >= len(before)
        name -= len(before) if own else 0
    else:
        own = name in table.get(kind, ())
    return (path, ("fetch", kind, name, last)) if own else (shared, (kind, name, last))


def _as_table(value: object) -> Mapping[str, Any]:
    # The document was not checked yet: anything may stand anywhere.
    return value if isinstance(value, Mapping) else {}


def _fill_open(values: dict[str, Any]) -> None:
    """Fill in or take out what is open, so that all else of the recipe is checked."""
    packages.remove_open(values)
    for key in _open_keys(values):
        place: Any = values
        for part in key[:-1]:
            place = place[part]
        place[key[-1]] = PLACEHOLDER


def _learn(job: RecipeJob, key: Key, keys: Sequence[Key]) -> dict[Key, LearnedChecksum]:
    """Learn the checksum of a key, with those of `keys` that the same download brings."""
    fetch = job.recipe.fetch
    origins = Origins(job.host_file, job.places.git, job.offline)
    store = external.store(job)
    match key:
        case "fetch", "substitutes", str(name), _:
            wanted = _substitute_archive(job, name, fetch.substitutes[name])
        case "fetch", "sources", int(number), _:
            # Alone, so that no other source of the recipe can answer in its place.
            origins = replace(origins, fetch=FetchTable(sources=(fetch.sources[number],)))
            wanted = WantedArchive(f"fetch.sources {number + 1}", PLACEHOLDER, ())
        case _, _, "archives", str(url):
            wanted = WantedArchive(url.rpartition("/")[2], PLACEHOLDER, (url,))
            store = sources.store(job.places.vault)
        case _:
            together = [other for other in keys if other[:-1] == key[:-1]]
            try:
                return _learn_packages(job, together)
            except SupplyError:
                if len(together) == 1:
                    raise
                # One that cannot be had must not keep the others open.
                return _learn_packages(job, [key])
    return {key: learning.learn_checksum(wanted, origins, store, job.listener.progress)}


def _substitute_archive(job: RecipeJob, name: str, table: SubstituteTable) -> WantedArchive:
    if not table.git:
        return WantedArchive(name, PLACEHOLDER, table.urls, substitute=True)
    # Only the rule says into which directory the commit is packed, and into a zip or not.
    repository = external.fetch_commit(job, job.recipe.source)
    rules = ExternalRules(job, RecipePins.of(job.recipe), repository).rules()
    return substitutes.wanted_archive(
        name, table, substitutes.replaced_archive(name, rules.repositories)
    )


def _learn_packages(job: RecipeJob, keys: Sequence[Key]) -> dict[Key, LearnedChecksum]:
    """Learn the checksums of packages of one part, and keep the packages for `toolkit`."""
    store = sources.store(job.places.vault)
    names = {str(key[-1]): key for key in keys}
    dropped = learning.dropped_by_name(names, job.host_file)
    found = {
        names[name]: learning.keep_file(path, str(path), store) for name, path in dropped.items()
    }
    others = {name: names[name] for name in names if name not in dropped}
    if others:
        found |= _download_packages(job, others, store)
    if lacking := [name for name, key in names.items() if key not in found]:
        raise SupplyError(
            f"{lacking[0]} was not given under this name",
            remedy="Correct the file name; the package index or archive lists them.",
        )
    return found


def _download_packages(
    job: RecipeJob, names: Mapping[str, Key], store: Store
) -> dict[Key, LearnedChecksum]:
    """Download packages of one part; return those that came under the names asked for."""
    _, part, way, *_ = next(iter(names.values()))
    table = getattr(job.recipe.toolkit, cast("PartName", part))
    supplier = Supplier(store, job.host_file, job.listener, job.log("pin-toolkit"))
    job.listener.note(f"Downloading {', '.join(names)}: {way}")
    # apt writes a colon as %3a in the names of files.
    keys = {unquote(name): key for name, key in names.items()}
    pins = dict.fromkeys(names, PLACEHOLDER)
    with files.scratch_directory(store.root, ".learning-") as scratch:
        downloads = supplier.download_packages(cast("Way", way), table, pins, scratch)
        return {
            keys[unquote(path.name)]: learning.keep_file(path, str(way), store)
            for path in downloads
            if unquote(path.name) in keys
        }
