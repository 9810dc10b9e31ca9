"""The page of doctor: a host against a recipe."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.doctor.inventory import Fact, Finding

FACT_COLUMNS = (
    Column(""),
    Column("", cut="end", least=12),
    Column("", cut="end", least=24),
    # In fewer characters a command does not say where the value is from.
    Column("", rank=3, cut="middle", least=20),
)
COMMENT = re.compile(r"(?:^|  +)# ")
"""Between a command of a remedy and what it is about; some lines are a comment alone."""
LABEL = 11
"""Characters in front of the text of a finding."""


def show_examination(
    recipe: str,
    facts: "Sequence[Fact]",
    findings: "Sequence[Finding]",
    *,
    everything: bool = False,
    cost: str = "",
) -> None:
    """Print the verdict, the findings with the worst first, then what this host has.

    What was looked for and not found is only in the list with `everything`.
    """
    text.line(text.bold(recipe), ": ", _verdict(findings))
    if cost:
        text.paragraph("", cost, indent=0)
    # Findings before facts: they are what the reader has to act on.
    numbers: dict[tuple[str, ...], int] = {}
    for number, finding in enumerate(findings, 1):
        # A note is marked as such: otherwise readers mend what need not be mended.
        stops = f"stops '{finding.blocks}'" if finding.blocks else "warning"
        found = Styled(finding.found, text.BAD if finding.blocks else text.WARNING)
        text.line()
        text.line(f"{number}. ", found, text.detail(f"  ({stops})"))
        text.paragraph("   wanted", finding.wanted, indent=LABEL)
        if finding.why:
            text.paragraph("   why", finding.why, indent=LABEL)
        # Of several parts of a toolkit the commands are the same, whatever their comments say.
        commands = tuple(COMMENT.split(row)[0] for row in finding.remedy.splitlines())
        if first := numbers.get(commands):
            text.paragraph("   do", f"as for {first}", indent=LABEL)
            continue
        numbers[commands] = number
        label = "   do"
        for row in finding.remedy.splitlines():
            _show_remedy(label, row)
            label = ""
    # Without the container image nothing is known of what is in it.
    if facts:
        # Most hosts lack most of NVIDIA's parts; twenty lines of "-" would hide the rest.
        _show_facts([fact for fact in facts if fact.seen or everything], len(facts))


def _show_facts(shown: "Sequence[Fact]", known: int) -> None:
    text.heading("This host")
    rows: list[tuple[Part, ...]] = []
    for fact in shown:
        mark = "*" if fact.decides and fact.seen else " "
        source = fact.seen.by if fact.seen else ""
        rows.append((mark, fact.name, fact.seen.value or "-", text.detail(source)))
    text.table(FACT_COLUMNS, rows)
    if any(fact.decides for fact in shown):
        text.line()
        text.line(text.detail("* can change the bytes of this recipe's wheel"))
    if left_out := known - len(shown):
        absent = text.counted(left_out, "optional item")
        were, them = ("was", "it") if left_out == 1 else ("were", "them")
        hint = f"{absent} {were} not found; --all lists {them}"
        text.line(text.detail(hint))


def examination_data(
    recipe: str, facts: "Sequence[Fact]", findings: "Sequence[Finding]"
) -> dict[str, object]:
    """Return the same for machines, with every fact."""
    return {
        "recipe": recipe,
        "may_start": not any(finding.blocks for finding in findings),
        "facts": [
            {"name": fact.name.strip(), **vars(fact.seen), "decides": fact.decides}
            for fact in facts
        ],
        # One entry for a command, so that a script need not split the text.
        "findings": [{**vars(found), "remedy": found.remedy.splitlines()} for found in findings],
    }


def _show_remedy(label: str, row: str) -> None:
    """Print a line of a remedy; where it is too long, its comment goes below it."""
    mark = COMMENT.search(row)
    available = text.width(sys.stdout)
    if not mark or available is None or LABEL + len(row) <= available:
        text.paragraph(label, row, indent=LABEL)
        return
    if command := row[: mark.start()]:
        text.paragraph(label, command, indent=LABEL)
    # Each line gets its sign, or a shell would run the rest of a comment that is pasted.
    for further in text.wrap_row(row[mark.end() :], available - LABEL - 2):
        text.line(" " * LABEL + f"# {further}", whole=True)


def _verdict(findings: "Sequence[Finding]") -> Styled:
    """Say whether a build may start; the worst finding comes first."""
    blocking = [finding for finding in findings if finding.blocks]
    if not blocking:
        return text.good("the build can start")
    count = text.counted(len(blocking), "finding")
    stop = "stops it" if len(blocking) == 1 else "stop it"
    worst = blocking[0].blocks
    if worst == "check":
        return text.bad(f"the build cannot start; {count} {stop}")
    return text.bad(f"the build would stop before '{worst}'; {count} {stop}")
