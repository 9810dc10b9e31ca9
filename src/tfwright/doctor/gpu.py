"""What a recipe with CUDA wants of a host, to be built and to run here."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from pathlib import Path

from tfwright.doctor.inventory import Finding, HostComparison
from tfwright.documents.release import Release
from tfwright.documents.toolkit import PartName
from tfwright.facts import compatibility
from tfwright.facts.compatibility import (
    is_newer,
    is_of_line,
    is_older,
    is_within,
    range_text,
    version_numbers,
)
from tfwright.host import cuda, hermetic, nvidia, toolchain
from tfwright.host.place import Seen
from tfwright.toolkit import ways as toolkit_ways

# Earlier and later releases take the version as it is answered.
MAJOR_ONLY = (Release(1, 7), Release(1, 13))
"""The releases whose configure cuts cuDNN 7.2 to 7, as its library is named, so that any 7 will
do."""
SHIELDED = (
    "https://developer.apple.com/library/archive/documentation/Security/Conceptual/"
    "System_Integrity_Protection_Guide/RuntimeProtections/RuntimeProtections.html"
)
DISABLING_NOUVEAU = (
    "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/index.html#disabling-nouveau"
)


class CudaRequirements(HostComparison):
    """What a recipe with CUDA wants of a host; each method compares one thing."""

    @cached_property
    def in_force(self) -> cuda.CudaInForce | None:
        return cuda.in_force(self.recipe, self.downloads)

    @property
    def row(self) -> compatibility.Cuda | None:
        return compatibility.cuda(self.in_force.version) if self.in_force else None

    def toolkit(self) -> Iterator[Finding]:
        place = self.places.toolkit
        wanted = self.recipe.host.cuda or ""
        seen = self.cuda_versions
        found = _major_minor(seen[0].value) if seen else wanted
        remedy = self._how_to_get("cuda", cuda=wanted, place=str(place), found=found)
        if not seen:
            yield _missing_finding("CUDA", [place], wanted, remedy)
        # A second CUDA unpacked over the first leaves files of both; nvcc then fails in the middle.
        elif len({_major_minor(witness.value) for witness in seen}) > 1:
            yield Finding(
                f"several CUDAs mixed at {place}: {_versions_by_witness(seen)}",
                f"CUDA {wanted} alone",
                remedy,
                blocks="configure",
            )
        # Compared as far as the recipe states it: 9.2 takes any patch level.
        elif wanted and not is_of_line(seen[0].value, wanted):
            yield Finding(
                f"CUDA {seen[0]} at {place}",
                f"CUDA {wanted}",
                remedy,
                blocks="configure",
                why=f"the recipe, against {seen[0].by}",
            )

    def headers(self) -> Iterator[Finding]:
        """Look for the headers that come in packages of their own."""
        root, recipe, prefixes = self.places.toolkit, self.recipe, self._prefixes
        # Without any CUDA, that is the finding.
        if recipe.source.own_interface or not self.cuda_versions:
            return
        wanted = compatibility.cuda_headers(recipe.source.release)
        lacking = [
            one for one in wanted if not nvidia.has_header(self.host.place, one[0], prefixes)
        ]
        if lacking:
            version = recipe.host.cuda or ""
            yield Finding(
                f"no {' and no '.join(name for name, _ in lacking)} at "
                f"{' or '.join(map(str, prefixes))}",
                "each header that ./configure looks for: of NVIDIA's packages, all of the toolkit",
                self._how_to_get("cuda", cuda=version, place=str(root), found=version),
                blocks="configure",
                why=lacking[-1][1],
            )

    @property
    def _prefixes(self) -> list[Path]:
        """Where libraries lie; the toolkit first: `invoke toolkit` puts every library there."""
        return list(dict.fromkeys([self.places.toolkit, *self.places.prefixes]))

    def _how_to_get(self, part: PartName, trouble: str = "", **fields: str) -> str:
        """Say how to get a part: out of the recipe's toolkit, or else by hand."""
        return toolkit_ways.remedy(self.recipe, part, self.host) or self.host.remedy(
            trouble or part, recipe=self.recipe.argument, **fields
        )

    def cudnn(self) -> Iterator[Finding]:
        # TensorFlow does not build with CUDA alone; another repository may.
        wanted = self.recipe.host.cudnn or ""
        if self.recipe.source.own_interface and not wanted:
            return
        prefixes = self.places.prefixes
        row = self.row
        found = nvidia.library(self.host.place, "cudnn", prefixes)
        # From 9 on they are on another page.
        folder = "cudnn-archive" if is_newer(wanted, "8") else "rdp/cudnn-archive"
        remedy = self._how_to_get(
            "cudnn",
            cudnn=wanted,
            archive=_cudnn_archive(self.recipe.host.cuda or "", wanted),
            page=f"https://developer.nvidia.com/{folder}",
        )
        if not found:
            yield _missing_finding("cuDNN", prefixes, wanted, remedy)
        elif wanted and not is_of_line(found.value, wanted):
            other = _version_finding("cuDNN", found, wanted, remedy)
            # Then ./configure takes the one for the other.
            first, last = MAJOR_ONLY
            cut = first <= self.recipe.source.release <= last
            alike = version_numbers(found.value)[0] == version_numbers(wanted)[0]
            yield replace(other, blocks="") if cut and alike else other
        elif row and not is_within(found.value, *row.cudnn):
            # configure takes it, since it compares only with the version that was answered.
            yield Finding(
                f"cuDNN {found} for CUDA {row.version}",
                f"cuDNN {range_text(*row.cudnn)}",
                remedy,
                blocks="compile",
                why=row.source("cudnn"),
            )

    def one_root(self) -> Iterator[Finding]:
        """Look for cuDNN in CUDA's own root, which NVIDIA's fork needs."""
        # The fork includes cudnn.h from files whose include path has CUDA's own root only.
        if not self.recipe.source.url.startswith("https://github.com/NVIDIA/"):
            return
        root = self.places.toolkit
        apart = nvidia.library(self.host.place, "cudnn", self.places.prefixes)
        if apart and not nvidia.library(self.host.place, "cudnn", [root]):
            yield Finding(
                f"cuDNN's headers are not in {root}",
                "CUDA and cuDNN in one root",
                toolkit_ways.remedy(self.recipe, "cudnn", self.host)
                or f"Copy cuDNN into {root}, or link it there.",
                blocks="compile",
                why=f"bias_op_gpu.cu.cc does not find cudnn.h otherwise; {apart.by}",
            )

    def nccl(self) -> Iterator[Finding]:
        # Without a version, TensorFlow compiles the NCCL that its own tree names.
        if self.recipe.configure.answers.get("TF_NCCL_VERSION") and self.recipe.host.nccl:
            yield from self._library("nccl")

    def tensorrt(self) -> Iterator[Finding]:
        if self.recipe.configure.agrees_to("TF_NEED_TENSORRT"):
            yield from self._library("tensorrt")

    def _library(self, part: PartName) -> Iterator[Finding]:
        """Compare a library that is installed into the toolkit, or next to it, with the recipe."""
        title = nvidia.LIBRARIES[part].title
        wanted = getattr(self.recipe.host, part) or ""
        prefixes = self._prefixes
        found = nvidia.library(self.host.place, part, prefixes)
        remedy = self._how_to_get(part, version=wanted)
        if not found:
            yield _missing_finding(title, prefixes, wanted, remedy)
        elif wanted and not is_of_line(found.value, wanted):
            yield _version_finding(title, found, wanted, remedy)

    def host_compiler(self) -> Iterator[Finding]:
        # With TF_CUDA_CLANG, clang compiles the device code itself, and nvcc has no host compiler.
        if self.recipe.configure.agrees_to("TF_CUDA_CLANG"):
            return
        answered = self.recipe.configure.answers.get("GCC_HOST_COMPILER_PATH")
        # The host file wins over the recipe; without either, nvcc takes gcc from PATH.
        program = str(self.host_file.compiler or answered or "gcc")
        line = toolchain.version_line(self.host.place, program)
        compiler = toolchain.parse_version(line.value)
        if compiler is None:
            yield Finding(
                f"no compiler at {program}",
                "the host compiler of nvcc",
                self._how_to_get("compiler"),
                blocks="configure",
            )
        elif compiler.family == "Apple clang":
            row = compatibility.mac(self.recipe.host.cuda or "")
            # On macOS the rule is in nvcc itself, so the table is the only source for it.
            if row and is_newer(compiler.version, row.clang):
                remedy = self.host.remedy("xcode", xcode=self.recipe.host.xcode or row.xcode)
                yield Finding(
                    f"{compiler} with CUDA {row.cuda}",
                    f"Apple clang {row.clang} or earlier, of Xcode {row.xcode}",
                    remedy,
                    blocks="compile",
                    why=row.why,
                )
        else:
            yield from self._compiler_too_new(compiler)

    def _compiler_too_new(self, compiler: toolchain.Compiler) -> Iterator[Finding]:
        """Compare gcc or clang with what CUDA and the recipe accept."""
        place, row = self.places.toolkit, self.row
        # The header of another CUDA states the limits of that one.
        right = all(
            is_of_line(seen.value, self.recipe.host.cuda or "") for seen in self.cuda_versions
        )
        ceiling = nvidia.ceiling(self.host.place, place) if right else nvidia.UNKNOWN
        if compiler.family == "clang":
            yield from _clang_too_new(compiler, ceiling)
            return
        # CUDA's own header is the best source; the table serves hosts that do not have it yet.
        rules = [(ceiling.gcc, ceiling.by)]
        if row and not ceiling.gcc:
            rules.append((row.gcc, row.source("gcc")))
        rules.append((self.recipe.host.gcc or "", "the recipe"))
        for newest, why in rules:
            if newest and is_newer(compiler.version, newest):
                yield self._gcc_too_new(compiler, newest, why)
                # One finding is enough: an older gcc may well satisfy the other rules, too.
                return

    def _gcc_too_new(self, compiler: toolchain.Compiler, newest: str, why: str) -> Finding:
        packaged = compatibility.packaged_versions(self.host.release.value, "gcc")
        fitting = [gcc for gcc in packaged or () if not is_newer(gcc, newest)]
        remedy = self.host.remedy("gcc", gcc=fitting[-1] if fitting else newest)
        if packaged and not fitting:
            remedy = (
                f"{self.host.release} has gcc {', '.join(packaged)} only: build in the container "
                "of an older distribution, as docs/containers.md shows"
            )
        return Finding(
            f"{compiler} as the host compiler of nvcc",
            f"gcc {newest} or earlier",
            toolkit_ways.remedy(self.recipe, "compiler", self.host) or remedy,
            blocks="compile",
            why=why,
        )

    def contradictions(self) -> Iterator[Finding]:
        for found in hermetic.contradictions(self.recipe, self.downloads):
            yield Finding(
                found.what, "a recipe of one mind", found.remedy, blocks="compile", why="the recipe"
            )

    def local_folders(self) -> Iterator[Finding]:
        stated = cuda.Stated.by(self.recipe)
        for variable, folders in hermetic.LOCAL_FOLDERS.items():
            root = stated.of(variable)
            exists = self.host.place.exists
            lacking = [name for name in folders if root and not exists(Path(root) / name)]
            if lacking:
                what, link = f"{root} does not exist", ""
                if exists(Path(root)):
                    what = f"{root} has no {', '.join(lacking)}"
                    link = f", or link them: ln -s lib64 {root}/lib"
                yield Finding(
                    what,
                    f"{', '.join(folders)} in {variable}, as NVIDIA's archives have them",
                    f"Name a directory that has them{link}",
                    blocks="compile",
                    why="the rules of the tree link these directories",
                )

    def driver(self) -> Iterator[Finding]:
        has = self.host.driver
        # Where nvidia-smi answered, it need not be asked again.
        if not has.by.startswith("nvidia-smi ") and (fault := nvidia.driver_fault(self.host.place)):
            yield self._broken_driver(fault)
            return
        # The table has the drivers for Linux only.
        row = self.row if self.host.system == "Linux" else None
        gpu = next((gpu.capability for gpu in self.host.gpus), "")
        needed = compatibility.drivers(row, gpu, self.recipe.host.driver or "")
        why = needed.source
        misfit = needed.misfit(has.value)
        if (has and not misfit) or not why:
            return
        # Only a note: wheels are often built on hosts without a GPU.
        found = f"driver {has}" if has else "no NVIDIA driver"
        wanted = f"{needed}, to run the wheel; it is built without one"
        if not needed.exist:
            found, wanted = f"{self.host.gpus[0]}", f"a GPU of today's drivers: the wheel {misfit}"
        yield Finding(
            found,
            wanted,
            self._how_to_get_driver(needed),
            why=f"{why}, against {has.by}" if has else why,
        )

    def _broken_driver(self, fault: Seen) -> Finding:
        """Judge what nvidia-smi says of a driver that is installed and does not work."""
        # Few hosts come here, and the table of known failures is large.
        from tfwright.diagnosis import reader

        # nvidia-smi ends with an empty line and adds advice after the first sentence.
        message = fault.value.splitlines()[0]
        found = reader.read(BytesIO(message.encode())).matches
        remedy = (
            f"Run '{fault.by}', which must print the driver's version. What the driver reports: "
            "dmesg | grep -i nvrm"
        )
        return Finding(
            f"nvidia-smi fails: {message}",
            "a driver that answers, to run the wheel; it is built without one",
            found[0].remedy if found else remedy,
            why=found[0].cause if found else fault.by,
        )

    def _how_to_get_driver(self, needed: compatibility.Drivers) -> str:
        """Say how to get a driver, by the newest that this distribution packages."""
        if not needed.exist:
            return "Take a recipe with an older CUDA: 'invoke match' names those for this GPU."
        packaged = compatibility.packaged_drivers(self.host.release.value)
        package = [name for line, name in packaged.items() if not needed.misfit(line)][-1:]
        if package or self.host.wsl or self.host.installer != "apt-get":
            debian = "   # from contrib and non-free" if "Debian" in self.host.release.value else ""
            named = "".join(package) + debian
            return self.host.remedy("driver", drivers=str(needed), package=named)
        only = f"{self.host.release} packages driver {', '.join(packaged)} only. "
        return (only if packaged else "") + (
            f"Install driver {needed} from https://www.nvidia.com/drivers, then restart."
        )

    def stubs(self) -> Iterator[Finding]:
        named = self.host.place.env.get("LD_LIBRARY_PATH", "").split(":")
        found = [path for path in named if Path(path).name == "stubs"]
        if found and not self.host.place.enclosed:
            yield Finding(
                f"LD_LIBRARY_PATH names {found[0]}",
                "the driver's own libcuda, to run the wheel",
                f"Take {found[0]} out of LD_LIBRARY_PATH: programs load the stub of libcuda there, "
                "which knows no GPU (cuInit: error 34).",
                why="the environment",
            )

    def gpus(self) -> Iterator[Finding]:
        # A driver that does not report the capability gives no finding: the wheel may well run.
        built = self.in_force.capabilities if self.in_force else []
        for gpu in self.host.gpus if built else ():
            if gpu.capability and not cuda.runs_on(built, gpu.capability):
                remedy = (
                    "Add its compute capability to the recipe's; 'invoke match' names recipes that "
                    "have it."
                )
                yield Finding(
                    f"{gpu}",
                    f"one of {', '.join(built)}, which the wheel has code for",
                    remedy,
                    why=f"the recipe, against {gpu.by}",
                )

    def nouveau(self) -> Iterator[Finding]:
        if nvidia.nouveau(self.host.place):
            yield Finding(
                "the nouveau driver is loaded",
                "NVIDIA's driver, which cannot load while nouveau is loaded",
                self.host.remedy("nouveau"),
                why=DISABLING_NOUVEAU,
            )

    def protection(self) -> Iterator[Finding]:
        """Look for macOS's System Integrity Protection."""
        # Tools that the build itself made load CUDA by DYLD_LIBRARY_PATH. With protection on, macOS
        # removes that variable from whatever /bin/sh starts.
        mac = self.host.system == "Darwin"
        if mac and nvidia.protection(self.host.place).value == "enabled":
            yield Finding(
                "System Integrity Protection is on",
                "off while building, or DYLD_LIBRARY_PATH is lost",
                self.host.remedy("protection"),
                why=SHIELDED,
            )


