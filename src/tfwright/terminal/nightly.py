"""What `invoke nightly` prints."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.nightly.due import DueTarget
    from tfwright.nightly.night import NightOutcome


def show_plan(found: "Sequence[DueTarget]", *, as_json: bool) -> None:
    """Print what a night would build, in its order."""
    if as_json:
        text.as_json([_plain(due) for due in found])
        return
    if not found:
        print("nightly.toml lists no recipe.")
        return
    due = [item for item in found if item.due and item.within_budget]
    rows = [("recipe", "tonight", "why", "last time")]
    rows += [_row(item) for item in found]
    text.table(rows)
    seconds = sum(item.seconds for item in due)
    print(f"\n{len(due)} of {len(found)} would be built, in about {seconds / 3600:.1f} hours.")


def _row(item: "DueTarget") -> tuple[str, str, str, str]:
    tonight = "no" if not item.due else "build" if item.within_budget else "out of budget"
    why = item.why + (f": {', '.join(item.changed)}" if item.changed else "")
    return item.target.name, tonight, why, f"{item.seconds / 60:.0f} min"


def _plain(item: "DueTarget") -> dict[str, object]:
    """Return a line of the plan for machines."""
    return {
        "recipe": item.target.name,
        "due": item.due,
        "within_budget": item.within_budget,
        "why": item.why,
        "changed": item.changed,
        "seconds": item.seconds,
    }


def show_outcome(outcome: "NightOutcome", place: str, *, as_json: bool) -> None:
    """Say what a night did, and where to look."""
    if as_json:
        text.as_json(dataclasses.asdict(outcome))
        return
    if not outcome.verdicts:
        print("nightly.toml lists no recipe.")
        return
    rows = [("recipe", "verdict")]
    rows += sorted(outcome.verdicts.items())
    text.table(rows)
    if outcome.reproduced:
        print(f"built again from nothing: {outcome.reproduced}")
    print(f"page: {place}")
