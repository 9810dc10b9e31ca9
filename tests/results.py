"""What the stages hand to each other, with values that most tests do not care about; what they report."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfwright.documents.recipe import CompileTable
from tfwright.pipeline.job import Job, RecipeJob
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Programs, Tree
from tfwright.pipeline.stage import Artefact
from tfwright.progress import Listener, Progress

COMMIT = "0" * 40


def facts_of(interpreter: Path | str = sys.executable, /, **others: object) -> HostFacts:
    usual = {"system": "Linux", "machine": "x86_64", "glibc": "2.36", "compiler": ""}
    usual |= {"interpreter": str(interpreter), "python": "3.11"}
    return HostFacts.model_validate({**usual, **others})


def _artefact(file: Path | Artefact) -> Artefact:
    return Artefact.of(file) if isinstance(file, Path) else file


def inputs_of(
    mirror: Path, bazel: Path | Artefact, python: Path | str = sys.executable, /, **others: object
) -> Inputs:
    programs = Programs(bazel=_artefact(bazel), python=Path(python))
    usual = {"mirror": mirror, "commit": COMMIT, "epoch": 5, "programs": programs}
    return Inputs.model_validate({**usual, **others})


def for_target(job: RecipeJob, target: str) -> RecipeJob:
    return replace(job, recipe=job.recipe.changed(compile=CompileTable(target=target)))


def tree_of(job: Job, **others: object) -> Tree:
    usual = {"path": job.places.tree, "commit": COMMIT, "epoch": 5, "content": ""}
    return Tree.model_validate({**usual, "release": "1.8", **others})


def configured_of(bazelrc: Path | Artefact, **others: object) -> Configured:
    programs = {"path": Path("bin"), "sha256": ""}
    usual = {"bazelrc": _artefact(bazelrc), "asked": (), "programs": programs}
    return Configured.model_validate({**usual, **others})


@dataclass
class Notebook(Listener):
    """A listener that keeps what it is told."""

    notes: list[str] = field(default_factory=list)
    steps: list[Progress] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    """Those that ran."""

    def started(self, stage: str, why: str) -> None:
        assert why
        self.stages.append(stage)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, progress: Progress) -> None:
        self.steps.append(progress)
