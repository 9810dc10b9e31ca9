"""Whether a wheel that is built runs on a machine: what it needs, held against a wish or a host."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.tags import Tag, parse_tag

from tfwright.documents.host_file import HostFile
from tfwright.documents.release import Release, is_version
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_of_line, is_older, is_within, version_numbers
from tfwright.host import cuda, pythons
from tfwright.host.probes import Host
from tfwright.match.ranking import LEVELS, Wish, above
from tfwright.wheel.inspect import tags
from tfwright.wheel.inspect.inspection import Inspection, copies
from tfwright.wheel.inspect.needs import of_machine

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
    version: str,
    interpreters: Sequence[str],
    platforms: Sequence[str],
    needs: Mapping[str, str],
    wanted: Wish,
) -> Iterator[Judgement]:
    """Say what of a wheel does not fit a wish, by its tags and what its libraries need.

    `needs` is as `needs.of_machine` returns it; it is empty for a wheel that was not read.
    """
    if wanted.release and not is_of_line(version, wanted.release):
        yield Judgement("TensorFlow", f"TensorFlow {version}")
    major, _, minor = wanted.python.partition(".")
    # py3 is a pure wheel's tag: it runs on every Python 3.
    exact = {f"cp{major}{minor}", f"py{major}{minor}", f"py{major}"}
    if wanted.python and exact.isdisjoint(interpreters):
        remedy = f"Install a wheel whose name has cp{major}{minor}, or use that Python."
        yield Judgement("Python", f"for Python {', '.join(interpreters)}", remedy=remedy)
    if wanted.system and not any(_is_platform(tag, wanted) for tag in platforms):
        remedy = f"Take a wheel for {wanted.system} {wanted.machine}".rstrip()
        remedy += "; 'invoke match' names what there is."
        yield Judgement("platform", f"for {', '.join(platforms)}", remedy=remedy)
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


def _is_platform(tag: str, wanted: Wish) -> bool:
    """Say whether a platform tag is of the system and machine that are wanted."""
    if tag == "any":
        return True
    of_system = "linux" in tag if wanted.system == "Linux" else tag.startswith("macosx")
    machine = wanted.machine
    # A universal2 library holds the code of both kinds of Mac.
    universal = machine in {"x86_64", "arm64"} and tag.endswith("universal2")
    return of_system and (not machine or tag.endswith(machine) or universal)


def serves(built: Sequence[str], toolkit: str, gpu: str) -> str:
    """Return the code that runs on a GPU: ``machine code``, ``PTX``, or nothing."""
    if cuda.runs_on(cuda.of_machine_code(built), gpu):
        return "machine code"
    # PTX serves later GPUs as far as the CUDA of the wheel knows them: XLA compiles by itself,
    # and stops at a GPU that it does not know (tensorflow#111958).
    row = compatibility.cuda(toolkit)
    ptx = [cuda.capability(name) for name in built if name.startswith("compute_")]
    known = row is not None and is_within(gpu, *row.capabilities)
    return "PTX" if known and any(not is_older(gpu, made_for) for made_for in ptx) else ""


def verdict(report: Inspection, wanted: Wish, host: Host | None, host_file: HostFile) -> FitVerdict:
    """Judge whether an inspected wheel runs on the machine of a wish, which is `host` if given."""
    machine = "this host" if host else f"a machine with {wanted}"
    found = [Judgement("wheel", fault, remedy="Take another wheel.") for fault in report.faults]
    found += [Judgement("libraries", said) for said in copies(report.libraries)]
    found += _judged(report, wanted, host, host_file)
    order = {False: 0, None: 1, True: 2}
    return FitVerdict(machine, tuple(sorted(found, key=lambda one: order[one.holds])))


def _judged(
    report: Inspection, wanted: Wish, host: Host | None, host_file: HostFile
) -> Iterator[Judgement]:
    if not report.summary:
        yield Judgement("libraries", "could not be read", None)
        return
    parsed = {tag for text in report.tags for tag in parse_tag(text)}
    interpreters = sorted({tag.interpreter for tag in parsed})
    platforms = sorted({tag.platform for tag in parsed})
    needs = of_machine(report)
    # A tag that promises more than the libraries need keeps pip from installing it all the same.
    stated = max((tags.glibc(name) for name in platforms), key=version_numbers, default="")
    if is_older(needs.get("glibc", "0"), stated or "0"):
        needs["glibc"] = stated
    # A wheel without GPU code runs on a machine with a GPU, on its CPU.
    asked = wanted if needs.get("gpu") or not host else replace(wanted, gpu="")
    unfit = list(differences(report.version, interpreters, platforms, needs or {"": ""}, asked))
    yield from unfit
    missed = {judgement.what for judgement in unfit}
    if "Python" not in missed:
        yield from _python(report, parsed, wanted, host, host_file)
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
    tagged = {f"3.{tag.interpreter[3:]}" for tag in parsed if tag.interpreter.startswith("cp3")}
    fitting = sorted(modules or tagged, key=version_numbers)
    if not fitting:
        return
    said = ", ".join(fitting)
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
        elif host:
            remedy = "Use a system with glibc, such as an image of Debian: musl cannot load it."
            yield Judgement("glibc", f"needs glibc {glibc}; this host has none", remedy=remedy)
        else:
            yield Judgement("glibc", f"needs {glibc}; --glibc was not given", None)
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
        more = ", which the driver compiles at the first start" if kind == "PTX" else ""
        said = f"{kind} for compute capability {wanted.gpu}{more}"
        yield Judgement("GPU code", said, holds=True)
    row = compatibility.cuda(toolkit)
    if row:
        needed, _ = compatibility.driver(row, wanted.gpu)
        has = host.driver.value if host else ""
        if has and is_older(has, needed):
            remedy = f"Install NVIDIA's driver {needed} or later"
            remedy += " on Windows, not in WSL." if host and host.wsl else "."
            yield Judgement("driver", f"needs {needed}, and {has} is loaded", remedy=remedy)
        else:
            said = f"{needed} is enough, {has} is loaded" if has else f"needs {needed} or later"
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
