"""Whether a wheel that is built runs on a machine: one judge, wherever its facts are from."""

import functools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name

from tfwright.documents.host_file import HostFile
from tfwright.documents.release import Release, is_version
from tfwright.facts import compatibility, gpus
from tfwright.facts.compatibility import LEVELS, is_above, is_of_line, is_older, version_numbers
from tfwright.host import cuda, pythons
from tfwright.host.probes import Host
from tfwright.match.wish import Wish
from tfwright.printable import listed
from tfwright.wheel.inspect import tags
from tfwright.wheel.inspect.inspection import Inspection, built_on_tensorflow, copy_faults

LAST_MINOR = 20
"""Pythons 3 that are looked for stop before this one."""
AND_CUDA = "2.15.1"
"""From this release on pip brings CUDA's libraries, where it is asked for tensorflow[and-cuda]."""
AND_TENSORRT = "2.14"
"""This line asks for a TensorRT as well, of which the index has no file for Python 3.11."""
WITHOUT_PATHS = "2.16.1"
"""Its wheel does not look for CUDA's libraries where pip puts them (tensorflow#63362)."""
SHOWN = 3
"""Libraries that are named; the others are counted."""
NO_CODE = "no GPU code"
OFFICIAL = {"tensorflow", "tensorflow-gpu", "tensorflow-cpu"}
_SYSTEMS = {"Linux": r"(many|musl)?linux", "Darwin": "macosx", "Windows": "win"}


@dataclass(frozen=True)
class Judgement:
    """One thing that a wheel needs, and whether a machine has it."""

    what: str
    says: str
    holds: bool | None = False
    """None where it cannot be known."""
    remedy: str = ""


@dataclass(frozen=True)
class WheelFacts:
    """What decides where a wheel runs: from the official table, an index, or its own bytes."""

    project: str
    version: str
    tags: frozenset[Tag]
    needs: Mapping[str, str]
    """As `Inspection.needs_of_machine` returns it; empty for a wheel that was not read."""
    modules: frozenset[str] = frozenset()
    """The only Pythons that import its modules, whatever its tags say (PEP 3149)."""
    requires_python: str = ""
    """What its metadata says, as ``>=3.9``."""
    without_code: str = NO_CODE
    """What is said to someone with a GPU where `needs` has no GPU code."""
    for_amd: bool = False

    @classmethod
    def of(cls, report: Inspection) -> "WheelFacts":
        """Return the facts of a wheel that was inspected."""
        names = "\n".join(library.path for library in report.libraries)
        modules = re.findall(r"\.cpython-3(\d+)", names)
        stated = dict(report.stated)
        needs = report.needs_of_machine()
        if needs:
            needs["cudnn"] = stated.get("cudnn_version", "").removeprefix("64_")
        return cls(
            report.project,
            report.version,
            frozenset(tag for text in report.tags for tag in parse_tag(text)),
            needs,
            frozenset(f"3.{minor}" for minor in modules),
            report.requires_python,
            for_amd=report.for_amd,
        )

    @property
    def code(self) -> list[str]:
        """The GPU code: ``sm_80`` is machine code, ``compute_80`` PTX, which drivers compile."""
        return [name for name in self.needs.get("gpu", "").split(",") if name]

    def brings_cuda(self, python: str) -> bool:
        """Say whether pip installs CUDA's libraries with it for a Python, where it is asked to."""
        with_tensorrt = is_of_line(self.version, AND_TENSORRT)
        found = with_tensorrt and "3.11" not in {python, *self.modules}
        found |= not is_older(self.version, AND_CUDA) and self.version != WITHOUT_PATHS
        return self._official and found

    @property
    def _official(self) -> bool:
        return canonicalize_name(self.project) in OFFICIAL and is_version(self.version)

    @functools.cached_property
    def toolkit(self) -> tuple[str, str]:
        """The CUDA and cuDNN that it was made with; old releases state none."""
        stated = self.needs.get("cuda", ""), self.needs.get("cudnn", "")
        tested = compatibility.tested_with(Release.parse(self.version)) if self._official else None
        if stated[0].count(".") or tested is None:
            return stated
        row = compatibility.cuda(tested.cuda)
        # Someone else's build of an old release may have another CUDA, and then newer GPU code.
        usual = row and all(map(row.compiles_for, cuda.code_capabilities(self.code)))
        return (tested.cuda, tested.cudnn) if usual else stated


