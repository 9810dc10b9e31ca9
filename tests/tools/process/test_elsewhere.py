"""What is said of systems and limits that these tests do not run on."""

import ctypes
import errno
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pexpect
import pytest

from tfwright.tools.process import file_lock, isolation, pseudo_terminal, runner
from tfwright.tools.process.command import Command

TRUE = Command(("/bin/true",), Path("/"), {})


@pytest.fixture
def untried() -> Iterator[None]:
    """Let the system be asked again whether it takes a program's network."""
    isolation.isolation_obstacle.cache_clear()
    yield
    isolation.isolation_obstacle.cache_clear()


@pytest.mark.usefixtures("untried")
def test_a_mac_has_no_network_namespaces_and_fixes_no_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert isolation.isolation_obstacle() == "Darwin has no network namespaces"
    said = "Darwin does not let programs switch it off"
    assert isolation.address_obstacle() == said


@pytest.mark.usefixtures("untried")
def test_a_system_that_refuses_a_network_namespace_is_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing = ("/bin/sh", "-c", "echo unshare: Operation not permitted >&2; exit 1")
    monkeypatch.setattr(isolation, "_ENTER", refusing)
    assert isolation.isolation_obstacle() == (
        "this system refuses a network namespace (unshare: Operation not permitted)"
    )


def test_a_container_that_forbids_fixed_addresses_is_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def personality(_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1

    library = SimpleNamespace(personality=personality)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    assert isolation.address_obstacle() == (
        "this system does not allow it (personality: Operation not permitted)"
    )


def test_of_an_unknown_machine_it_is_not_known_what_a_program_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert pseudo_terminal.waits_for_input(os.getsid(0)) is None


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        # read() of a terminal, by one process of several.
        ({"7": "running", "8": "0 0x0 0x1"}, True),
        ({"7": "running"}, False),
        ({"7": "-1 0x7ffe 0x7f00"}, False),
        ({"7": ""}, None),
        # poll(): a line editor, or a program that waits for its server.
        ({"7": "7 0x7ffe 0x1"}, None),
        ({"7": "0 0x3 0x1"}, False),
    ],
)
def test_a_program_waits_for_input_if_a_process_of_its_session_reads_the_terminal(
    calls: dict[str, str],
    waits: bool | None,  # noqa: FBT001 a case of the table above
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/syscall").touch()
    for process, call in calls.items():
        (tmp_path / process / "fd").mkdir(parents=True)
        (tmp_path / process / "syscall").write_text(f"{call}\n", "ascii")
        (tmp_path / process / "stat").write_text(f"{process} (a b) S 1", "ascii")
        (tmp_path / process / "fd/0").symlink_to("/dev/pts/3")
        (tmp_path / process / "fd/3").symlink_to("pipe:[17]")
    monkeypatch.setattr(pseudo_terminal, "PROCESSES", tmp_path)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "getsid", lambda _: 5)
    assert pseudo_terminal.waits_for_input(5) is waits


def test_a_process_that_has_just_ended_does_not_wait(tmp_path: Path) -> None:
    assert pseudo_terminal._system_call(tmp_path / "gone") == (-1, 0)
    assert not pseudo_terminal._sleeps(tmp_path / "gone")
    assert not pseudo_terminal._is_terminal(tmp_path / "gone", 0)


def test_a_process_of_another_user_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> NoReturn:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    assert not file_lock.is_running(2**40)
    monkeypatch.setattr(os, "kill", refuse)
    assert file_lock.is_running(1)


def no_more_processes(*_: object, **__: object) -> NoReturn:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_a_limit_of_this_process_is_not_taken_for_a_missing_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "run", no_more_processes)
    with pytest.raises(BlockingIOError):
        runner.short_output(TRUE)
    monkeypatch.setattr(pexpect, "spawn", no_more_processes)
    with pytest.raises(BlockingIOError):
        pseudo_terminal.spawn(TRUE, remedy="-")
