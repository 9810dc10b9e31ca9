"""How Bazel runs: the options of its version, builds on their own terminal, and a clean end."""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict

from tfwright.errors import ToolError, invoke
from tfwright.progress import Report
from tfwright.tools import files, json_text
from tfwright.tools.bazel import installation
from tfwright.tools.bazel.output import Display
from tfwright.tools.process import capacity, gauge, isolation, pseudo_terminal, runner
from tfwright.tools.process.command import Command, clean_environment, host_process

REMEDY = f"Run '{invoke('build --again fetch')}' to obtain Bazel again."
IDLE_SECONDS = 60
"""After so long without work a server ends by itself: what limits the life of one whose tfwright
was killed."""
POLL_SECONDS = 0.02
SHUTDOWN_SECONDS = 20.0
KEPT_LINES = 2000
"""Lines from the first error on that are kept in memory; the log has all."""

SERVER_DIED = 37
REFUSED = 2


class Options(BaseModel):
    """What a Bazel understands, read off its own help."""

    model_config = ConfigDict(frozen=True)

    startup: dict[str, str] = {}
    build: dict[str, str] = {}
    """Name of a flag without dashes = what Bazel says about its value; empty for a switch."""


def options(binary: Path, install_root: Path) -> Options:
    """Return what `binary` understands; asked once, and kept next to it."""
    if (known := known_options(binary)).build:
        return known
    asked = {}
    with files.scratch_directory() as scratch:
        for name, topic in _TOPICS.items():
            argv = (
                str(binary),
                f"--output_user_root={install_root}",
                f"--output_base={scratch / 'base'}",
                # Asked without a server, which would stay for three hours, and keep the output
                # base open.
                "--batch",
                "help",
                *topic,
            )
            command = Command(argv, scratch, clean_environment(scratch))
            try:
                page = runner.run(command, remedy=installation.REMEDY)
            except ToolError as fault:
                raise installation.first_start_error(fault, binary, install_root) from fault
            # Each page of help gets a new output base.
            files.remove(scratch / "base")
            # "  --[no]keep_going [-k] (a boolean; default: ...)": what stands before the semicolon.
            found = re.findall(r"^  --(?:\[no\])?(\w+)(?: \((.*)\))?", page, re.MULTILINE)
            asked[name] = {flag: kind.partition(";")[0] for flag, kind in found}
    known = Options(**asked)
    files.write(_options_file(binary), known.model_dump_json(indent=1))
    return known


_TOPICS = {"startup": ("startup_options",), "build": ("build", "--long")}


def known_options(binary: Path) -> Options:
    """Return what is kept about `binary`; nothing, if it was not asked yet."""
    return json_text.load_or_none(_options_file(binary), Options) or Options()


def _options_file(binary: Path) -> Path:
    return binary.with_name("options.json")


@dataclass(frozen=True)
class Spent:
    """What a run of Bazel took, however it ended."""

    seconds: float
    """By the clock."""
    cpu: float
    """Seconds of processor time, with those of the actions."""
    action: int
    """Bytes of memory that one action took at most."""
    together: int
    """Bytes that all together took at most."""


@dataclass(frozen=True)
class BazelRun:
    """A run of Bazel that came to its end."""

    status: int
    """Exit status; negative for the number of the signal that ended it."""
    errors: tuple[str, ...]
    """What it said from its first error on; if it named none, its last lines."""
    actions: int
    """How many actions it ran; of a run that failed, how many its bar counted."""
    log: Path | None = None
    start: int = 0
    """Where in the log its output begins, in bytes."""
    peak: int = 0
    """Bytes of memory that one action took at most."""
    pressure: float = 0.0
    """For how many percent of ten seconds everything waited for memory, at worst."""
    killed: int = 0
    """Programs of our control group that the kernel killed meanwhile for want of memory."""

    @property
    def died(self) -> bool:
        """Whether Bazel's server ended under it."""
        return self.status == SERVER_DIED

    @property
    def died_early(self) -> bool:
        """Whether the server ended before the first action, so that not too many ran at once."""
        return self.died and self.actions == 0


