"""Failures and what is known of them, as people read them."""

import platform
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright import __version__
from tfwright.errors import Evidence
from tfwright.terminal import text
from tfwright.tools import files
from tfwright.tools.redaction import redact_text

if TYPE_CHECKING:
    from tfwright.diagnosis.reader import Diagnosis, Excerpt, Match

MOST_CAUSES = 3
"""How many possible causes of a failure are shown."""
MOST_OTHERS = 3
"""How many other complaints of a log are named."""
OTHER_SHOWN = 80
"""Characters of another complaint."""


def show_diagnosis(found: "Diagnosis", report: Path | None) -> None:
    """Show what failed in a log, the known causes, and what only looks bad."""
    from tfwright.diagnosis import tables

    if found.first:
        _tell_excerpt(found.first)
    elif found.lines:
        text.tell("tfwright recognises no error in this log.")
        if not found.harmless:
            doing = tables.look_up("unfinished", found.ending)
            text.tell_labelled("  end:", f"{found.ending} {doing and f'({doing})'}".strip())
    else:
        text.tell(
            "The log is empty. Bazel writes to standard error: "
            "bazel build … 2>&1 | invoke diagnose -"
        )
    explaining = [match for match in found.matches if match.explains]
    for number, match in enumerate(explaining[:MOST_CAUSES]):
        # What is known of the particular failure makes the advice of its kind idle, or false.
        earlier = explaining[:number]
        if any(one.line == match.line and one.entry.sample for one in earlier):
            text.tell_labelled(text.warning("  kind:"), f"{match.entry.id}: {match.cause}")
        else:
            tell_match(match, Path())
    # The root mostly explains the other complaints.
    others = [match for match in found.matches if not match.explains]
    for match in others[:MOST_OTHERS]:
        # A compiler's line can be thousands of characters.
        complaint = match.text.strip()
        short = complaint[:OTHER_SHOWN] + (" …" if len(complaint) > OTHER_SHOWN else "")
        text.tell_labelled("  also:", f"{match.entry.id}, line {match.line}: {short}")
    if len(others) > MOST_OTHERS:
        more = text.counted(len(others) - MOST_OTHERS, "other kind")
        text.tell_labelled("  also:", f"{more} of complaint")
    for match in found.harmless:
        label = text.detail("  harmless:")
        # Where it is harmless only without a GPU, the reader may have one.
        explanation = f"{match.cause} {match.remedy}" if match.entry.unless else match.cause
        text.tell_labelled(label, f"{match.entry.id}, line {match.line}: {explanation}", indent=12)
    if report:
        text.tell("  If that does not help, here is a report that can be filed as an issue:")
        # The path alone on standard output, as build prints a wheel.
        print(report)


def write_report(found: "Diagnosis", log: str, folder: Path) -> Path | None:
    """Write the report of an unknown error below `folder`.

    Returns None if the error is known, or if the log shows no error.
    """
    if found.understood or found.first is None:
        return None
    name = "standard input" if log == "-" else Path(log).name
    path = folder / f"{name.replace(' ', '-')}.md"
    files.write(path, issue_text(found.first, name))
    return path


def issue_text(excerpt: "Excerpt", log: str) -> str:
    """Return the report in Markdown; the home directory, which holds a name, is written as ~."""
    shown = "\n".join(excerpt.lines)
    parts = [
        f"### {excerpt.what}",
        f"From line {excerpt.line} of `{log}`"
        + (f", rule at `{excerpt.where}`" if excerpt.where else ""),
        f"```\n{shown}\n```",
        f"The command:\n\n```sh\n{excerpt.command}\n```"
        if excerpt.command
        else "The log shows no command.",
        f"tfwright {__version__}, Python {platform.python_version()}, {platform.platform()}, "
        + " ".join(platform.libc_ver()),
    ]
    return redact_text("\n\n".join(parts)) + "\n"


def tell_cause(evidence: Evidence) -> None:
    """Add to an error what is known of its root, from the record of the stage where it made one.

    A log may hold several attempts: only the stage knows which part of it failed in the end.
    """
    from tfwright.diagnosis import reader
    from tfwright.diagnosis.reader import FailureRecord

    log = evidence.log
    if log is None or not log.is_file():
        return
    if isinstance(evidence.failure, FailureRecord):
        match = evidence.failure.match
    else:
        # Errors of other programs carry no record; their log holds one attempt only.
        found = reader.diagnose(str(log)).matches
        match = next((known for known in found if known.explains), None)
    # The last resort of a diagnosis only repeats what the error itself says.
    if match and match.entry.rank != "hint":
        tell_match(match, log.parent)


def tell_match(match: "Match", place: Path) -> None:
    """Show what is known of an error: why, what helps, what this host shows, who met it."""
    from tfwright.diagnosis import evidence

    # Only what the line and the facts prove is called known. An entry with a sample was seen in
    # a real log; without one it is a kind of failure.
    label = text.warning("  likely:" if match.entry.sample else "  kind:")
    if match.certain:
        label = text.good("  known:")
    text.tell_labelled(label, match.entry.id + (f", line {match.line}" if match.line else ""))
    text.tell_labelled("    why:", match.cause)
    text.tell_labelled("    do:", match.remedy)
    advice = match.advice
    for name, lines in (
        ("    type:", advice.commands),
        ("    recipe:", advice.recipe),
        ("    host file:", advice.host_file),
    ):
        for number, line in enumerate(lines):
            # To be copied: each stays whole, whatever the width.
            text.tell(f"{'' if number else name:<15}{line}", whole=True)
    for shown in evidence.visible_evidence(match.entry, place, match.parameters):
        text.tell_labelled("    here:", shown)
    if match.entry.links:
        text.tell_labelled("    seen:", match.entry.links[0])


def _tell_excerpt(first: "Excerpt") -> None:
    """Show the root line first, then what follows it and what was being done."""
    text.tell_labelled(
        text.bad(f"Line {first.line}:"), first.what, indent=len(f"Line {first.line}: ")
    )
    # The first line is the headline already.
    for line in first.lines[1:]:
        text.tell(f"    | {line}", text.DETAIL)
    # Bazel's own errors name the action; a compiler's do not.
    if first.action and first.action not in first.what:
        text.tell_labelled("  action:", first.action)
    if first.where:
        text.tell_labelled("  where:", first.where)


def diagnosis_data(found: "Diagnosis") -> dict[str, object]:
    """Return what was found, for machines."""
    return {
        "first": found.first,
        "matches": [_match_data(match) for match in found.matches],
        "harmless": [_match_data(match) for match in found.harmless],
        "lines": found.lines,
    }


def _match_data(match: "Match") -> dict[str, object]:
    entry = match.entry
    return {
        "id": entry.id,
        "stage": entry.stage,
        "retry": entry.retry,
        "certain": match.certain,
        "cause": match.cause,
        "remedy": match.remedy,
        "advice": match.advice,
        "parameters": {name: value for name, value in match.parameters.items() if value},
        "sources": entry.links,
        "line": match.line,
        "text": match.text,
        "explains_first_error": match.explains,
    }
