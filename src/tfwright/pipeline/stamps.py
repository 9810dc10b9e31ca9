"""What was done: one stamp per stage, believed only while everything it speaks of is unchanged."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from tfwright.documents.recipe import BESIDE_THE_BUILD, Recipe
from tfwright.documents.toml import Table
from tfwright.pipeline.job import Job, RecipeJob
from tfwright.pipeline.stage import Artefact, Folder, Known, Made, Result, Stage
from tfwright.tools import files, json_text, trees

Seen = tuple[int, int, int, int] | str
"""Inode, size, and times of change in nanoseconds: while they stay, a file's digest stays. Of a
directory, a digest of those of everything in it."""


class Took(NamedTuple):
    """What a stage's run cost."""

    seconds: float
    cpu: float
    """Seconds of processor time, without those of Bazel's server and its actions."""


class Stamp(Table):
    """The record of one finished stage."""

    parts: dict[str, str]
    """Digest of each thing that the result depends on, by a name that a reader knows."""
    result: dict[str, Any]
    seen: dict[str, Seen] = {}
    """State of each artefact's file or directory when it was last hashed."""
    seconds: float
    cpu: float


def part_checksums(stage: Stage, job: RecipeJob, results: Known) -> dict[str, str]:
    """Return the digest of each thing that decides what `stage` would make now."""
    found = {"the stage's revision": str(stage.revision)}
    recipe = job.recipe
    for kind in stage.tables:
        # Of the whole recipe one digest per key, so that a plan can name the key that changed; in
        # the order of the recipe.
        own = kind.__name__.removesuffix("Table").lower()
        whole = [key for key in vars(recipe) if key not in BESIDE_THE_BUILD]
        keys = whole if kind is Recipe else [own]
        content = recipe.model_dump(mode="json", include=set(keys))
        for key in keys:
            title = f"[{key}]" if isinstance(getattr(recipe, key), Table) else key
            found[f"the recipe's {title}"] = json_text.digest(content[key])
    found |= stage.inputs(job)
    # By content: a stage that ran again and made the same lets the later ones be kept.
    for made in stage.needs:
        found[part_name(made)] = json_text.digest(results[made].essence())
    return found


def part_name(made: type[Result]) -> str:
    """Return the name under which a stamp keeps the digest of an earlier result."""
    return f"what {made.__name__} holds"


def read(job: Job, name: str) -> Stamp | None:
    """Return the stamp of a stage; None if there is none, or none that this version can read."""
    # A stamp that cannot be read costs one run of the stage, so it is not an error.
    return json_text.load_or_none(path(job, name), Stamp)


def written_at(job: Job, stage: Stage) -> float:
    """Return when the stamp of a stage was written, in seconds since the epoch; 0 without one."""
    try:
        return path(job, stage.name).stat().st_mtime
    except OSError:
        return 0.0


def last_result(job: Job, name: str, kind: type[Made]) -> Made | None:
    """Return what a stage made last, if anything; the engine decides whether it still holds.

    For plans and shells, which show what a build would do before its stages have run again.
    """
    stamp = read(job, name)
    try:
        return kind.model_validate(stamp.result) if stamp else None
    except ValidationError:
        return None


def last_results(job: Job, stages: Iterable[Stage]) -> Known:
    """Return what each of the stages made last, where there is anything; see `last_result`."""
    found = {stage.makes: last_result(job, stage.name, stage.makes) for stage in stages}
    return {kind: result for kind, result in found.items() if result is not None}


def write(job: Job, stage: Stage, depends: Mapping[str, str], result: Result, took: Took) -> None:
    """Keep what a stage made, and from what."""
    # The state is taken now: a file that is touched later is hashed again, once; see `renew`.
    stamp = Stamp(
        parts=dict(depends),
        result=result.model_dump(mode="json"),
        seen=states(result),
        **took._asdict(),
    )
    files.write(path(job, stage.name), stamp.model_dump_json(indent=1))


def renew(job: Job, stage: Stage, stamp: Stamp, seen: Mapping[str, Seen]) -> None:
    """Keep the states of artefacts that were hashed again and still have their content.

    Otherwise, every later build would hash them again.
    """
    if stamp.seen != seen:
        renewed = stamp.changed(seen=dict(seen))
        files.write(path(job, stage.name), renewed.model_dump_json(indent=1))


def first_change(stamp: Stamp, now: Mapping[str, str]) -> tuple[str, str] | None:
    """Return which of the things that a stamp depends on is another now, and how; None if none."""
    # In the order of the parts now, so the recipe's own tables are named before results.
    for name in {**now, **stamp.parts}:
        if name not in stamp.parts:
            return name, "is new"
        if name not in now:
            return name, "is gone"
        if now[name] != stamp.parts[name]:
            return name, "changed"
    return None


def states(result: Result) -> dict[str, Seen]:
    """Return the state of each artefact's file or directory now; what is gone has none."""
    found = dict[str, Seen]()
    for artefact in artefacts(result):
        with suppress(OSError):
            if isinstance(artefact, Folder):
                follow, without = artefact.follow, artefact.without
                found[str(artefact.path)] = trees.state_digest(
                    artefact.path, follow=follow, without=without
                )
            else:
                state = artefact.path.stat()
                # The time of change cannot be set back, as that of modification can.
                times = state.st_mtime_ns, state.st_ctime_ns
                found[str(artefact.path)] = state.st_ino, state.st_size, *times
    return found


def damage(stamp: Stamp, result: Result, seen: Mapping[str, Seen]) -> str | None:
    """Name the artefact that differs from its stamp; only files that were touched are hashed.

    `seen` are the states of now.
    """
    for artefact in artefacts(result):
        place = str(artefact.path)
        # Hashing gigabytes of runfiles for each build would take longer than many builds.
        if place in seen and stamp.seen.get(place) == seen[place]:
            continue
        try:
            if artefact.changed():
                return f"{artefact.path.name} changed on disk"
        except OSError:
            return f"{artefact.path.name} is gone"
    return None


def artefacts(value: object) -> Iterator[Artefact | Folder]:
    """Walk through a result to the files and directories that it names."""
    if isinstance(value, Artefact | Folder):
        yield value
    elif isinstance(value, Result):
        for name in type(value).model_fields:
            yield from artefacts(getattr(value, name))
    elif isinstance(value, tuple):
        for part in value:
            yield from artefacts(part)


def path(job: Job, name: str) -> Path:
    """Return where the stamp of a stage is."""
    return job.places.stamps / f"{name}.json"
