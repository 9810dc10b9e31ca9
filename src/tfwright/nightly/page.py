"""What `invoke nightly` prints."""

import dataclasses
import shlex
import textwrap
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Style, Styled

if TYPE_CHECKING:
    from tfwright.nightly.builds import NightlyBuild
    from tfwright.nightly.fleets import Rebuilt
    from tfwright.nightly.night import NightOutcome, NightPlan
    from tfwright.nightly.timer import Installation

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
        known = ("due", "within_budget", "why", "changed", "seconds")
        rows: list[dict[str, object]] = [
            {"recipe": item.target.name} | {name: getattr(item, name) for name in known}
            for item in found
        ]
        for name, why in blocked.items():
            values = (False, False, f"blocked: {why}", (), 0.0)
            rows.append({"recipe": name, **dict(zip(known, values, strict=True))})
        text.as_json(rows)
        return
    # An empty table would not say where the recipes are named.
    if not found and not blocked:
        print("nightly.toml lists no recipe.")
        return
    table: list[tuple[text.Part, ...]] = []
    for item in found:
        tonight = "no"
        if item.due:
            tonight = "build" if item.within_budget else "out of budget"
        why = f"{item.why}: {', '.join(item.changed)}" if item.changed else item.why
        # Of a target that was never built, the seconds are a guess.
        last = f"{item.seconds / 60:.0f} min" if item.why != "never built" else "-"
        table.append((item.target.name, tonight, why, last))
    for name, why in blocked.items():
        table.append((name, Styled("blocked", text.WARNING), why.partition("\n")[0], "-"))
    text.table(PLANNED, table)
    due = [item for item in found if item.due and item.within_budget]
    seconds = sum(item.seconds for item in due)
    lasts = f", in about {text.as_duration(seconds)}" if due else ""
    text.line()
    text.line(f"{len(due)} of {len(table)} would be built{lasts}.")


def order_line(build: "NightlyBuild | Rebuilt") -> str:
    """Return the line that a worker prints about an order."""
    from tfwright.nightly.fleets import Rebuilt

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
    from tfwright.nightly import timer

    wanted = timer.planned(kind, at, remove=remove)
    # Everything is shown before the question: nothing is installed unseen.
    _show_installation(wanted, remove=remove)
    if not yes and not _agreed():
        text.tell("Nothing was changed.")
        return 1
    (timer.uninstall if remove else timer.install)(wanted)
    # At night no user is logged in to a build host.
    if not remove and timer.needs_login(wanted):
        text.tell(
            "The timer runs only while you are logged in; 'loginctl enable-linger' changes that.",
            text.WARNING,
        )
    return 0


def _show_installation(wanted: "Installation", *, remove: bool) -> None:
    for file in wanted.files:
        # What goes away needs no second look.
        if remove:
            print(f"remove {file.path}")
        else:
            print(f"write {file.path}")
            print(textwrap.indent(file.text, "    "))
    if wanted.crontab is not None:
        print("new crontab:")
        print(textwrap.indent(wanted.crontab or "(empty)", "    "))
    for argv in (*wanted.commands, *wanted.afterwards):
        print(f"run {shlex.join(argv)}")


def _agreed() -> bool:
    """Ask once; only a yes counts as agreement."""
    try:
        return input("Do this? [y/N] ").strip().lower() in {"y", "yes"}
    # No terminal to ask on: a script has to say --yes.
    except EOFError:
        return False