def _versions_by_witness(witnesses: Iterable[Seen]) -> str:
    """Say which file or program names which version."""
    return ", ".join(f"{seen} by {Path(seen.by.split()[0]).name}" for seen in witnesses)


def _major_minor(version: str) -> str:
    """Return major and minor version; patch levels of one CUDA may differ from file to file."""
    return ".".join(version.split(".")[:2])


def _missing_finding(title: str, places: Iterable[Path], wanted: str, remedy: str) -> Finding:
    return Finding(
        f"no {title} at {' or '.join(map(str, places))}",
        f"{title} {wanted}".rstrip(),
        remedy,
        blocks="configure",
    )


def _version_finding(title: str, found: Seen, wanted: str, remedy: str) -> Finding:
    return Finding(
        f"{title} {found}",
        f"{title} {wanted}",
        remedy,
        blocks="configure",
        why=f"the recipe, against {found.by}",
    )


def _cudnn_archive(toolkit: str, wanted: str) -> str:
    """Return what the name of NVIDIA's archive of a cuDNN looks like."""
    if is_newer("8.3", wanted):
        return f"cudnn-{toolkit}-*-v{wanted}*.tgz"
    # Since then it names the major version of CUDA only.
    major = toolkit.partition(".")[0]
    return f"cudnn-linux-x86_64-{wanted}*_cuda{major}*-archive.tar.xz"


def _clang_too_new(compiler: toolchain.Compiler, ceiling: nvidia.Ceiling) -> Iterator[Finding]:
    # A header states the first clang that it refuses, and the last gcc that it takes.
    if ceiling.clang and not is_older(compiler.version, ceiling.clang):
        yield Finding(
            str(compiler),
            f"clang before {ceiling.clang}",
            "Name an older one in the recipe: GCC_HOST_COMPILER_PATH.",
            blocks="compile",
            why=ceiling.by,
        )


OF_INSTALLED = (
    CudaRequirements.toolkit,
    CudaRequirements.headers,
    CudaRequirements.cudnn,
    CudaRequirements.one_root,
    CudaRequirements.nccl,
    CudaRequirements.tensorrt,
    CudaRequirements.host_compiler,
)
"""Of a recipe whose CUDA has to be installed: for later releases Bazel downloads it."""
CHECKS = (
    CudaRequirements.contradictions,
    CudaRequirements.local_folders,
    CudaRequirements.nouveau,
    CudaRequirements.driver,
    CudaRequirements.stubs,
    CudaRequirements.gpus,
    CudaRequirements.protection,
)
"""Of any recipe that builds with CUDA. nouveau comes before the driver: it must be gone before
NVIDIA's driver can load."""
