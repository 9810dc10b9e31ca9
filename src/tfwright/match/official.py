"""Which official wheel fits a wish, and what keeps the others from it."""

from dataclasses import dataclass, replace

from tfwright.documents.release import Release
from tfwright.facts import compatibility, wheels
from tfwright.facts.compatibility import is_of_line
from tfwright.facts.wheels import OfficialWheel
from tfwright.match.fit import NO_CODE, Judge, WheelFacts
from tfwright.match.ranking import release_position
from tfwright.match.wish import Wish

_MAY_LACK = {"glibc", "macOS", "CPU", "libraries"}
"""What a machine cannot get from pip or a package."""


@dataclass(frozen=True)
class OfficialMatch:
    """An official wheel, and what keeps it from a machine."""

    wheel: OfficialWheel
    differs: tuple[str, ...]
    """What does not fit; empty for a wheel that fits."""
    lacks: frozenset[str]
    """The names of the same: ``Python``, ``GPU code``."""
    notes: tuple[str, ...] = ()
    """What the machine needs besides."""
    extra: str = ""
    gpu: str = ""
    """The compute capability that NVIDIA's packages are to serve, where the extra brings them."""
    fits: bool | None = False
    """None where it may fit: something that it needs is not known."""
    quote: str = "'"
    """What the system's shell takes around a requirement."""

    @property
    def install(self) -> str:
        """The command that installs it, with packages that it works with."""
        named = f"{self.wheel.project}{self.extra}=={self.wheel.version}"
        bounds = () if self.differs else compatibility.package_bounds(self.wheel.version, self.gpu)
        quoted = (f"{self.quote}{requirement}{self.quote}" for requirement in (named, *bounds))
        return " ".join(("pip install", *quoted))


def matches(wanted: Wish) -> list[OfficialMatch]:
    """Compare the official wheels with a wish: those that fit first, the newest first.

    Those of a wanted release come before all others that do not fit. Where no GPU is asked for, a
    release's wheel without GPU code comes first, since it is smaller.
    """
    wants_gpu = bool(wanted.gpu or wanted.cuda)
    # cmd takes a ' for a letter, and what follows a < for a file.
    quote = '"' if wanted.system == "Windows" else "'"
    asked = Release.parse(wanted.release) if wanted.release else None
    found = list[tuple[tuple[int, ...], OfficialMatch]]()
    for row in wheels.official():
        asked_for = wanted.release in row.also
        wheel = replace(row, version=wanted.release) if asked_for else row
        facts = _facts(wheel, wanted)
        judged = list(Judge(facts, wanted).judgements())
        missed = [one for one in judged if one.holds is False]
        lacks = frozenset(one.what for one in missed)
        # Also where another CUDA is asked for than the one that pip installs.
        brought = wants_gpu and lacks <= {"CUDA"} and facts.brings_cuda(wanted.python)
        extra = "[and-cuda]" if brought else ""
        unknown = [one.says for one in judged if one.what in _MAY_LACK and one.holds is None]
        if wheel.version in wheel.unread:
            unknown.append(f"not read itself: judged by another release of {wheel.line}")
        besides = {"driver"} if extra else {"driver", "CUDA"}
        # A Python can be installed, but pip finds nothing with another.
        besides |= set() if wanted.python else {"Python"}
        notes = [one.says for one in judged if one.what in besides or one.says.startswith("PTX")]
        notes += unknown
        fits = False if missed else None if unknown or not covers_platform(wanted) else True
        differs = tuple(one.says for one in missed)
        gpu = wanted.gpu if extra else ""
        match = OfficialMatch(
            wheel, differs, lacks, () if missed else tuple(notes), extra, gpu, fits, quote
        )
        # Of those that do not fit, one without GPU code is far from someone with a GPU.
        code = wheel.gpu and not any(difference.startswith("no GPU") for difference in differs)
        unlike = bool(code) != wants_gpu
        elsewhere = "platform" in lacks
        release = Release.parse(wheel.version)
        other = bool(missed) and asked is not None and release != asked
        distance = (
            abs(release_position(release) - release_position(asked))
            if asked
            else -release_position(release)
        )
        # A name that says GPU, though a wheel without one of the release before fits as well.
        named = not wants_gpu and wheel.project == "tensorflow-gpu"
        # One of another minor version of CUDA is nearer than one of another major version.
        major = wanted.cuda.partition(".")[0]
        cuda = bool(major) and not is_of_line(facts.toolkit[0], major)
        far = (
            other,
            elsewhere,
            bool(missed) and unlike,
            len(missed),
            cuda,
            named,
            distance,
            unlike,
        )
        found.append(((bool(missed), *far), match))
    return [match for _, match in sorted(found, key=lambda pair: pair[0])]


def covers_platform(wanted: Wish) -> bool:
    """Say whether a wish is about a platform of which the table has all that decides.

    Macs with Apple's processors differ in their system only.
    """
    return (wanted.system, wanted.machine) in {("Linux", "x86_64"), ("Darwin", "arm64")}


def _facts(wheel: OfficialWheel, wanted: Wish) -> WheelFacts:
    """Return what the table says of a wheel on the platform of a wish."""
    needs = {"cuda": wheel.cuda, "cudnn": wheel.cudnn}
    gpu = {"Windows": wheel.windows_gpu, "Darwin": wheel.macos_gpu}.get(wanted.system, ())
    if (wanted.system, wanted.machine) == ("Linux", "x86_64"):
        needs |= {"glibc": wheel.glibc, "cpu": wheel.cpu}
        gpu = wheel.gpu
    elif (wanted.system, wanted.machine) == ("Linux", "aarch64"):
        needs["glibc"] = wheel.aarch64_glibc
    needs["gpu"] = ",".join(gpu)
    # Those for ARM: https://github.com/tensorflow/tensorflow/issues/121157
    without_code = NO_CODE if covers_platform(wanted) else f"{NO_CODE} on this platform"
    tags = frozenset(wheel.tags())
    return WheelFacts(wheel.project, wheel.version, tags, needs, without_code=without_code)
