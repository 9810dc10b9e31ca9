"""What happened, in SQLite: the nights, each target's verdict, the builds, the notices to be sent.

The site is made from this and from the build directories, and from nothing else. Each night's work
is written in short transactions, so a kill at any moment loses at most the step that it cut.
"""

import datetime as dt
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tfwright.errors import HostError
from tfwright.nightly.builds import NightlyBuild, Result
from tfwright.printable import printable_lines
from tfwright.tools import databases, json_text

FILE = "state.sqlite"
VERSION = 1
SCHEMA = """
-- A night without "finished" was cut off: the next start resumes it.
create table if not exists night (
    number integer primary key, started text not null, finished text
);
create table if not exists verdict (
    target text, night integer, verdict text not null, build text, detail text,
    primary key (target, night)
) without rowid;
create table if not exists build (
    id text primary key, target text not null, started text not null, seconds real not null,
    result text not null, version text, wheel text, sha256 text, size integer, tested text,
    unpublished text, needs text, hidden text, deleted text, document text not null
);
create index if not exists build_of on build (target, started);
create table if not exists checked (
    target text, kind text, at text not null, passed integer not null, detail text,
    primary key (target, kind)
) without rowid;
create table if not exists notice (
    number integer primary key, thread text not null, body text not null, created text not null,
    channel text not null, sent text, attempts integer not null default 0, problem text
);
create table if not exists thread (
    thread text primary key, target text not null, opened text not null, closed text
) without rowid;
"""

COLUMNS = (
    "id, target, started, seconds, result, version, wheel, sha256, size, tested, unpublished, needs"
)
"""Of a build, in the order of the fields of KeptBuild."""

Verdict = Literal["good", "unchanged", "untested", "smoke failed", "failed", "blocked", "skipped"]
"""What one night gave for one target."""


@dataclass(frozen=True)
class Nightfall:
    """One night's verdict on one target."""

    night: int
    at: dt.datetime
    verdict: Verdict
    build: str
    """Identifier of the build that was made that night; empty if none was."""
    detail: str


@dataclass(frozen=True)
class KeptBuild:
    """The short form of a build, and what retention did with it.

    A page lists thousands of these, so they are made without the document.
    """

    id: str
    target: str
    started: dt.datetime
    seconds: float
    result: Result
    version: str
    wheel: str
    sha256: str
    size: int
    tested: str
    unpublished: str
    needs: tuple[tuple[str, str], ...]
    hidden: dt.date | None = None
    deleted: dt.date | None = None

    @property
    def good(self) -> bool:
        """Whether it gave a wheel that failed no test."""
        return self.result == "built" and self.tested != "smoke failed" and not self.unpublished

    @property
    def listed(self) -> bool:
        """Whether it has a wheel that belongs into the index, hidden or not."""
        return bool(self.wheel) and not self.unpublished and not self.deleted


@dataclass(frozen=True)
class CheckedOn:
    """The last time that something was checked without a build: reproduction, or links."""

    at: dt.datetime
    passed: bool
    detail: str


