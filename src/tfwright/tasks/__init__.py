"""The commands of tfwright, one module for each group of `invoke --list`; no logic."""

from typing import Any

from invoke import Collection

from tfwright.tasks import build, build_host, choose, develop, keep, look

GROUPS: dict[str, tuple[Any, ...]] = {
    "choose": (
        choose.recipes,
        choose.match,
        choose.doctor,
        choose.new,
        choose.port,
        choose.pin,
        choose.record,
    ),
    "build": (build.build, build.plan, build.shell, build.toolkit, build.clean),
    "look": (look.inspect, look.compare, look.smoke, look.cost, look.diagnose, look.reproduce),
    "keep": (keep.fetch, keep.lock, keep.bundle, keep.vault, keep.cache, keep.image),
    "build host": (
        build_host.nightly,
        build_host.index,
        build_host.report,
        build_host.bisect,
        build_host.variant,
    ),
    "develop": (develop.lint, develop.types, develop.test, develop.schema, develop.patch),
}
"""The commands by what they are for, in the order of `invoke --list`."""
REPLACED = {
    # Kept as answers only: scripts of earlier versions still type these words.
    "unbundle": "invoke bundle --unpack FILE",
    "bazelrc": "invoke plan --bazelrc",
    "links": "invoke vault --links",
    "distribute": "invoke build --recipe FIRST --recipe SECOND",
}
"""Commands of earlier versions, and what does the same now."""


def collection() -> Collection:
    """Return all commands for invoke; `build` runs where none is named."""
    # invoke would list commands by name; terminal/program.py prints the groups instead.
    made = Collection()
    for tasks in GROUPS.values():
        for task in tasks:
            made.add_task(task)
    return made


def names() -> dict[str, tuple[str, ...]]:
    """Return the names of the commands by group."""
    return {group: tuple(task.name for task in tasks) for group, tasks in GROUPS.items()}
