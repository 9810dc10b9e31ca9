"""Finds the root among the complaints of a log.

The root is what the innermost tool says inside the action that failed: not Bazel's report that a
compiler failed, nor the summary at the end, nor the exception that Python raised while it handled
another one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tfwright.diagnosis.complaints import Complaint, Recognition
from tfwright.diagnosis.families import family_by_id, rule
from tfwright.diagnosis.log import Line, indent

REACH = 400
"""Lines after Bazel's report of a failed action that may belong to the action."""
MOST_TRACEBACKS = 500
"""Tracebacks that are followed, from the beginning and from the end of the log."""
BACK = 60
"""Lines before such a report in which an older Bazel, or nvcc's wrapper, shows what was printed."""
RETRY_REACH = 2
"""Lines between a failure and the announcement of another try, at most."""
NEAR_END = 12
"""Lines at the end of a log in which a program may complain in plain words of what stopped it."""
WARNED_REACH = 3
"""Lines above TensorFlow's last words in which it may have warned of what then stopped it."""
EXCEPTION_REACH = 3
"""Lines below an exception without a text in which its text stands."""
SEVERAL_REACH = 4
"""Lines below TensorFlow's announcement of several errors in which the first one stands."""

_TRACEBACK = "Traceback (most"
_CAUSED_BY = "Caused by: "
_RULE_STOPPED = "bazel-starlark-error"
_EXCEPTION = "python-exception"
_STARLARK = (".bzl", "BUILD", "BUILD.bazel", "WORKSPACE", ".bazel", "BUILD.tpl")
_JAVA_PLAIN = frozenset({"fetch-java-internal", "java-exception"})
"""Families that say no more than that a Java program failed."""


@dataclass(frozen=True)
class Traceback:
    """Where a traceback stands, and where the exception that ends it."""

    first: int
    last: int
    file: str
    """The file of the innermost frame."""


def _first_of_rank(complaints: Sequence[Complaint], rank: str) -> Complaint | None:
    # A program that complains in plain words goes on after most of them, but not after the last.
    ordered = reversed(complaints) if rank == "hint" else complaints
    return next((each for each in ordered if each.rank == rank), None)