def usable_code(built: Sequence[str], toolkit: str, gpu: str) -> str:
    """Return the code that runs on a GPU: ``machine code``, ``PTX``, or nothing."""
    if cuda.runs_on(cuda.code_capabilities(built), gpu):
        return "machine code"
    # PTX serves later GPUs as far as the CUDA of the wheel knows them: XLA compiles by itself,
    # and stops at a GPU that it does not know (tensorflow#111958).
    row = compatibility.cuda(toolkit)
    known = row is not None and row.compiles_for(gpu)
    ptx = any(not is_older(gpu, made_for) for made_for in cuda.ptx_capabilities(built))
    return "PTX" if known and ptx else ""


def code_for_others(machine: Sequence[str], built: Sequence[str], toolkit: str, gpu: str) -> str:
    """Say for which GPUs there is machine code, and what comes of the PTX on another `gpu`."""
    description = f"code for {', '.join(machine) or 'no GPU'} only"
    if any(is_older(made_for, gpu) for made_for in cuda.ptx_capabilities(built)):
        compiled = "the driver compiles for it (not tried)"
        doubt = f"may fail: CUDA {toolkit} does not know {gpu}"
        description += f", and PTX, which {compiled if usable_code(built, toolkit, gpu) else doubt}"
    return description


@dataclass(frozen=True)
class Judge:
    """A wheel, and the machine of a wish that it is held against."""

    wheel: WheelFacts
    wanted: Wish
    host: Host | None = None
    """The machine itself, where it is this one."""
    host_file: HostFile = field(default_factory=HostFile)

    def judgements(self) -> Iterator[Judgement]:
        """Say of everything that matters whether the machine has it."""
        wheel, wanted = self.wheel, self.wanted
        if wanted.release and not is_of_line(wheel.version, wanted.release):
            yield Judgement("TensorFlow", "another release")
        here = frozenset(tag for tag in wheel.tags if self._is_for_machine(tag.platform))
        yield from self._python(here or wheel.tags)
        platforms = {tag.platform for tag in here or wheel.tags}
        if not here:
            remedy = f"Take a wheel for {wanted.system} {wanted.machine}".rstrip()
            remedy += "; 'invoke match' names what there is."
            yield Judgement("platform", f"for {', '.join(sorted(platforms))}", remedy=remedy)
            return
        # A wheel for one C library is not installed where the other is; pip looks which is there.
        other = {"": "", "none": "manylinux"}.get(wanted.glibc, "musllinux")
        if other and all(platform.startswith(other) for platform in platforms):
            libraries = {"manylinux": ("glibc", "Debian"), "musllinux": ("musl", "Alpine")}
            library, image = libraries[other]
            remedy = f"Use a system with {library}, such as an image of {image}."
            description = f"for systems with {library}, which this is not"
            yield Judgement("glibc", description, remedy=remedy)
            return
        asked = wanted.glibc or wanted.cpu or wanted.gpu or wanted.cuda
        if asked and not wheel.needs and "any" not in platforms:
            yield Judgement("libraries", "what its libraries need is not known", None)
            return
        yield from self._system(platforms)
        yield from self._gpu()

    def _is_for_machine(self, platform: str) -> bool:
        """Say whether a platform tag is of the system and machine that are wanted."""
        machine = self.wanted.machine.lower()
        universal = [name for name, holds in tags.UNIVERSAL.items() if machine in holds]
        of_system = re.match(_SYSTEMS.get(self.wanted.system, ""), platform)
        return platform == "any" or bool(of_system and platform.endswith((machine, *universal)))

    def _python(self, stated: frozenset[Tag]) -> Iterator[Judgement]:
        python = self.wanted.python
        exact = [tag for tag in stated if re.fullmatch(r"cp\d{2,}", tag.interpreter)]
        unlocked = bool(exact) and all(re.fullmatch(r"cp3\d+t", tag.abi) for tag in exact)
        named = {f"{tag.interpreter[2]}.{tag.interpreter[3:]}" for tag in exact}
        found = sorted(named, key=version_numbers)
        versions = f"{found[0]} to {found[-1]}" if len(found) > 1 else "".join(found)
        if self.wheel.modules:
            found = sorted(self.wheel.modules, key=version_numbers)
            versions = ", ".join(found)
        elif any(tag.abi == "abi3" for tag in exact):
            # The stable interface is that of every later Python, too.
            versions = f"{found[0]} or later"
            least = int(found[0].partition(".")[2])
            found = [f"3.{minor}" for minor in range(least, LAST_MINOR)]
        elif unlocked:
            versions += " without its global lock"
        if python:
            made_for = {(tag.interpreter, tag.abi) for tag in stated}
            fits = bool(made_for & tags.interfaces(python)) and (not found or python in found)
            remedy = f"Use such a Python, or a wheel with cp{python.replace('.', '')} in its name."
            description = f"{python}, as wanted" if fits else f"for Python {versions or '3'}"
            # pip reads the metadata, too; of a patch level nothing is said here.
            with suppress(InvalidSpecifier):
                asked = SpecifierSet(self.wheel.requires_python)
                if fits and not any(map(asked.contains, (f"{python}.0", f"{python}.99"))):
                    fits, description = False, f"its metadata requires Python {asked}"
                    remedy = "Use such a Python, or another release of it."
            yield Judgement("Python", description, fits, "" if fits else remedy)
        elif self.host and unlocked:
            description = f"needs Python {versions}; whether this host has one is not known"
            yield Judgement("Python", description, None)
        elif self.host and found:
            host_file, place = self.host_file, self.host.place
            path = next((p for name in found if (p := pythons.find(name, host_file, place))), None)
            remedy = "" if path else pythons.absence(found[-1], host_file, place).remedy
            where = place.shown_path(path) if path else "which was not found"
            description = f"{versions}: {where}" if path else f"needs Python {versions}, {where}"
            yield Judgement("Python", description, path is not None, remedy)
        elif found:
            with_cuda = list(filter(self.wheel.brings_cuda, found))
            if self.wanted.gpu and with_cuda:
                versions = f"{with_cuda[0]} to {with_cuda[-1]}"
            yield Judgement("Python", f"for Python {versions}", holds=True)

    def _system(self, platforms: Iterable[str]) -> Iterator[Judgement]:
        wanted, needs = self.wanted, self.wheel.needs
        # A tag that promises more than the libraries need keeps pip from installing it all the
        # same.
        promised = map(tags.promised_glibc, platforms)
        glibc = max(needs.get("glibc", ""), *promised, key=version_numbers)
        if glibc and wanted.glibc != "none" and (wanted.glibc or wanted.system == "Linux"):
            remedy = (
                f"Use a system with glibc {glibc} or later, such as an image, or 'invoke match "
                f"--glibc {wanted.glibc}' for an older wheel or a recipe."
            )
            fits = not is_older(wanted.glibc, glibc)
            yield _judge_minimum("glibc", f"glibc {glibc}", wanted.glibc, remedy, fits=fits)
        promises = list(filter(None, map(tags.promised_macos, platforms)))
        if promises and wanted.system == "Darwin":
            oldest = min(promises, key=version_numbers)
            least = max(needs.get("macos", ""), oldest, key=version_numbers)
            remedy = f"Use macOS {least} or later, or an older wheel."
            fits = not is_older(wanted.macos, least)
            yield _judge_minimum("macOS", f"macOS {least}", wanted.macos, remedy, fits=fits)
        level = needs.get("cpu", "")
        if level in LEVELS and (wanted.cpu or wanted.machine == "x86_64"):
            remedy = f"'invoke match --cpu {wanted.cpu}' names a wheel or a recipe without {level}."
            fits = not (wanted.cpu and is_above(level, wanted.cpu))
            yield _judge_minimum("CPU", f"a CPU with {level}", wanted.cpu, remedy, fits=fits)

    def _gpu(self) -> Iterator[Judgement]:
        wheel, wanted, host = self.wheel, self.wanted, self.host
        if wheel.for_amd:
            remedy = gpus.other_maker("Radeon")[1]
            yield Judgement("GPU code", "for GPUs of AMD; its code is not read", None, remedy)
            return
        if not wheel.code:
            if host and host.gpus:
                description = "none: it computes on the CPU, not on this host's GPU"
                yield Judgement("GPU code", description, holds=True)
            elif not host and (wanted.gpu or wanted.cuda):
                remedy = f"'invoke match --gpu {wanted.gpu}' names a wheel or a recipe with code."
                yield Judgement("GPU code", wheel.without_code, remedy=remedy if wanted.gpu else "")
            return
        toolkit, _ = wheel.toolkit
        if wanted.cuda and not is_of_line(toolkit, wanted.cuda):
            description = f"made with CUDA {toolkit or '(which one is not stated)'}"
            if wheel.brings_cuda(wanted.python):
                description += ", which pip installs with it, whatever CUDA the system has"
            yield Judgement("CUDA", description)
        if host and not (host.gpus or wanted.gpu):
            description = "no GPU of NVIDIA was found: TensorFlow computes on the CPU"
            yield Judgement("GPU", description, holds=True)
        elif host or wanted.gpu or wanted.cuda:
            if wanted.gpu:
                yield self._code(toolkit)
            yield from self._driver(toolkit)
            yield self._libraries()

    def _code(self, toolkit: str) -> Judgement:
        gpu, code = self.wanted.gpu, self.wheel.code
        kind = usable_code(code, toolkit, gpu)
        if kind == "PTX":
            description = (
                f"PTX for compute capability {gpu}, compiled at the first start, for minutes, "
                f"by a driver of CUDA {toolkit} or later"
            )
            return Judgement("GPU code", description, holds=True)
        if kind:
            return Judgement("GPU code", f"{kind} for compute capability {gpu}", holds=True)
        remedy = f"'invoke match --gpu {gpu}' names a wheel or a recipe with code for it."
        description = code_for_others(cuda.code_capabilities(code), code, toolkit, gpu)
        return Judgement("GPU code", description, remedy=remedy)

    def _driver(self, toolkit: str) -> Iterator[Judgement]:
        wanted, row = self.wanted, compatibility.cuda(toolkit)
        if wanted.system == "Windows":
            description = f"a driver for CUDA {toolkit or '(which one is not stated)'} or later"
            yield Judgement("driver", description, None)
        elif wanted.system == "Darwin":
            ends = compatibility.has_no_driver(wanted.macos)
            last = compatibility.LAST_MAC_DRIVER
            remedy = f"Use macOS {last} or earlier, or a wheel without CUDA." if ends else ""
            yield Judgement("driver", compatibility.MAC_DRIVER, False if ends else None, remedy)
        elif row:
            needed = compatibility.drivers(row, wanted.gpu)
            misfit, remedy = needed.misfit(wanted.driver), ""
            holds = False if misfit else True if wanted.driver else None
            if misfit and needed.exist:
                on_windows = " on Windows, not in WSL" if self.host and self.host.wsl else ""
                remedy = f"Install NVIDIA's driver {needed}{on_windows}."
            elif misfit:
                remedy = f"'invoke match --gpu {wanted.gpu}' names wheels of an older CUDA."
            has = f"; {wanted.driver} is there" if wanted.driver else ""
            yield Judgement("driver", misfit or f"NVIDIA's driver {needed}{has}", holds, remedy)

    def _libraries(self) -> Judgement:
        """Judge whether CUDA's libraries are where the loader looks, by the first of them."""
        toolkit, cudnn = self.wheel.toolkit
        # Its name has as much of the version as the files are compatible over.
        line = {"11": "11.0", "12": "12", "13": "13"}.get(toolkit.partition(".")[0], toolkit)
        name = f"libcudart.so.{line}"
        if line and self.host and name in _known_to_loader(self.host):
            return Judgement("CUDA", f"{name} is in the loader's cache", holds=True)
        both = "a CUDA whose version is not stated"
        if toolkit:
            both = f"CUDA {toolkit} and {f'cuDNN {cudnn}' if cudnn else 'its cuDNN'}"
        paths = {"Windows": "PATH", "Darwin": "DYLD_LIBRARY_PATH"}
        path = paths.get(self.wanted.system, "LD_LIBRARY_PATH")
        remedy = f"Install {both}, and name their folders in {path}."
        if self.wheel.brings_cuda(self.wanted.python):
            bounds = compatibility.package_bounds(self.wheel.version, self.wanted.gpu)
            name = f"{self.wheel.project}[and-cuda]=={self.wheel.version}"
            remedy = f"{shlex.join(('pip', 'install', name, *bounds))} brings them."
        return Judgement("CUDA", f"{both} installed", None, remedy)


