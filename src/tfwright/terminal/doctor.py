"""A host against recipes, as people read it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from pathlib import Path

    from tfwright.commands.toolkit import Record
    from tfwright.host.findings import Finding
    from tfwright.host.inventory import Fact
    from tfwright.host.match import Candidate, Need, Wish


def show_examination(
    recipe: str, facts: "Sequence[Fact]", findings: "Sequence[Finding]", *, as_json: bool
) -> None:
    """Print what a host has, what is amiss for a recipe, the worst first, and what follows."""
    if as_json:
        said = [
            {
                "name": fact.name.strip(),
                "value": fact.seen.value,
                "by": fact.seen.by,
                "decides": fact.decides,
            }
            for fact in facts
        ]
        amiss = [{**vars(finding), "remedy": finding.remedy.splitlines()} for finding in findings]
        text.as_json(
            {
                "recipe": recipe,
                "may_start": not any(finding.blocks for finding in findings),
                "facts": said,
                "findings": amiss,
            }
        )
        return
    print(f"{recipe}\n")
    for fact in facts:
        print(
            f"{'*' if fact.decides and fact.seen else ' '} {fact.name:<21} {fact.seen.value or '-':<52} {fact.seen.by if fact.seen else ''}".rstrip()
        )
    print("\n* can change the wheel's bytes\n")
    for number, finding in enumerate(findings, 1):
        print("\n".join(_finding(number, finding)) + "\n")
    print(_verdict(findings))


def _finding(number: int, finding: "Finding") -> Iterator[str]:
    """Return a finding as people read it, its commands one a line."""
    yield f"{number}. {finding.found}"
    yield f"   wanted  {finding.wanted}"
    if finding.why:
        yield f"   why     {finding.why}"
    first, *rest = finding.remedy.splitlines()
    yield f"   do      {first}"
    yield from (f"           {line}" for line in rest)
    yield f"   stops   {finding.blocks or 'nothing'}"


def _verdict(findings: "Sequence[Finding]") -> str:
    """Say whether a build may start; the worst finding comes first."""
    worst = next((finding.blocks for finding in findings if finding.blocks), "")
    if not worst:
        return "The build may start."
    return (
        "The build cannot start." if worst == "check" else f"The build would stop before '{worst}'."
    )


def show_toolkit(prefix: "Path", record: "Record") -> None:
    """Print where a toolkit was unpacked; what it is goes to people."""
    text.tell(
        f"{record.archive}, version {record.version}; licence accepted by {record.licence_accepted_by} on {record.on}"
    )
    print(prefix)


def show_matches(
    wanted: "Wish",
    ranked: "Sequence[Candidate]",
    needs: "Sequence[Need]",
    nearest: int,
    *,
    as_json: bool,
) -> None:
    """Print which recipes fit, how the nearest others differ, and what a new one would pin."""
    if as_json:
        text.as_json(
            {
                "wanted": vars(wanted),
                "recipes": [vars(one) for one in ranked],
                "new": [vars(need) for need in needs],
            }
        )
        return
    fitting = [one for one in ranked if not one.differs]
    print(f"wanted: {wanted}\n\nfits:")
    for one in fitting:
        print(f"  {one.recipe:<30} {one.summary}")
    print("" if fitting else "  no recipe yet\n", end="")
    print("\nnearest:")
    for one in ranked[len(fitting) : len(fitting) + nearest]:
        print(f"  {one.recipe:<30} {'; '.join(one.differs)}")
    print("\na new recipe would pin:" if needs else "\nno TensorFlow was made for this together.")
    for need in needs:
        print(f"  {need.name:<20} {need.value:<42} {need.source}".rstrip())
