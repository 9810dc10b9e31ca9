"""Programs that ask: run on a terminal of their own, each question answered as it comes."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tfwright.errors import Evidence, RecipeError, ToolError
from tfwright.tools.process import pseudo_terminal
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import GRACE_SECONDS, TAIL_LINES

if TYPE_CHECKING:
    import pexpect

CHUNK = 1 << 16
SETTLE_SECONDS = 0.02
"""A question at the end counts once nothing follows it for so long: a pty may split a write."""
QUIET_SECONDS = 1.5
"""After so long a silence, a program may be waiting for the answer to an unknown question."""
FIRST_PATIENCE = 2
"""How many times longer the first question may take: Bazel unpacks itself before it."""
MOST_TEXT = 64 << 20
"""Characters without a question; a program that prints more has lost its way."""
END = 1 << 14
"""Characters of a text, from its end, in which a question is looked for."""
LONGEST_LINE = 500
"""Characters of a line that an error shows."""
LONGEST_ANSWER = 4095
"""Bytes of a line that a terminal hands on; it would cut off the rest."""

_QUESTION_ENDS = (":", "?", "]", ")", ">", " ")
"""How a question ends, where the system does not say whether the program waits for an answer."""


class Respondent(Protocol):
    """Knows the questions. `text` is what was printed since the last answer."""

    def recognises(self, text: str) -> bool:
        """Say whether `text`, the end of what was printed, ends in a question that is known."""

    def answer(self, text: str) -> str:
        """Return the line to type; raise a TfwrightError if there is none that makes sense."""


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
    texts: list[str] = []
    # TensorFlow's configure runs 'bazel version' before its first question.
    patience = timeout * FIRST_PATIENCE
    with _open_dialogue(command, log) as child:
        while True:
            listener = _Listener(child, respondent, patience)
            try:
                asks = listener.read_question()
            except _LostError as lost:
                raise ToolError(
                    f"{Path(command.argv[0]).name} {lost}",
                    remedy="Look at its last lines. If it only needs longer, "
                    "raise 'timeout' in the recipe's [configure].",
                    evidence=Evidence(
                        command=command.argv, log=log, lines=last_lines(listener.text())
                    ),
                ) from None
            texts.append(listener.text())
            if not asks:
                break
            # What is raised here passes through `_open_dialogue`, which ends the program.
            answer = respondent.answer(listener.text())
            if (size := len(answer.encode())) > LONGEST_ANSWER:
                raise RecipeError(
                    f"An answer of {size:,} bytes is longer than a terminal takes as one line",
                    remedy='Set by = "environment" in the recipe\'s [configure], or shorten the '
                    "answer.",
                    lines=(answer[:LONGEST_LINE],),
                )
            child.sendline(answer)
            patience = timeout
        deadline = time.monotonic() + GRACE_SECONDS
        while child.isalive() and time.monotonic() < deadline:
            time.sleep(SETTLE_SECONDS)
        # The status is the caller's to judge: configure.py exits with 0 where it found no Bazel.
        status = -child.signalstatus if child.signalstatus else child.exitstatus or 0
    return Spoken("".join(texts), status)


class _LostError(Exception):
    """The program neither asks nor ends."""


class _Listener:
    """Hears a program out, up to its next question or its end."""

    def __init__(
        self, child: "pexpect.spawn[str]", respondent: Respondent, patience: float
    ) -> None:
        self.child = child
        self.respondent = respondent
        self.patience = patience
        self.deadline = time.monotonic() + patience
        self.pieces: list[str] = []
        self.size = 0
        self.end = ""
        self.quiet_since = time.monotonic()
        self.looked = self.waited = False

    def read_question(self) -> bool:
        """Read; return whether the program asks. Raises _LostError if it does neither in time."""
        import pexpect

        while True:
            # EOF says that the program closed its terminal, TIMEOUT only that it paused.
            try:
                piece = self.child.read_nonblocking(CHUNK, SETTLE_SECONDS)
                self.quiet_since = time.monotonic()
                self.looked = self.waited = False
                self.pieces.append(piece)
                self.size += len(piece)
                # A line end may have come in two pieces.
                # Only the end: searching all of a growing text took quadratic time.
                self.end = (self.end + piece).replace("\r\n", "\n")[-END:]
            except pexpect.EOF:
                return False
            except pexpect.TIMEOUT:
                if self._asks():
                    return True
            if time.monotonic() > self.deadline:
                raise _LostError(f"asked nothing and did not end for {self.patience:g} seconds")
            # TensorFlow asks a wrong path again without a limit in some releases.
            if self.size > MOST_TEXT:
                raise _LostError(
                    f"printed more than {MOST_TEXT >> 20} MiB without asking a question"
                )

    def _asks(self) -> bool:
        """Say whether a program that pauses has asked something."""
        # On a busy machine a program may ask after the last read and before the look at
        # what it waits for. So that look counts only if another read finds nothing.
        if self.waited:
            return True
        # The end is looked at once for each pause, since the questions are many.
        if not self.looked and self.respondent.recognises(self.end):
            return True
        self.looked = True
        if time.monotonic() - self.quiet_since > QUIET_SECONDS:
            pid, self.waited = self.child.pid, False
            if not pseudo_terminal.has_unread_line(self.child):
                # Linux shows in which system call a process waits; elsewhere the text has to do.
                # Some prompts of TensorFlow 1.4 to 1.13 end in "]" or ":" without a blank.
                waits = pseudo_terminal.waits_for_input(pid) if pid else None
                self.waited = self.end.endswith(_QUESTION_ENDS) if waits is None else waits
            self.quiet_since = time.monotonic()
        return False

    def text(self) -> str:
        """Return all that was heard, with plain line ends."""
        return "".join(self.pieces).replace("\r\n", "\n")


@contextmanager
def _open_dialogue(command: Command, log: Path) -> "Iterator[pexpect.spawn[str]]":
    """Start a program on a pty; whatever happens, nothing of it is left running."""
    log.parent.mkdir(parents=True, exist_ok=True)
    name = Path(command.argv[0]).name
    remedy = (
        f"Add a patch to the recipe that makes {name} executable, with a first line "
        "that names an interpreter of this host, such as #!/bin/bash."
    )
    child = pseudo_terminal.spawn(command, remedy=remedy)
    with log.open("w", encoding="utf-8") as child.logfile:
        try:
            yield child
        finally:
            if child.isalive() and child.pid:
                with suppress(ProcessLookupError):
                    # pexpect makes the program the leader of a session, and so of a process group.
                    # A program that ignores the hang-up would keep the stage waiting.
                    os.killpg(child.pid, signal.SIGKILL)
            child.close(force=True)


def last_lines(text: str) -> tuple[str, ...]:
    """Return the last lines of a text that are not blank, each cut to what a reader can take in."""
    # A last line may be megabytes long: only the end of the text is split.
    end = text[-TAIL_LINES * (CHUNK >> 4) :]
    lines = [line.rstrip() for line in end.splitlines() if line.strip()]
    return tuple(
        line if len(line) <= LONGEST_LINE else f"…{line[-LONGEST_LINE:]}"
        for line in lines[-TAIL_LINES:]
    )
