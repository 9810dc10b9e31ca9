"""Programs on another machine over plain OpenSSH: no daemon, the user's own agent and known hosts.

The remote program has a terminal that ends with the connection, and so it ends with this process.
"""

import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfwright.documents.host_file import WorkerTable
from tfwright.errors import HostError, ToolError
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, caller_variables

LOST = 255
"""Exit status of ssh itself: no connection, or it broke."""
CANNOT = frozenset({HostError.exit_status, 126, 127})
"""Exit statuses that blame the machine: tfwright's own for a host, and the shell's where a program
is missing or cannot run."""
KILLED = 128
"""The shell adds the number of the signal that ended a program."""
ALIVE = (
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
)
"""A machine that is silent for 15 seconds is lost. ssh asks nothing: a build has no keyboard."""
PASSED_ON = ("HOME", "PATH", "SSH_AUTH_SOCK", "USER", "LOGNAME")
READ = "The log of the build ends with the cause and the remedy."
PRINTED = "tfwright-printed: "
"""What stands before the standard output of the remote program in its log. The terminal mixes that
with the progress on standard error."""
PRINTED_END = "tfwright-printed-all"
"""What stands behind it: ssh itself says afterwards that it closes the connection."""
MARK = re.compile(f"{PRINTED.strip()}|{PRINTED_END}")
"""A mark alone: where the shell failed, the program printed nothing."""
CLOSED = re.compile(r"(?:Shared c|C)onnection to .+ closed\.")
"""What ssh says when a program has ended, well or badly."""
SAID = ("Failed", "tfwright needs Python")
"""How the line begins in which tfwright says why it ends."""
NO_RSYNC = re.compile(r"\brsync: (command )?not found")
"""What a shell says that finds no rsync."""
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass(frozen=True)
class RemoteBuild:
    """What became of a program on another machine."""

    seconds: float
    status: int = 0
    """Its exit status; LOST where the connection broke, negative where ssh was killed."""
    failure: str = ""
    """Why it failed; empty if it did not."""
    printed: str = ""
    """The last line of its standard output: for a build, the path of the wheel."""
    remedy: str = ""
    log: str = ""
    """What it printed, on this host."""

    @property
    def lost(self) -> bool:
        """Whether the machine, or the way to it, is gone."""
        return self.status == LOST or self.status < 0

    @property
    def refused(self) -> bool:
        """Whether the machine cannot do it, and another one perhaps can."""
        return self.status in CANNOT or KILLED < self.status < LOST


def run(host: WorkerTable, program: Sequence[str], log: Path) -> RemoteBuild:
    """Run a command of tfwright on a machine, to its end; what it prints is in `log`."""
    begun = time.monotonic()
    status = runner.attempt(command(host, program), log, remedy="Install OpenSSH.")
    # The last line of the program's standard output, which stands between two marks.
    text = TERMINAL_CODES.sub("", "\n".join(("", *runner.last_lines(log, 200))))
    between = re.search(rf"(?s).*\n{PRINTED}(.*)\n{PRINTED_END}", text)
    output = between[1].strip().rpartition("\n")[2].strip() if between else ""
    done = RemoteBuild(time.monotonic() - begun, status, printed=output, log=str(log))
    if done.lost:
        why = _last_line_without(log) or "the connection broke"
        return replace(done, failure=why, remedy=connect_remedy(host))
    return replace(done, failure=failure(log, status), remedy=READ) if status else done


def connect_remedy(host: WorkerTable) -> str:
    """Return what to do about a machine that was lost."""
    by_hand = shlex.join(("ssh", *_config_options(host), host.address, "true"))
    return f"See whether {host.name} runs and lets you in: {by_hand}"


def command(host: WorkerTable, program: Sequence[str]) -> Command:
    """Return the command that runs a command of tfwright on a machine."""
    words = ["env", "TERM=dumb"]
    if host.host_file:
        words.append(f"TFWRIGHT_HOST_FILE={_shell_word(host.host_file)}")
    words += map(_shell_word, (host.python, "tasks.py", *program))
    tfwright = " ".join(words)
    # 3 is tfwright's own status for a host that lacks something: here its checkout.
    checkout = f"cd {_shell_word(host.directory)} && test -f tasks.py || exit 3"
    marks = shlex.quote(PRINTED), shlex.quote(PRINTED_END)
    printing = f"printf '\\n%s%s\\n%s\\n' {marks[0]} \"$said\" {marks[1]}"
    script = f"{checkout}; said=$({tfwright}); status=$?; {printing}; exit $status"
    return _ssh(host, ("-tt",), script)


def fetch(host: WorkerTable, source: str, to: Path, log: Path, names: Sequence[str] = ()) -> None:
    """Copy all files below a directory from a machine, or those of these names or patterns.

    Raises ToolError if rsync fails, HostError if the disk of this host is full.
    """
    wanted = [*(f"--include=/{name}" for name in names), "--exclude=*"] if names else []
    there = f"--rsync-path=cd {_shell_word(source)} && rsync"
    ends = (f"{host.address}:./", f"{to}/")
    _rsync(host, ("--archive", "--no-links", *wanted, there), ends, log, "this host")


def send_folder(host: WorkerTable, source: Path, to: str, log: Path) -> None:
    """Copy all files below a directory to a machine, except those that it has.

    Raises ToolError if rsync fails, HostError if that machine has no rsync or no room.
    """
    # For files that are named by their digest, the name says that there is nothing to copy.
    _send(host, ("--archive", "--no-links", "--ignore-existing"), source, to, log)


