"""Programs that ask: run on a terminal of their own, each question answered as it comes."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tfwright.errors import Evidence, ToolError
from tfwright.tools.process import pseudo_terminal
from tfwright.tools.process.runner import GRACE_SECONDS, TAIL_LINES, Command

if TYPE_CHECKING:
    import pexpect

CHUNK = 1 << 16
SETTLE_SECONDS = 0.02
"""A question that stands at the end is believed once nothing follows it for so long: a pty may split a write."""
QUIET_SECONDS = 1.5
"""A line that looks like a question, and that nobody knows, is one once the program is silent for so long."""
FIRST_PATIENCE = 2
"""How many times longer the first question may take: Bazel unpacks itself before it."""

_LOOKS_LIKE_A_QUESTION = re.compile(r"[^\n]*([:?\])>]| )\Z")


class Respondent(Protocol):
    """Knows the questions. `text` is always what was printed since the last answer, with plain line ends."""

    def recognises(self, text: str) -> bool:
        """Say whether `text` ends in a question that is known."""

    def answer(self, text: str) -> str:
        """Return the line to type; raise a TfwrightError if there is none, or none that makes sense."""


@dataclass(frozen=True)
class Spoken:
    """A program that came to its end."""

    text: str
    """All that it printed; the answers are not echoed."""
    status: int
    """Exit status; negative for the number of the signal that ended it."""


def converse(command: Command, log: Path, respondent: Respondent, *, timeout: float) -> Spoken:
    """Run a program on a pty and answer what it asks until it ends; the log holds both sides.

    `timeout` is in seconds from one answer to the next question, or to the end. Raises ToolError
    when it runs out, HostError if the program is not there, and whatever the respondent raises;
    the program and its children are ended first.
    """
    said: list[str] = []
    patience = timeout * FIRST_PATIENCE
    with _talking(command, log) as child:
        while True:
            text, asks = _listen(child, respondent, patience, log)
            said.append(text)
            if not asks:
                break
            child.sendline(respondent.answer(text))
            patience = timeout
        status = _status(child)
    return Spoken("".join(said), status)


def _listen(
    child: "pexpect.spawn[str]", respondent: Respondent, patience: float, log: Path
) -> tuple[str, bool]:
    """Read up to the next question, or to the end; return the text, and whether it asks something."""
    import pexpect

    text = ""
    deadline = time.monotonic() + patience
    while True:
        known = respondent.recognises(text)
        try:
            text = (
                text + child.read_nonblocking(CHUNK, SETTLE_SECONDS if known else QUIET_SECONDS)
            ).replace("\r\n", "\n")
        except pexpect.EOF:
            return text, False
        except pexpect.TIMEOUT:
            if known or _LOOKS_LIKE_A_QUESTION.search(text):
                return text, True
        if time.monotonic() > deadline:
            raise _silent(child, text, patience, log)


@contextmanager
def _talking(command: Command, log: Path) -> "Iterator[pexpect.spawn[str]]":
    """Start a program on a pty; whatever happens, nothing of it is left running."""
    log.parent.mkdir(parents=True, exist_ok=True)
    child = pseudo_terminal.spawn(
        command, remedy="Check the checkout: invoke build --fresh makes a new one."
    )
    with log.open("w", encoding="utf-8") as child.logfile:
        try:
            yield child
        finally:
            _end(child)


def _end(child: "pexpect.spawn[str]") -> None:
    """End the program and its children, who share its session, if they have not ended by themselves."""
    if child.isalive() and child.pid:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.close(force=True)


def _status(child: "pexpect.spawn[str]") -> int:
    """Return the exit status of a program that has closed its terminal, and so is about to end."""
    deadline = time.monotonic() + GRACE_SECONDS
    while child.isalive() and time.monotonic() < deadline:
        time.sleep(SETTLE_SECONDS)
    return -child.signalstatus if child.signalstatus else child.exitstatus or 0


def _silent(child: "pexpect.spawn[str]", text: str, patience: float, log: Path) -> ToolError:
    return ToolError(
        f"{Path(str(child.command)).name} asked nothing and did not end for {patience:g} seconds",
        remedy="Look at its last lines; if it only needs longer, raise 'timeout' in the recipe's [configure].",
        evidence=Evidence(
            command=[str(child.command), *child.args], log=log, lines=last_lines(text)
        ),
    )


def last_lines(text: str) -> tuple[str, ...]:
    """Return the last lines of a text that are not blank."""
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-TAIL_LINES:]