def _judge_minimum(what: str, least: str, has: str, remedy: str, *, fits: bool) -> Judgement:
    """Judge the least that a wheel needs against what a machine has, where that is known."""
    if not has:
        return Judgement(what, f"needs {least}; which one is there is not known", None)
    return Judgement(what, f"needs {least}; {has} is there", fits, "" if fits else remedy)


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

    @property
    def on_the_cpu(self) -> bool:
        """Whether it lacks nothing but GPU code for the GPU that is asked for."""
        return [one.says for one in self.judgements if one.holds is False] == [NO_CODE]


def verdict(report: Inspection, wanted: Wish, host: Host | None, host_file: HostFile) -> FitVerdict:
    """Judge whether an inspected wheel runs on the machine of a wish, which is `host` if given."""
    machine = "this host" if host else f"a machine with {wanted}"
    found = []
    # Whether the system is new enough is judged below.
    faults = [fault for fault in report.faults if fault not in report.broken_promises]
    if faults:
        remedy = "Take another wheel, or ask who made it."
        found.append(Judgement("wheel", "; ".join(faults), remedy=remedy))
    found += [Judgement("libraries", fault) for fault in copy_faults(report.libraries)]
    if not report.libraries and report.tags and not any(it.endswith("-any") for it in report.tags):
        description = "it has none: it only lets pip install the wheel that its metadata requires"
        found.append(Judgement("libraries", description, None, "Inspect that wheel instead."))
    found += _outside_libraries(report, host)
    if built_on_tensorflow(report.libraries):
        named = report.requires_tensorflow
        description = f"made for tensorflow{named or ' of one release, which it does not name'}"
        remedy = f"pip install 'tensorflow{named}'" if named else ""
        found.append(Judgement("TensorFlow", description, None, remedy))
    if report.for_windows:
        found.append(
            Judgement("libraries", "for Windows: which CPU and DLLs they need is not read", None)
        )
    found += Judge(WheelFacts.of(report), wanted, host, host_file).judgements()
    # A system that is newer than the tag says does not mind.
    if not {"glibc", "macOS"} & {one.what for one in found if not one.holds}:
        more = [f"{it}; this does not matter here" for it in report.broken_promises]
        found += [Judgement("tag", promise, holds=True) for promise in more]
    order = (False, None, True)
    return FitVerdict(machine, tuple(sorted(found, key=lambda one: order.index(one.holds))))


def _outside_libraries(report: Inspection, host: Host | None) -> Iterator[Judgement]:
    """Say which libraries a wheel needs that neither it nor the `host` is known to have."""
    known = _known_to_loader(host) if host and report.outside else ""
    if lacking := [name for name in report.outside if name not in known]:
        where = "this host's loader does not know" if host else "somebody else has to bring"
        description = f"needs {listed(lacking, SHOWN)}, which {where}"
        remedy = "Install what has them, or name their folders in LD_LIBRARY_PATH."
        yield Judgement("libraries", description, None, remedy)


def _known_to_loader(host: Host) -> str:
    return host.place.ask("ldconfig", "-p").value
