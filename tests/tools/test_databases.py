"""Who is at fault when SQLite cannot go on: the disk, another process, or the file itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.errors import HostError
from tfwright.tools import disk


def refused(database: sqlite3.Connection, statement: str) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as found:
        database.execute(statement)
    return found.value


def explained(fault: sqlite3.Error, file: Path) -> HostError:
    found = disk.database_error(fault, file)
    assert found is not None
    return found


def test_a_database_without_room_is_a_full_disk(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA max_page_count = 2")
        database.execute("CREATE TABLE a (b)")
        fault = refused(database, "INSERT INTO a VALUES (zeroblob(100000))")
    assert explained(fault, file).what == f"The disk is full: {file} cannot be written"


def test_a_database_that_another_process_writes_to_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as first,
        closing(sqlite3.connect(file, timeout=0)) as second,
    ):
        first.execute("BEGIN EXCLUSIVE")
        fault = refused(second, "CREATE TABLE a (b)")
    assert "Another process keeps" in explained(fault, file).what


def unreadable(file: Path) -> sqlite3.Error:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
    read_only = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    with closing(read_only) as database:
        return refused(database, "INSERT INTO a VALUES (1)")


def test_a_database_that_may_not_be_written_is_named_with_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    found = explained(unreadable(file), file)
    assert found.what == f"{file} cannot be read or written by this user"


def test_a_refusal_on_a_disk_without_room_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.sqlite"
    fault = unreadable(file)
    monkeypatch.setattr(disk, "is_full", lambda place: place == tmp_path)
    assert explained(fault, file).what.startswith("The disk is full")


def test_a_damaged_database_is_not_the_disks_fault(tmp_path: Path) -> None:
    file = make_file(tmp_path / "state.sqlite", b"no database" * 100)
    with closing(sqlite3.connect(file)) as database:
        fault = refused(database, "SELECT * FROM a")
    assert disk.database_error(fault, file) is None
