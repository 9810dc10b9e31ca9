"""Whether a wheel that is built runs on a machine: what it needs, held against a wish or a host."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.tags import Tag, parse_tag

from tfwright.documents.host_file import HostFile
from tfwright.documents.release import Release, is_version
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_of_line, is_older, version_numbers
from tfwright.host import cuda, pythons
from tfwright.host.probes import Host
from tfwright.match.wish import LEVELS, Wish, above
from tfwright.wheel.inspect import tags
from tfwright.wheel.inspect.inspection import Inspection, copies
from tfwright.wheel.inspect.needs import of_machine

LAST_MINOR = 20
"""Pythons 3 that are looked for stop before this one."""
AND_CUDA = "2.14"
"""From this release on pip brings CUDA's libraries, where it is asked for tensorflow[and-cuda]."""


@dataclass(frozen=True)
class Judgement:
    """One thing that a wheel needs, and whether a machine has it."""

    what: str
    says: str
    holds: bool | None = False
    """None where it cannot be known."""
    remedy: str = ""


@dataclass(frozen=True)
class FitVerdict:
    """Whether a wheel runs on a machine."""

    machine: str
    judgements: tuple[Judgement, ...]

    @property
    def runs(self) -> bool | None:
        """Whether everything holds; None where nothing is missing and something is unknown."""
        found = {judgement.holds for judgement in self.judgements}
        return False if False in found else None if None in found else True


def differences(
    version: str, stated: Collection[Tag], needs: Mapping[str, str], wanted: Wish
) -> Iterator[Judgement]:
    """Say what of a wheel does not fit a wish, by its tags and what its libraries need.

    `needs` is as `needs.of_machine` returns it; it is empty for a wheel that was not read.
    """
    if wanted.release and not is_of_line(version, wanted.release):
        yield Judgement("TensorFlow", f"TensorFlow {version}")
    major, _, minor = wanted.python.partition(".")
    made_for = {(tag.interpreter, tag.abi) for tag in stated}
    if wanted.python and made_for.isdisjoint(tags.interfaces(wanted.python)):
        remedy = f"Install a wheel whose name has cp{major}{minor}, or use that Python."
        said = ", ".join(sorted({_interface(tag) for tag in stated}))
        yield Judgement("Python", f"for Python {said}", remedy=remedy)
    platforms = sorted({tag.platform for tag in stated})
    if wanted.system and not any(_is_platform(platform, wanted) for platform in platforms):
        remedy = f"Take a wheel for {wanted.system} {wanted.machine}".rstrip()
        remedy += "; 'invoke match' names what there is."
        yield Judgement("platform", f"for {', '.join(platforms)}", remedy=remedy)
        return
    # A wheel for one C library is not installed where the other is; pip looks which one is there.
    other = {"": "", "none": "manylinux"}.get(wanted.glibc, "musllinux")
    if other and all(platform.startswith(other) for platform in platforms):
        library = {"manylinux": "glibc", "musllinux": "musl"}[other]
        remedy = (
            f"Use a system with {library}, such as an image of Debian (glibc) or Alpine (musl)."
        )
        yield Judgement("glibc", f"for systems with {library}, which this is not", remedy=remedy)
        return
    if not needs and "any" not in platforms and (wanted.glibc or wanted.cpu or wanted.gpu):
        yield Judgement(
            "libraries", "unknown: the index does not say what its libraries need", None
        )
        return
    glibc = needs.get("glibc", "")
    if wanted.glibc and glibc and is_older(wanted.glibc, glibc):
        remedy = (
            f"Use a system with glibc {glibc} or later, such as an image, or 'invoke match --glibc "
            f"{wanted.glibc}' for an older wheel or a recipe."
        )
        yield Judgement("glibc", f"needs glibc {glibc}", remedy=remedy)
    level = needs.get("cpu", "")
    if wanted.cpu and level in LEVELS and above(level, wanted.cpu):
        remedy = f"'invoke match --cpu {wanted.cpu}' names a wheel or a recipe without {level}."
        yield Judgement("CPU", f"needs a CPU with {level}", remedy=remedy)
    toolkit = needs.get("cuda", "")
    if wanted.cuda and not is_of_line(toolkit, wanted.cuda):
        yield Judgement("CUDA", f"CUDA {toolkit}" if toolkit else "no CUDA")
    built = [name for name in needs.get("gpu", "").split(",") if name]
    if not wanted.gpu or serves(built, toolkit, wanted.gpu):
        return
    remedy = f"'invoke match --gpu {wanted.gpu}' names a wheel or a recipe with code for it."
    said = f"GPU code for {', '.join(built)} only" if built else "no GPU code"
    yield Judgement("GPU code", said, remedy=remedy)


