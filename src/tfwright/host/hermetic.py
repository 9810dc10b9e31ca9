"""What in a recipe contradicts its CUDA, above all one that Bazel downloads (TensorFlow 2.18 on).

Three places state that one: the answers to ./configure, the flags of compile, which win, and the
tree's own .bazelrc, which holds where both are silent.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import CompileTable, ConfigureTable, HostTable, Recipe, SourceTable
from tfwright.facts import compatibility
from tfwright.facts.compatibility import NVSHMEM_13, is_newer, is_of_line, is_older
from tfwright.host import cuda
from tfwright.host.cuda import CAPABILITIES, CudaInForce, architectures
from tfwright.rules import configurations, listings, tree_files
from tfwright.rules.listings import Environment
from tfwright.tools.git import mirror
from tfwright.tools.git.mirror import Origin
from tfwright.tools.git.repository import GitRepository

ANOTHER_CUDA = "see 'Another CUDA' in docs/vault.md"
LOCAL_FOLDERS = {
    "LOCAL_CUDA_PATH": ("include", "lib", "bin", "nvvm"),
    "LOCAL_CUDNN_PATH": ("include", "lib"),
    "LOCAL_NCCL_PATH": ("include", "lib"),
}
"""The directories that the rules of a tree link; Bazel takes one that is missing for empty."""
CUDA_CLANG = "--config=cuda_clang"
"""What chooses clang in every tree; the other names of `cuda.BY_CLANG` came with 2.15."""
WHEEL = ":wheel"
WITHOUT_CUDA = "--config=cuda_wheel"
"""Keeps CUDA's libraries out of the wheel, which its rule in the tree insists on."""
_WITH_CUDA = re.compile("--config=(?!cuda_version).*(cuda|nvcc|gpu)")
"""The configurations of the tree that include them; of two such the later one holds."""
_EITHER = re.compile("--@.*:override_include_cuda_libs(=true|=yes|=1)?", re.IGNORECASE)
"""Lets the rule take both."""


@dataclass(frozen=True)
class Contradiction:
    """Two parts of a recipe that cannot both hold."""

    key: tuple[str, ...]
    """The key in the recipe to correct: ``("configure", "answers", "HERMETIC_CUDA_VERSION")``."""
    what: str
    remedy: str


def downloads(recipe: Recipe, host_file: HostFile) -> compatibility.Hermetic | None:
    """Return the CUDA that Bazel downloads for the commit of a recipe; None for the host's CUDA.

    What no repository on this host shows is that of the release. No server is asked.
    """
    source = recipe.source
    known = compatibility.hermetic(source.release)
    tree = known and not source.bundled and _repository_here(source.url, host_file)
    if not (known and tree):
        return known
    texts = GitRepository(tree).texts_at(source.commit, tree_files.TOOLCHAINS)
    url, commit = tree_files.toolchain_of(texts)
    toolchain = _repository_here(url, host_file) if url else None
    lists: Mapping[str, str] = {}
    if toolchain:
        lists = GitRepository(toolchain).texts_at(commit, tree_files.CUDA_LISTS)
    bazelrc = configurations.BAZELRCS[0]
    texts = tree_files.unpatched_texts(tree, source, [bazelrc])
    return listings.hermetic_of_commit(known, texts.get(bazelrc, ""), lists, url)


def _repository_here(url: str, host_file: HostFile) -> Path | None:
    """Return the repository that the host file names for a url, or else what fetch brought."""
    fetched = mirror.path_of(host_file.build_out / "git", url)
    places = Origin.of(host_file.mirror_of(url) or url).local, fetched
    return next((place for place in places if place and place.is_dir()), None)


def sysroot(recipe: Recipe) -> str:
    """Return the glibc that Bazel's own compiler links against; empty if the host's links."""
    tree = None if recipe.source.own_interface else cuda.downloading_clang(recipe)
    return tree.sysroot if tree and recipe.host.machine in {"any", *tree.clang_downloaded} else ""


def environment(
    source: SourceTable, host: HostTable, configure: ConfigureTable, compiled: CompileTable
) -> Environment:
    """Return what chooses among the files that a tree lists: CUDA's, NCCL's, Python's."""
    stated = cuda.Stated(configure.answers, compiled.flags)
    python = stated.of("HERMETIC_PYTHON_VERSION") or stated.of("TF_PYTHON_VERSION")
    variables = {"HERMETIC_PYTHON_VERSION": python or host.python}
    tree = compatibility.hermetic(source.release)
    if tree and not source.own_interface and configure.agrees_to("TF_NEED_CUDA"):
        variables |= {name: stated.of(name) or value for name, value in tree.variables.items()}
    local = {
        variable
        for variable in variables
        if stated.of(variable.replace("HERMETIC", "LOCAL").replace("VERSION", "PATH"))
    }
    if url := stated.of("HERMETIC_PYTHON_URL"):
        variables["HERMETIC_PYTHON_URL"] = url
        variables["HERMETIC_PYTHON_SHA256"] = stated.of("HERMETIC_PYTHON_SHA256")
        # The tree's own list of interpreters is then not used.
        local.add("HERMETIC_PYTHON_VERSION")
    platform = (host.system, host.machine)
    # Without the variable that a flag or an answer sets, these rules make an empty repository.
    idle = tuple(
        f"/{name}_configure.bzl"
        for name in ("rocm", "sycl")
        if not configure.agrees_to(f"TF_NEED_{name.upper()}")
        and not any(name in flag.lower() for flag in compiled.flags)
    )
    answers = {name: answer for name in variables if (answer := stated.answer(name))}
    tars = frozenset(name for name in listings.TARS.values() if compiled.env.get(name))
    return Environment(variables, frozenset(local), platform, compiled.flags, answers, idle, tars)


