"""`invoke plan`: what a build would do, also for a recipe that this host cannot build."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfwright.doctor import images, requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents import composing
from tfwright.host import probes
from tfwright.pipeline import engine
from tfwright.pipeline.engine import Planned
from tfwright.pipeline.job import RecipeJob
from tfwright.rules import configurations
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.bazel import client as bazel_client


def plan(job: RecipeJob) -> tuple[Iterable[Planned], list[Finding]]:
    """Return the plan, and what keeps this host from building the recipe up to the last stage."""
    findings = [
        # A plan pulls nothing, and the stages of such a recipe run nowhere else.
        *images.missing_image(job.recipe, job.host_file),
        *requirements.examine(job.recipe, job.host_file, probes.this_host()),
    ]
    blocking = [finding for finding in findings if finding.stops(job.until)]
    # A host that cannot build still gets the plan: it shows what another host would do.
    return engine.plan(job, blocked=bool(blocking)), blocking


def warnings(job: RecipeJob, path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a build of a recipe's file does that is hardly meant: a heading and a text."""
    if composing.has_outdated_pins(path):
        remedy = f"run 'invoke pin --recipe {job.recipe.argument}'"
        yield "Outdated", f"{path.stem}{composing.PINS}: {composing.OUTDATED}; {remedy}"
    for text in other_bazel(job):
        yield "Another Bazel", text
    yield from engine.stage_named("compile").warnings(job)


def other_bazel(job: RecipeJob) -> Iterator[str]:
    """Yield what to expect of a Bazel that stands in for the pinned one.

    Which flags it lacks is known once it was asked, and the tree is there.
    """
    if not job.pinned_bazel:
        return
    version = job.recipe.bazel.version
    series = "" if version.split(".")[0] == job.pinned_bazel.split(".")[0] else " of another series"
    yield (
        f"This host builds with Bazel {version}{series} in place of the pinned {job.pinned_bazel}: "
        "the tree may use rules and flags that it does not have, and the wheel has another digest."
    )
    stored = bazels.find_stored(version, {}, job.places.stores)
    known = bazel_client.known_options(stored.path).build if stored else {}
    words = configurations.flags_in_force(configurations.read_bazelrc(job.places.tree), ())
    flags = dict.fromkeys(re.findall(r"^--([\w]+)", "\n".join(words), re.MULTILINE))
    lacking = [flag for flag in flags if not {flag, flag.removeprefix("no")} & known.keys()]
    if known and lacking:
        yield f"Bazel {version} does not know these flags of .bazelrc: --{', --'.join(lacking)}"
