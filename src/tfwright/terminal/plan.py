"""The page of plan: what a build would do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Styled

if TYPE_CHECKING:
    from tfwright.host.findings import Finding
    from tfwright.pipeline.engine import Planned
    from tfwright.pipeline.stage import Step

STEP = 7
"""Characters in front of a command."""


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
            for row in _lines(step, shown):
                text.line(Styled(" " * STEP + row, text.DETAIL))
            # A file that is written has no environment; the
            # one before it stays the comparison.
            shown = dict(getattr(step, "env", shown))


def _show_stage(planned: "Planned") -> None:
    name = Styled(f" {planned.stage.name:<10} ", text.HEADING)
    if planned.why:
        text.line(Styled("run ", text.WARNING), name, planned.why)
    else:
        summary = Styled(planned.stage.summary, text.DETAIL)
        text.line(Styled("keep", text.GOOD), name, summary)


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


def _lines(step: "Step", shown: Mapping[str, str]) -> Iterator[str]:
    """Return a step as people read it.

    Of its environment only what differs from what was `shown` for the step before it.
    """
    fields = vars(step)
    # A step without arguments is a file that tfwright writes itself.
    if "argv" not in fields:
        yield f"writes {fields['path']}"
        yield from (f"    {row}" for row in fields["content"].splitlines())
        return
    yield f"$ {step}"
    yield f"    in {fields['cwd']}"
    yield from _changes(shown, fields["env"])


def _changes(shown: Mapping[str, str], env: Mapping[str, str]) -> Iterator[str]:
    # A clean environment has a dozen variables; only changes tell the commands apart.
    for name, value in sorted(env.items()):
        if shown.get(name) != value:
            yield f"    {name}={value}"
    for name in sorted(shown.keys() - env.keys()):
        yield f"    without {name}"
