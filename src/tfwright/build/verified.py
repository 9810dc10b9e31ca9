"""`invoke build --verified-by NAME`: the [verified] table, bound to what was built.

A recipe that was copied, or changed since, is not verified: the table holds a short checksum of
each part that decides the wheel, and whoever reads it compares them with the parts as they are now.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from tfwright import __version__
from tfwright.documents import recipe as recipes
from tfwright.documents import toml
from tfwright.documents.recipe import Recipe, VerifiedTable
from tfwright.errors import RecipeError
from tfwright.host import probes
from tfwright.tools import files, toml_editing

DIGITS = 16
"""Hexadecimal digits of each checksum: enough to notice any change, short enough to read."""
FIRST_DAY = dt.date(2015, 11, 9)
"""The day on which TensorFlow was published."""
SHOWN = {"run": "[verified] itself"}
"""Parts that are shown in other words."""
NO_CHECKSUMS = "no checksums"
"""Why a table from before there were checksums, or one that a person wrote, is not believed."""
DESCRIBING = {"name", "summary", "verified"}
"""Parts of a recipe that decide nothing."""


def part_checksums(recipe: Recipe, lock: Path | None) -> dict[str, str]:
    """Return a short checksum of each part that decides the wheel, comments left out."""
    source = recipe.source
    named = {name: source.file(name) for name in source.named_files}
    # Defaults are left out: a new key with a default must not make every recipe unverified.
    content = recipe.model_dump(mode="json", exclude_defaults=True, exclude=DESCRIBING)
    found = {
        "recipe": _short_checksum(json.dumps(content, sort_keys=True)),
        "patches": _short_checksum(
            "".join(f"{name} {files.sha256(named[name])}" for name in named)
        ),
        "tfwright": __version__,
    }
    if lock is not None and lock.is_file():
        found["lock"] = files.sha256(lock)[:DIGITS]
    return found


def _short_checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def check_name(by: str) -> None:
    """Raise RecipeError for a name that a recipe cannot hold: hours later it would be lost."""
    if not by.strip() or not by.isprintable():
        raise RecipeError(
            f"{by!r} cannot be the name for --verified-by",
            remedy="Give a name on one line: --verified-by 'Ada Lovelace'.",
        )


def write(path: Path, built: Mapping[str, str], *, until: str, where: str, by: str) -> None:
    """Write the [verified] table of a recipe that was just built up to a stage.

    `built` are its checksums from before the build: what was edited meanwhile was not built.
    `where` names the machine, and what it had in place of what the recipe pins. The note that a
    person wrote of an earlier run stays.
    """
    today = dt.datetime.now(dt.UTC).date()
    values: dict[str, object] = {"until": until, "on": today, "host": where, "by": by}
    if note := toml.values_of(path).get("verified", {}).get("note"):
        values["note"] = note
    values["digests"] = {**built, "run": _run_checksum(until, today, where, by)}
    toml_editing.put_table(path, "verified", values)


def _run_checksum(until: str, on: dt.date, where: str, by: str) -> str:
    """Return a short checksum of what a table says about the run itself."""
    return _short_checksum(json.dumps([until, str(on), where, by]))


def without_verified(text: str) -> str:
    """Return a recipe's text without [verified], for a recipe that is made from another one.

    What was verified is the other recipe.
    """
    return toml_editing.without_table(text, "verified")


def describe_host() -> str:
    """Return this machine in a few words."""
    here = probes.this_host()
    return f"{here.release or here.system}, {here.machine}"


def stale(recipe: Recipe) -> str:
    """Say what changed since a recipe was verified; empty if nothing did, or it never was."""
    if recipe.verified is None:
        return ""
    if reason := impossible_date(recipe.verified):
        return reason
    before = {str(part): digest for part, digest in recipe.verified.digests.items()}
    # Tables from before there were checksums say what was built, but not from what.
    if not before:
        return NO_CHECKSUMS
    # Parts that are on one side only count too: a lock file that was added or deleted.
    now = part_checksums(recipe, recipes.find(recipe.argument).with_suffix(".lock"))
    # The first tables that were written had no checksum of the run.
    if "run" in before:
        verified = recipe.verified
        now["run"] = _run_checksum(verified.until, verified.on, verified.host, verified.by)
    differing = [
        SHOWN.get(part, part) for part in (*before, *now) if before.get(part) != now.get(part)
    ]
    return f"{', '.join(dict.fromkeys(differing))} changed" if differing else ""


def impossible_date(verified: VerifiedTable) -> str:
    """Say why a recipe cannot have been built on the date that its table names, if so."""
    # A day more, since it is tomorrow already in other time zones.
    if verified.on > dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1):
        return f"{verified.on} has not come yet"
    if verified.on < FIRST_DAY:
        return f"there was no TensorFlow on {verified.on}"
    return ""