def _names_no_gpu(recipe: Recipe) -> bool:
    return recipe.configure.answers.get(CAPABILITIES[1]) == ""


def contradictions(recipe: Recipe, tree: compatibility.Hermetic | None) -> Iterator[Contradiction]:
    """Yield what makes a build fail, or a wheel be refused, whatever the host; the worst first.

    `tree` is as for `cuda.in_force`.
    """
    found = cuda.in_force(recipe, tree)
    if found is None:
        return
    source = "the tree's default" if found.by_default else "as the recipe states"
    tree = tree if found.downloaded else None
    if tree:
        yield from _version_conflicts(recipe, found, tree)
        yield from _nvshmem_conflicts(recipe, found, tree)
    variable = "HERMETIC_CUDA_VERSION" if tree else "TF_CUDA_COMPUTE_CAPABILITIES"
    version = ("configure", "answers", variable)
    # An empty answer has a finding of its own, and none for each GPU of the default.
    named = () if _names_no_gpu(recipe) else found.architectures
    gpus = {name: cuda.capability(name) for name in named}
    if row := compatibility.cuda(found.version):
        if not found.downloaded:
            yield from _gcc_conflicts(recipe, row)
        beyond = [name for name, gpu in gpus.items() if not row.compiles_for(gpu)]
        if beyond:
            yield Contradiction(
                version,
                f"CUDA {found.version}, {source}, does not compile {', '.join(beyond)}",
                f"It takes compute capabilities {' to '.join(row.capabilities)}: correct those of "
                "the recipe, or name another CUDA.",
            )
    if newest := compatibility.clang_capability(found.clang):
        beyond = [name for name, gpu in gpus.items() if is_newer(gpu, newest)]
        if beyond:
            least = compatibility.clang_for(gpus[beyond[0]])
            # Whatever path is answered, it is not used then.
            own = cuda.downloading_clang(recipe)
            which = f"{found.clang}, which Bazel downloads," if own else found.clang
            local = f'Add "--config=clang_local" for the host\'s clang, {least}' if own else ""
            yield Contradiction(
                ("configure", "answers", "CLANG_CUDA_COMPILER_PATH"),
                f"clang {which} compiles for GPUs to {newest}, and not {', '.join(beyond)}",
                f"{local or f'Name clang {least}'} or later, or let nvcc compile: TF_CUDA_CLANG = "
                'false and "--config=cuda_nvcc".',
            )
    yield from _compiler_conflicts(recipe, cuda.BY_CLANG if tree else {CUDA_CLANG})
    yield from _clang_conflicts(recipe, found)
    if tree:
        yield from _wheel_conflicts(recipe, found)


def _compiler_conflicts(recipe: Recipe, by_clang: Collection[str]) -> Iterator[Contradiction]:
    """Yield a flag that has the kernels compiled by another compiler than is answered."""
    clang = recipe.configure.answers.get("TF_CUDA_CLANG")
    if not isinstance(clang, bool):
        return
    answer, instead = ("true", "false") if clang else ("false", "true")
    other, flags = ("nvcc", {"--config=cuda_nvcc"}) if clang else ("clang", by_clang)
    for flag in recipe.compile.flags:
        if flag in flags:
            yield Contradiction(
                ("compile", "flags"),
                f"TF_CUDA_CLANG is {answer}, and {flag} makes {other} compile the kernels",
                f"Remove {flag}, or answer TF_CUDA_CLANG = {instead}.",
            )


def _gcc_conflicts(recipe: Recipe, row: compatibility.Cuda) -> Iterator[Contradiction]:
    """Yield a gcc, as a path or [host] names it, that is newer than CUDA's nvcc takes."""
    variable = "GCC_HOST_COMPILER_PATH"
    path = re.search(r"gcc-(\d+)$", cuda.Stated.by(recipe).of(variable))
    version = path[1] if path else recipe.host.gcc or ""
    newest, why = compatibility.gcc(recipe.source.release, row)
    if version and is_newer(version, newest):
        yield Contradiction(
            ("configure", "answers", variable) if path else ("host", "gcc"),
            f"gcc {version} is newer than those which CUDA {row.version} and this release take",
            f"Name gcc {newest} or earlier, {why}.",
        )


