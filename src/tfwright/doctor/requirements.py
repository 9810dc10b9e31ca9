"""What a recipe wants of a host: each requirement compares one thing and reports what is amiss."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tfwright.doctor import images
from tfwright.doctor.inventory import Finding, HostComparison, worst_first
from tfwright.documents import host_file as host_files
from tfwright.documents.filesystem import ROOT, unbuildable_character
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import TENSORFLOW_TARGET, WHEEL_TARGET, Recipe
from tfwright.errors import HostError
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_newer, is_of_line, is_older
from tfwright.host import cuda, machine, probes, pythons, toolchain
from tfwright.host.probes import Host
from tfwright.printable import printable
from tfwright.tools.git.program import OLDEST
from tfwright.tools.process import capacity
from tfwright.tools.process.command import open_container

GIB = machine.GIB
ROOM = 16 * GIB
"""For a build of TensorFlow: what Gentoo's package asks, 10 and 6 more for each Python."""
SCRATCH = 2 * GIB
"""For the temporary files of a build of TensorFlow: those of a link are as large as a library."""
SMALL_SCRATCH = GIB // 16
"""Without which no compiler runs."""
JAVA = 4
"""GiB of address space that Java reserves for its own: classes, code, the stacks of threads."""
SMALL_ROOM = 1 * GIB
"""For a source tree that tfwright brings itself."""
OUTPUT_BASE = "https://bazel.build/remote/output-directories"

TO_IMAGE = "Add it to the image, and write the new digest into [host.image]: docs/containers.md."


def forecast(recipe: Recipe) -> str:
    """Say what a build of TensorFlow from nothing takes; empty for any other target."""
    source = recipe.source
    whole = recipe.compile.target in {TENSORFLOW_TARGET, WHEEL_TARGET}
    if not source.of_tensorflow or not whole:
        return ""
    cost = compatibility.build_cost(source.release, cuda=cuda.uses_cuda(recipe))
    processors = capacity.usable_cores()
    more = "; a later release takes more" if source.release > cost.release else ""
    unit = "processor" if processors == 1 else "processors"
    hours = cost.hours / processors
    return f"{cost}: about {hours:.1f} hours of compiling with {processors} {unit}{more}"


