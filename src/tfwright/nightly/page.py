"""What `invoke nightly` prints."""

import json
import re
import shlex
import textwrap
from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.nightly.builds import BuildOrder, NightlyBuild
from tfwright.nightly.night import NightOutcome
from tfwright.nightly.plan import PlannedTarget
from tfwright.printable import printable_lines
from tfwright.terminal import text
from tfwright.terminal.text import Column, Style, Styled
from tfwright.tools.render import render

PLANNED = (
    Column("recipe", cut="middle"),
    Column("tonight"),
    Column("why", rank=1, cut="end"),
    Column("last time", rank=2, right=True),
)
JUDGED = (Column("recipe", cut="middle"), Column("verdict"), Column("why", rank=1, cut="end"))
ENGINES = ("kubernetes", "gitlab", "github", "buildkite")
SCHEMA = "schema"
IMAGE = "registry.example/tfwright:latest"
"""Stands for an image with tfwright's checkout in /srv/tfwright, where none is named."""
MINUTES = 960
"""After which an engine ends the job: twice the budget of a night."""
LONGEST_NAME = 52
"""Characters of a Kubernetes Job, whose pods have eleven more."""
STYLES: dict[str, Style] = {
    "good": text.GOOD,
    "unchanged": text.GOOD,
    "failed": text.BAD,
    "smoke failed": text.BAD,
}


def show_plan(planned: Sequence[PlannedTarget]) -> None:
    """Print what a night would build, in its order; what cannot be built here comes last."""
    # An empty table would not say where the recipes are named.
    if not planned:
        print("nightly.toml lists no recipe.")
        return
    rows: list[tuple[text.Part, ...]] = []
    for item in planned:
        changed = f": {', '.join(item.changed)}" if item.changed else ""
        # What was never built has only a guess.
        last = "-" if item.why == "never built" else f"{item.seconds / 60:.0f} min"
        row: tuple[text.Part, ...] = ("no", item.why + changed, last)
        if item.due:
            row = ("build" if item.within_budget else "out of budget", *row[1:])
        elif item.why == "blocked":
            row = (text.warning("blocked"), item.detail.partition("\n")[0], "-")
        rows.append((item.target.name, *row))
    text.table(PLANNED, rows)
    due = [item.seconds for item in planned if item.due and item.within_budget]
    lasts = f", in about {text.as_duration(sum(due))}" if due else ""
    text.line()
    text.line(f"{len(due)} of {len(rows)} would be built{lasts}.")


def plan_data(planned: Sequence[PlannedTarget]) -> list[dict[str, object]]:
    """Return the same for machines; the seconds of what was never built are a guess."""
    return [
        {
            "recipe": item.target.name,
            "due": item.due,
            "within_budget": item.within_budget,
            "why": f"blocked: {item.detail}" if item.why == "blocked" else item.why,
            "changed": item.changed,
            "seconds": item.seconds,
        }
        for item in planned
    ]


def show_order(build: NightlyBuild) -> None:
    """Say in a line what a worker did for an order."""
    broken = f": {build.broken.line}" if build.broken else ""
    text.tell(f"{build.target}: {build.result} in {build.seconds:.0f} s{broken}")


def show_outcome(outcome: NightOutcome, address: object) -> None:
    """Say what a night did, and where to look."""
    if not outcome.verdicts:
        print("nightly.toml lists no recipe.")
        return
    rows = []
    for name, verdict in sorted(outcome.verdicts.items()):
        styled = Styled(verdict, STYLES.get(verdict, text.WARNING))
        rows.append((name, styled, outcome.details.get(name, "").partition("\n")[0]))
    # Without a fault the third column is empty, and left out.
    text.table(JUDGED, rows)
    if outcome.difference:
        print(f"not reproduced: {outcome.reproduced}: {outcome.difference}")
    elif outcome.reproduced:
        print(f"built again from nothing: {outcome.reproduced}")
    for name, culprit in outcome.culprits.items():
        print(f"{name}: {culprit}")
    for name, lost in outcome.lost.items():
        print(f"archives: {name}: {lost}")
    print(f"page: {address}")


def schedule(kind: str, at: str, *, remove: bool, yes: bool) -> int:
    """Show what installing or removing the timer does, ask, and do it; return the exit status."""
    from tfwright.nightly import timer

    installation = timer.plan_installation(kind, at, remove=remove)
    if not installation.files and installation.crontab is None:
        text.tell(f"No timer of the kind {kind!r} is installed.")
        return 0
    # Everything is shown before the question: nothing is installed unseen.
    for folder in installation.folders:
        print(f"create {folder} for {installation.owner}")
    for path, content in installation.files.items():
        print(f"{'remove' if remove else 'write'} {path}")
        # What goes away needs no second look.
        if not remove:
            print(textwrap.indent(content, "    "))
    if installation.crontab is not None:
        print("new crontab:")
        print(textwrap.indent(printable_lines(installation.crontab) or "(empty)", "    "))
    for argv in (*installation.commands, *installation.afterwards):
        print(f"run {shlex.join(argv)}")
    if not remove and installation.owner == "root":
        text.tell(
            "The services run as root, as you do now: for another account, change User= in both.",
            text.WARNING,
        )
    agreed = yes
    # No terminal to ask on: a script has to say --yes.
    with suppress(EOFError):
        agreed = agreed or input("Do this? [y/N] ").strip().lower() in {"y", "yes"}
    if not agreed:
        text.tell("Nothing was changed.")
        return 1
    (timer.uninstall if remove else timer.install)(installation)
    # At night no user is logged in to a build host.
    if not remove and timer.needs_login(installation):
        text.tell(
            "The timer runs only while you are logged in; 'loginctl enable-linger' changes that.",
            text.WARNING,
        )
    return 0


def adapter(engine: str, recipe: str, image: str) -> str:
    """Return the job of an engine that carries out the order of a recipe, or the JSON schemas.

    It is text for people to put into the engine's own files.
    """
    if engine == SCHEMA:
        models: dict[str, type[BaseModel]] = {"order.json": BuildOrder, "built.json": NightlyBuild}
        schemas = {name: model.model_json_schema() for name, model in models.items()}
        return json.dumps(schemas, indent=2) + "\n"
    if engine not in ENGINES:
        raise RecipeError(
            f"tfwright does not know the engine {engine!r}",
            remedy=f"Choose one of: {', '.join((*ENGINES, SCHEMA))}.",
        )
    if not re.fullmatch(r"[\w./:@-]+", image):
        raise RecipeError(f"{image!r} is not the name of an image", remedy="Correct --image.")
    # A name that no recipe has would fail only in the engine, an hour later.
    found = recipes.read(recipe)
    # With a prefix, since YAML would read a recipe named "1.10" or "null" as no text.
    name = re.sub(r"[^a-z0-9]+", "-", f"tfwright-{found.name}".lower())[:LONGEST_NAME].strip("-")
    # For the shell of the job; the whole command is then quoted as YAML.
    values = {"name": name, "recipe": shlex.quote(recipe), "image": image, "minutes": MINUTES}
    return render(f"adapter_{engine}.yaml.j2", values)
