"""The properties of this host that affect a build, for the stages and for the build record."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import cuda, probes, pythons, toolchain
from tfwright.host.probes import Host
from tfwright.pipeline.results import HostFacts

if TYPE_CHECKING:
    from tfwright.wheel.seal.build_record import Found


def facts(recipe: Recipe, host_file: HostFile, host: Host, interpreter: Path) -> HostFacts:
    """Return what of a host takes part in a build with this interpreter."""
    # Only what the recipe uses: a CUDA that appears on the host must not rebuild a CPU wheel.
    toolkit, cudnn = cuda.CudaPlaces(recipe, host_file).present_paths(host.place)
    programs = toolchain.named_compilers(recipe, host_file)
    named = (toolchain.version_line(host.place, program) for program in programs)
    return HostFacts(
        system=host.system,
        machine=host.machine,
        glibc=host.glibc.value,
        interpreter=interpreter,
        python=pythons.version_of(interpreter),
        compiler=host.compiler.value,
        named=tuple(dict.fromkeys(filter(None, (line.value for line in named)))),
        cuda=toolkit,
        cudnn=cudnn,
        toolkit=_toolkit_digest(recipe, host_file, toolkit),
    )


def _toolkit_digest(recipe: Recipe, host_file: HostFile, toolkit: Path | None) -> str:
    """Return one digest for the toolkit and its compiler, as their records state them.

    Raises SupplyError where a file of them is not as its record says: Bazel does not look.
    """
    # By where the compiler is, not by build_out: `reproduce` builds below another directory.
    program = host_file.compiler
    compiler = program.parent.parent.parent if program else None
    if not cuda.CudaPlaces(recipe, host_file).of_host:
        toolkit = None
    roots = [root for root in (toolkit, compiler) if root]
    if not roots:
        return ""
    from tfwright.toolkit import tree

    for root in roots:
        tree.check_tree(root, recipe.argument)
    records = [tree.read(root) for root in roots]
    # A toolkit that NVIDIA's installer put there has no record, and costs gigabytes to hash.
    digests = [record.tree for record in records if record.parts]
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else ""


def for_record(recipe: Recipe, host_file: HostFile, host: HostFacts) -> "Found":
    """Return what of the host takes part in the bytes: versions, not places."""
    from tfwright.host import nvidia
    from tfwright.wheel.seal.build_record import Found

    place = probes.this_host().place
    # A CUDA of the image is known by the image's digest; the host's would be another.
    places = cuda.CudaPlaces(recipe, host_file)
    toolkits = nvidia.cuda(place, host.cuda) if host.cuda and places.of_host else []
    every = places.prefixes if places.of_host else []
    cudnn = nvidia.library(place, "cudnn", every).value if host.cudnn else ""
    # Without CUDA the recipe uses none of the libraries that may lie in these places.
    prefixes = every if host.cuda else []
    return Found(
        system=host.system,
        machine=host.machine,
        glibc=host.glibc,
        python=host.python,
        compiler="; ".join(dict.fromkeys((host.compiler, *host.named))),
        cuda=toolkits[0].value if toolkits else "",
        cudnn=cudnn,
        nccl=nvidia.library(place, "nccl", prefixes).value or None,
        tensorrt=nvidia.library(place, "tensorrt", prefixes).value or None,
        toolkit=host.toolkit or None,
    )
