"""The page of cost: what a build took."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.cost.account import CostPage
    from tfwright.pipeline.cost import Cost

GIB = 1024**3
STAGES = (
    Column("stage", 0, "never"),
    Column("time", 0, "never", right=True),
    Column("processor time", 0, "never", right=True),
)
ACTIONS = (Column("", 0, "never", right=True), Column("", 0, "middle", least=20))
DISK = (Column("", 0, "never", right=True), Column("", 0, "middle", least=20))


def show_cost(cost: "Cost", *, as_json: bool) -> None:
    """Print the stages, Bazel's runs, the slowest actions, and the disk."""
    if as_json:
        slowest = [asdict(action) for action in cost.slowest]
        text.as_json({**asdict(cost), "slowest": slowest})
        return
    # An empty table would look like a failure.
    if not cost.stages and not cost.bazel:
        text.line("This recipe has not been built on this host; there is nothing to report.")
        return
    text.table(STAGES, _stages(cost))
    # A build that is still in configure, or compiling, has no finished run.
    if cost.bazel:
        _heading(f"Bazel, {text.counted(len(cost.bazel), 'run')}")
        for row in _bazel(cost):
            text.line(f"  {row}")
    _show_slowest(cost)
    _heading("On disk")
    places = [(_indented(text.as_size(size)), name) for name, size in cost.disk.items()]
    text.table(DISK, places)


def _show_slowest(cost: "Cost") -> None:
    # A build that took everything from the cache ran no action.
    if not cost.slowest:
        return
    _heading("Slowest actions")
    rows = [(_indented(text.as_duration(action.seconds)), action.name) for action in cost.slowest]
    text.table(ACTIONS, rows)


def _indented(cell: str) -> str:
    return f"  {cell}"


def show_page(page: "CostPage") -> None:
    """Say where the page is, and what changed most against the other build."""
    if page.changed:
        text.line("Actions whose time changed most:")
        rows = [(f"  {row.value}", f"{row.name} {row.change}".rstrip()) for row in page.changed]
        text.table(ACTIONS, rows)
    elif page.other:
        text.line(f"No action took another time than in {page.other}.")
    text.line(f"page: {page.path}")


def _heading(title: str) -> None:
    text.line()
    text.heading(title)


def _stages(cost: "Cost") -> Iterator[tuple[str, str, str]]:
    for stage in cost.stages:
        # Stamps of earlier versions do not say.
        processor = "-" if stage.cpu is None else text.as_duration(stage.cpu)
        yield stage.name, text.as_duration(stage.seconds), processor


def _bazel(cost: "Cost") -> Iterator[str]:
    """Say what Bazel took with its actions, and what tfwright took on top of it."""
    spent = [run.spent for run in cost.bazel]
    seconds = sum(run.seconds for run in spent)
    processor = sum(run.cpu for run in spent)
    yield f"{text.as_duration(seconds)}, {text.as_duration(processor)} of processor time"
    largest = max(run.action for run in spent) / GIB
    together = max(run.together for run in spent) / GIB
    yield f"memory: {largest:.2f} GiB for the largest action, {together:.2f} GiB for all at once"
    compiling = next((stage for stage in cost.stages if stage.name == "compile"), None)
    if compiling:
        # The stage's time is of its last run, so only
        # Bazel's last run compares with it.
        added = compiling.seconds - spent[-1].seconds
        # A build from the cache may take no measurable time.
        share = added / max(compiling.seconds, 1e-9)
        processor_time = ""
        if compiling.cpu is not None:
            processor_time = f", {text.as_duration(compiling.cpu)} of processor time"
        yield (
            f"tfwright's own part of the last run: "
            f"{text.as_duration(added)} ({share:.1%}){processor_time}"
        )
