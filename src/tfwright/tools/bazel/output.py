"""What Bazel writes: the lines that stay, the bar that it redraws, and failed downloads."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tfwright.errors import ToolError
from tfwright.progress import Progress, RunningAction
from tfwright.tools import json_text

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Programs of the build print what they like: nothing longer or emptier than a number is one.
_AMOUNT = r"([0-9][0-9,]{0,14})"
_COUNTED = re.compile(rf"\[{_AMOUNT} / {_AMOUNT}\] (.*)")
_SEVERAL = re.compile(r"\d+ actions?\b.*")
_STATE = re.compile(r"\[[-\w]{5}\] ")
_RUNNING = re.compile(r"(?:\[[-\w]{5}\] )?(.+?); ([0-9]{1,9})s\b.*")
_PHASE = re.compile(
    r"(Loading|Analyzing|Another command|Waiting for it|Starting local Bazel server)\b.*"
)
_FAILED_ACTION = re.compile(r"ERROR: .* failed:? \(")
_CONCLUSION = re.compile(rf"INFO: Build completed successfully, {_AMOUNT} total actions?")


class Display:
    """Bazel's output on a terminal, taken apart as it comes.

    Bazel erases its bar by going up one line at a time, each time with a carriage return first;
    with ``--color=no`` the carriage returns are all that is left of it (seen with 0.17.2 to
    0.26.1). So the returns at the start of a line say how many lines before it were only passing.
    """

    def __init__(self) -> None:
        """Start with an empty screen."""
        self.progress = Progress(0, None)
        self.actions = 0
        """How many actions Bazel counted in the end."""
        self._rest = ""
        self._shown: list[str] = []
        self._expects_action = False
        self._lists = False
        """Whether the lines that follow name one running action each."""

    def feed(self, text: str) -> list[str]:
        """Take what Bazel wrote; return the lines that it can no longer erase."""
        # A read ends anywhere: what has no line end yet may go on in the next one.
        *lines, self._rest = (self._rest + text).split("\n")
        settled = []
        for line in lines:
            plain = _ESCAPE.sub("", line).removesuffix("\r")
            content = plain.lstrip("\r")
            # Each carriage return stands for one line that Bazel went up.
            erased = len(plain) - len(content)
            if erased:
                settled += self._shown[:-erased]
                self._shown = []
            self._shown.append(content)
            self._read_progress(content)
        return settled

    def close(self) -> list[str]:
        """Return the lines that were left when Bazel ended."""
        left = [*self._shown, _ESCAPE.sub("", self._rest).strip("\r")]
        self._shown, self._rest = [], ""
        return [line for line in left if line]

    def _read_progress(self, line: str) -> None:
        """Read the progress off a line, if there is any on it."""
        if counted := _COUNTED.fullmatch(line):
            # The first line of the bar: ``[1,615 / 4,024] Compiling path; 3s local``. With "3
            # actions running" the actions follow, one in each of the next lines.
            self._lists = self._expects_action = bool(_SEVERAL.fullmatch(counted[3]))
            self._note_actions(None if self._lists else counted[3])
            # The total grows while Bazel still loads packages, so it is taken from each bar.
            done, total = _parse_number(counted[1]), _parse_number(counted[2])
            self.progress = replace(self.progress, done=done, total=total)
            if not self._expects_action:
                self._note_activity(doing=counted[3])
        elif self._lists and line.startswith("    "):
            if self._expects_action:
                self._expects_action = False
                self._note_activity(doing=line)
            self._note_actions(line, *self.progress.running)
        elif _PHASE.fullmatch(line):
            self._note_activity(doing=line)
        elif concluded := _CONCLUSION.match(line):
            self.actions = _parse_number(concluded[1])
        elif _FAILED_ACTION.match(line):
            failures = self.progress.failures + 1
            self.progress = replace(self.progress, failures=failures)

    def _note_activity(self, doing: str) -> None:
        """Note what Bazel does now, without its state, which stands first: ``[Prepa] ``."""
        self.progress = replace(self.progress, doing=_STATE.sub("", doing.strip()))

    def _note_actions(self, line: str | None, *others: RunningAction) -> None:
        """Note the action that a line names, and for how long it has run, with others."""
        actions = list(others)
        if line and (named := _RUNNING.fullmatch(line.strip())):
            actions.append(RunningAction(named[1], float(named[2])))
        # The longest first: it is what a build that seems to hang waits for.
        actions.sort(key=lambda action: -action.seconds)
        self.progress = replace(self.progress, running=tuple(actions))


def _parse_number(text: str) -> int:
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class DownloadFault:
    """A file that a repository rule could not download."""

    url: str
    why: str


_DOWNLOAD = re.compile(
    r"Error downloading \[([^\],]*)[^\]]*\] to \S+: (.*?)(?: and referenced by .*)?$"
)


_BROKEN = re.compile(
    r"occurred during the fetch of repository '@{0,2}([^']+)'"
    r"|no such package '@{1,2}([^'/]+)//[^']*': Error cloning"
)


def failed_repositories(lines: Sequence[str]) -> set[str]:
    """Return the names of the external repositories that could not be made."""
    matches = filter(None, map(_BROKEN.search, lines))
    return {found[1] or found[2] for found in matches}


def download_faults(lines: Sequence[str]) -> list[DownloadFault]:
    """Return the downloads that failed, each once: Bazel repeats one for all that needs it."""
    # Bazel lists every address that it tried; the first one names the file.
    matches = filter(None, map(_DOWNLOAD.search, lines))
    faults = {found[1]: DownloadFault(found[1], found[2]) for found in matches}
    return list(faults.values())


BuildEvent = Mapping[str, Any]


def built_files(events: Path) -> tuple[Path, ...]:
    """Return the default outputs of the targets that were asked for, in Bazel's order."""
    sets: dict[str, BuildEvent] = {}
    seen: set[str] = set()
    found: dict[Path, None] = {}
    try:
        with events.open(encoding="utf-8") as lines:
            # A set of files always stands before what refers to it.
            for event in map(json_text.parse, lines):
                # Bazel reports each set of files once, and lets later events refer to it by a
                # number.
                if named := event["id"].get("namedSet"):
                    sets[named["id"]] = event["namedSetOfFiles"]
                elif "targetCompleted" in event["id"]:
                    # The event of a target that failed may have no "completed".
                    for group in event.get("completed", {}).get("outputGroup", ()):
                        # Other groups hold validation and coverage files, which the user did
                        # not ask for.
                        if group["name"] == "default":
                            found |= dict.fromkeys(_files_of_group(group, sets, seen))
    except (ValueError, LookupError, TypeError, AttributeError) as fault:
        raise ToolError(
            f"Bazel's list of what it built, {events}, cannot be read: {fault!r}",
            remedy="Make room on the disk if it is full, then build again.",
        ) from fault
    return tuple(found)


def _files_of_group(
    group: BuildEvent, sets: Mapping[str, BuildEvent], seen: set[str]
) -> Iterator[Path]:
    """Walk down nested sets to the local files in them, into each set once.

    Sets share parts, so that there can be far more ways down than sets.
    """
    waiting = list(group.get("fileSets", ()))[::-1]
    while waiting:
        name = waiting.pop()["id"]
        if name in seen:
            continue
        seen.add(name)
        members = sets[name]
        for file in members.get("files", ()):
            uri = urlsplit(file["uri"])
            # With a remote cache that downloads little, files may only have a
            # bytestream:// address.
            if uri.scheme == "file":
                yield Path(unquote(uri.path))
        waiting += list(members.get("fileSets", ()))[::-1]
