"""The commands of tfwright, one module for each group of `invoke --list`; no logic."""

from typing import Any

from invoke import Collection

from tfwright.bisect import command as bisect_
from tfwright.build import command as build_
from tfwright.bundle import command as bundle_
from tfwright.cache import command as cache_
from tfwright.cost import command as cost_
from tfwright.develop import command as develop_
from tfwright.diagnosis import command as diagnosis_
from tfwright.doctor import command as doctor_
from tfwright.image import command as image_
from tfwright.index import command as index_
from tfwright.lint import command as lint_
from tfwright.lock import command as lock_
from tfwright.match import command as match_
from tfwright.new import command as new_
from tfwright.nightly import command as nightly_
from tfwright.patch import command as patch_
from tfwright.pin import command as pin_
from tfwright.port import command as port_
from tfwright.recipes import command as recipes_
from tfwright.record import command as record_
from tfwright.schema import command as schema_
from tfwright.smoke import command as smoke_
from tfwright.toolkit import command as toolkit_
from tfwright.vault import command as vault_
from tfwright.wheel.compare import command as compare_
from tfwright.wheel.inspect import command as inspect_

GROUPS: dict[str, tuple[Any, ...]] = {
    "choose": (
        recipes_.recipes,
        match_.match,
        doctor_.doctor,
        new_.new,
        port_.port,
        pin_.pin,
        record_.record,
    ),
    "build": (build_.build, build_.plan, build_.shell, toolkit_.toolkit, build_.clean),
    "look": (
        inspect_.inspect,
        compare_.compare,
        smoke_.smoke,
        cost_.cost,
        diagnosis_.diagnose,
        build_.reproduce,
    ),
    "keep": (build_.fetch, lock_.lock, bundle_.bundle, vault_.vault, cache_.cache, image_.image),
    "build host": (nightly_.nightly, index_.index, nightly_.report, bisect_.bisect),
    "develop": (lint_.lint, develop_.types, develop_.test, schema_.schema, patch_.patch),
}
"""The commands by what they are for, in the order of `invoke --list`."""
REPLACED = {
    # Kept as answers only: scripts of earlier versions still type these words.
    "unbundle": "invoke bundle --unpack FILE",
    "bazelrc": "invoke plan --bazelrc",
    "links": "invoke vault --links",
    "variant": "invoke inspect WHEEL",
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
