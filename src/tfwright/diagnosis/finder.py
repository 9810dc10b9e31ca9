"""Finds the root among the complaints of a log.

The root is what the innermost tool says inside the action that failed: not Bazel's report that a
compiler failed, nor the summary at the end, nor the exception that Python raised while it handled
another one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from tfwright.diagnosis import lines
from tfwright.diagnosis.complaints import Complaint, Judged, Line, Recognition
from tfwright.diagnosis.families import Family, everything

REACH = 400
"""Lines after Bazel's report of a failed action that may belong to the action."""
MOST_TRACEBACKS = 500
"""Tracebacks that are followed, from the beginning and from the end of the log."""
BACK = 60
"""Lines before such a report in which an older Bazel, or nvcc's wrapper, shows what was printed."""

_FRAME = re.compile(r'\s*File "(?P<file>[^"]{1,500})", line \d+')
_EXCEPTION = re.compile(r"(?P<exception>[A-Za-z_][\w.]{0,200})(?:: (?P<message>.*))?$")
_FROM = re.compile(r"INFO: From |\[[\d,]+ ?/ ?[\d,]+\]|ERROR: |INFO: Found |Target //")
_ACTION_ENDS = re.compile(
    r"ERROR: (?:/|[A-Za-z]:|Skipping|Analysis|Couldn't|Process)|Target //|INFO: Elapsed|FAILED: |"
    r"ERROR: Build (?:did NOT|failed)|INFO: From |Use --verbose_failures"
)
_SUCCESS = re.compile(
    r"Configuration finished$|INFO: Build completed successfully, "
    r"|Successfully (?:installed|built) |.{0,80}=== Output wheel file is in"
    r"|Requirement already satisfied: "
    r"|Found CUDA [\d.]+ in:|\[?100%\]? Built target|Already up to date"
    r"|(?:config\.status|configure): creating "
    r"|g?make: (?:'.{1,300}' is up to date|Nothing to be done)"
    r"|Executing transaction: .{0,40}done$"
    # pytest, CTest and GoogleTest, where no test failed
    r"|=+ (?:\d+ (?:passed|skipped|xfailed|xpassed|deselected|warnings?)(?:, )?){1,6} in [\d.]+s"
    r"|100% tests passed|\[  PASSED  \] \d+ tests?\.$"
)
"""What a tool says when it has done its work."""
_IGNORED = re.compile(r"g?make(?:\[\d+\])?: \[.{1,300}\] Error \d+ \(ignored\)$")
"""What make says after a command that its file marks with `-`: the failure does not count."""
_RETRY = re.compile(
    r"(?:Warning: Problem.{0,80}Will retry|Retrying|Trying (?:an)?other mirror|[Rr]etry \d+ of \d+"
    r"|(?:will|Will) (?:try again|retry)\b).{0,200}$"
)
"""What a tool says before it tries again; the failure above it counts only if that is the end."""
_RETRY_REACH = 2
"""Lines between a failure and such a line, at most."""
_APT_PROGRESS = re.compile(r"Err:\d+ \S")
"""How apt shows a download that failed. At the end it calls that a warning, or an error."""
_CMAKE_WARNING = re.compile(r"CMake (?:\w+ )?Warning(?: \(dev\))?(?: at |:|$)")
_IGNORED_EXCEPTION = "Exception ignored in"
"""What Python prints before a traceback of something that it cleans up: the program goes on."""
_BARE_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,100}(?:Error|Exception): ")
"""An exception that a library of C prints without a traceback, before it goes on."""
_PIP_CONFLICTS = "pip's dependency resolver does not currently take into account"
"""What pip writes before it lists conflicts, once it has installed what it was asked for."""
_PIP_CONFLICT = re.compile(r".{1,400}, (?:which is not installed|but you .{1,200} incompatible)")
_CAUSED_BY = "Caused by: "
_JAVA_EXCEPTION = re.compile(r"(?:[a-z]\w*\.){2,12}[A-Z][\w$]*(?:Exception|Error)\b")
_JAVA_TRACE = re.compile(r"\s+at [\w.$<>/@-]+\(|\s*\.\.\. \d+ more|\s*(?:Caused by|Suppressed): ")
_JAVA_PLAIN = frozenset({"fetch-java-internal", "java-exception"})
"""Families that say no more than that a Java program failed."""
_WHILE_HANDLING = "During handling of the above exception, another exception occurred"
"""What Python prints between an exception and one that was raised while it was handled."""
_SEVERAL = "op-several-errors"
_SEVERAL_REACH = 4
"""Lines below that announcement in which the first error stands."""
_FIRST_OF_SEVERAL = "(0)"
"""How TensorFlow numbers the errors that it found in one step."""
_RULE_STOPPED = "bazel-starlark-error"
_BAZEL_SAYS = re.compile(
    r"(?:ERROR|INFO|WARNING|DEBUG|FAILED|Target|Loading|Analyzing)\b"
    r"(?!: (?:Could|No|Failed|Cannot|#define|\w+ version file))"
)
"""How Bazel's own lines begin; those of pip and of TensorFlow's scripts, which look the same, go on
with these words."""
_EXCEPTION_FAMILY = "python-exception"
_LOADED = ("load-", "import-")
"""Families of what the system's loader says."""
_STARLARK = (".bzl", "BUILD", "BUILD.bazel", "WORKSPACE", ".bazel", "BUILD.tpl")


