"""What a build took: time, processors, memory, disk; over all runs of Bazel that it needed."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tfwright.pipeline import stamps
from tfwright.pipeline.job import Job
from tfwright.pipeline.stage import Stage
from tfwright.tools import trees
from tfwright.tools.bazel import profile as profiles
from tfwright.tools.bazel.client import Spent
from tfwright.tools.bazel.profile import Action

SLOWEST = 20
"""Actions that are named."""
BLOCK = 512
"""Bytes; what st_blocks counts in."""


@dataclass(frozen=True)
class Run:
    """One run of Bazel, however it ended."""

    spent: Spent
    slowest: tuple[Action, ...]


@dataclass(frozen=True)
class StageCost:
    """The last run of a stage."""

    name: str
    seconds: float
    cpu: float
    """Seconds of processor time of tfwright and the programs that it ran; not of Bazel, whose
    server outlives its clients."""


@dataclass(frozen=True)
class Cost:
    """A build."""

    stages: tuple[StageCost, ...]
    bazel: tuple[Run, ...]
    """Since the recipe was last built from nothing."""
    disk: dict[str, int]
    """Bytes by place."""

    @property
    def slowest(self) -> tuple[Action, ...]:
        """The slowest actions of all runs."""
        return _slowest(action for run in self.bazel for action in run.slowest)


def record_run(job: Job, spent: Spent) -> None:
    """Keep what a run of Bazel took, with its slowest actions."""
    run = Run(spent, _slowest(profiles.read(job.places.profile)))
    # A line for each run: a killed Bazel must not take the runs before it along.
    with job.places.runs.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(run)) + "\n")


def read_cost(job: Job, pipeline: Sequence[Stage]) -> Cost:
    """Read what the stages of a recipe took, from what they left behind."""
    stages = tuple(
        StageCost(stage.name, stamp.seconds, stamp.cpu)
        for stage in pipeline
        if (stamp := stamps.read(job, stage.name))
    )
    places = job.places
    # By the names that people know them by.
    taking = {
        "output base": places.bazel,
        "output base of a lock that failed": places.asked,
        "tree": places.tree,
        "wheels and venv": places.dist,
        "logs": places.logs,
        "build cache, of all recipes": job.host_file.cache_directory,
        "vault, of all recipes": places.vault,
    }
    runs, kept = TypeAdapter(Run), list[Run]()
    for line in places.runs.read_bytes().splitlines() if places.runs.is_file() else ():
        # A kill cuts a line off, and one line less only makes a table shorter.
        with suppress(ValidationError):
            kept.append(runs.validate_json(line))
    return Cost(stages, tuple(kept), {name: size(path) for name, path in taking.items()})


def size(path: Path) -> int:
    """Return the bytes that the files of a directory take on the disk.

    A file with several hard links counts once.
    """
    states = (state for _, state in trees.files_below(path))
    blocks = {(state.st_dev, state.st_ino): state.st_blocks for state in states}
    return BLOCK * sum(blocks.values())


def _slowest(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the slowest actions, each name once.

    Bazel repeats actions, and compiles some files twice, with and without -fPIC.
    """
    longest: dict[str, Action] = {}
    # The slowest first, so that the first one of a name counts.
    for action in sorted(actions, key=lambda action: -action.seconds):
        longest.setdefault(action.name, action)
    return tuple(longest.values())[:SLOWEST]
