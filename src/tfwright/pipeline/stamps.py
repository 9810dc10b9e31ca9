"""What was done: one stamp per stage, believed only while everything it speaks of is unchanged."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from tfwright.documents.toml import Table
from tfwright.pipeline.stage import Artefact, Job, Result, Stage, table_of
from tfwright.tools import files

Seen = tuple[int, int, int, int]
"""Inode, size, and times of change in nanoseconds: while they stay, a file's digest stays."""


Made = TypeVar("Made", bound=Result)


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
    """State of each artefact's file when it was last hashed."""
    seconds: float
    cpu: float | None = None
    """None in stamps of earlier versions."""


def digest(content: object) -> str:
    """Return a digest of anything that JSON can say."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def parts(stage: Stage, job: Job, results: Mapping[type[Result], Result]) -> dict[str, str]:
    """Return the digest of each thing that decides what `stage` would make now."""
    return {
        "the stage's revision": str(stage.revision),
        **{
            f"the recipe's {_name(kind)}": digest(
                table_of(job.recipe, kind).model_dump(mode="json")
            )
            for kind in stage.tables
        },
        **stage.inputs(job),
        **{
            f"what {kind.__name__} holds": digest(results[kind].model_dump(mode="json"))
            for kind in stage.needs
        },
    }


def _name(kind: type[Table]) -> str:
    return f"[{kind.__name__.removesuffix('Table').lower()}]"


def read(job: Job, stage: Stage) -> Stamp | None:
    """Return the stamp of a stage; None if there is none, or none that this version can read."""
    try:
        return Stamp.model_validate_json(_path(job, stage.name).read_bytes())
    except (OSError, ValidationError):
        return None


def last(job: Job, stage: str, kind: type[Made]) -> Made | None:
    """Return what a stage made last, if anything; whether that still holds is the engine's to decide.

    For plans and shells, which show what a build would do before its stages have run again.
    """
    try:
        return kind.model_validate(Stamp.model_validate_json(_path(job, stage).read_bytes()).result)
    except (OSError, ValidationError):
        return None


def write(job: Job, stage: Stage, depends: Mapping[str, str], result: Result, took: Took) -> None:
    """Keep what a stage made, and from what."""
    seen = {str(artefact.path): _state(artefact.path) for artefact in artefacts(result)}
    stamp = Stamp(
        parts=dict(depends), result=result.model_dump(mode="json"), seen=seen, **took._asdict()
    )
    files.write(_path(job, stage.name), stamp.model_dump_json(indent=1))


def forget(job: Job, stage: Stage) -> None:
    """Drop a stage's stamp; done before it runs, so that a crash leaves no false one."""
    _path(job, stage.name).unlink(missing_ok=True)


def changed(stamp: Stamp, now: Mapping[str, str]) -> str | None:
    """Say which of the things that a stamp depends on is another now; None if none is."""
    for name in {**now, **stamp.parts}:
        if name not in stamp.parts:
            return f"{name} is new"
        if name not in now:
            return f"{name} is gone"
        if now[name] != stamp.parts[name]:
            return f"{name} changed"
    return None


def damage(stamp: Stamp, result: Result) -> str | None:
    """Say what on disk is no longer as the stamp says; only files that were touched are hashed."""
    for artefact in artefacts(result):
        try:
            if stamp.seen.get(str(artefact.path)) == _state(artefact.path):
                continue
            if files.sha256(artefact.path) != artefact.sha256:
                return f"{artefact.path.name} changed on disk"
        except OSError:
            return f"{artefact.path.name} is gone"
    return result.damage()


def artefacts(value: object) -> Iterator[Artefact]:
    """Walk through a result to the files that it names."""
    if isinstance(value, Artefact):
        yield value
    elif isinstance(value, Result):
        for name in type(value).model_fields:
            yield from artefacts(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from artefacts(item)


def _state(path: Path) -> Seen:
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _path(job: Job, stage: str) -> Path:
    return job.places.stamps / f"{stage}.json"