@dataclass(frozen=True)
class Traceback:
    """Where a traceback stands, and where the exception that ends it."""

    first: int
    last: int
    file: str
    """The file of the innermost frame."""


def survived(kept: Sequence[Line], complaints: Sequence[Complaint]) -> list[Complaint]:
    """Return the complaints without those that a tool went on after, and then succeeded.

    ./configure looks for CUDA, fails and asks; pip fails to build a wheel and installs another way.
    """
    last = -1
    # From the end: what counts is the last success.
    for at in range(len(kept) - 1, -1, -1):
        if _SUCCESS.match(kept[at].said):
            last = at
            break
    ignored = _without_effect(kept) | _probes(kept, complaints)
    return [
        complaint
        for complaint in complaints
        if complaint.rank == "harmless"
        or (complaint.at not in ignored and (complaint.at > last or complaint.family.fatal))
    ]


def _without_effect(kept: Sequence[Line]) -> frozenset[int]:
    """Return the lines that a tool itself says it goes on after."""
    ignored: set[int] = set()
    for at, line in enumerate(kept):
        said = line.said
        if _IGNORED.match(said):
            # make prints its own line after the command's. With `make -j` other commands print
            # further up, so only one line is taken.
            ignored.update((at - 1, at))
        elif _RETRY.match(said) and at + _RETRY_REACH < len(kept):
            ignored.update(range(at - _RETRY_REACH, at + 1))
        elif _APT_PROGRESS.match(said) and at + _RETRY_REACH < len(kept):
            # The reason is on the line below.
            ignored.update((at, at + 1))
        elif _CMAKE_WARNING.match(said):
            ignored.update(_indented_below(kept, at))
        elif said.startswith(_IGNORED_EXCEPTION):
            ignored.update(_traceback_below(kept, at))
        elif _PIP_CONFLICTS in said:
            ignored.update(_conflicts_below(kept, at))
        elif _BARE_EXCEPTION.match(said):
            ignored.update(_repeats_that_pass(kept, at))
    return frozenset(ignored)


def _conflicts_below(kept: Sequence[Line], at: int) -> range:
    """Return the lines of pip's list: what each package wants, and what is there."""
    after = at + 1
    while after < len(kept) and _PIP_CONFLICT.match(kept[after].text):
        after += 1
    return range(at, after)


def _repeats_that_pass(kept: Sequence[Line], at: int) -> range:
    """Return an exception that is printed again and again, after which the program goes on.

    protobuf prints one like that for each module that was made for another version of it.
    """
    text = kept[at].text
    after = at + 1
    while after < len(kept) and kept[after].text == text:
        after += 1
    raised = at > 0 and kept[at - 1].text.startswith((" ", "\t"))
    passes = after > at + 1 and after < len(kept) and not raised
    return range(at, after) if passes else range(at, at)


def _indented_below(kept: Sequence[Line], at: int) -> range:
    """Return the lines of a paragraph of CMake's: indented, with empty lines between them."""
    after = at + 1
    while after < min(len(kept), at + REACH):
        text = kept[after].text
        if text.strip() and not text.startswith("  "):
            break
        after += 1
    return range(at, after)


def _traceback_below(kept: Sequence[Line], at: int) -> range:
    """Return the line and the traceback that follows it directly."""
    begins = at + 1 < len(kept) and "Traceback (most" in kept[at + 1].text
    traceback = _traceback(kept, at + 1) if begins else None
    return range(at, traceback.last + 1 if traceback else at + 1)