def _version_conflicts(
    recipe: Recipe, found: CudaInForce, tree: compatibility.Hermetic
) -> Iterator[Contradiction]:
    """Yield the versions that are not those of [host], or that the tree lists no archives of."""
    release = recipe.source.release
    stated = cuda.Stated.by(recipe)
    for name, version, listed, wanted in (
        ("CUDA", found.version, tree.cudas, recipe.host.cuda or ""),
        ("cuDNN", found.cudnn, tree.cudnns, recipe.host.cudnn or ""),
    ):
        answer, place = f"HERMETIC_{name.upper()}_VERSION", f"LOCAL_{name.upper()}_PATH"
        fitting = [one for one in listed if is_of_line(one, wanted or version)]
        remedy = (
            f"TensorFlow {release} lists {name} to {listed[-1]}. For another one, {ANOTHER_CUDA}."
        )
        if fitting:
            remedy = f'Answer {answer} = "{fitting[-1]}", or another {wanted} that the tree lists.'
        # A patch may add to the lists.
        listing = version in listed or recipe.source.patches
        if stated.of(place):
            remedy = f"Answer {answer} with the full version of what is at {place}."
            listing = True
        what = f"TensorFlow {release} lists no {name} {version}"
        if wanted and not is_of_line(version, wanted):
            source = "as the recipe states" if stated.of(answer) else "the tree's default"
            what = f"Bazel takes {name} {version}, {source}; [host] names {wanted}"
        elif listing:
            continue
        yield Contradiction(("configure", "answers", answer), what, remedy)


def _nvshmem_conflicts(
    recipe: Recipe, found: CudaInForce, tree: compatibility.Hermetic
) -> Iterator[Contradiction]:
    """Yield an NVSHMEM that NVIDIA has no archive of for this CUDA."""
    variable = "HERMETIC_NVSHMEM_VERSION"
    version = cuda.Stated.by(recipe).of(variable) or tree.nvshmem
    if is_older(found.version, "13") or not (tree.nvshmems and is_older(version, NVSHMEM_13)):
        return
    remedy = f"The tree lists NVSHMEM to {tree.nvshmems[-1]}. For another one, {ANOTHER_CUDA}."
    if wanted := tree.nvshmem_for(found.version):
        remedy = f'Add "--repo_env={variable}={wanted}", or a later one, to compile.flags.'
    what = f"NVSHMEM {version} has no archive for CUDA {found.version}, as {NVSHMEM_13} has"
    yield Contradiction(("compile", "flags"), what, remedy)


def _overridden_gpus(recipe: Recipe, found: CudaInForce) -> str:
    """Return the answered GPUs, if the configuration cuda_clang of the tree has others."""
    stated, variable = cuda.Stated.by(recipe), CAPABILITIES[found.downloaded]
    answered = stated.answer(variable)
    same = set(architectures(answered)) == set(found.architectures)
    return "" if same or stated.flag(variable) else answered


def _clang_conflicts(recipe: Recipe, found: CudaInForce) -> Iterator[Contradiction]:
    """Yield what the configuration cuda_clang of the tree makes of the answers."""
    if answered := _overridden_gpus(recipe, found):
        yield Contradiction(
            ("compile", "flags"),
            "the configuration cuda_clang of the tree overrides the answered GPUs by "
            f"{', '.join(found.architectures)}",
            "Repeat them in compile.flags: "
            f'"--repo_env={CAPABILITIES[found.downloaded]}={answered}".',
        )
    release, without = recipe.source.release, "--repo_env=TF_NEED_TENSORRT=0"
    if (
        cuda.compiled_by_clang(recipe)
        and not recipe.source.own_interface
        and compatibility.clang_configuration(release)
        and not recipe.configure.agrees_to("TF_NEED_TENSORRT")
        and without not in recipe.compile.flags
    ):
        yield Contradiction(
            ("compile", "flags"),
            "the configuration cuda_clang of the tree turns TensorRT on, whatever ./configure was "
            "answered",
            f'Add "{without}" to compile.flags, or answer TF_NEED_TENSORRT = true.',
        )


def _wheel_conflicts(recipe: Recipe, found: CudaInForce) -> Iterator[Contradiction]:
    """Yield what verify or the rule of the wheel refuses."""
    made = ", ".join(found.architectures)
    lacking = set(recipe.verify.architectures) - set(found.architectures)
    if lacking and not (_overridden_gpus(recipe, found) or _names_no_gpu(recipe)):
        yield Contradiction(
            ("verify", "architectures"),
            f"verify.architectures wants {', '.join(sorted(lacking))}, which is not compiled",
            f"What is compiled is {made}: make the two agree.",
        )
    flags = recipe.compile.flags
    if not recipe.compile.target.endswith(WHEEL) or any(map(_EITHER.fullmatch, flags)):
        return
    deciding = [flag for flag in flags if _WITH_CUDA.match(flag)]
    if deciding[-1:] != [WITHOUT_CUDA]:
        remedy = f'Add "{WITHOUT_CUDA}" to compile.flags.'
        if WITHOUT_CUDA in flags:
            remedy = f"Write {WITHOUT_CUDA} behind {deciding[-1]}, which includes them again."
        what = "the rule of the wheel refuses CUDA's libraries among its files"
        yield Contradiction(("compile", "flags"), what, remedy)