class Search:
    """The complaints of a log, and the search for the root among them."""

    def __init__(self, lines: Sequence[Line], found: Sequence[Complaint]) -> None:
        """Take out source that tracebacks quote, and what tools go on after."""
        self.lines = lines
        self.complaints = self._apply_tracebacks(found)
        self.complaints = self._relevant()
        self.real = [each for each in self.complaints if each.rank != "harmless"]

    def root(self) -> Complaint | None:
        """Return the complaint that the others follow from; None if nothing complains."""
        action = _first_of_rank(self.real, "wrapper")
        found = self._error_before_action(action) or self._error_of_action(action)
        # Without an action that failed, the first complaint nearest to a cause.
        for rank in ("root", "weak", "wrapper"):
            found = found or _first_of_rank(self.real, rank)
        end = [each for each in self.real if each.at >= len(self.lines) - NEAR_END]
        found = found or _first_of_rank(end, "hint") or _first_of_rank(self.real, "summary")
        # Some only announce what the log says further down.
        for follow in (
            self._quoted_by_rule,
            self._first_of_several,
            self._announced_below,
            self._innermost_cause,
            self._warned_above,
        ):
            found = follow(found) if found else None
        return found

    def _text(self, complaint: Complaint) -> str:
        return self.lines[complaint.at].text.lstrip()

    # What does not count

    def _relevant(self) -> list[Complaint]:
        """Return the complaints without those that a tool went on after, and then succeeded.

        ./configure looks for CUDA, fails and asks; pip fails to build a wheel and installs another
        way.
        """
        succeeded = rule("success").match
        last = max(
            (at for at, line in enumerate(self.lines) if succeeded(line.message)), default=-1
        )
        ignored = self._ignored_lines()
        # Where a module was only looked for: SWIG's module asks for the library by name first, and
        # loads it by path where that fails.
        ignored |= {
            missing.at
            for missing, loaded in pairwise(self.complaints)
            if missing.family.id in {"python-module-missing", "python-name-missing"}
            and loaded.family.id.startswith(("load-", "import-", "python-numpy", "python-protobuf"))
            and any(
                line.text.startswith("During handling of the above exception, another exception")
                for line in self.lines[missing.at + 1 : loaded.at]
            )
        }
        passing = self._repeated_lines()
        return [
            replace(complaint, rank="harmless") if complaint.at in passing else complaint
            for complaint in self.complaints
            if complaint.rank == "harmless"
            or (complaint.at not in ignored and (complaint.at > last or complaint.family.fatal))
        ]

    def _ignored_lines(self) -> set[int]:
        """Return the lines that a tool itself says it goes on after."""
        ignored: set[int] = set()
        for at, line in enumerate(self.lines):
            text = line.message
            again = at + RETRY_REACH < len(self.lines)
            if rule("ignored_command").match(text):
                # make prints its own line after the command's. With `make -j` other commands print
                # further up, so only one line is taken.
                ignored.update((at - 1, at))
            elif again and rule("retry").match(text):
                ignored.update(range(at - RETRY_REACH, at + 1))
            elif again and rule("apt_progress").match(text):
                # The reason is on the line below.
                ignored.update((at, at + 1))
            elif text.startswith("Exception ignored in"):
                # Python prints a traceback of something that it cleans up, and goes on.
                traceback = (
                    self._traceback_at(at + 1) if _TRACEBACK in self._next_line(at) else None
                )
                ignored.update(range(at, traceback.last + 1 if traceback else at + 1))
            elif "pip's dependency resolver does not currently take into account" in text:
                ignored.update(self._following_lines(at, rule("pip_conflict").match))
            elif rule("cmake_warning").match(text):
                # A paragraph: indented, with empty lines between its lines.
                ignored.update(self._following_lines(at, re.compile(r"  |\s*$").match))
        return ignored

    def _repeated_lines(self) -> set[int]:
        """Return the lines of exceptions that are printed again and again, and raised nowhere."""
        passing: set[int] = set()
        for at, line in enumerate(self.lines):
            if at not in passing and rule("bare_exception").match(line.message):
                repeated = self._following_lines(at, line.text.__eq__)
                raised = at > 0 and self.lines[at - 1].text.startswith((" ", "\t"))
                if len(repeated) > 1 and repeated.stop < len(self.lines) and not raised:
                    passing.update(repeated)
        # Python says that one of them was raised after all: it stopped the start of a module.
        unreported = "raised unreported exception"
        if passing and any(unreported in line.text for line in self.lines):
            return set()
        return passing

    def _next_line(self, at: int) -> str:
        return self.lines[at + 1].text if at + 1 < len(self.lines) else ""

    def _following_lines(self, at: int, belongs: Callable[[str], object]) -> range:
        """Return a line and those directly below it that belong to it."""
        after = at + 1
        while after < len(self.lines) and belongs(self.lines[after].text):
            after += 1
        return range(at, after)

    # The failed action

    def _error_before_action(self, action: Complaint | None) -> Complaint | None:
        """Return the error by which Bazel itself stopped, where it comes before a failed action."""
        for complaint in self.real:
            if action is None or complaint.at >= action.at:
                break
            if complaint.rank == "root" and self.lines[complaint.at].message.startswith("ERROR: "):
                return complaint
        return None

    def _error_of_action(self, action: Complaint | None) -> Complaint | None:
        """Return the first complaint of the action that `action` reports as failed."""
        if action is None:
            return None
        at, lines = action.at, self.lines
        last, first = min(len(lines), at + REACH), max(0, at - BACK)
        ends, begins = rule("action_ends").match, rule("action_begins").match
        end = next((after for after in range(at + 1, last) if ends(lines[after].message)), last)
        start = next(
            (before for before in range(at - 1, first - 1, -1) if begins(lines[before].message)),
            first,
        )
        within = [each for each in self.real if at < each.at < end]
        before = [each for each in self.real if start <= each.at < at]
        for rank in ("root", "weak", "hint"):
            # Newer Bazels print the report above what the action said, older ones below it.
            for group in (within, before):
                if found := _first_of_rank(group, rank):
                    return found
        return None

    # What the complaint announces

    def _quoted_by_rule(self, found: Complaint) -> Complaint:
        """Return what a tool said, where `found` is a rule that stops and quotes the tool below.

        A repository rule runs pip or a shell, and hands their output to fail().
        """
        if found.family.id != _RULE_STOPPED:
            return found
        for complaint in self.real:
            if complaint.at <= found.at or complaint.rank != "root":
                continue
            between = self.lines[found.at + 1 : complaint.at + 1]
            bazel = rule("bazel_line").match
            if len(between) > REACH or any(bazel(line.text) for line in between):
                break
            return complaint
        return found

    def _first_of_several(self, found: Complaint) -> Complaint:
        """Return the first of the errors that TensorFlow lists below `found`, as `(0)`."""
        if found.family.id == "op-several-errors":
            for complaint in self.real:
                near = found.at < complaint.at < found.at + SEVERAL_REACH
                if near and self._text(complaint).startswith("(0)"):
                    return complaint
        return found

    def _announced_below(self, found: Complaint) -> Complaint:
        """Return the line below, where `found` announces it, or it names itself as the cause."""
        text = self._text(found).rstrip()
        announces = text.endswith(":") or self._next_line(found.at).startswith("caused by: ")
        # Keras says which layer it could not read, and below an empty line why.
        announces |= self._next_line(found.at + 1).startswith("Exception encountered: ")
        if found.family.rank != "weak" or not announces:
            return found
        # Keras names the op, and where the program made it, before it says what failed. The text of
        # an exception may begin with an empty line and a rule.
        short = EXCEPTION_REACH if found.family.id == _EXCEPTION else 1
        reach = REACH if text.endswith("Graph execution error:") else short
        below = range(found.at + 1, found.at + 1 + reach)
        return next((each for each in self.real if each.at in below), found)

    def _warned_above(self, found: Complaint) -> Complaint:
        """Return the line right above that is harmless where a program goes on, if it did not."""
        logged = rule("logged").match(self.lines[found.at].message)
        if found.family.rank == "weak" and logged and "F" in logged.groups():
            for each in self.complaints:
                if found.at - WARNED_REACH <= each.at < found.at and each.family.unless:
                    return replace(each, rank="root")
        return found

    def _innermost_cause(self, found: Complaint) -> Complaint:
        """Return what `found` was caused by, where it is an exception of Java that says less."""
        text = self._text(found)
        caused = text.startswith(_CAUSED_BY)
        if not caused and not rule("java_exception").search(text):
            return found
        trace = self._following_lines(found.at, rule("java_trace").match)[:REACH]
        causes = [
            each
            for each in self.real
            if each.at in trace[1:] and self._text(each).startswith(_CAUSED_BY)
        ]
        if not causes:
            return found
        # Java prints the causes from the outside in.
        cause = causes[-1]
        message = self._text(cause).strip().removeprefix(_CAUSED_BY).partition(": ")[2]
        known = found.rank == "root" and found.family.id not in _JAVA_PLAIN
        explains = bool(message) and message in text
        explains |= known and cause.family.id in _JAVA_PLAIN
        return found if explains and not caused else cause

    # Tracebacks

    def _apply_tracebacks(self, found: Sequence[Complaint]) -> list[Complaint]:
        """Return the complaints as tracebacks change them.

        What a traceback quotes is source code. The exception that ends it is a complaint, whatever
        its name.
        """
        at = {complaint.at: complaint for complaint in found}
        heads = [number for number, line in enumerate(self.lines) if _TRACEBACK in line.text]
        del heads[MOST_TRACEBACKS:-MOST_TRACEBACKS]
        for traceback in filter(None, map(self._traceback_at, heads)):
            for quoted in range(traceback.first, traceback.last):
                inside = at.get(quoted)
                # Bazel's report of a failed action does not quote source code, wherever it is.
                if inside and inside.rank != "wrapper":
                    del at[quoted]
            at[traceback.last] = self._end_of_traceback(traceback, at.get(traceback.last))
        return [at[number] for number in sorted(at)]

    def _traceback_at(self, at: int) -> Traceback | None:
        """Follow the traceback at `at`: its exception is indented less than its frames."""
        frames = 0
        file = ""
        for after in range(at + 1, min(len(self.lines), at + REACH)):
            text = self.lines[after].message
            frame = rule("frame").match(text)
            if frame:
                frames = frames or indent(text)
                file = frame["file"]
            elif not file and _TRACEBACK in text:
                return None
            elif file and text.strip() and indent(text) < max(1, frames):
                # Copied text may have lost its indentation: below a frame stands its source.
                source = not frames and rule("frame").match(self.lines[after - 1].message)
                if not source or rule("raised").match(text.strip()):
                    return Traceback(at, after, file)
        return None

    def _end_of_traceback(self, traceback: Traceback, known: Complaint | None) -> Complaint:
        """Return the complaint that ends a traceback."""
        starlark = traceback.file.endswith(_STARLARK)
        if known and known.rank not in {"weak", "hint"}:
            return known
        # What any program may say is less than that a rule of the build files stopped.
        if known and known.rank == "weak" and not (starlark and known.family.id == "general-error"):
            readings = tuple(
                replace(reading, parameters={**reading.parameters, "file": traceback.file})
                if reading.family.id == _EXCEPTION
                else reading
                for reading in known.readings
            )
            return replace(known, rank="root", readings=readings)
        text = self.lines[traceback.last].message.strip().removeprefix("Error: ")
        parameters = {"file": traceback.file, "message": text, "exception": ""}
        exception = rule("raised").match(text)
        if exception and not starlark:
            parameters["exception"] = exception["exception"]
            parameters["message"] = exception["message"] or ""
        family = family_by_id(_RULE_STOPPED if starlark else _EXCEPTION)
        return Complaint(traceback.last, (Recognition(family, parameters),), "root")
