"""What a build would do, as people and machines read it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.pipeline.engine import Planned
    from tfwright.pipeline.stage import Step


def show_plan(plan: "Iterable[Planned]", *, as_json: bool) -> None:
    """Print a plan: per stage keep or run, why, and its commands and files."""
    if as_json:
        text.as_json(
            [
                {
                    "stage": one.stage.name,
                    "run": bool(one.why),
                    "why": one.why,
                    "steps": [_step(step) for step in one.steps],
                }
                for one in plan
            ]
        )
        return
    shown: dict[str, str] = {}
    for one in plan:
        print(
            f"{'run ' if one.why else 'keep'} {one.stage.name:<10} {one.why or one.stage.summary}"
        )
        for step in one.steps if one.why else ():
            for line in _lines(step, shown):
                print(f"       {line}")
            shown = dict(getattr(step, "env", shown))


def _step(step: "Step") -> dict[str, object]:
    """Return a step as JSON can say it."""
    return {
        name: list(value)
        if isinstance(value, tuple)
        else dict(value)
        if hasattr(value, "keys")
        else str(value)
        for name, value in vars(step).items()
    }


def _lines(step: "Step", shown: Mapping[str, str]) -> Iterator[str]:
    """Return a step as people read it; of its environment only what is not as it was `shown` for the step before."""
    said = vars(step)
    if "argv" in said:
        yield f"$ {step}"
        yield f"    in {said['cwd']}"
        yield from (
            f"    {name}={value}"
            for name, value in sorted(said["env"].items())
            if shown.get(name) != value
        )
        yield from (f"    without {name}" for name in sorted(shown.keys() - said["env"].keys()))
    else:
        yield f"writes {said['path']}"
        yield from (f"    {line}" for line in said["content"].splitlines())
