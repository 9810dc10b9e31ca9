"""What the stages hand to each other, with values that most tests do not care about."""

import sys
from pathlib import Path

from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, HostFacts, Inputs, Programs, Tree
from tfwright.pipeline.stage import Artefact

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


def tree_of(job: Job, **others: object) -> Tree:
    usual = {"path": job.places.tree, "commit": COMMIT, "epoch": 5, "content": ""}
    return Tree.model_validate({**usual, "release": "1.8", **others})


def configured_of(bazelrc: Path | Artefact, **others: object) -> Configured:
    usual = {"bazelrc": _artefact(bazelrc), "asked": (), "never_asked": ()}
    return Configured.model_validate({**usual, **others})
