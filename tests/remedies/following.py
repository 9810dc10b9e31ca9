"""Following a remedy: a command line as a user types it, and the errors that it shows."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from invoke.program import Program
from tests.failing import fails

from tfwright import tasks
from tfwright.errors import TfwrightError
from tfwright.terminal import console, program

Act = Callable[[], object]


def failing(act: Act, kind: type[TfwrightError], *values: object) -> TfwrightError:
    """Return the error by which something fails, which names each value."""
    with fails(kind, *values) as caught:
        act()
    return caught.value


RECIPE = """\
summary = "x"

[source]
url = "file://{repository}"
branch = "main"
commit = "{commit}"
release = "{release}"

[host]
system = "Darwin"
python = "any"

[bazel]
version = "0.17.2"
"""


def write_recipe(path: Path, repository: Path, commit: str, release: str = "1.12") -> Path:
    """Write a recipe of a commit, whose first stages run on this host and need no Bazel."""
    text = RECIPE.format(repository=repository, commit=commit, release=release)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def add(path: Path, text: str, after: str = "") -> None:
    """Write lines into a file, at its end or below a line."""
    before = path.read_text("utf-8")
    whole = before.replace(after, f"{after}\n{text}") if after else before + text
    path.write_text(whole, "utf-8")


def enter(path: Path, lines: str) -> None:
    """Enter the lines of a remedy, below a header that the recipe has already."""
    header, _, rest = lines.strip().partition("\n")
    indented = "\n".join(line.strip() for line in rest.splitlines())
    if f"\n{header}\n" in path.read_text("utf-8"):
        add(path, indented, after=header)
    else:
        add(path, f"\n{header}\n{indented}\n")


def commands(remedy: str) -> list[str]:
    """Return the commands of tfwright that a message puts between quotes."""
    return re.findall(QUOTED, remedy)


QUOTED = r"'(invoke [^']*)'"
"""A command of tfwright as messages show it."""


class CommandLine:
    """Types commands, and keeps the last error that was shown."""

    def __init__(self, host_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host_file = host_file
        self.fault: TfwrightError | None = None
        self.resume = ""
        monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(host_file))
        monkeypatch.setattr(console, "show_error", self._hear)
        # `install` replaces these for the whole process.
        for method in ("list_flat", "parse_tasks", "print_task_help"):
            monkeypatch.setattr(Program, method, getattr(Program, method))
        program.install(tasks.names(), tasks.REPLACED, "invoke")

    def _hear(self, fault: TfwrightError, resume: str = "", *_: object) -> None:
        self.fault, self.resume = fault, resume

    def status(self, command: str) -> int:
        """Type a command as a message shows it; return its exit status."""
        self.fault, self.resume = None, ""
        typed = Program(namespace=tasks.collection())
        try:
            typed.run(shlex.split(command), exit=False)
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    def remedy(self, command: str, *values: object) -> str:
        """Type a command that fails; return what its message says to do, which names each value."""
        assert self.status(command) != 0
        assert self.fault is not None
        remedy = self.fault.remedy
        assert not [value for value in values if str(value) not in remedy], remedy
        return remedy

    def succeeds(self, command: str) -> None:
        """Type a command that has to succeed."""
        status = self.status(command)
        assert not self.fault, (self.fault, self.fault and self.fault.remedy)
        assert status == 0

    def retype(
        self, fails: str, shows: str, then: str, after: Callable[[], object] = str, /, **places: str
    ) -> None:
        """Type what fails, and then what its message shows, with `places` put into both.

        `shows` is a pattern of the remedy or the error, and {shown} each match of it: of many the
        first, the middle and the last. A word in capitals, such as COMMIT, stands for the place of
        that name.
        """
        remedy = self.remedy(fails.format(**places))
        found = re.findall(shows, remedy) or re.findall(shows, str(self.fault))
        assert found, shows
        for shown in found if len(found) < 4 else (found[0], found[len(found) // 2], found[-1]):
            command = then.format(shown=shown, **places)
            for name, value in places.items():
                command = command.replace(name.upper(), value)
            status = self.status(command)
            assert not self.fault, (command, self.fault, self.fault and self.fault.remedy)
            # 3 says that something was found, such as what this host lacks.
            assert status in {0, 3}, command
            after()