class Requirements(HostComparison):
    """What a recipe wants of any host; each method compares one thing."""

    def compare(self) -> list[Finding]:
        """Return everything that is not as the recipe wants it, in the order of CHECKS.

        What only makes sense on the recipe's own system, such as CUDA, is not asked for on another.
        """
        checks = CHECKS
        # On another system only the first stages run, which need no compiler of the recipe's.
        if self.recipe.host.system not in {"any", self.host.system}:
            checks = GENERAL
        # The bundled tree with a kernel is compiled by a real CUDA, as TensorFlow is.
        elif self.bundled:
            checks = (*GENERAL, Requirements.cuda)
        findings = list[Finding]()
        enclosed = open_container()
        if self.recipe.host.image and not enclosed:
            # Only a look into the image tells what is in it: `doctor` and `check` open a container.
            unknown = {*OF_IMAGE, Requirements.cuda}
            checks = tuple(check for check in checks if check not in unknown)
            findings += images.without_engine(self.host_file)
        for check in checks:
            found = check(self)
            if enclosed and check in OF_IMAGE:
                found = (replace(finding, remedy=TO_IMAGE) for finding in found)
            findings += found
        return findings

    @property
    def bundled(self) -> bool:
        """Whether tfwright ships the source tree; TensorFlow's rules do not apply to it."""
        return self.recipe.source.bundled

    def platform(self) -> Iterator[Finding]:
        wanted = self.recipe.host
        right_system = wanted.system in {"any", self.host.system}
        right_machine = wanted.machine in {"any", self.host.machine}
        if not (right_system and right_machine):
            # The sources are the same everywhere, so patches can be written on any host.
            yield Finding(
                f"this host is {self.host}",
                f"{wanted.system}-{wanted.machine}",
                "Build on such a machine. With --until source, the first stages run here as well.",
                blocks="configure",
                lasting=True,
            )

    def python(self) -> Iterator[Finding]:
        version = self.recipe.host.python
        if pythons.find(version, self.host_file, self.host.place):
            return
        absence = pythons.absence(version, self.host_file, self.host.place)
        yield Finding(*absence, blocks="check")

    def git(self) -> Iterator[Finding]:
        version = self.host.git.value.removeprefix("git version ")
        if not version:
            yield Finding(
                "no git", "git on the system's PATH", self.host.remedy("git"), blocks="fetch"
            )
        # The bundled tree is committed by tfwright itself, and needs nothing new of git.
        elif is_older(version, OLDEST) and not self.bundled:
            yield Finding(
                f"git {version}",
                f"git {OLDEST} or newer",
                self.host.remedy("old-git", least=OLDEST),
                blocks="fetch",
                why="GIT_CONFIG_GLOBAL, which keeps the user's configuration out, came with it",
            )

    def compiler(self) -> Iterator[Finding]:
        # Blocks compile only: sources can be fetched, patched and configured without one.
        if not self.host.compiler:
            yield Finding(
                "no C++ compiler",
                "c++, g++ or clang++ on the system's PATH",
                self.host.remedy("compiler"),
                blocks="compile",
            )

    def c_library(self) -> Iterator[Finding]:
        # Every getconf but that of glibc is of another C library.
        other = self.host.place.which("getconf") and not self.host.glibc.value
        if self.host.system == "Linux" and other and not self.bundled:
            yield Finding(
                "no glibc",
                "glibc, for which Bazel's program and TensorFlow are made",
                "Build in a container with glibc, such as debian:12, as docs/containers.md shows.",
                blocks="compile",
                lasting=True,
            )
        if floor := self.recipe.verify.glibc:
            # Few recipes name one, and a build with nothing to do starts sooner without it.
            from tfwright.host import hermetic

            linked = hermetic.sysroot(self.recipe) or self.host.glibc.value
            if is_older(floor, linked):
                # A note: what the wheel uses of a newer glibc is known only after the build.
                yield Finding(
                    f"glibc {linked}",
                    f"glibc {floor} or older: the wheel must run on it",
                    "Build in a container with such a glibc, as docs/containers.md shows.",
                    why="the recipe: verify.glibc",
                )

    def programs(self) -> Iterator[Finding]:
        for program in self.recipe.host.programs:
            if not self.host.has(program):
                remedy = self.host.remedy("program", program=program)
                yield Finding(
                    f"no {program}",
                    f"{program} on the system's PATH",
                    remedy,
                    blocks="compile",
                    why="the recipe: host.programs",
                )

    def clang(self) -> Iterator[Finding]:
        """Look for a clang where the recipe says that it is."""
        answers = [f"{name}={value}" for name, value in self.recipe.configure.answers.items()]
        # Newer trees overrule the answer in .bazelrc, so that recipes name the clang in a flag.
        stated = " ".join((*answers, *self.recipe.compile.flags))
        named = re.findall(r"\bCLANG_(?:CUDA_)?COMPILER_PATH=(/\S+)", stated)
        # A recipe may name the same clang in an answer and in a flag.
        for path in dict.fromkeys(named):
            if not self.host.place.exists(path):
                version = re.search(r"/llvm-(\d+)/", path)
                packaged = compatibility.packaged_versions(self.host.release.value, "clang")
                remedy = self.host.remedy(
                    "clang", package=f"clang-{version[1]}" if version else "clang"
                )
                if packaged is not None and version and version[1] not in packaged:
                    remedy = (
                        f"{self.host.release} has no clang-{version[1]}: get it from "
                        "https://apt.llvm.org"
                    )
                    # An older one may lack what the recipe's release wants of its compiler.
                    if newer := [other for other in packaged if is_newer(other, version[1])]:
                        remedy += f", or name one that it has: {', '.join(newer)}"
                yield Finding(
                    f"no {path}", "the clang that the recipe names", remedy, blocks="compile"
                )

    def bazel(self) -> Iterator[Finding]:
        version = self.recipe.bazel.version
        if self.host_file.bazel(version) or self.host.has("npm"):
            return
        # The release may have gone from its server; npm's package is the second source.
        if version in compatibility.bazel_copies():
            yield Finding(
                f"Bazel {version} has one source on this host, its release on GitHub",
                "npm, whose registry is the second source",
                "If this host does not reach github.com, install npm, or name a binary in the host "
                f"file: [bazels] {version!r} = '/path/to/bazel'.",
            )

    def disk(self) -> Iterator[Finding]:
        disk = self.host.disk(self.host_file.build_out)
        wanted = SMALL_ROOM if self.bundled else ROOM
        move = "Set build_out in the host file to a directory on"
        # It stops nothing: how much a build needs depends on what is there already.
        if disk.free < wanted:
            yield Finding(
                f"{disk.free / GIB:.1f} GiB free at {self.host_file.build_out}",
                f"{wanted // GIB} GiB",
                "Free some space, or set build_out in the host file to a larger disk.",
            )
        for kinds, better, use, blocks, why in (
            (machine.NETWORK, "a local disk", " for Bazel's output base", "compile", OUTPUT_BASE),
            (machine.WITHOUT_LINKS, "a disk with symbolic links", "", "fetch", ""),
        ):
            if disk.kind in kinds:
                found = f"{self.host_file.build_out} is on {disk.kind}"
                remedy = f"{move} {better}."
                yield Finding(found, better + use, remedy, blocks=blocks, why=why)
        if not self.host.place.is_writable(self.host_file.build_out) and "ro" not in disk.options:
            yield Finding(
                f"{self.host_file.build_out} is closed to this user",
                "a build_out that this user may write to",
                "Give this user access to it, or name another one in the host file: build_out.",
                blocks="fetch",
            )
        for option, other in (("ro", "rw"), ("noexec", "exec")):
            if option in disk.options:
                yield Finding(
                    f"{disk.mount}, the disk of build_out, is mounted {option}",
                    "a disk that takes files and runs the programs among them",
                    f"{move} another disk, or: mount -o remount,{other} {disk.mount}",
                    blocks="fetch",
                )
        # There a build takes its memory twice: for its files, and for its compilers.
        if disk.kind == "tmpfs":
            remedy = f"{move} a disk, unless there is memory for both."
            yield Finding(
                f"{self.host_file.build_out} is on tmpfs, in memory",
                "a disk, which leaves memory to the compilers",
                remedy,
            )

    def temporary(self) -> Iterator[Finding]:
        """Look at the room for what nvcc, the compiler and the linker write in between."""
        folder = self.host.place.env.get("TMPDIR") or "/tmp"  # noqa: S108 looked at, not written to
        disk = self.host.disk(Path(folder))
        wanted = SMALL_SCRATCH if self.bundled else SCRATCH
        # df says nothing of a directory that it does not know.
        if (disk.kind or disk.free) and disk.free < wanted:
            yield Finding(
                f"{disk.free / GIB:.1f} GiB free in {folder}",
                f"{wanted / GIB:g} GiB for the temporary files of compilers and linkers",
                "Free some space there, or name another directory for the build: "
                f"TMPDIR=/PATH invoke build --recipe {self.recipe.name}",
                blocks="compile" if disk.free < SMALL_SCRATCH else "",
            )

    def proxies(self) -> Iterator[Finding]:
        """Find addresses of proxies that some of the programs of a build do not take."""
        for name, value in sorted(self.host.place.env.items()):
            if name.lower() in {"http_proxy", "https_proxy", "all_proxy"} and value:
                shown = printable(value)
                if "://" not in value:
                    yield Finding(
                        f"{name}={shown} has no scheme",
                        "an address that every program reads, as http://HOST:PORT",
                        f"export {name}=http://{shown}",
                        why="Bazel's Java, pip and npm differ in what they take such a value for",
                    )

    def build_out_path(self) -> Iterator[Finding]:
        # Refused at fetch, which would download gigabytes into a place where no build can run.
        if odd := unbuildable_character(self.host_file.build_out):
            remedy = f"Set build_out to such a directory in {host_files.path()}."
            if self.host_file.build_out == ROOT / "build_out":
                remedy = f"{remedy[:-1]}, or move {ROOT}."
            why = (
                "TensorFlow's build scripts do not quote their paths, and Bazel's Java does not "
                "find itself behind other letters"
            )
            yield Finding(
                f"{odd!r} in {self.host_file.build_out}",
                "a build_out in ASCII, without a space",
                remedy,
                blocks="fetch",
                why=why,
            )

    def python_parts(self) -> Iterator[Finding]:
        version = self.recipe.host.python
        interpreter = pythons.find(version, self.host_file, self.host.place)
        if interpreter is None:
            return
        parts = pythons.installed_parts(interpreter, self.host.place)
        # Asked before hours of compiling: the glue comes late in a build.
        if "no headers" in parts.value:
            yield Finding(
                f"Python {version} without headers",
                "Python.h",
                self.host.remedy("headers", python=version),
                blocks="configure",
                why="TensorFlow's Python glue includes Python.h",
            )
        # Python 2 has no venv module; its environments are made by virtualenv.
        if "no pip" in parts.value and not version.startswith("2."):
            yield Finding(
                f"Python {version} without ensurepip",
                "what a venv is made with",
                self.host.remedy("venv", python=version),
                blocks="fetch",
                why="the build gets a venv of its own, with exact pins",
            )
        if "no distutils" in parts.value:
            yield Finding(
                f"Python {version} without distutils",
                "what its ensurepip and its venv module import",
                self.host.remedy("distutils"),
                blocks="fetch",
            )

    def release(self) -> Iterator[Finding]:
        if self.recipe.source.own_interface:
            return
        yield from self._accepted_bazel()
        release, wanted = self.recipe.source.release, self.recipe.host.python
        python = compatibility.python(release, self.recipe.source.exact.fork[:2])
        # It stops nothing: patches can make a release work with a Python that came later.
        if python and wanted != "any" and not python.contains(wanted):
            remedy = "Correct host.python in the recipe, or add the patches that make it work."
            yield Finding(
                f"Python {wanted} for TensorFlow {release}",
                f"Python {python}",
                remedy,
                why=python.source,
            )

    def _accepted_bazel(self) -> Iterator[Finding]:
        """Compare the pinned Bazel with what ./configure of the release takes."""
        version, release = self.recipe.bazel.version, self.recipe.source.exact
        newer = self.recipe.configure.agrees_to("TF_IGNORE_MAX_BAZEL_VERSION")
        wanted, source, refused = compatibility.unusual_bazel(release, version, newer=newer)
        if not wanted:
            return
        remedy = "Correct bazel.version in the recipe."
        if not refused:
            other = "pin such a Bazel"
            if self.host_file.bazel(version):
                other = "name such a Bazel in [bazels] of the host file"
            remedy = f"If the build fails, {other}: ./configure does not compare it."
        yield Finding(
            f"Bazel {version} for TensorFlow {release.line}",
            f"Bazel {wanted}",
            remedy,
            blocks="configure" if refused else "",
            why=source,
        )

    def memory(self) -> Iterator[Finding]:
        # One action must fit; how many fit at once is decided when the build starts.
        # The kernel moves what other programs hold into it.
        swap = int(machine.swap(self.host.place).value or 0)
        free = (int(self.host.memory.value or 0) + swap) / GIB
        if self.host.memory and free < self.recipe.compile.peak:
            remedy = "Stop other programs, raise the container's limit, or add swap."
            yield Finding(
                f"{free:.1f} GiB of memory{' and swap' if swap else ''}",
                f"{self.recipe.compile.peak} GiB for a single compile action",
                remedy,
                why=f"compile.peak, against {self.host.memory.by}",
            )
        if limit := machine.address_space(self.host.place):
            # Java reserves a quarter of the memory for its objects, and some more for itself.
            reserved = capacity.total_memory(self.host.place.root) / 4 / GIB + JAVA
            has = int(limit.value) / GIB
            if has < reserved:
                yield Finding(
                    f"{has:.1f} GiB of address space for each process",
                    f"{reserved:.0f} GiB, which Bazel's Java reserves and does not use",
                    "ulimit -v unlimited   # if this is refused, the job's limits say so",
                    blocks="configure",
                    why=limit.by,
                )

    def processor(self) -> Iterator[Finding]:
        flags = str(self.recipe.configure.answers.get("CC_OPT_FLAGS", ""))
        has = self.host.processor.value.split()
        wanted = [name for name in machine.EXTENSIONS if f"-m{name}" in flags.split()]
        # Where the processor could not be read, nothing is known to be missing.
        lacking = [name for name in wanted if self.host.processor.by and name not in has]
        if lacking:
            why = f"CC_OPT_FLAGS, against {self.host.processor.by}"
            remedy = "Verify the wheel on another machine, or take the flag out of the recipe."
            yield Finding(
                f"a processor without {', '.join(lacking)}",
                "one that runs what it compiles",
                remedy,
                blocks="verify",
                why=why,
            )
        # Worth a note on any host: such a wheel differs from builder to builder.
        if toolchain.is_native(flags):
            yield Finding(
                "-march=native in CC_OPT_FLAGS",
                "the same bytes on every host",
                "Name an instruction set in the recipe, such as -mavx.",
            )

    def macos(self) -> Iterator[Finding]:
        wanted = self.recipe.host
        # The version of macOS decides which symbols the wheel may use.
        version = self.host.release.value.removeprefix("macOS ") if wanted.macos else ""
        if wanted.macos and version and not is_of_line(version, wanted.macos):
            yield Finding(f"macOS {version}", f"macOS {wanted.macos}", "Build on such a Mac.")
        if wanted.xcode and self.host.xcode and not is_of_line(self.host.xcode.value, wanted.xcode):
            remedy = self.host.remedy("xcode", xcode=wanted.xcode)
            yield Finding(
                f"Xcode {self.host.xcode}",
                f"Xcode {wanted.xcode}",
                remedy,
                blocks="compile",
                why=f"the recipe, against {self.host.xcode.by}",
            )

    def compiler_line(self) -> Iterator[Finding]:
        found = toolchain.parse_version(self.host.compiler.value)
        wanted = self.recipe.host.clang
        # By the build number: two Xcodes may have a clang of the same version.
        if wanted and found and found.build != wanted:
            remedy = self.host.remedy("xcode", xcode=self.recipe.host.xcode or "")
            yield Finding(
                str(found),
                f"Apple's clang {wanted}",
                remedy,
                why=f"the recipe, against {self.host.compiler.by}",
            )
        newest, why = compatibility.newest_gcc(self.recipe.source.release)
        # What nvcc needs is looked at with CUDA.
        ours = not (
            cuda.needs_toolkit(self.recipe)
            or toolchain.named_compilers(self.recipe, self.host_file)
        )
        known = newest and not self.recipe.source.own_interface
        if found and found.family == "gcc" and ours and known and is_newer(found.version, newest):
            yield Finding(
                str(found),
                f"gcc {newest} or earlier, with which this release compiles",
                "Build in a container of an older distribution, as docs/containers.md shows, or "
                f"name such a gcc in the recipe: [compile.env] CC = '/usr/bin/gcc-{newest}'.",
                why=why,
            )

    def signing_key(self) -> Iterator[Finding]:
        if self.host_file.sign:
            from tfwright.tools import signing

            # Tried now, since publish comes after hours of compiling.
            try:
                signing.signer(self.host_file.sign.key)
            except HostError as fault:
                yield Finding(
                    fault.what,
                    "a private key that signs",
                    fault.remedy,
                    blocks="publish",
                    why="the host file: sign.key",
                )

    def cuda(self) -> Iterator[Finding]:
        if cuda.uses_cuda(self.recipe):
            from tfwright.doctor import gpu

            wanted = gpu.CudaRequirements(self.recipe, self.host_file, self.host)
            installed = gpu.OF_INSTALLED if cuda.needs_toolkit(self.recipe) else ()
            for check in (*installed, *gpu.CHECKS):
                yield from check(wanted)


