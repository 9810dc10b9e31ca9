"""What `invoke nightly` prints."""

import dataclasses
import shlex
import textwrap
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Style, Styled

if TYPE_CHECKING:
    from tfwright.nightly.builds import NightlyBuild
    from tfwright.nightly.due import DueTarget
    from tfwright.nightly.night import NightOutcome, NightPlan
    from tfwright.nightly.orders import Rebuilt
    from tfwright.nightly.schedule import Installation
    from tfwright.nightly.units import UnitFile


PLANNED = (
    Column("recipe", cut="middle"),
    Column("tonight"),
    Column("why", rank=1),
    Column("last time", rank=2, right=True),
)
JUDGED = (Column("recipe", cut="middle"), Column("verdict"), Column("why", rank=1))
STYLES: dict[str, Style] = {
    "good": text.GOOD,
    "unchanged": text.GOOD,
    "failed": text.BAD,
    "smoke failed": text.BAD,
}


def show_plan(night: "NightPlan", *, as_json: bool) -> None:
    """Print what a night would build, in its order."""
    found, blocked = night.targets, night.blocked
    if as_json:
        text.as_json(
            [_plain(due) for due in found] + [_blocked(name, why) for name, why in blocked.items()]
        )
        return
    # An empty table would not say where the recipes are named.
    if not found and not blocked:
        print("nightly.toml lists no recipe.")
        return
    due = [planned for planned in found if planned.due and planned.within_budget]
    rows = [_row(planned) for planned in found]
    rows += [
        (name, Styled("blocked", text.WARNING), why.partition("\n")[0], "-")
        for name, why in blocked.items()
    ]
    text.table(PLANNED, rows)
    seconds = sum(planned.seconds for planned in due)
    lasts = f", in about {text.as_duration(seconds)}" if due else ""
    text.line()
    text.line(f"{len(due)} of {len(rows)} would be built{lasts}.")


def _row(planned: "DueTarget") -> tuple[str, str | Styled, str, str]:
    tonight = "no"
    if planned.due:
        tonight = "build" if planned.within_budget else "out of budget"
    why: str = planned.why
    if planned.changed:
        why += f": {', '.join(planned.changed)}"
    # Of a target that was never built, the seconds are a guess.
    last = f"{planned.seconds / 60:.0f} min" if planned.why != "never built" else "-"
    return planned.target.name, tonight, why, last


def _plain(planned: "DueTarget") -> dict[str, object]:
    """Return a line of the plan for machines."""
    return {
        "recipe": planned.target.name,
        "due": planned.due,
        "within_budget": planned.within_budget,
        "why": planned.why,
        "changed": planned.changed,
        "seconds": planned.seconds,
    }


def _blocked(name: str, why: str) -> dict[str, object]:
    """Return a line of the plan for machines, about a target that cannot be built here."""
    return {
        "recipe": name,
        "due": False,
        "within_budget": False,
        "why": f"blocked: {why}",
        "changed": (),
        "seconds": 0.0,
    }


def said_of(build: "NightlyBuild | Rebuilt") -> str:
    """Return the line that a worker prints about an order."""
    from tfwright.nightly.orders import Rebuilt

    if isinstance(build, Rebuilt):
        return f"{build.target}: {build.difference or 'reproduced'}"
    broken = f": {build.broken.line}" if build.broken else ""
    return f"{build.target}: {build.result} in {build.seconds:.0f} s{broken}"


def show_outcome(outcome: "NightOutcome", place: str, *, as_json: bool) -> None:
    """Say what a night did, and where to look."""
    if as_json:
        text.as_json(dataclasses.asdict(outcome))
        return
    if not outcome.verdicts:
        print("nightly.toml lists no recipe.")
        return
    rows = []
    for name, verdict in sorted(outcome.verdicts.items()):
        styled = Styled(verdict, STYLES.get(verdict, text.WARNING))
        why = outcome.details.get(name, "").partition("\n")[0]
        rows.append((name, styled, why))
    # A night without a fault has nothing to say in the third column.
    shown = len(JUDGED) if outcome.details else len(JUDGED) - 1
    text.table(JUDGED[:shown], [row[:shown] for row in rows])
    if outcome.difference:
        print(f"not reproduced: {outcome.reproduced}: {outcome.difference}")
    elif outcome.reproduced:
        print(f"built again from nothing: {outcome.reproduced}")
    print(f"page: {place}")


def schedule(kind: str, at: str, *, remove: bool, yes: bool) -> int:
    """Show what installing or removing the timer does, ask, and do it; return the exit status."""
    from tfwright.nightly import schedule as timers

    wanted = timers.planned(kind, at, remove=remove)
    # Everything is shown before the question: nothing is installed unseen.
    _show_installation(wanted, remove=remove)
    if not yes and not _agreed():
        text.tell("Nothing was changed.")
        return 1
    (timers.uninstall if remove else timers.install)(wanted)
    # At night no user is logged in to a build host.
    if not remove and timers.needs_login(wanted):
        text.tell(
            "The timer runs only while you are logged in; 'loginctl enable-linger' changes that.",
            text.WARNING,
        )
    return 0


def _show_installation(wanted: "Installation", *, remove: bool) -> None:
    for file in wanted.files:
        _show_file(file, remove=remove)
    if wanted.crontab is not None:
        print("new crontab:")
        print(textwrap.indent(wanted.crontab or "(empty)", "    "))
    for argv in (*wanted.commands, *wanted.afterwards):
        print(f"run {shlex.join(argv)}")


def _show_file(file: "UnitFile", *, remove: bool) -> None:
    # What goes away needs no second look.
    if remove:
        print(f"remove {file.path}")
        return
    print(f"write {file.path}")
    print(textwrap.indent(file.text, "    "))


def _agreed() -> bool:
    """Ask once; only a yes counts as agreement."""
    try:
        return input("Do this? [y/N] ").strip().lower() in {"y", "yes"}
    # No terminal to ask on: a script has to say --yes.
    except EOFError:
        return False
