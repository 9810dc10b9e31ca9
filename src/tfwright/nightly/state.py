"""What happened, in SQLite: the nights, each target's verdict, the builds, the notices to be sent.

The site is made from this and from the build directories, and from nothing else. Each night's work
is written in short transactions, so a kill at any moment loses at most the step that it cut.
"""

import datetime as dt
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tfwright.errors import FullDiskError, HostError
from tfwright.nightly.builds import NightlyBuild, Result, Verdict
from tfwright.printable import printable_lines
from tfwright.tools import disk, json_text
from tfwright.tools.redaction import redact_text

FILE = "state.sqlite"
LOCK = "lock"
"""The file, next to that of the state, which is locked while a night runs."""
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
    channel text not null, sent text, attempts integer not null default 0
);
-- What the night under way has still to do, in its order.
create table if not exists waiting (
    target text primary key, place integer not null, why text not null, seconds real not null,
    began text, worker text not null
) without rowid;
"""
NIGHTS = """
select target, night, started as "started [moment]", verdict, build, detail from verdict
    join night on night.number = verdict.night
"""
# Of the columns that a query names so: SQLite itself has no such types.
sqlite3.register_converter("moment", lambda text: dt.datetime.fromisoformat(text.decode()))
sqlite3.register_converter("day", lambda text: dt.date.fromisoformat(text.decode()))
sqlite3.register_converter("flag", lambda text: text == b"1")
sqlite3.register_converter("pairs", lambda text: tuple(map(tuple, json_text.parse(text))))
Row = TypeVar("Row")


@dataclass(frozen=True)
class NightVerdict:
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
    def word(self) -> str:
        """What it gave, in the words of a verdict."""
        tested = "good" if self.tested == "passed" else self.tested
        return tested if self.result == "built" else self.result

    @property
    def listed(self) -> bool:
        """Whether it has a wheel that belongs into the index, hidden or not."""
        return bool(self.wheel) and not self.unpublished and not self.deleted


@dataclass(frozen=True)
class PastNight:
    """A night, as a page lists it."""

    number: int
    started: dt.datetime
    ended: dt.datetime | None
    """None if the machine died in it, or it still runs."""


@dataclass(frozen=True)
class WaitingBuild:
    """What the night under way builds now, or has still to build."""

    target: str
    why: str
    seconds: float
    """How long it is expected to take."""
    began: dt.datetime | None = None
    """When it began; None while it waits."""
    worker: str = ""


@dataclass(frozen=True)
class CheckedOn:
    """The last time that something was checked without a build: reproduction, or links."""

    at: dt.datetime
    passed: bool
    detail: str


@dataclass(frozen=True)
class Culprit:
    """What a bisection by night found."""

    thread: str
    """The failure that it was asked about."""
    sentence: str
    """The change in words, or why none is named."""
    commit: str = ""
    """The commit, if it is one."""
    announced: bool = False
    """Whether a notice said it."""


class State:
    """The open state of a build host."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Work on an open database that has the schema."""
        self.database = database

    def write(self, statement: str, *values: object) -> int:
        """Execute a statement in a transaction of its own; return the number of a new row."""
        with self.database as transaction:
            return transaction.execute(statement, values).lastrowid or 0

    def _rows(self, kind: Callable[..., Row], query: str, *values: object) -> list[Row]:
        """Return what a query finds, each row as an object."""
        with sound_rows():
            return [kind(*row) for row in self.database.execute(query, values)]

    def begin_night(self, now: dt.datetime) -> int:
        """Record that a night begins; return its number."""
        return self.write("insert into night (started) values (?)", stamp(now))

    def end_night(self, night: int, now: dt.datetime) -> None:
        """Record that a night came to its end."""
        self.write("delete from waiting")
        self.write("update night set finished = ? where number = ?", stamp(now), night)

    def last_night(self) -> PastNight | None:
        """Return the newest night; None before the first."""
        return next(iter(self.nights(1)), None)

    def nights(self, count: int) -> list[PastNight]:
        """Return the last nights, newest first."""
        query = """
            select number, started as "started [moment]", finished as "finished [moment]"
            from night order by number desc limit ?"""
        return self._rows(PastNight, query, count)

    def queue(self, builds: Sequence[WaitingBuild]) -> None:
        """Keep what the night under way has to build, in place of what was kept before."""
        with self.database as transaction:
            transaction.execute("delete from waiting")
            transaction.executemany(
                "insert into waiting values (?, ?, ?, ?, null, '')",
                [(one.target, place, one.why, one.seconds) for place, one in enumerate(builds)],
            )

    def begin(self, target: str, now: dt.datetime, worker: str = "") -> None:
        """Record that a build of the queue runs."""
        self.write(
            "update waiting set began = ?, worker = ? where target = ?", stamp(now), worker, target
        )

    def queued(self) -> list[WaitingBuild]:
        """Return what runs, then what waits, each in its order."""
        query = """
            select target, why, seconds, began as "began [moment]", worker
            from waiting order by began is null, place"""
        return self._rows(WaitingBuild, query)

    def judge(
        self, night: int, verdict: Verdict, *targets: str, build: str = "", detail: str = ""
    ) -> None:
        """Keep one night's verdict on targets; a second run of the night replaces it."""
        row = (night, verdict, build, printable_lines(redact_text(detail)))
        # A transaction for each of them would wait for the disk: see `synchronous` below.
        with self.database as transaction:
            transaction.executemany(
                "insert or replace into verdict values (?, ?, ?, ?, ?)",
                [(target, *row) for target in targets],
            )
            transaction.executemany(
                "delete from waiting where target = ?", [(target,) for target in targets]
            )

    def add_build(self, build: NightlyBuild, night: int | None = None) -> None:
        """Keep a build, with its verdict on a night; one that is known already stays as it is."""
        # Two of them come later, from retention.
        values = {name: getattr(build, name, None) for name in KeptBuild.__dataclass_fields__}
        values["started"] = stamp(build.started)
        values["needs"] = json.dumps(sorted(build.needs.items()))
        values["document"] = build.model_dump_json()
        # Not a transaction of its own: a kill must leave no build without its verdict.
        self.database.execute(
            "insert or ignore into build values (:id, :target, :started, :seconds, :result,"
            " :version, :wheel, :sha256, :size, :tested, :unpublished, :needs, :hidden, :deleted,"
            " :document)",
            values,
        )
        if night is None:
            self.database.commit()
        else:
            self.judge(night, build.verdict, build.target, build=build.id, detail=build.detail)

    def mark_build(self, build: str, *, hidden: dt.date | None, deleted: dt.date | None) -> None:
        """Keep what retention did with a build."""
        days = [None if day is None else day.isoformat() for day in (hidden, deleted)]
        self.write("update build set hidden = ?, deleted = ? where id = ?", *days, build)

    def forget(self, build: str) -> None:
        """Take a build out whose files are gone; if they come back, it is read from them."""
        self.write("delete from build where id = ?", build)

    def builds(self, target: str = "") -> list[KeptBuild]:
        """Return the builds of a target, or all of them, oldest first, without deleted ones.

        In the order in which they were added: a host's clock may have been wrong for a night.
        """
        query = """
            select id, target, started as "started [moment]", seconds, result, version, wheel,
                sha256, size, tested, unpublished, needs as "needs [pairs]",
                hidden as "hidden [day]", deleted as "deleted [day]"
            from build where ? in ('', target) and deleted is null order by rowid"""
        return self._rows(KeptBuild, query, target)

    def build(self, identifier: str) -> NightlyBuild | None:
        """Return everything about one build."""
        query = "select document from build where id = ?"
        row = self.database.execute(query, (identifier,)).fetchone()
        with sound_rows():
            return NightlyBuild.model_validate_json(row[0]) if row else None

    def deleted(self) -> list[tuple[str, str]]:
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

    def smoke(self, target: str, count: int) -> Mapping[str, Mapping[str, int]]:
        """Return how many smoke programs of a target's last builds passed, failed and so on."""
        query = """
            select build, sum(status = 'passed'), sum(status = 'failed'), sum(status = 'skipped')
            from (select build, json_extract(line.value, '$.status') as status
                from (select id as build, document from build where target = ?
                    order by rowid desc limit ?),
                    json_each(document, '$.smoke') as line)
            group by build"""
        rows = self.database.execute(query, (target, count))
        kinds = ("passed", "failed", "skipped")
        return {name: dict(zip(kinds, numbers, strict=True)) for name, *numbers in rows}

    def last_seconds(self) -> Mapping[str, float]:
        """Return how long the last build of each target took."""
        # SQLite takes the other columns of a group from the row that has its maximum.
        query = "select target, seconds, max(rowid) from build group by target"
        return {target: seconds for target, seconds, _ in self.database.execute(query)}

    def history(self, since: int = 0) -> Mapping[str, list[NightVerdict]]:
        """Return each target's verdicts, oldest first, from a night on."""
        found: dict[str, list[NightVerdict]] = defaultdict(list)
        query = f"{NIGHTS} where night >= ? order by night"
        for target, night in self._rows(_night_of, query, since):
            found[target].append(night)
        return found

    def history_of(self, target: str, count: int) -> list[NightVerdict]:
        """Return the last verdicts on one target, oldest first."""
        query = f"{NIGHTS} where target = ? order by night desc limit ?"
        # The limit has to count from the newest night, but callers read oldest first.
        return [night for _, night in reversed(self._rows(_night_of, query, target, count))]

    def check(self, target: str, kind: str, now: dt.datetime, *, passed: bool, detail: str) -> None:
        """Keep that something was checked without a build."""
        values = (target, kind, stamp(now), passed, redact_text(detail))
        self.write("insert or replace into checked values (?, ?, ?, ?, ?)", *values)

    def checks(self, kind: str) -> Mapping[str, CheckedOn]:
        """Return when each target was last checked in one way."""
        query = """
            select target, at as "at [moment]", passed as "passed [flag]", detail
            from checked where kind = ?"""
        return dict(self._rows(lambda target, *row: (target, CheckedOn(*row)), query, kind))

    def keep_culprit(self, target: str, found: Culprit, now: dt.datetime) -> None:
        """Keep what a bisection found for a target, in place of an earlier one."""
        detail = f"{found.thread}\n{found.commit}\n{found.sentence}"
        self.check(target, "culprit", now, passed=found.announced, detail=detail)

    def culprits(self) -> Mapping[str, Culprit]:
        """Return what the last bisection of each target found."""
        found = {}
        for target, checked in self.checks("culprit").items():
            thread, commit, sentence = checked.detail.split("\n", 2)
            found[target] = Culprit(thread, sentence, commit, checked.passed)
        return found

    def reproduced(self) -> set[str]:
        """Return the identifiers of the builds that were built again to the same bytes."""
        query = "select kind from checked where kind like 'reproduced:%' and passed"
        return {kind.partition(":")[2] for (kind,) in self.database.execute(query)}


