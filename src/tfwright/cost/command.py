"""The command cost, and its page."""

from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.pipeline.cost import Cost

GIB = 1024**3
STAGES = (Column("stage"), Column("time", right=True), Column("processor time", right=True))
NAMED = (Column("", right=True), Column("", cut="middle", least=20))


@task(help=RECIPE | JSON)
def cost(_: Context, recipe: str = "demo") -> Shown:
    """Show what a recipe's build took: time, processor time, memory, slowest actions, disk."""
    from tfwright.pipeline import cost as costs
    from tfwright.pipeline.stages import PIPELINE

    return Answer(
        costs.read_cost(job_of(recipe), PIPELINE),
        show,
        lambda spent: {**vars(spent), "slowest": spent.slowest},
    )


def show(cost: "Cost") -> None:
    """Print the stages, Bazel's runs, the slowest actions, and the disk."""
    # An empty table would look like a failure.
    if not cost.stages and not cost.bazel:
        text.line("This recipe has not been built on this host; there is nothing to report.")
        return
    duration = text.as_duration
    rows = [(stage.name, duration(stage.seconds), duration(stage.cpu)) for stage in cost.stages]
    text.table(STAGES, rows)
    # A build that is still in configure, or compiling, has no finished run.
    if cost.bazel:
        text.heading(f"Bazel, {text.counted(len(cost.bazel), 'run')}")
        spent = [run.spent for run in cost.bazel]
        seconds, cpu = sum(run.seconds for run in spent), sum(run.cpu for run in spent)
        text.line(f"  {duration(seconds)}, {duration(cpu)} of processor time")
        largest = max(run.action for run in spent) / GIB
        together = max(run.together for run in spent) / GIB
        each = f"{largest:.2f} GiB for the largest action"
        text.line(f"  memory: {each}, {together:.2f} GiB for all at once")
        for stage in (stage for stage in cost.stages if stage.name == "compile"):
            # The stage's time is of its last run, so only Bazel's last run compares with it.
            added = stage.seconds - spent[-1].seconds
            # A build from the cache may take no measurable time.
            share = added / max(stage.seconds, 1e-9)
            own = f"{duration(added)} ({share:.1%}), {duration(stage.cpu)} of processor time"
            text.line(f"  tfwright's own part of the last run: {own}")
    # A build that took everything from the cache ran no action.
    if cost.slowest:
        text.heading("Slowest actions")
        text.table(NAMED, [(f"  {duration(act.seconds)}", act.name) for act in cost.slowest])
    text.heading("On disk")
    taken = [(f"  {text.as_size(size)}", name) for name, size in cost.disk.items() if size]
    text.table(NAMED, taken)