def send_files(host: WorkerTable, source: Path, names: Sequence[str], to: str, log: Path) -> None:
    """Copy files below a directory to a machine; for a link, what it leads to.

    Raises ToolError if rsync fails, HostError if that machine has no rsync or no room.
    """
    listed = log.with_suffix(".files")
    files.write(listed, "".join(f"{name}\0" for name in names))
    # A file that the last attempt left by halves is completed.
    options = ("--copy-links", "--times", "--partial", "--from0", f"--files-from={listed}")
    _send(host, options, source, to, log)


def lacks_packages(host: WorkerTable, digest: str) -> bool:
    """Say whether a machine has to install tfwright's own packages, and could use this host's.

    `digest` is that of the requirements from which a finished checkout was set up.
    """
    checkout = _shell_word(host.directory)
    version = "%d.%d"
    ready = f"grep -qs {digest} {checkout}/.venv/tfwright-requirements"
    asked = shlex.quote(f"import sys; print('{version}' % sys.version_info[:2])")
    script = f"{ready} || {_shell_word(host.python)} -c {asked}"
    # The user's shell may print a line of its own first.
    reply = runner.short_output(_ssh(host, (), script))
    return reply.split()[-1:] == [version % sys.version_info[:2]]


def remove(host: WorkerTable, folder: str) -> None:
    """Remove a directory on a machine; one that stays only takes room."""
    runner.short_output(_ssh(host, (), f"rm -rf -- {_shell_word(folder)}"))


def _send(host: WorkerTable, options: Sequence[str], source: Path, to: str, log: Path) -> None:
    folder = _shell_word(to)
    there = f"--rsync-path=mkdir -p {folder} && cd {folder} && rsync"
    ends = (f"{source}/", f"{host.address}:./")
    _rsync(host, (*options, there), ends, log, host.name)


def _rsync(
    host: WorkerTable, options: Sequence[str], ends: tuple[str, str], log: Path, writer: str
) -> None:
    """Run rsync. The other machine's shell goes to the folder, since rsync itself knows no ~.

    Before 3.2.3 rsync could not make a folder with its parents, either. `writer` is the name of the
    machine that takes the files.
    """
    way = shlex.join(("ssh", *_config_options(host), *ALIVE))
    # --protect-args: no shell on the other side reads the paths.
    argv = ("rsync", "--protect-args", *options, f"--rsh={way}", "--", *ends)
    command = Command(argv, Path("/"), caller_variables(PASSED_ON), here=True)
    status = runner.attempt(command, log, remedy="Install rsync on this host.")
    if status == 0:
        return
    remedy = f"Correct what rsync names above; all that it said is in {log}."
    fault = runner.exit_error(command, status, log, remedy=remedy)
    evidence = fault.evidence
    # Its status may be that of the broken connection instead of the shell's.
    if any(NO_RSYNC.search(line) for line in evidence.lines):
        raise HostError(f"{host.name} has no rsync", remedy="Install it there.", evidence=evidence)
    if any("is your shell clean?" in line for line in evidence.lines):
        raise HostError(
            f"The shell of {host.name} prints a text of its own, which rsync cannot read",
            remedy="Let .bashrc and the like there print only in a shell with a terminal.",
            evidence=evidence,
        )
    if isinstance(fault, HostError):
        raise HostError(
            f"The disk of {writer} is full",
            remedy=f"Free some space on {writer}.",
            evidence=evidence,
        )
    own = [line for line in evidence.lines if not line.startswith("rsync")]
    if own:
        raise ToolError(own[0], remedy=connect_remedy(host), evidence=evidence)
    # Its first line is the reason; the status that it ends with only gives its kind.
    if evidence.lines:
        raise ToolError(evidence.lines[0], remedy=remedy, evidence=evidence)
    raise fault


def _shell_word(text: str) -> str:
    """Return a word as the shell of the other machine reads it; ~ is the user's home there."""
    if not re.match(r"~(/|$)", text):
        return shlex.quote(text)
    return '"$HOME"' + (shlex.quote(text[1:]) if text[1:] else "")


def _ssh(host: WorkerTable, options: tuple[str, ...], script: str) -> Command:
    # The user's own shell there may be csh or fish. After `--` an address may begin with a dash.
    posix = f"sh -c {shlex.quote(script)}"
    argv = ("ssh", *_config_options(host), *ALIVE, *options, "--", host.address, posix)
    return Command(argv, Path("/"), caller_variables(PASSED_ON), here=True)


def _config_options(host: WorkerTable) -> tuple[str, ...]:
    return ("-F", str(host.config)) if host.config else ()


def failure(log: Path, status: int) -> str:
    """Return the line in which tfwright says what failed."""
    if KILLED < status < LOST:
        return f"killed by signal {status - KILLED}"
    # The last one: the lines before it may be of an earlier attempt.
    for line in reversed(runner.last_lines(log, 200)):
        if line.startswith(SAID):
            return line.strip()
    return f"exit status {status}: {_last_line_without(log, CLOSED) or 'it printed nothing'}"


def _last_line_without(log: Path, but: re.Pattern[str] = MARK) -> str:
    """Return the last line of a log that no pattern leaves out."""
    for line in reversed(runner.last_lines(log, 20)):
        plain = TERMINAL_CODES.sub("", line).strip()
        if plain and not (but.fullmatch(plain) or MARK.fullmatch(plain)):
            return plain
    return ""
