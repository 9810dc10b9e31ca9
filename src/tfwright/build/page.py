"""The pages of build, plan and reproduce."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.doctor.inventory import Finding
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Result, Step, Writes
from tfwright.terminal import text
from tfwright.tools.process.command import Command, clean_environment

if TYPE_CHECKING:
    from tfwright.build.reproduce import Reproduction

REASON = 16
"""Characters in front of the reason why a stage runs."""


def show_start(job: RecipeJob) -> None:
    """Say what is going to be built."""
    name = text.bold(job.recipe.name)
    text.line(name, f": {job.recipe.summary}", to=sys.stderr)


def show_result(job: RecipeJob, result: Result) -> None:
    """Say what was made: the wheel's path on stdout, for scripts."""
    wheel = getattr(result, "wheel", None)
    if job.until == "publish" and wheel is not None:
        text.tell(f"  {wheel.size:,} bytes, sha256 {wheel.sha256}")
        # Alone on standard output: pip install "$(invoke build …)".
        print(wheel.path)
    else:
        text.tell(f"  stopped after {job.until}, as requested")


def built_data(job: RecipeJob, result: Result) -> dict[str, object]:
    """Return what was made, for machines; the wheel is null before the stage package."""
    wheel = getattr(result, "wheel", None)
    return {"recipe": job.recipe.name, "until": job.until, "wheel": wheel}


def show_plan(
    plan: Sequence[Planned],
    findings: Sequence[Finding] = (),
    warnings: Sequence[tuple[str, str]] = (),
    *,
    recipe: str = "demo",
) -> None:
    """Print what keeps the recipe from being built here, then each stage: run or keep, and why.

    `recipe` is the argument that names it. Commands and files of the stages that run come last.
    Of `warnings` each is a heading and a text.
    """
    # Notes are left to doctor: a plan answers what a build would do.
    blocking = [finding for finding in findings if finding.blocks]
    if blocking:
        count = text.counted(len(blocking), "finding")
        text.line(text.bad(f"This host cannot build the recipe yet: {count}"))
        for finding in blocking:
            text.paragraph(f"  {finding.blocks}", str(finding), indent=13)
        doctor = f"  'invoke doctor --recipe {recipe}' has the remedies"
        text.line(text.detail(doctor))
        text.line()
    for heading, warning in warnings:
        text.paragraph(text.warning(heading), warning, indent=16)
    if warnings:
        text.line()
    for planned in plan:
        label = text.bold(f" {planned.stage.name:<10} ")
        if planned.why:
            text.line(text.warning("run "), label, planned.why, hang=REASON)
        else:
            summary = text.detail(planned.stage.summary)
            text.line(text.good("keep"), label, summary, hang=REASON)
    _show_commands({each.stage.name: each.steps() for each in plan if each.why})


def plan_data(plan: Sequence[Planned]) -> list[dict[str, object]]:
    """Return the stages for machines, with the commands and files of those that would run."""
    return [
        {
            "stage": planned.stage.name,
            "run": bool(planned.why),
            "why": planned.why,
            "steps": planned.steps(),
        }
        for planned in plan
    ]


def _show_commands(running: Mapping[str, Sequence[Step]]) -> None:
    """Print what stages run and write, by their names; what repeats itself once."""
    if any(running.values()):
        text.line()
        text.line(text.detail("What they run and write; --json has each with its environment"))
    shown = Command((), Path(), clean_environment(Path()))
    for name, steps in running.items():
        if steps:
            text.heading(name)
        for _, alike in groupby(steps, _shape):
            shown = _show_steps([*alike], shown)


def _shape(step: Step) -> object:
    """Return what steps have in common of which a path alone tells one from the other."""
    if isinstance(step, Writes):
        says = step.content and "\n" not in step.content
        return step.path.parent.parent if says else step.path
    return step.cwd, step.env, [part for part in step.argv if part != _own_path(step)]


def _own_path(command: Command) -> str:
    return next((part for part in reversed(command.argv) if "/" in part), "")


def _show_steps(steps: Sequence[Step], shown: Command) -> Command:
    """Print files with their content, or commands with where they run and their environment.

    Of that only what differs from what was `shown` for the command before. Returns what the next
    one is compared with.
    """
    first, *others = steps
    rows = [row for step in steps if isinstance(step, Writes) for row in step.content.splitlines()]
    if isinstance(first, Writes):
        # The vault names each file by its checksum.
        what = f"{len(steps)} files below {first.path.parent.parent}" if others else first.path
        text.line(text.detail(f"  writes {what}"), whole=True)
    else:
        text.command("  $ ", first.argv, text.DETAIL)
        env = _with_git_settings(first.env)
        rows = [f"in {first.cwd}"] if first.cwd != shown.cwd else []
        # A clean environment has a dozen variables; only changes tell the commands apart.
        changed = (name for name in sorted(env) if shown.env.get(name) != env[name])
        rows += [f"{name}={env[name]}" for name in changed]
        if gone := shown.env.keys() - env.keys():
            rows.append(f"without {', '.join(sorted(gone))}")
        if others:
            own, *names = (
                Path(_own_path(step)).name for step in steps if isinstance(step, Command)
            )
            rows.append(f"{len(others)} more, with {', '.join(names)} in place of {own}")
        shown = replace(first, env=env)
    for row in rows:
        text.line(text.detail(f"      {row}"), hang=10)
    return shown


def _with_git_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the dozens of variables of git's settings as one."""
    settings = r"GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+)"
    found = {name: value for name, value in env.items() if not re.fullmatch(settings, name)}
    if count := int(env.get("GIT_CONFIG_COUNT", 0)):
        pairs = ((env[f"GIT_CONFIG_KEY_{n}"], env[f"GIT_CONFIG_VALUE_{n}"]) for n in range(count))
        found["GIT_CONFIG_n"] = " ".join(f"{key}={value}" for key, value in pairs)
    return found


def show_reproduction(found: "Reproduction") -> None:
    """Print whether a rebuilt wheel is the same; if it differs, where and why."""
    # Every build imports this page, and few compare wheels.
    from tfwright.wheel.page import show_comparison

    if found.comparison.same:
        first = found.comparison.first
        text.line(
            text.good("reproduced"),
            f": {found.original.name} is the same {first.size:,} bytes, sha256 {first.sha256}",
        )
        return
    both = f": {found.original} (first), {found.rebuilt} (second)"
    text.line(text.bad("not reproduced"), both)
    show_comparison(found.comparison)
    text.heading("why")
    for cause in found.causes:
        text.paragraph("", cause, indent=2)
