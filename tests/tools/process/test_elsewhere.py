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
    isolation.obstacle.cache_clear()
    yield
    isolation.obstacle.cache_clear()


@pytest.mark.usefixtures("untried")
def test_a_mac_has_no_network_namespaces_and_fixes_no_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert isolation.obstacle() == "Darwin has no network namespaces"
    said = "Darwin does not let programs switch it off"
    assert isolation.address_obstacle() == said


@pytest.mark.usefixtures("untried")
def test_a_system_that_refuses_a_network_namespace_is_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing = ("/bin/sh", "-c", "echo unshare: Operation not permitted >&2; exit 1")
    monkeypatch.setattr(isolation, "_ENTER", refusing)
    assert isolation.obstacle() == (
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
        "this system does not allow it (Operation not permitted)"
    )


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
        runner.answer(TRUE)
    monkeypatch.setattr(pexpect, "spawn", no_more_processes)
    with pytest.raises(BlockingIOError):
        pseudo_terminal.spawn(TRUE, remedy="-")