Check = Callable[[Requirements], Iterator[Finding]]
GENERAL: tuple[Check, ...] = (
    Requirements.platform,
    Requirements.python,
    Requirements.git,
    Requirements.compiler,
    Requirements.bazel,
    Requirements.disk,
    Requirements.temporary,
    Requirements.proxies,
    Requirements.build_out_path,
    Requirements.signing_key,
)
"""What makes sense on any host, and costs four short programs: builds ask on every start."""
CHECKS: tuple[Check, ...] = (
    *GENERAL,
    Requirements.programs,
    Requirements.clang,
    Requirements.python_parts,
    Requirements.release,
    Requirements.memory,
    Requirements.processor,
    Requirements.c_library,
    Requirements.macos,
    Requirements.compiler_line,
    Requirements.cuda,
)
OF_IMAGE: tuple[Check, ...] = (
    Requirements.python,
    Requirements.compiler,
    Requirements.programs,
    Requirements.clang,
    Requirements.python_parts,
    Requirements.compiler_line,
    Requirements.c_library,
)
"""What the image of a recipe has to have, and not the host. CUDA may be in either."""


def examine(recipe: Recipe, host_file: HostFile, host: Host) -> list[Finding]:
    """Return all that is not as the recipe wants it, the worst first, as `invoke doctor` does."""
    return worst_first(Requirements(recipe, host_file, host).compare())


def obstacle(recipe: Recipe, host_file: HostFile) -> str | None:
    """Say in a few words what keeps this host from building a recipe; None if nothing does."""
    findings = examine(recipe, host_file, probes.this_host())
    return next((finding.found for finding in findings if finding.blocks), None)
