"""Builds on several machines, as people read them."""

from collections import Counter
from collections.abc import Sequence

from tfwright.terminal import text
from tfwright.terminal.text import Column, Styled
from tfwright.workers.schedule import Assignment

COLUMNS = (
    Column("recipe", cut="middle"),
    Column("state"),
    Column("worker", rank=1),
    Column("seconds", rank=2, right=True),
    Column("lost on", rank=3),
)
STYLES: dict[str, text.Style] = {
    "built": text.GOOD,
    "failed": text.BAD,
    "refused": text.BAD,
    "lost": text.BAD,
}


def show_assignment(assignment: Assignment) -> None:
    """Say in a line what became of a recipe."""
    # To standard error: the table of results alone is on standard output.
    text.tell(f"  {assignment.sentence}", text.DETAIL if assignment.state == "running" else "")
    if assignment.state == "waiting":
        _explain(assignment)


def show_assignments(rows: Sequence[Assignment], *, explain: bool = True) -> None:
    """Print who built what; with `explain`, also why the others were not built."""
    text.table(
        COLUMNS,
        [
            (
                row.recipe,
                Styled(row.state, STYLES.get(row.state, "")),
                row.worker,
                f"{row.seconds:.0f}",
                ", ".join(row.lost),
            )
            for row in rows
        ],
    )
    counts = Counter(row.state for row in rows)
    text.tell(", ".join(f"{count} {state}" for state, count in counts.items()))
    for row in rows if explain else ():
        if row.state != "built":
            where = f" on {row.worker}" if row.worker else ""
            text.tell(f"\n{row.recipe}: {row.state}{where}", text.BAD)
            _explain(row)


def _explain(assignment: Assignment) -> None:
    """Say why a worker did not build a recipe, and what to do about it."""
    for label, sentence in (
        ("why:", assignment.detail),
        ("do:", assignment.remedy),
        ("log:", assignment.log),
    ):
        if sentence:
            text.tell_labelled(f"    {label}", sentence)