class State:
    """The open state of a build host."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Work on an open database that has the schema."""
        self.database = database

    def begin_night(self, now: dt.datetime) -> int:
        """Record that a night begins; return its number."""
        with self.database as transaction:
            row = transaction.execute("insert into night (started) values (?)", (_text(now),))
        return int(row.lastrowid or 0)

    def end_night(self, night: int, now: dt.datetime) -> None:
        """Record that a night came to its end."""
        with self.database as transaction:
            values = (_text(now), night)
            transaction.execute("update night set finished = ? where number = ?", values)

    def unfinished_night(self) -> int | None:
        """Return the newest night if it never ended: the machine died in it."""
        row = self.database.execute(
            "select number, finished from night order by number desc limit 1"
        ).fetchone()
        return int(row[0]) if row and row[1] is None else None

    def last_night(self) -> dt.datetime | None:
        """Return when the newest night began."""
        row = self.database.execute(
            "select started from night order by number desc limit 1"
        ).fetchone()
        return _moment(row[0]) if row else None

    def judge(
        self, target: str, night: int, verdict: Verdict, build: str = "", detail: str = ""
    ) -> None:
        """Keep one night's verdict on one target; a second run of the night replaces it."""
        # The pages look up verdicts in tables: fail here, and not there, for a misspelt one.
        if verdict not in get_args(Verdict):
            raise ValueError(f"{verdict!r} is not a verdict")
        values = (target, night, verdict, build, printable_lines(detail))
        with self.database as transaction:
            transaction.execute("insert or replace into verdict values (?, ?, ?, ?, ?)", values)

    def judge_unchanged(self, names: Sequence[str], night: int) -> None:
        """Record that some targets were up to date, in one transaction."""
        # A transaction each would wait for the disk once a target: see `synchronous` below.
        rows = [(name, night) for name in names]
        with self.database as transaction:
            transaction.executemany(
                "insert or replace into verdict values (?, ?, 'unchanged', '', '')", rows
            )

    def add_build(self, build: NightlyBuild) -> None:
        """Keep a build; one that is known already stays as it is."""
        values = (
            build.id,
            build.target,
            _text(build.started),
            build.seconds,
            build.result,
            build.version,
            build.wheel,
            build.sha256,
            build.size,
            build.tested,
            build.unpublished,
            json.dumps(sorted(build.needs.items())),
            build.model_dump_json(),
        )
        marks = ", ".join("?" * len(values))
        # Only our own column names enter the statement; the values are bound.
        insert = f"insert or ignore into build ({COLUMNS}, document) values ({marks})"  # noqa: S608
        with self.database as transaction:
            transaction.execute(insert, values)

    def mark_build(self, build: str, *, hidden: dt.date | None, deleted: dt.date | None) -> None:
        """Keep what retention did with a build."""
        values = [None if day is None else day.isoformat() for day in (hidden, deleted)]
        with self.database as transaction:
            transaction.execute(
                "update build set hidden = ?, deleted = ? where id = ?", (*values, build)
            )

    def builds(self, target: str = "", *, deleted: bool = False) -> list[KeptBuild]:
        """Return the builds of a target, or all of them, oldest first.

        In the order in which they were added: a host's clock may have been wrong for a night.
        """
        query = (
            f"select {COLUMNS}, hidden, deleted from build"  # noqa: S608 our own names
            " where ? in ('', target) and (? or deleted is null)"
            " order by rowid"
        )
        rows = self.database.execute(query, (target, deleted))
        return [_kept_build(*row) for row in rows]

    def build(self, identifier: str) -> NightlyBuild | None:
        """Return everything about one build."""
        row = self.database.execute(
            "select document from build where id = ?", (identifier,)
        ).fetchone()
        with sound_rows():
            return NightlyBuild.model_validate_json(row[0]) if row else None

    def unjudged(self) -> list[KeptBuild]:
        """Return the builds without a verdict: a kill came between build and verdict.

        A night has one verdict for each target. A build whose verdict was replaced, by a later
        build or without one, is not among them, nor is any build of before the last whole night.
        """
        query = (
            f"select {COLUMNS}, hidden, deleted from build"  # noqa: S608 our own names
            " where started >= coalesce((select finished from night"
            " where finished is not null order by number desc limit 1), '')"
            " and not exists (select 1 from build as later"
            " join verdict on verdict.target = later.target and verdict.build = later.id"
            " where later.target = build.target and later.rowid >= build.rowid)"
            " order by rowid"
        )
        return [_kept_build(*row) for row in self.database.execute(query)]

    def gone(self) -> list[tuple[str, str]]:
        """Return identifier and wheel of each build that retention deleted.

        The wheel is empty where the index never had it.
        """
        # Not as KeptBuild: after some years these are most of the table.
        return self.database.execute(
            "select id, case when unpublished = '' then wheel else '' end from build"
            " where deleted is not null order by rowid"
        ).fetchall()

    def known_builds(self) -> set[str]:
        """Return the identifiers of all builds."""
        return {row[0] for row in self.database.execute("select id from build")}

    def last_seconds(self) -> Mapping[str, float]:
        """Return how long the last build of each target took."""
        # SQLite takes the other columns of a group from the row that has its maximum.
        rows = self.database.execute(
            "select target, seconds, max(rowid) from build group by target"
        )
        return {target: float(seconds) for target, seconds, _ in rows}

    def history(self, since: int = 0) -> Mapping[str, list[Nightfall]]:
        """Return each target's verdicts, oldest first, from a night on."""
        found: dict[str, list[Nightfall]] = defaultdict(list)
        rows = self.database.execute(
            "select target, night, started, verdict, build, detail from verdict"
            " join night on night.number = verdict.night where night >= ? order by night",
            (since,),
        )
        for target, night, started, verdict, build, detail in rows:
            fell = Nightfall(night, _moment(started), verdict, build or "", detail or "")
            found[target].append(fell)
        return found

    def history_of(self, target: str, count: int) -> list[Nightfall]:
        """Return the last verdicts on one target, oldest first."""
        rows = self.database.execute(
            "select night, started, verdict, build, detail from verdict"
            " join night on night.number = verdict.night where target = ?"
            " order by night desc limit ?",
            (target, count),
        ).fetchall()
        found = []
        # The limit has to count from the newest night, but callers read oldest first.
        for night, started, verdict, build, detail in reversed(rows):
            found.append(Nightfall(night, _moment(started), verdict, build or "", detail or ""))
        return found

    def nights(self) -> int:
        """Return the number of the newest night; 0 before the first."""
        row = self.database.execute("select max(number) from night").fetchone()
        return int(row[0] or 0)

    def check(self, target: str, kind: str, now: dt.datetime, *, passed: bool, detail: str) -> None:
        """Keep that something was checked without a build."""
        values = (target, kind, _text(now), passed, detail)
        with self.database as transaction:
            transaction.execute("insert or replace into checked values (?, ?, ?, ?, ?)", values)

    def checks(self, kind: str) -> Mapping[str, CheckedOn]:
        """Return when each target was last checked in one way."""
        rows = self.database.execute(
            "select target, at, passed, detail from checked where kind = ?", (kind,)
        )
        found = {}
        for target, at, passed, detail in rows:
            found[target] = CheckedOn(_moment(at), bool(passed), detail or "")
        return found


