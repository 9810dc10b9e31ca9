"""The pages of build, plan and reproduce."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tfwright.doctor.inventory import Finding
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stage import Result, Step
from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.build.reproduce import Reproduction

REASON = 16
"""Characters in front of the reason why a stage runs."""


def announce(job: RecipeJob) -> None:
    """Say what is going to be built."""
    name = text.bold(job.recipe.name)
    text.line(name, f": {job.recipe.summary}", to=sys.stderr)


def conclude(job: RecipeJob, result: Result) -> None:
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

    `recipe` is the argument that names it. A stage that runs is followed by its commands and files.
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
    shown: Mapping[str, str] = {}
    for planned in plan:
        name = text.bold(f" {planned.stage.name:<10} ")
        if not planned.why:
            summary = text.detail(planned.stage.summary)
            text.line(text.good("keep"), name, summary, hang=REASON)
            continue
        text.line(text.warning("run "), name, planned.why, hang=REASON)
        for step in planned.steps():
            shown = _show_step(step, shown)


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


def _show_step(step: Step, shown: Mapping[str, str]) -> Mapping[str, str]:
    """Print a file with its content, or a command with where it runs and its environment.

    Of that only what differs from what was `shown` for the step before it. Returns what the next
    one is compared with.
    """
    # A file that is written has no environment; the one before it stays the comparison.
    fields, pad, env = vars(step), " " * 7, shown
    # A step without arguments is a file that tfwright writes itself.
    if "argv" not in fields:
        text.line(text.detail(f"{pad}writes {fields['path']}"), whole=True)
        rows = fields["content"].splitlines()
    else:
        text.command(f"{pad}$ ", fields["argv"], text.DETAIL)
        env = _with_git_settings(fields["env"])
        # A clean environment has a dozen variables; only changes tell the commands apart.
        changed = (name for name in sorted(env) if shown.get(name) != env[name])
        rows = [f"in {fields['cwd']}", *(f"{name}={env[name]}" for name in changed)]
        if gone := shown.keys() - env.keys():
            rows.append(f"without {', '.join(sorted(gone))}")
    for row in rows:
        text.line(text.detail(f"{pad}    {row}"))
    return env


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
