"""Which official wheel fits a wish, and what keeps the others from it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfwright.documents.release import Release
from tfwright.facts import compatibility, gpus, wheels
from tfwright.facts.compatibility import is_of_line, is_older
from tfwright.facts.wheels import OfficialWheel
from tfwright.match import fit
from tfwright.match.wish import Wish, above

JETSON = f"; NVIDIA has wheels for Jetsons: {gpus.JETPACK}"


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

    Where no GPU is asked for, a release's wheel without GPU code comes first, since it is smaller.
    """
    found = []
    wants_gpu = bool(wanted.gpu or wanted.cuda)
    for wheel in wheels.official():
        if wanted.release and wheel.line != wanted.release:
            continue
        differs = tuple(_differences(wheel, wanted))
        gpu = wants_gpu and not differs
        extra = "[and-cuda]" if gpu and not is_older(wheel.version, fit.AND_CUDA) else ""
        notes = tuple(_gpu_notes(wheel, wanted)) if gpu else ()
        if not _proved(wanted):
            notes = ("what its libraries need on this platform was not read",)
        found.append(OfficialMatch(wheel, differs, notes, extra))

    def distance(match: OfficialMatch) -> tuple[int, ...]:
        # Of those that do not fit, one without GPU code is farthest from someone with a GPU.
        code = match.wheel.gpu and not _cpu_only(match.wheel, wanted)
        unlike = bool(code) != wants_gpu
        missed, release = len(match.differs), Release.parse(match.wheel.version)
        return bool(missed), bool(missed) and unlike, missed, -release.major, -release.minor, unlike

    return sorted(found, key=distance)


def _proved(wanted: Wish) -> bool:
    """Say whether a wish is about the platform that the table proves something about."""
    return (wanted.system, wanted.machine) == ("Linux", "x86_64")


def _differences(wheel: OfficialWheel, wanted: Wish) -> Iterator[str]:
    pythons = wheel.pythons(wanted.system, wanted.machine)
    if not pythons:
        on = f" on {wanted.machine}" if wanted.machine else ""
        yield f"no wheel for {wanted.system}{on}"
    elif wanted.python and wanted.python not in pythons:
        yield f"for Python {pythons[0]} to {pythons[-1]}"
    if wanted.glibc == "none":
        yield "needs glibc; this system has musl"
    elif wanted.system == "Linux" and wanted.glibc and is_older(wanted.glibc, wheel.glibc):
        yield f"needs glibc {wheel.glibc}"
    if _proved(wanted):
        if wanted.cpu and above(wheel.cpu, wanted.cpu):
            yield f"needs a CPU with {wheel.cpu}"
        yield from _gpu_differences(wheel, wanted)
    elif (wanted.gpu or wanted.cuda) and wanted.system == "Windows" and wheel.gpu:
        yield (
            "no GPU code for Windows since 2.11; in WSL 2 the wheel for Linux has it"
            if _cpu_only(wheel, wanted)
            else "has GPU code for Windows, but for which GPUs was not read"
        )
    elif wanted.gpu or wanted.cuda:
        said = "no GPU code of NVIDIA's is known of it on this platform"
        yield said + (JETSON if gpus.jetson(wanted.gpu) else "")


def _cpu_only(wheel: OfficialWheel, wanted: Wish) -> bool:
    """Say whether a wheel has GPU code for Linux only."""
    # https://www.tensorflow.org/install/pip#windows-native
    return wanted.system == "Windows" and not is_older(wheel.version, "2.11")


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
    if said := _drivers(toolkit, wanted).misfit(wanted.driver):
        yield said


def _drivers(toolkit: str, wanted: Wish) -> compatibility.Drivers:
    return compatibility.drivers(compatibility.cuda(toolkit), wanted.gpu)


def _cuda_of(wheel: OfficialWheel) -> tuple[str, str]:
    """Return the CUDA and cuDNN of a wheel; old ones do not state it, but were tested with one."""
    tested = compatibility.tested_with(Release.parse(wheel.version))
    if wheel.cuda.count(".") or tested is None:
        return wheel.cuda, wheel.cudnn
    return tested.cuda, tested.cudnn


def _gpu_notes(wheel: OfficialWheel, wanted: Wish) -> Iterator[str]:
    toolkit, cudnn = _cuda_of(wheel)
    yield f"NVIDIA's driver {_drivers(toolkit, wanted)}"
    if is_older(wheel.version, fit.AND_CUDA):
        yield f"CUDA {toolkit} and cuDNN {cudnn} installed"
    if wanted.gpu and fit.serves(wheel.gpu, toolkit, wanted.gpu) == "PTX":
        yield f"compiled at the first start, for minutes, by a driver of CUDA {toolkit} or later"
