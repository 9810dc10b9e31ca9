"""The pages of doctor and match: a host against recipes."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.doctor.findings import Finding
    from tfwright.doctor.inventory import Fact
    from tfwright.match.ranking import Candidate, Need, Wish

FACT_COLUMNS = (
    Column("", 0, "never"),
    Column("", 0, least=12),
    Column("", 0, least=24),
    # In fewer characters a command does not say where the value is from.
    Column("", 3, "middle", least=20),
)
NEED_COLUMNS = (Column("", 0), Column("", 1, least=16), Column("", 2, "never"))
COMMENT = re.compile(r"(?:^|  +)# ")
"""Between a command of a remedy and what it is about; some lines are a comment alone."""
LABEL = 11
"""Characters in front of the text of a finding."""


def show_examination(
    recipe: str, facts: "Sequence[Fact]", findings: "Sequence[Finding]", *, everything: bool = False
) -> None:
    """Print the verdict, the findings with the worst first, then what this host has.

    What was looked for and not found is only in the list with `everything`.
    """
    text.line(text.bold(recipe), ": ", _verdict(findings))
    # Findings before facts: they are what the reader has to act on.
    for number, finding in enumerate(findings, 1):
        # A note is marked as such: otherwise readers mend what need not be mended.
        stops = f"stops '{finding.blocks}'" if finding.blocks else "stops nothing"
        found = Styled(finding.found, text.BAD if finding.blocks else text.WARNING)
        text.line()
        text.line(f"{number}. ", found, text.detail(f"  ({stops})"))
        text.paragraph("   wanted", finding.wanted, indent=LABEL)
        if finding.why:
            text.paragraph("   why", finding.why, indent=LABEL)
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
        absent = text.counted(left_out, "further thing")
        were, them = ("was", "it") if left_out == 1 else ("were", "them")
        hint = f"{absent} {were} looked for and not found; --all lists {them}"
        text.line(text.detail(hint))


def examination_data(
    recipe: str, facts: "Sequence[Fact]", findings: "Sequence[Finding]"
) -> dict[str, object]:
    """Return the same for machines, with every fact."""
    return {
        "recipe": recipe,
        "may_start": not any(finding.blocks for finding in findings),
        "facts": [
            {
                "name": fact.name.strip(),
                "value": fact.seen.value,
                "by": fact.seen.by,
                "decides": fact.decides,
            }
            for fact in facts
        ],
        # One entry for a command, so that a script need not split the text.
        "findings": [{**vars(found), "remedy": found.remedy.splitlines()} for found in findings],
    }


def _show_remedy(label: str, row: str) -> None:
    """Print a line of a remedy; where it is too long, its comment goes below it."""
    mark = COMMENT.search(row)
    room = text.width(sys.stdout)
    if not mark or room is None or LABEL + len(row) <= room:
        text.paragraph(label, row, indent=LABEL)
        return
    if command := row[: mark.start()]:
        text.paragraph(label, command, indent=LABEL)
    # Each line gets its sign, or a shell would run the rest of a comment that is pasted.
    for further in text.wrapped(row[mark.end() :], room - LABEL - 2):
        text.line(" " * LABEL + f"# {further}", whole=True)


def _verdict(findings: "Sequence[Finding]") -> Styled:
    """Say whether a build may start; the worst finding comes first."""
    blocking = [finding for finding in findings if finding.blocks]
    if not blocking:
        return text.good("the build may start")
    count = text.counted(len(blocking), "finding")
    stop = "stops it" if len(blocking) == 1 else "stop it"
    worst = blocking[0].blocks
    if worst == "check":
        return text.bad(f"the build cannot start; {count} {stop}")
    return text.bad(f"the build would stop before '{worst}'; {count} {stop}")


def show_matches(
    wanted: "Wish", ranked: "Sequence[Candidate]", needs: "Sequence[Need]", nearest: int
) -> None:
    """Print which recipes fit, how the nearest others differ, and what a new one would pin."""
    text.paragraph("wanted: ", str(wanted), indent=8)
    if wanted.named:
        text.paragraph("        ", wanted.named, indent=8)
    fitting = [candidate for candidate in ranked if not candidate.differs]
    # Ranked by the number of differences, so those that fit come first.
    others = ranked[len(fitting) : len(fitting) + nearest]
    if fitting:
        text.heading("These recipes fit", text.GOOD)
    else:
        text.heading("No recipe fits")
    names = [candidate.recipe for candidate in (*fitting, *others)]
    indent = 4 + max(map(len, names), default=0)
    for candidate in fitting:
        text.paragraph(f"  {candidate.recipe}", candidate.summary, indent=indent)
    if others:
        text.heading("The nearest others, and how they differ")
    for candidate in others:
        text.paragraph(f"  {candidate.recipe}", "; ".join(candidate.differs), indent=indent)
    if not needs:
        text.heading("No TensorFlow release was made for this combination")
        return
    text.heading("A new recipe would pin")
    # The sources stand below, each once and whole.
    named = [need.source for need in needs if need.source]
    sources = {source: f"[{number}]" for number, source in enumerate(dict.fromkeys(named), 1)}
    rows = [(f"  {need.name}", need.value, sources.get(need.source, "")) for need in needs]
    text.table(NEED_COLUMNS, rows)
    for source, mark in sources.items():
        text.paragraph(f"  {mark}", source, indent=6)
