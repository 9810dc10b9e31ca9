"""Puts the wheel into canonical bytes, after its RECORD has been found true."""

from tfwright.errors import Evidence, WheelError
from tfwright.results import RawWheel, SealedWheel, Tree
from tfwright.stage import Artefact, Job
from tfwright.tools import files
from tfwright.wheel import archive, record, sealing


def run(job: Job, tree: Tree, raw: RawWheel) -> SealedWheel:
    """Seal the wheel, dated like the commit that it was built from."""
    path = raw.wheel.path
    target = job.places.dist / "sealed" / path.name
    files.remove(target.parent)
    with archive.opened(path) as wheel:
        found = record.faults(wheel)
        if found:
            what = f"{path.name} does not hold what its RECORD says: {found[0]}"
            raise WheelError(what, remedy="Look at what build_pip_package put together.", evidence=Evidence(where=str(path), lines=found))
        with files.replacing(target) as temporary, temporary.open("wb") as stream:
            sealing.seal(wheel, stream, tree.epoch)
    return SealedWheel(wheel=Artefact.of(target))
