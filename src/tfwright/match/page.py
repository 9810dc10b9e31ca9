"""The page of match: recipes for a machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.match.ranking import Candidate, Need, Wish

NEED_COLUMNS = (Column(""), Column("", rank=1, cut="end", least=16), Column("", rank=2))


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
