"""The packages of a new recipe, pinned at once where this host can."""

from dataclasses import replace

from tfwright.errors import HostError, SupplyError
from tfwright.lock import packages
from tfwright.options import job_of
from tfwright.recipes.writing import NewRecipe
from tfwright.terminal import console


def pinned(made: NewRecipe) -> NewRecipe:
    """Let pip find versions for what a new recipe names; say what is in the way where it cannot."""
    if not made.unpinned:
        return made
    job = job_of(str(made.path), complete=packages.without_open)
    large = any(line.startswith("nvidia-") for line in made.unpinned)
    size = "; it downloads about 3 GB, most of it NVIDIA's" if large else ""
    job.listener.note(f"pip looks for versions of {len(made.unpinned)} packages{size}")
    try:
        with console.working("pinning"):
            packages.pin(job, made.path)
    except (HostError, SupplyError) as fault:
        said = f"versions of its packages: {fault.what}. {fault.remedy}"
        return replace(made, open=(*made.open, said))
    return replace(made, unpinned=())