@contextmanager
def sound_rows() -> Iterator[None]:
    """Take a row that cannot be read for damage of the file, as SQLite does with a page."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as fault:
        raise sqlite3.DatabaseError(f"a row cannot be read: {fault}") from fault


@contextmanager
def open_state(directory: Path, *, create: bool = True) -> Iterator[State]:
    """Open the state of a build host; raise HostError if its file is damaged or too new.

    Without `create`, a host that has none yet is left so. What fails for want of room there names
    that directory.
    """
    try:
        with disk.as_host_error(), _open_database(directory / FILE, create=create) as state:
            yield state
    except FullDiskError as fault:
        if fault.place and fault.place.is_relative_to(directory):
            fault.template = (
                f"Free some space on the disk of {directory}, or move it to a larger one and "
                "correct directory in nightly.toml."
            )
        raise


@contextmanager
def _open_database(file: Path, *, create: bool) -> Iterator[State]:
    place: Path | str = file if create or file.exists() else ":memory:"
    if create:
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        converted = sqlite3.PARSE_COLNAMES
        with closing(sqlite3.connect(place, timeout=60, detect_types=converted)) as database:
            # A commit has reached the disk when it returns: a power cut loses no night.
            database.execute("pragma synchronous = full")
            found = database.execute("pragma user_version").fetchone()[0]
            # Before anything is changed in it.
            if found > VERSION:
                raise HostError(
                    f"{file} was written by a newer tfwright (format {found})",
                    remedy="Update tfwright on this host, or choose another directory.",
                )
            # SQLite gives 0 to a file that it has just created. A pragma takes no bound values.
            if found == 0:
                database.execute(f"pragma user_version = {VERSION}")
            database.executescript(SCHEMA)
            yield State(database)
    except sqlite3.DatabaseError as fault:
        raise disk.database_error(fault, file) or HostError(
            f"The build host's state cannot be used: {fault}",
            remedy=f"Move {file} away; the next night reads the builds that are there.",
        ) from fault


def _night_of(target: str, *row: Any) -> tuple[str, NightVerdict]:  # noqa: ANN401 SQLite's
    return target, NightVerdict(*row)


def stamp(moment: dt.datetime) -> str:
    """Return a moment in UTC, to the second, as ISO 8601 has it."""
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