def _interface(tag: Tag) -> str:
    """Name the Pythons of a tag: one, the later ones too, or those without the global lock."""
    if tag.abi == "abi3":
        return f"{tag.interpreter} and later"
    return tag.abi if re.fullmatch(r"cp\d+t", tag.abi) else tag.interpreter


def _is_platform(tag: str, wanted: Wish) -> bool:
    """Say whether a platform tag is of the system and machine that are wanted."""
    if tag == "any":
        return True
    systems = {"Linux": r"(many|musl)?linux", "Darwin": "macosx", "Windows": "win"}
    if not re.match(systems[wanted.system], tag):
        return False
    machine = wanted.machine.lower()
    # A universal2 library holds the code of both kinds of Mac.
    universal = machine in {"x86_64", "arm64"} and tag.endswith("universal2")
    return not machine or tag.endswith(machine) or universal


def serves(built: Sequence[str], toolkit: str, gpu: str) -> str:
    """Return the code that runs on a GPU: ``machine code``, ``PTX``, or nothing."""
    if cuda.runs_on(cuda.of_machine_code(built), gpu):
        return "machine code"
    # PTX serves later GPUs as far as the CUDA of the wheel knows them: XLA compiles by itself,
    # and stops at a GPU that it does not know (tensorflow#111958).
    row = compatibility.cuda(toolkit)
    ptx = [cuda.capability(name) for name in built if name.startswith("compute_")]
    known = row is not None and row.compiles_for(gpu)
    return "PTX" if known and any(not is_older(gpu, made_for) for made_for in ptx) else ""


def verdict(report: Inspection, wanted: Wish, host: Host | None, host_file: HostFile) -> FitVerdict:
    """Judge whether an inspected wheel runs on the machine of a wish, which is `host` if given."""
    machine = "this host" if host else f"a machine with {wanted}"
    found = []
    # Whether the system is new enough is judged below.
    faults = [fault for fault in report.faults if fault not in report.broken_promises]
    if faults:
        remedy = "Take another wheel, or ask who made it."
        found.append(Judgement("wheel", "; ".join(faults), remedy=remedy))
    found += [Judgement("libraries", said) for said in copies(report.libraries)]
    found += _judged(report, wanted, host, host_file)
    # A system that is newer than the tag says does not mind.
    if not {"glibc", "macOS"} & {one.what for one in found if one.holds is False}:
        more = [
            f"promises too much for systems older than this: {it}" for it in report.broken_promises
        ]
        found += [Judgement("tag", said, holds=True) for said in more]
    order = {False: 0, None: 1, True: 2}
    return FitVerdict(machine, tuple(sorted(found, key=lambda one: order[one.holds])))


def _judged(
    report: Inspection, wanted: Wish, host: Host | None, host_file: HostFile
) -> Iterator[Judgement]:
    if not report.summary:
        yield Judgement("libraries", "could not be read", None)
        return
    stated = {tag for text in report.tags for tag in parse_tag(text)}
    needs = of_machine(report)
    # A tag that promises more than the libraries need keeps pip from installing it all the same.
    promised = max((tags.glibc(tag.platform) for tag in stated), key=version_numbers, default="")
    if is_older(needs.get("glibc", "0"), promised or "0"):
        needs["glibc"] = promised
    if macos := [m for tag in stated if (m := re.match(r"macosx_(\d+)_(\d+)_", tag.platform))]:
        needs["macos"] = min((f"{it[1]}.{it[2]}" for it in macos), key=version_numbers)
    # A wheel without GPU code runs on a machine with a GPU, on its CPU.
    asked = wanted if needs.get("gpu") or not host else replace(wanted, gpu="")
    unfit = list(differences(report.version, stated, needs or {"": ""}, asked))
    yield from unfit
    missed = {judgement.what for judgement in unfit}
    if "Python" not in missed:
        yield from _python(report, stated, wanted, host, host_file)
    if "platform" in missed:
        return
    yield from _system(needs, wanted, host, missed)
    if needs.get("gpu"):
        yield from _gpu(report, needs, wanted, host, missed)
    elif host and host.gpus:
        yield Judgement(
            "GPU code", "none: it computes on the CPU, not on this host's GPU", holds=True
        )


