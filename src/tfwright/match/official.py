"""Which official wheel fits a wish, and what keeps the others from it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfwright.documents.release import Release
from tfwright.facts import compatibility, gpus, wheels
from tfwright.facts.compatibility import is_of_line, is_older
from tfwright.facts.wheels import OfficialWheel
from tfwright.match import fit, ranking
from tfwright.match.ranking import Wish


@dataclass(frozen=True)
class OfficialMatch:
    """An official wheel, and what keeps it from a machine."""

    wheel: OfficialWheel
    differs: tuple[str, ...]
    """What does not fit; empty for a wheel that fits."""
    notes: tuple[str, ...] = ()
    """What the machine needs besides."""
    extra: str = ""

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install '{self.wheel.project}{self.extra}=={self.wheel.version}'"


def matches(wanted: Wish) -> list[OfficialMatch]:
    """Compare the official wheels with a wish: those that fit first, the newest first.

    A wheel without GPU code comes before others where no GPU is asked for, since it is smaller.
    """
    found = []
    for wheel in wheels.official():
        if wanted.release and wheel.line != wanted.release:
            continue
        differs = tuple(_differences(wheel, wanted))
        gpu = bool(wanted.gpu or wanted.cuda) and not differs
        extra = "[and-cuda]" if gpu and not is_older(wheel.version, fit.AND_CUDA) else ""
        notes = tuple(_notes(wheel, wanted)) if gpu else ()
        found.append(OfficialMatch(wheel, differs, notes, extra))
    wants_gpu = bool(wanted.gpu or wanted.cuda)
    # The list comes newest first, and sorting keeps that order among equals.
    return sorted(found, key=lambda match: (len(match.differs), bool(match.wheel.gpu) != wants_gpu))


def _differences(wheel: OfficialWheel, wanted: Wish) -> Iterator[str]:
    pythons = wheel.pythons(wanted.system, wanted.machine)
    if not pythons:
        yield f"no wheel for {wanted.system} on {wanted.machine}"
    elif wanted.python and wanted.python not in pythons:
        yield f"for Python {pythons[0]} to {pythons[-1]}"
    # What the table proves is about Linux on x86-64.
    if (wanted.system, wanted.machine) != ("Linux", "x86_64"):
        if wanted.gpu or wanted.cuda:
            said = "no GPU code of NVIDIA's is known of it on this platform"
            wheels_of = f"; NVIDIA has wheels for Jetsons: {ranking.JETPACK}"
            yield said + (wheels_of if gpus.jetson(wanted.gpu) else "")
        return
    if wanted.glibc and is_older(wanted.glibc, wheel.glibc):
        yield f"needs glibc {wheel.glibc}"
    if wanted.cpu and ranking.above(wheel.cpu, wanted.cpu):
        yield f"needs a CPU with {wheel.cpu}"
    yield from _gpu_differences(wheel, wanted)


def _gpu_differences(wheel: OfficialWheel, wanted: Wish) -> Iterator[str]:
    if not (wanted.gpu or wanted.cuda):
        return
    if not wheel.gpu:
        yield "no GPU code"
        return
    toolkit, _ = _cuda_of(wheel)
    if wanted.cuda and not is_of_line(toolkit, wanted.cuda):
        yield f"made with CUDA {toolkit}"
    if wanted.gpu and not fit.serves(wheel.gpu, toolkit, wanted.gpu):
        yield f"code for {', '.join(wheel.gpu)}"


def _cuda_of(wheel: OfficialWheel) -> tuple[str, str]:
    """Return the CUDA and cuDNN of a wheel; old ones do not state it, but were tested with one."""
    tested = ranking.tested_with(Release.parse(wheel.version))
    if wheel.cuda.count(".") or tested is None:
        return wheel.cuda, wheel.cudnn
    return tested.cuda, tested.cudnn


def _notes(wheel: OfficialWheel, wanted: Wish) -> Iterator[str]:
    toolkit, cudnn = _cuda_of(wheel)
    row = compatibility.cuda(toolkit)
    if row:
        driver, _ = compatibility.driver(row, wanted.gpu)
        yield f"NVIDIA's driver {driver} or later"
    if is_older(wheel.version, fit.AND_CUDA):
        yield f"CUDA {toolkit} and cuDNN {cudnn} installed"
    if wanted.gpu and fit.serves(wheel.gpu, toolkit, wanted.gpu) == "PTX":
        yield "the driver compiles its code at the first start, which takes minutes"