@contextmanager
def sound_rows() -> Iterator[None]:
    """Take a row that cannot be read for damage of the file, as SQLite does with a page."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as fault:
        message = f"a row cannot be read: {fault}"
        raise sqlite3.DatabaseError(message) from fault


@contextmanager
def opened(directory: Path) -> Iterator[State]:
    """Open the state of a build host; raise HostError if its file is damaged or too new."""
    file = directory / FILE
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(file, timeout=60)) as database:
            # A commit has reached the disk when it returns: a power cut loses no night.
            database.execute("pragma synchronous = full")
            _require_version(database, file)
            database.executescript(SCHEMA)
            yield State(database)
    except sqlite3.DatabaseError as fault:
        raise databases.failure(fault, file) or HostError(
            f"The build host's state cannot be used: {fault}",
            remedy=f"Move {file} away; the next night reads the builds that are there.",
        ) from fault


def _require_version(database: sqlite3.Connection, file: Path) -> None:
    """Refuse a state that a newer tfwright wrote, before anything is changed in it."""
    found = database.execute("pragma user_version").fetchone()[0]
    if found > VERSION:
        raise HostError(
            f"{file} was written by a newer tfwright (format {found})",
            remedy="Update tfwright on this host, or choose another directory.",
        )
    # SQLite gives 0 to a file that it has just created.
    if found == 0:
        # A pragma takes no bound values.
        database.execute(f"pragma user_version = {VERSION}")


@sound_rows()
def _kept_build(*row: Any) -> KeptBuild:  # noqa: ANN401 the columns of SQLite
    """Return a row of the table as the short form of a build."""
    values = dict(zip((*COLUMNS.split(", "), "hidden", "deleted"), row, strict=True))
    values["started"] = _moment(values["started"])
    values["needs"] = tuple((name, value) for name, value in json_text.parsed(values["needs"]))
    for name in ("hidden", "deleted"):
        values[name] = _date(values[name])
    return KeptBuild(**values)


def _date(text: str | None) -> dt.date | None:
    return dt.date.fromisoformat(text) if text else None


def _text(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")


@sound_rows()
def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
