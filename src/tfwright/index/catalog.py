"""What the index knows of each wheel between two runs: a small SQLite file next to the wheels.

The wheels are the truth, and the catalog only saves reading them again. It can be deleted; then the
next run reads every wheel once more. One thing only the catalog knows: which bytes an earlier file
of the same name had, so that no name ever stands for two contents.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from tfwright.errors import HostError, WheelError
from tfwright.index.wheels import IndexedWheel
from tfwright.tools import databases, json_text

FILE = ".catalog.sqlite"
SCHEMA = """
create table if not exists wheel (
    filename text primary key, size integer, mtime integer, described text
) without rowid;
create table if not exists name (filename text primary key, sha256 text) without rowid;
"""

DESCRIBED = tuple(field.name for field in fields(IndexedWheel))
"""What of a wheel is kept."""
Stat = tuple[int, int]
"""Size in bytes and time of change in nanoseconds: while they stay, the wheel is not read again."""


class Catalog:
    """The open catalog of one folder of wheels."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Work on an open database that has the schema."""
        self._database = database

    def wheels(self) -> dict[str, tuple[Stat, IndexedWheel]]:
        """Return every wheel that was read before, by file name."""
        known = {}
        rows = self._database.execute("select filename, size, mtime, described from wheel")
        for filename, size, mtime, described in rows:
            # Damage, or a description by another release: the wheel is read again.
            with suppress(ValueError, LookupError, TypeError):
                known[filename] = ((size, mtime), _described(described))
        return known

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 that each name has ever stood for."""
        return dict(self._database.execute("select filename, sha256 from name"))

    def keep(self, wheel: IndexedWheel, stat: Stat) -> None:
        """Remember a wheel, and that its name is taken."""
        # Not by `asdict`, which copies each value before JSON is made of it.
        described = json.dumps({name: getattr(wheel, name) for name in DESCRIBED})
        row = (wheel.filename, *stat, described)
        self._database.execute("insert or replace into wheel values (?, ?, ?, ?)", row)
        taken = (wheel.filename, wheel.sha256)
        self._database.execute("insert or replace into name values (?, ?)", taken)

    def drop(self, filename: str) -> None:
        """Forget a wheel that is gone; its name stays taken."""
        self._database.execute("delete from wheel where filename = ?", (filename,))


def _described(text: str) -> IndexedWheel:
    values = json_text.parsed(text)
    # JSON has lists only, and a frozen wheel is compared with tuples.
    values["extras"] = tuple(values["extras"])
    values["needs"] = tuple((name, value) for name, value in values["needs"])
    return IndexedWheel(**values)


@contextmanager
def opened(folder: Path) -> Iterator[Catalog]:
    """Open the catalog of a folder; its changes are kept if the block ends well.

    Raises HostError if the file is damaged.
    """
    file = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # A connection as a context manager commits or rolls back, but does not close.
        with closing(sqlite3.connect(file, timeout=60)) as database, database:
            database.executescript(SCHEMA)
            yield Catalog(database)
    except sqlite3.DatabaseError as fault:
        raise databases.failure(fault, file) or HostError(
            f"The catalog of the index cannot be read: {fault}",
            remedy=f"Delete {file}; the next run reads every wheel again.",
        ) from fault


def refuse_other_bytes(taken: Mapping[str, str], filename: str, sha256: str) -> None:
    """Raise WheelError if a name already stands for other bytes.

    Whoever pinned the name with a hash would get an error, and whoever pinned it without one would
    get another wheel than before.
    """
    # A rebuild to the same bytes is welcome: that is what reproducible means.
    if taken.get(filename) not in {None, sha256}:
        raise WheelError(
            f"The index already has {filename} with other bytes", remedy=_another_version(filename)
        )


def _another_version(filename: str) -> str:
    """Advise a version that the index does not have yet."""
    project, version = filename.split("-")[:2]
    base, _, local = version.partition("+")
    bumped = _bumped(local)
    return (
        f"Give this wheel another local version, for example {project} {base}+{bumped}: "
        f'set local = "{bumped}" for the recipe in nightly.toml.'
    )


def _bumped(local: str) -> str:
    """Return the local version with its last number raised: ``cu92`` becomes ``cu92.1``."""
    head, _, last = local.rpartition(".")
    if head and last.isdigit():
        return f"{head}.{int(last) + 1}"
    return f"{local}.1" if local else "build.1"