def _probes(kept: Sequence[Line], complaints: Sequence[Complaint]) -> frozenset[int]:
    """Return where a module was only looked for: the loader refused its library afterwards.

    SWIG's module asks for the library by name first, and loads it by path where that fails.
    """
    return frozenset(
        missing.at for missing, loaded in pairwise(complaints) if _is_probe(kept, missing, loaded)
    )


def _is_probe(kept: Sequence[Line], missing: Complaint, loaded: Complaint) -> bool:
    # Python says between the two that the second came while the first was handled.
    between = kept[missing.at + 1 : loaded.at]
    return (
        missing.family.id == "python-module-missing"
        and loaded.family.id.startswith(_LOADED)
        and any(line.text.startswith(_WHILE_HANDLING) for line in between)
    )


def root(kept: Sequence[Line], complaints: Sequence[Complaint]) -> Complaint | None:
    """Return the complaint that the others follow from; None if nothing complains."""
    real = [complaint for complaint in complaints if complaint.rank != "harmless"]
    action = _first(real, "wrapper")
    found = _before_any_action(kept, real, action) or _of_action(kept, real, action)
    # Without an action that failed, the first complaint nearest to a cause.
    for rank in ("root", "weak", "wrapper", "summary"):
        found = found or _first(real, rank)
    return _named(kept, real, found) if found else None


def _first(complaints: Sequence[Complaint], rank: str) -> Complaint | None:
    """Return the first complaint of a rank."""
    return next((each for each in complaints if each.rank == rank), None)


def _named(kept: Sequence[Line], complaints: Sequence[Complaint], found: Complaint) -> Complaint:
    """Return the complaint that `found` only announces, or `found`."""
    found = _quoted_by_rule(kept, complaints, found)
    found = _first_of_several(kept, complaints, found)
    return _innermost(kept, complaints, found)


def _before_any_action(
    kept: Sequence[Line], complaints: Sequence[Complaint], action: Complaint | None
) -> Complaint | None:
    """Return the error by which Bazel itself stopped, where it stands before a failed action."""
    for complaint in complaints:
        if action is None or complaint.at >= action.at:
            break
        said = kept[complaint.at].said
        if complaint.rank == "root" and said.startswith("ERROR: "):
            return complaint
    return None


def _of_action(
    kept: Sequence[Line], complaints: Sequence[Complaint], action: Complaint | None
) -> Complaint | None:
    """Return the first complaint of the action that `action` reports as failed."""
    if action is None:
        return None
    end = _end(kept, action.at)
    within = [each for each in complaints if action.at < each.at < end]
    start = _start(kept, action.at)
    before = [each for each in complaints if start <= each.at < action.at]
    for rank in ("root", "weak"):
        # Newer Bazels print the report above what the action said, older ones below it.
        for group in (within, before):
            if found := _first(group, rank):
                return found
    return None


def _end(kept: Sequence[Line], at: int) -> int:
    """Return where the output of the action that is reported at `at` ends."""
    last = min(len(kept), at + REACH)
    for after in range(at + 1, last):
        if _ACTION_ENDS.match(kept[after].said):
            return after
    return last


def _start(kept: Sequence[Line], at: int) -> int:
    """Return where the output begins that stands before the report at `at`."""
    first = max(0, at - BACK)
    for before in range(at - 1, first - 1, -1):
        if _FROM.match(kept[before].said):
            return before
    return first


def _quoted_by_rule(
    kept: Sequence[Line], complaints: Sequence[Complaint], found: Complaint
) -> Complaint:
    """Return what a tool said, where `found` is a rule that stops and quotes the tool below.

    A repository rule runs pip or a shell, and hands their output to fail().
    """
    if found.family.id != _RULE_STOPPED:
        return found
    for complaint in complaints:
        if complaint.at <= found.at or complaint.rank != "root":
            continue
        between = kept[found.at + 1 : complaint.at + 1]
        if len(between) > REACH or any(_BAZEL_SAYS.match(line.text) for line in between):
            break
        return complaint
    return found


def _first_of_several(
    kept: Sequence[Line], complaints: Sequence[Complaint], found: Complaint
) -> Complaint:
    """Return the first of the errors that TensorFlow lists below `found`."""
    if found.family.id != _SEVERAL:
        return found
    for complaint in complaints:
        near = found.at < complaint.at < found.at + _SEVERAL_REACH
        if near and kept[complaint.at].text.lstrip().startswith(_FIRST_OF_SEVERAL):
            return complaint
    return found


