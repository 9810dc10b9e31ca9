"""What a build took, as people and machines read it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.pipeline.cost import Cost

GIB = 1024**3


def show_cost(cost: "Cost", *, as_json: bool) -> None:
    """Print the stages, Bazel's runs, the slowest actions, and the disk."""
    if as_json:
        text.as_json({**asdict(cost), "slowest": [asdict(one) for one in cost.slowest]})
        return
    text.table([("stage", "seconds", "processor"), *_stages(cost)])
    print(f"\nruns of Bazel: {len(cost.bazel)}")
    for line in _bazel(cost):
        print(f"  {line}")
    if cost.slowest:
        print("\nslowest actions, in seconds")
        for action in cost.slowest:
            print(f"  {action.seconds:7.1f}  {action.name}")
    print("\non disk, in MB")
    for name, size in cost.disk.items():
        print(f"  {size / 1e6:9,.0f}  {name}")


def _stages(cost: "Cost") -> Iterator[tuple[str, str, str]]:
    for one in cost.stages:
        yield one.name, f"{one.seconds:.1f}", "-" if one.cpu is None else f"{one.cpu:.1f}"


def _bazel(cost: "Cost") -> Iterator[str]:
    """Say what Bazel took with its actions, and what tfwright took beside it."""
    if not cost.bazel:
        return
    spent = [run.spent for run in cost.bazel]
    yield f"{sum(one.seconds for one in spent):,.1f} seconds, {sum(one.cpu for one in spent):,.1f} of processor time"
    yield f"memory: {max(one.action for one in spent) / GIB:.2f} GiB for one action, {max(one.together for one in spent) / GIB:.2f} GiB for all together"
    compiling = next((one for one in cost.stages if one.name == "compile"), None)
    if compiling:
        last = spent[-1].seconds
        beside = compiling.seconds - last
        own = "" if compiling.cpu is None else f", {compiling.cpu:.1f} of processor time"
        yield f"in the last run of the stage, beside Bazel: {beside:.1f} seconds ({beside / max(compiling.seconds, 1e-9):.1%}){own}"
