"""Known failures, as people read them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.diagnosis.reader import Diagnosis, Match

MOST_CAUSES = 3
"""How many possible causes of a failure are told."""


def show_diagnosis(found: "Diagnosis", report: Path | None, *, as_json: bool) -> None:
    """Say what failed in a log, the likeliest known causes, and what only looks bad."""
    if as_json:
        text.as_json(
            {
                "first": found.first and asdict(found.first),
                "matches": [*map(_said, found.matches)],
                "harmless": [*map(_said, found.harmless)],
            }
        )
        return
    if found.first:
        text.tell(f"Line {found.first.line}: {found.first.what}")
        for line in found.first.lines:
            text.tell(f"    | {line}")
    else:
        text.tell(
            "Nothing in it complains."
            if found.lines
            else "It is empty. What Bazel says goes to the standard error: … 2>&1 | invoke diagnose -"
        )
    for match in found.matches[:MOST_CAUSES]:
        tell_match(match, Path.cwd())
    for match in found.harmless:
        text.tell(f"  harmless: {match.entry.id}, line {match.line}: {match.entry.cause}")
    if report:
        text.tell("  Nothing is known about this error. A report that can be filed as an issue:")
        print(report)


def tell_match(match: "Match", place: Path) -> None:
    """Say a known failure: why, what helps, what this host shows of it, and who met it."""
    from tfwright.diagnosis import evidence  # noqa: PLC0415 only a failure needs it

    entry = match.entry
    text.tell(
        f"  known:  {entry.id}, line {match.line}"
        + ("" if match.explains else ", which is not the first error")
    )
    text.tell(f"    why:  {entry.cause}")
    text.tell(f"    do:   {entry.remedy}")
    for shown in evidence.of(entry, place):
        text.tell(f"    here: {shown}")
    text.tell(f"    seen: {entry.links[0]}")


def _said(match: "Match") -> dict[str, object]:
    """Return a match as JSON can say it."""
    kept = {
        name: getattr(match.entry, name) for name in ("id", "stage", "retry", "cause", "remedy")
    }
    return {
        **kept,
        "sources": match.entry.links,
        "line": match.line,
        "text": match.text,
        "explains_first_error": match.explains,
    }
