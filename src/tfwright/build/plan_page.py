"""The page of plan: what a build would do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfwright.terminal import text
from tfwright.terminal.text import Styled

if TYPE_CHECKING:
    from tfwright.doctor.findings import Finding
    from tfwright.pipeline.engine import Planned
    from tfwright.pipeline.stage import Step

STEP = 7
"""Characters in front of a command."""
REASON = 16
"""Characters in front of the reason why a stage runs."""


def show_plan(
    plan: "Iterable[Planned]",
    findings: "Sequence[Finding]" = (),
    doubled: Sequence[str] = (),
    *,
    recipe: str = "demo",
    as_json: bool,
) -> None:
    """Print what keeps the recipe from being built here, then each stage: run or keep, and why.

    `recipe` is the argument that names it. A stage that runs is followed by its commands and files.
    `doubled` says what makes Bazel compile the same sources twice.
    """
    if as_json:
        text.as_json([_planned(planned) for planned in plan])
        return
    _show_findings(findings, recipe)
    _show_doubled(doubled)
    shown: dict[str, str] = {}
    for planned in plan:
        _show_stage(planned)
        for step in planned.steps if planned.why else ():
            _show_step(step, shown)
            # A file that is written has no environment; the
            # one before it stays the comparison.
            shown = dict(getattr(step, "env", shown))


def _show_stage(planned: "Planned") -> None:
    name = Styled(f" {planned.stage.name:<10} ", text.HEADING)
    if planned.why:
        run = Styled("run ", text.WARNING)
        text.line(run, name, planned.why, hang=REASON)
    else:
        summary = Styled(planned.stage.summary, text.DETAIL)
        text.line(Styled("keep", text.GOOD), name, summary, hang=REASON)


def _show_doubled(doubled: Sequence[str]) -> None:
    for warning in doubled:
        head = Styled("Compiled twice", text.WARNING)
        text.paragraph(head, warning, indent=16)
    if doubled:
        text.line()


def _show_findings(findings: "Sequence[Finding]", recipe: str) -> None:
    # Notes are left to doctor: a plan answers what a build would do.
    blocking = [finding for finding in findings if finding.blocks]
    if not blocking:
        return
    count = text.counted(len(blocking), "finding")
    text.line(Styled(f"This host cannot build the recipe yet: {count}", text.BAD))
    for finding in blocking:
        text.paragraph(f"  {finding.blocks}", str(finding), indent=13)
    doctor = f"  'invoke doctor --recipe {recipe}' has the remedies"
    text.line(Styled(doctor, text.DETAIL))
    text.line()


def _planned(planned: "Planned") -> dict[str, object]:
    return {
        "stage": planned.stage.name,
        "run": bool(planned.why),
        "why": planned.why,
        "steps": [_step(step) for step in planned.steps],
    }


def _step(step: "Step") -> dict[str, object]:
    """Return a step as JSON can say it, but for its paths."""
    # An environment may be of any kind of mapping.
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in vars(step).items()
    }


def _show_step(step: "Step", shown: Mapping[str, str]) -> None:
    """Print a command with its environment, or a file with its content."""
    fields, pad = vars(step), " " * STEP
    # A step without arguments is a file that tfwright writes itself.
    if "argv" not in fields:
        writes = Styled(f"{pad}writes {fields['path']}", text.DETAIL)
        text.line(writes, whole=True)
        for row in fields["content"].splitlines():
            text.line(Styled(f"{pad}    {row}", text.DETAIL))
        return
    text.command(f"{pad}$ ", fields["argv"], text.DETAIL)
    for row in _surroundings(fields, shown):
        text.line(Styled(f"{pad}    {row}", text.DETAIL))


def _surroundings(fields: Mapping[str, Any], shown: Mapping[str, str]) -> Iterator[str]:
    """Return where a command runs, and its environment.

    Of that only what differs from what was `shown` for the step before it.
    """
    yield f"in {fields['cwd']}"
    for name, value in sorted(fields["env"].items()):
        # A clean environment has a dozen variables; only
        # changes tell the commands apart.
        if shown.get(name) != value:
            yield f"{name}={value}"
    for name in sorted(shown.keys() - fields["env"].keys()):
        yield f"without {name}"
