"""What earlier builds of a recipe taught about the memory of this host, and how many actions are run at once."""

from pydantic import BaseModel, ConfigDict, Field

from tfwright.documents.recipe import CompileTable
from tfwright.pipeline.stage import Job
from tfwright.tools import files
from tfwright.tools.process import capacity

ALIKE = 1.1
"""A host whose memory grew by more than a tenth is another one: what was too much before may fit."""


class Experience(BaseModel):
    """What is remembered of a recipe's builds, in ``memory.json`` beside them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    peak: float = Field(default=0, ge=0)
    """GiB that one action took at most."""
    jobs: int | None = Field(default=None, gt=0)
    """How many actions at once the memory is known to hold; None while it never ran out."""
    memory: float = Field(default=0, ge=0)
    """GiB that the host had then."""


def read(job: Job) -> Experience:
    """Return what is remembered; nothing, if that cannot be read."""
    try:
        return Experience.model_validate_json(job.places.memory.read_bytes())
    except (OSError, ValueError):
        return Experience()


def learn_peak(job: Job, peak: float) -> None:
    """Remember the GiB that one action took, if that is more than is known."""
    known = read(job)
    if peak > known.peak:
        _keep(job, known.model_copy(update={"peak": round(peak, 3)}))


def learn_jobs(job: Job, jobs: int) -> None:
    """Remember that the memory did not hold more actions at once than `jobs`."""
    _keep(
        job,
        read(job).model_copy(
            update={"jobs": jobs, "memory": round(capacity.total() / capacity.GIB, 3)}
        ),
    )


def _keep(job: Job, experience: Experience) -> None:
    files.write(job.places.memory, experience.model_dump_json(indent=1) + "\n")


def jobs(job: Job, table: CompileTable) -> int:
    """Return how many actions are run at once.

    What the user asks for wins. Else it is what the host file says, or what the processors and the
    memory allow; where the memory ran out before, no more than it held.
    """
    if job.jobs:
        return job.jobs
    known = read(job)
    room = int(capacity.memory() / capacity.GIB / max(table.peak, known.peak))
    wanted = job.host_file.jobs or max(1, min(capacity.cores(), room))
    same_host = capacity.total() / capacity.GIB <= known.memory * ALIKE
    return min(wanted, known.jobs) if known.jobs and same_host else wanted