@dataclass(frozen=True)
class Client:
    """A Bazel for one workspace, with an output base, and so a server, of its own."""

    binary: Path
    workspace: Path
    output_base: Path
    install_root: Path
    """Where Bazel unpacks itself; shared by all output bases."""
    rc: Path
    """The one rc file that is read: the user's and the system's are not."""
    env: Mapping[str, str]
    options: Options
    alone: bool = False
    """Whether client, server and actions run without a network."""

    def command(self, *arguments: str) -> Command:
        """Return a run of this Bazel.

        It does not find a server that was started in another network.
        """
        # All runs have the same startup options, or the server would restart in between.
        startup = (
            f"--output_user_root={self.install_root}",
            f"--output_base={self.output_base}",
            # After SIGKILL of tfwright nothing else ends the server, which holds gigabytes.
            f"--max_idle_secs={IDLE_SECONDS}",
            # Bazel before 0.18 has one switch for the rc files that it finds by itself,
            # later ones have three.
            *(
                f"--no{name}"
                for name in ("master_bazelrc", "system_rc", "home_rc", "workspace_rc")
                if name in self.options.startup
            ),
            f"--bazelrc={self.rc}",
        )
        command = Command((str(self.binary), *startup, *arguments), self.workspace, self.env)
        return isolation.in_own_network(command) if self.alone else command

    def run(
        self,
        command: Command,
        log: Path,
        on_progress: Report,
        spent: Callable[[Spent], None] = lambda _: None,
    ) -> BazelRun:
        """Run a command to its end.

        Its lines are added to `log`, its progress goes to `on_progress`, and its cost to `spent`.

        On Ctrl-C, or any other exception, Bazel is made to cancel its actions before that goes on.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        # The counter of the control group has those of earlier builds in it.
        display = Display()
        kills = capacity.oom_kills()
        memory = capacity.total_memory()
        begun = time.monotonic()
        with (
            ExitStack() as counted,
            gauge.watching(self._server_pid) as seen,
            log.open("a", encoding="utf-8") as stream,
            # The bar, which names the running actions, is only drawn on a terminal.
            pseudo_terminal.running(command, remedy=REMEDY) as child,
        ):
            # Also of a run that is interrupted.
            counted.callback(
                lambda: spent(Spent(time.monotonic() - begun, seen.cpu, seen.action, seen.together))
            )
            start, record = stream.tell(), _Record(stream)
            for text in pseudo_terminal.read_output(child):
                record.add(display.feed(text))
                on_progress(replace(display.progress, held=seen.holds, room=memory))
            record.add(display.close())
            status = pseudo_terminal.exit_status(child)
        return BazelRun(
            status=status,
            # A Bazel that dies at its start prints no line with ERROR.
            errors=tuple(record.errors) or runner.last_lines(log),
            actions=display.actions or display.progress.done,
            log=log,
            start=start,
            peak=seen.action,
            pressure=seen.pressure,
            killed=capacity.oom_kills() - kills,
        )

    def stop(self) -> None:
        """End the server of this output base, if one runs; kill it if it does not end in time."""
        server = self._server_pid()
        if server is None:
            return
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        # It may end by itself in this moment.
        with suppress(ProcessLookupError):
            # As ``bazel shutdown`` does, which would first have to reach it in its own network.
            os.kill(server, signal.SIGTERM)
            try:
                while self._is_running(server) and time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
            finally:
                if self._is_running(server):
                    # Only the actions that run now are lost: the next build runs them again.
                    os.kill(server, signal.SIGKILL)

    def _server_pid(self) -> int | None:
        """Return the process id of the running server."""
        try:
            # A server that was killed leaves the file behind: `_is_running` tells.
            pid = int((self.output_base / "server/server.pid.txt").read_text("ascii"))
        except (OSError, ValueError):
            return None
        # In a container the server writes its number there, which is another one here.
        pid = host_process(pid) or 0
        return pid if self._is_running(pid) else None

    def _is_running(self, pid: int) -> bool:
        """Say whether a process is the server, and has not ended."""
        import psutil

        # The system may have given the pid to another program since: only the arguments are proof.
        try:
            return f"{self.output_base}/" in " ".join(psutil.Process(pid).cmdline())
        except (psutil.Error, ValueError):
            return False


class _Record:
    """Writes lines to a log, and keeps those from the first error on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.errors: list[str] = []

    def add(self, lines: list[str]) -> None:
        for line in lines:
            self._stream.write(line + "\n")
            # A failed compilation may print megabytes of templates.
            if len(self.errors) < KEPT_LINES and (self.errors or line.startswith("ERROR: ")):
                self.errors.append(line)
        # Someone may follow the log of a build that takes hours.
        self._stream.flush()
