"""The commands of tfwright, by the groups of `invoke --list`; no logic."""

from typing import Any

from invoke import Collection

from tfwright.bisect.command import bisect
from tfwright.build.command import build, clean, plan, reproduce, shell
from tfwright.bundle.command import bundle
from tfwright.cache.command import cache
from tfwright.cost.command import cost
from tfwright.develop.command import schema, test, types
from tfwright.diagnosis.command import diagnose
from tfwright.doctor.command import doctor
from tfwright.image.command import image
from tfwright.index.command import index
from tfwright.init.command import init
from tfwright.lint.command import lint
from tfwright.lock.command import fetch, lock, pin
from tfwright.match.command import match
from tfwright.nightly.command import nightly, report
from tfwright.patch.command import patch
from tfwright.port.command import port
from tfwright.recipes.command import new, recipes, record
from tfwright.smoke.command import smoke
from tfwright.toolkit.command import toolkit
from tfwright.vault.command import vault
from tfwright.wheel.command import compare, inspect

GROUPS: dict[str, tuple[Any, ...]] = {
    "choose": (init, recipes, match, doctor, new, port, pin, record),
    "build": (build, plan, shell, toolkit, clean),
    "look": (inspect, compare, smoke, cost, diagnose, reproduce),
    "keep": (fetch, lock, bundle, vault, cache, image),
    "build host": (nightly, index, report, bisect),
    "develop": (lint, types, test, schema, patch),
}
"""The commands by what they are for, in the order of `invoke --list`."""
CHECKOUT = (types, test, schema)
"""What only a checkout of tfwright has; only an installed one has `init`."""
REPLACED = {
    # Kept as answers only: scripts of earlier versions still type these words.
    "unbundle": "invoke bundle --unpack FILE",
    "bazelrc": "invoke plan --bazelrc",
    "links": "invoke vault --links",
    "variant": "invoke inspect WHEEL",
    "distribute": "invoke build --recipe FIRST --recipe SECOND",
}
"""Commands of earlier versions, and what does the same now."""


def collection(*, installed: bool = False) -> Collection:
    """Return the commands for invoke; in a checkout `build` runs where none is named."""
    # invoke would list commands by name; terminal/program.py prints the groups instead.
    commands = Collection()
    for tasks in _groups(installed=installed).values():
        for task in tasks:
            commands.add_task(task)
    return commands


def names(*, installed: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the names of the commands by group."""
    groups = _groups(installed=installed)
    return {group: tuple(task.name for task in tasks) for group, tasks in groups.items()}


def _groups(*, installed: bool) -> dict[str, tuple[Any, ...]]:
    left_out = CHECKOUT if installed else (init,)
    return {
        group: tuple(task for task in tasks if task not in left_out)
        for group, tasks in GROUPS.items()
    }