def _innermost(
    kept: Sequence[Line], complaints: Sequence[Complaint], found: Complaint
) -> Complaint:
    """Return what `found` was caused by, where it is an exception of Java."""
    text = kept[found.at].text.lstrip()
    if not text.startswith(_CAUSED_BY) and not _JAVA_EXCEPTION.search(text):
        return found
    end = _trace_end(kept, found.at)
    causes = [
        each
        for each in complaints
        if found.at < each.at < end and kept[each.at].text.lstrip().startswith(_CAUSED_BY)
    ]
    if not causes:
        return found
    # Java prints the causes from the outside in.
    caused = kept[causes[-1].at].text
    return found if _explains_itself(text, found, caused, causes[-1]) else causes[-1]


def _explains_itself(text: str, found: Complaint, caused: str, cause: Complaint) -> bool:
    """Say whether an exception tells no less than what caused it."""
    if text.startswith(_CAUSED_BY):
        return False
    said = caused.strip().removeprefix(_CAUSED_BY).partition(": ")[2]
    known = found.rank == "root" and found.family.id not in _JAVA_PLAIN
    return (bool(said) and said in text) or (known and cause.family.id in _JAVA_PLAIN)


def _trace_end(kept: Sequence[Line], at: int) -> int:
    """Return where the trace of Java ends that belongs to the exception at `at`."""
    end = at + 1
    while end < min(len(kept), at + REACH) and _JAVA_TRACE.match(kept[end].text):
        end += 1
    return end


def with_tracebacks(kept: Sequence[Line], complaints: Sequence[Complaint]) -> list[Complaint]:
    """Return the complaints as tracebacks change them.

    What a traceback quotes is source code. The exception that ends it is a complaint, whatever its
    name.
    """
    at = {complaint.at: complaint for complaint in complaints}
    for traceback in _tracebacks(kept):
        for quoted in range(traceback.first, traceback.last):
            inside = at.get(quoted)
            # Bazel's report of a failed action does not quote source code, wherever it is.
            if inside and inside.rank != "wrapper":
                del at[quoted]
        known = at.get(traceback.last)
        ending = _ending(kept[traceback.last].text, traceback, known)
        if ending:
            at[traceback.last] = ending
    return [at[index] for index in sorted(at)]


def _tracebacks(kept: Sequence[Line]) -> list[Traceback]:
    """Return every traceback that has an end."""
    heads = [at for at, line in enumerate(kept) if "Traceback (most" in line.text]
    # The first ones and the last ones.
    del heads[MOST_TRACEBACKS:-MOST_TRACEBACKS]
    found = (_traceback(kept, at) for at in heads)
    return [traceback for traceback in found if traceback]


def _traceback(kept: Sequence[Line], at: int) -> Traceback | None:
    """Follow the traceback that begins at `at`: its exception is indented less than its frames."""
    frames = 0
    file = ""
    for after in range(at + 1, min(len(kept), at + REACH)):
        text = kept[after].said
        frame = _FRAME.match(text)
        if frame:
            frames = frames or lines.indent(text)
            file = frame["file"]
        elif not file and "Traceback (most" in text:
            return None
        elif file and text.strip() and lines.indent(text) < max(1, frames):
            # Copied text may have lost its indentation: below a frame stands its source.
            source = not frames and bool(_FRAME.match(kept[after - 1].said))
            if not source or _EXCEPTION.match(text.strip()):
                return Traceback(at, after, file)
    return None


def _ending(text: str, traceback: Traceback, known: Complaint | None) -> Complaint | None:
    """Return the complaint that ends a traceback."""
    starlark = traceback.file.endswith(_STARLARK)
    if known and known.rank != "weak":
        return known
    # What any program may say is less than that a rule of the build files stopped.
    if known and not (starlark and known.family.id == "general-error"):
        return replace(known, rank="root", readings=_in_file(known, traceback))
    said = lines.said(text).strip().removeprefix("Error: ")
    parameters = {"file": traceback.file, "message": said, "exception": ""}
    exception = _EXCEPTION.match(said)
    if exception and not starlark:
        parameters["exception"] = exception["exception"]
        parameters["message"] = exception["message"] or ""
    family = _family(_RULE_STOPPED if starlark else _EXCEPTION_FAMILY)
    return Complaint(traceback.last, (Recognition(family, parameters),), "root")


def _in_file(known: Complaint, traceback: Traceback) -> Judged:
    """Return the readings of an exception with the file that raised it."""
    return tuple(
        Recognition(reading.family, {**reading.parameters, "file": traceback.file})
        if reading.family.id == _EXCEPTION_FAMILY
        else reading
        for reading in known.readings
    )


@cache
def _family(name: str) -> Family:
    return next(family for family in everything() if family.id == name)
