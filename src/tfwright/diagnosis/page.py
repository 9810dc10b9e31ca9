"""Failures and what is known of them, as people read them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Styled

if TYPE_CHECKING:
    from tfwright.diagnosis.excerpt import Excerpt
    from tfwright.diagnosis.learn import Lesson
    from tfwright.diagnosis.reader import Diagnosis, Match

MOST_CAUSES = 3
"""How many possible causes of a failure are shown."""
_LINES = 15
"""Columns before a line that is to be copied."""
MOST_OTHERS = 3
"""How many other complaints of a log are named."""
OTHER_SHOWN = 80
"""Characters of another complaint."""


def show_diagnosis(found: "Diagnosis", report: Path | None, *, as_json: bool) -> None:
    """Show what failed in a log, the known causes, and what only looks bad."""
    if as_json:
        _as_json(found)
        return
    if found.first:
        _tell_excerpt(found.first)
    else:
        text.tell(_without_error(found))
    explaining = [match for match in found.matches if match.explains]
    for match in explaining[:MOST_CAUSES]:
        tell_match(match, Path())
    _tell_others([match for match in found.matches if not match.explains])
    for match in found.harmless:
        label = Styled("  harmless:", text.DETAIL)
        text.part(label, f"{match.entry.id}, line {match.line}: {match.cause}", indent=12)
    if report:
        text.tell("  This message is not in the catalogue. A report that can be filed as an issue:")
        # The path alone on standard output, as build prints a wheel.
        print(report)


def show_lesson(lesson: "Lesson", fixture: Path, *, as_json: bool = False) -> None:
    """Show a new entry for the catalogue: the TOML on stdout, where it belongs on stderr."""
    if as_json:
        text.as_json({**asdict(lesson), "path": str(fixture)})
        return
    _show_entry(lesson)
    text.tell(f"  The fixture, with its root line marked: {fixture}")
    text.tell("  Put it into tests/diagnosis/learned: a test then reads it.")


def _show_entry(lesson: "Lesson") -> None:
    if not lesson.entry:
        text.tell(f"  The catalogue describes this failure already: {lesson.name}.")
        return
    # So that >> appends it to the catalogue.
    print(lesson.entry)
    text.tell("  Complete the entry, and add it to src/tfwright/diagnosis/catalogue.toml.")


def tell_match(match: "Match", place: Path) -> None:
    """Show what is known of an error: why, what helps, what this host shows, who met it."""
    from tfwright.diagnosis import evidence

    where = f", line {match.line}" if match.line else ""
    text.part(_label(match), f"{match.entry.id}{where}")
    text.part("    why:", match.cause)
    text.part("    do:", match.remedy)
    _tell_lines("    type:", match.advice.commands)
    _tell_lines("    recipe:", match.advice.recipe)
    _tell_lines("    host file:", match.advice.host_file)
    for shown in evidence.of(match.entry, place, match.parameters):
        text.part("    here:", shown)
    if match.entry.links:
        text.part("    seen:", match.entry.links[0])


def _tell_lines(label: str, lines: Sequence[str]) -> None:
    """Show lines that are to be copied: each stays whole, whatever the width."""
    for number, line in enumerate(lines):
        text.tell(f"{'' if number else label:<{_LINES}}{line}", whole=True)


def _label(match: "Match") -> "Styled":
    """Say how sure the cause is: only what the line and the facts prove is called known."""
    if match.certain:
        return Styled("  known:", text.GOOD)
    # An entry with a sample was seen in a real log;
    # without one it is a kind of failure.
    return Styled("  likely:" if match.entry.sample else "  kind:", text.WARNING)


def _without_error(found: "Diagnosis") -> str:
    if found.lines:
        return "No line of this log reports an error."
    return (
        "The log is empty. Bazel writes to standard error: bazel build … 2>&1 | invoke diagnose -"
    )


def _tell_excerpt(first: "Excerpt") -> None:
    """Show the root line first, then what follows it and what was being done."""
    text.part(
        Styled(f"Line {first.line}:", text.BAD), first.what, indent=len(f"Line {first.line}: ")
    )
    # The first line is the headline already.
    for line in first.lines[1:]:
        text.tell(f"    | {line}", text.DETAIL)
    # Bazel's own errors name the action; a compiler's do not.
    if first.action and first.action not in first.what:
        text.part("  action:", first.action)
    if first.where:
        text.part("  where:", first.where)


def _tell_others(others: Sequence["Match"]) -> None:
    """Name the complaints that are not the root; the root mostly explains them."""
    for match in others[:MOST_OTHERS]:
        # A compiler's line can be thousands of characters.
        said = match.text.strip()
        short = said[:OTHER_SHOWN] + (" …" if len(said) > OTHER_SHOWN else "")
        text.part("  also:", f"{match.entry.id}, line {match.line}: {short}")
    if len(others) > MOST_OTHERS:
        text.part(
            "  also:", f"{text.counted(len(others) - MOST_OTHERS, 'other kind')} of complaint"
        )


def _as_json(found: "Diagnosis") -> None:
    text.as_json(
        {
            "first": found.first and asdict(found.first),
            "matches": [_said(match) for match in found.matches],
            "harmless": [_said(match) for match in found.harmless],
            "lines": found.lines,
        }
    )


def _said(match: "Match") -> dict[str, object]:
    """Return a match as JSON can hold it."""
    entry = match.entry
    return {
        "id": entry.id,
        "stage": entry.stage,
        "retry": entry.retry,
        "certain": match.certain,
        "cause": match.cause,
        "remedy": match.remedy,
        "advice": asdict(match.advice),
        "parameters": {name: value for name, value in match.parameters.items() if value},
        "sources": entry.links,
        "line": match.line,
        "text": match.text,
        "explains_first_error": match.explains,
    }