def _python(
    report: Inspection, parsed: set[Tag], wanted: Wish, host: Host | None, host_file: HostFile
) -> Iterator[Judgement]:
    names = "".join(f"{library.path}\n" for library in report.libraries)
    # What only one Python imports, whatever the tag says: PEP 3149.
    modules = {f"3.{minor}" for minor in re.findall(r"\.cpython-3(\d+)", names)}
    exact = [tag for tag in parsed if re.fullmatch(r"cp\d{2,}", tag.interpreter)]
    tagged = {f"{tag.interpreter[2]}.{tag.interpreter[3:]}" for tag in exact}
    # The stable interface is that of every later Python, too.
    later = not modules and any(tag.abi == "abi3" for tag in exact)
    if later:
        least = min(int(name.partition(".")[2]) for name in tagged)
        tagged = {f"3.{minor}" for minor in range(least, LAST_MINOR)}
    if host and exact and all(re.fullmatch(r"cp3\d+t", tag.abi) for tag in exact):
        said = f"needs Python {exact[0].abi[3:]} without its global lock"
        yield Judgement("Python", f"{said}; whether this host has one is not known", None)
        return
    fitting = sorted(modules or tagged, key=version_numbers)
    if not fitting:
        return
    said = f"{fitting[0]} or later" if later else ", ".join(fitting)
    if wanted.python:
        if wanted.python not in fitting:
            remedy = f"Use Python {said}."
            yield Judgement("Python", f"its modules are for Python {said}", remedy=remedy)
        else:
            yield Judgement("Python", f"{wanted.python}, as wanted", holds=True)
    elif host:
        path = next(
            (p for name in fitting if (p := pythons.find(name, host_file, host.place))), None
        )
        if path:
            yield Judgement("Python", f"{said}: {host.place.shown(path)}", holds=True)
        else:
            remedy = pythons.absence(fitting[-1], host_file, host.place).remedy
            yield Judgement("Python", f"needs Python {said}, which was not found", remedy=remedy)


def _system(
    needs: Mapping[str, str], wanted: Wish, host: Host | None, missed: set[str]
) -> Iterator[Judgement]:
    glibc, level = needs.get("glibc", ""), needs.get("cpu", "")
    if glibc and wanted.system == "Linux" and "glibc" not in missed:
        if wanted.glibc:
            yield Judgement("glibc", f"{glibc} is enough, {wanted.glibc} is there", holds=True)
        else:
            yield Judgement("glibc", f"needs {glibc}; --glibc was not given", None)
    least = needs.get("macos", "")
    has = host.release.value.removeprefix("macOS ") if host else ""
    if least and wanted.system == "Darwin":
        fits = not is_older(has, least) if has else None
        said = f"needs {least}, {has or 'which one is unknown'} is there"
        yield Judgement("macOS", said, fits, f"Use macOS {least} or later, or an older wheel.")
    if level in LEVELS and "CPU" not in missed:
        if wanted.cpu:
            yield Judgement("CPU", f"{level} is enough, {wanted.cpu} is there", holds=True)
        elif wanted.machine == "x86_64":
            yield Judgement("CPU", f"needs {level}; which CPU is there is unknown", None)


def _gpu(
    report: Inspection, needs: Mapping[str, str], wanted: Wish, host: Host | None, missed: set[str]
) -> Iterator[Judgement]:
    toolkit = needs.get("cuda", "")
    if host and not host.gpus and not wanted.gpu:
        said = "no GPU of NVIDIA was found: TensorFlow computes on the CPU"
        yield Judgement("GPU", said, holds=True)
        return
    if wanted.gpu and "GPU code" not in missed:
        kind = serves(needs["gpu"].split(","), toolkit, wanted.gpu)
        more = f", compiled at the first start by a driver of CUDA {toolkit} or later"
        more = more if kind == "PTX" else ""
        said = f"{kind} for compute capability {wanted.gpu}{more}"
        yield Judgement("GPU code", said, holds=True)
    row = compatibility.cuda(toolkit)
    if row:
        needed = compatibility.drivers(row, wanted.gpu)
        has = wanted.driver
        if said := needed.misfit(has):
            remedy = f"Install NVIDIA's driver {needed}"
            remedy += " on Windows, not in WSL." if host and host.wsl else "."
            if not needed.exist:
                remedy = f"'invoke match --gpu {wanted.gpu}' names wheels of an older CUDA."
            yield Judgement("driver", said, remedy=remedy)
        else:
            said = f"needs {needed}" + (f"; {has} is there" if has else "")
            yield Judgement("driver", said, True if has else None)
    yield _libraries(report, toolkit, host)


def _libraries(report: Inspection, toolkit: str, host: Host | None) -> Judgement:
    """Judge whether CUDA's libraries are where the loader looks, by the first of them."""
    major = toolkit.partition(".")[0]
    name = next((found for found in report.nvidia if "cudart" in found), "")
    name = name or f"libcudart.so.{major}"
    if host and name in host.place.ask("ldconfig", "-p").value:
        return Judgement("CUDA", f"{name} is in the loader's cache", holds=True)
    said = f"needs CUDA {toolkit or '(its version is not stated)'}, {name} first of all"
    remedy = f"Install CUDA {toolkit} and its cuDNN, and name their folders in LD_LIBRARY_PATH."
    official = report.project.startswith("tensorflow") and is_version(report.version)
    if official and Release.parse(report.version) >= Release.parse(AND_CUDA):
        remedy = f"pip install '{report.project}[and-cuda]=={report.version}' brings them."
    return Judgement("CUDA", said, None, remedy)
