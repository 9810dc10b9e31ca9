"""`invoke cost --page`: when each of Bazel's actions ran, and what differs from another build."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright import __version__
from tfwright.errors import RecipeError
from tfwright.nightly import pages as words
from tfwright.nightly.pages import build as pages
from tfwright.nightly.pages import charts
from tfwright.nightly.pages.charts import TimeChange
from tfwright.pipeline import cost
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import PIPELINE
from tfwright.tools import files
from tfwright.tools.render import render

PREVIOUS = "previous"
SHOWN = 10
"""Changes that the terminal lists; the page has more."""


@dataclass(frozen=True)
class OtherBuild:
    """The build that is compared with."""

    profile: Path
    said: str


@dataclass(frozen=True)
class CostPage:
    """A page that was written."""

    path: Path
    other: str
    """What it was compared with; empty without a comparison."""
    changed: tuple[TimeChange, ...]
    """The actions whose time changed most."""


def write(job: RecipeJob, page: str, against: str) -> CostPage:
    """Write the page of a recipe's last build into the file `page`, or next to the build's logs.

    `against` is ``previous``, a nightly build, or the path of a profile of Bazel. Raises
    RecipeError without a profile to read.
    """
    kept = cost.profiles(job)
    if not kept:
        raise RecipeError(
            f"{job.name} has no profile of a build on this host",
            remedy=f"Build it first: invoke build --recipe {job.argument}",
        )
    other = _other(job.name, kept, against) if against else None
    view = charts.compared(kept[-1], other.profile if other else None)
    # A build that changed nothing has a profile, and ran no action.
    if view is None:
        raise RecipeError(
            f"The profile {kept[-1]} lists no action",
            remedy=f"Build it again: invoke build --recipe {job.argument} --fresh",
        )
    spent = cost.of(job, PIPELINE)
    processor = words.duration(sum(run.spent.cpu for run in spent.bazel))
    compared = f", compared with {other.said}" if other else ""
    values = {
        "name": job.name,
        "said": f"Bazel took {processor} of processor time{compared}.",
        "other": other.said if other else "",
        "timeline": view,
        "stages": {stage.name: stage.seconds for stage in spent.stages},
        "disk": spent.disk,
        "words": words,
        "version": __version__,
    }
    path = Path(page) if page else job.places.logs / "cost.html"
    files.write(path, render("cost.html.j2", values))
    return CostPage(path, other.said if other else "", tuple(view.differences[:SHOWN]))


def _other(name: str, kept: Sequence[Path], against: str) -> OtherBuild:
    """Return the build that `against` names."""
    if against == PREVIOUS:
        if len(kept) == 1:
            raise RecipeError(
                f"{name} has only one build with a profile on this host",
                remedy="Build it again after a change, or name a nightly build.",
            )
        # When it was written, from its name: ``20261122T072550.123.json.gz``.
        at = dt.datetime.strptime(kept[-2].name[:15], "%Y%m%dT%H%M%S")  # noqa: DTZ007 only printed
        return OtherBuild(kept[-2], f"the build of {at:%Y-%m-%d %H:%M} UTC")
    # Before the nightly builds: a profile may come from a host without any.
    if Path(against).is_file():
        return OtherBuild(Path(against), Path(against).name)
    try:
        build, folder = pages.find(against)
    except RecipeError as fault:
        raise RecipeError(
            f"No build to compare with has the name {against!r}",
            remedy=f"Write --against {PREVIOUS}, the path of a profile, or the identifier of a "
            "nightly build.",
        ) from fault
    profile = folder / build.profile
    if not build.profile or not profile.is_file():
        raise RecipeError(
            f"The nightly build {build.id} has no profile",
            remedy="Name a build that got as far as compile.",
        )
    return OtherBuild(profile, build.id)
