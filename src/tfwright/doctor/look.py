"""`invoke doctor`: this host, or the recipe's container image, compared with the recipe."""

from collections.abc import Sequence

from tfwright.doctor import examination, images, inventory
from tfwright.doctor.findings import Finding
from tfwright.doctor.inventory import Fact
from tfwright.host import probes
from tfwright.pipeline import containers
from tfwright.pipeline.job import BuildRequest
from tfwright.tools.container import image


def look(job: BuildRequest) -> tuple[Sequence[Fact], Sequence[Finding]]:
    """Return what there is, and what is not as the recipe wants it, the worst first.

    Of a recipe that names a container image, compiler and Python are those of the image. Without
    the image they cannot be known, and only the image is reported.
    """
    found = images.findings(job.recipe, job.host_file)
    if any(finding.blocks for finding in found):
        return (), found
    if not _here(job):
        # A look downloads nothing: the build will pull the image, and examine it then.
        return (), found
    with containers.around(job, "check"):
        host = probes.here()
        found += examination.examine(job.recipe, job.host_file, host)
        facts = inventory.take(job.recipe, job.host_file, host)
    return facts, examination.worst_first(found)


def _here(job: BuildRequest) -> bool:
    pinned = job.recipe.host.image
    return pinned is None or image.place(job.places.vault, pinned.digest).is_dir()
