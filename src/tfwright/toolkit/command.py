"""The command toolkit."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, OFFLINE, RECIPE, job_of, task
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown

if TYPE_CHECKING:
    from tfwright.toolkit.providing import Provided


@task(
    needs={f"{part}-sha256": part for part in ("cuda", "cudnn", "nccl", "tensorrt")},
    help=RECIPE
    | JSON
    | OFFLINE
    | {
        "cuda": "CUDA as downloaded: .run file for Linux, .tar.gz for macOS",
        "cudnn": "cuDNN as downloaded: .tgz, .tar.xz, wheel or .deb",
        "nccl": "NCCL as downloaded: .txz, wheel or .deb",
        "tensorrt": "TensorRT as downloaded: .tar.gz, wheel or .deb",
        "cuda-sha256": "checksum of that file, where the recipe pins none",
        "cudnn-sha256": "checksum of that file",
        "nccl-sha256": "checksum of that file",
        "tensorrt-sha256": "checksum of that file",
        "licence-accepted": "state that you have read and accepted NVIDIA's licences",
    },
)
def toolkit(
    _: Context,
    recipe: str = "demo",
    cuda: str = "",
    cudnn: str = "",
    nccl: str = "",
    tensorrt: str = "",
    cuda_sha256: str = "",
    cudnn_sha256: str = "",
    nccl_sha256: str = "",
    tensorrt_sha256: str = "",
    licence_accepted: bool = False,
    offline: bool = False,
) -> Iterator[Shown]:
    """Download and unpack the CUDA, its libraries and the compiler that a recipe pins.

    With --cuda, --cudnn and so on, what you downloaded is unpacked instead. Builds of the recipe
    then find it. It needs no root and leaves /usr/local alone.
    """
    # Paths and checksums are separate options, and belong together here.
    options = {
        "cuda": (cuda, cuda_sha256),
        "cudnn": (cudnn, cudnn_sha256),
        "nccl": (nccl, nccl_sha256),
        "tensorrt": (tensorrt, tensorrt_sha256),
    }
    from tfwright.terminal import console
    from tfwright.toolkit import providing as toolkits
    from tfwright.toolkit import sources

    job = job_of(recipe, offline=offline)
    downloaded = toolkits.named_downloads(options)
    # Before the first part is put into place: half a toolkit serves no build.
    toolkits.check_wanted(job.recipe, downloaded, job.host_file)
    store, log = sources.store(job.places.vault), job.log("toolkit")
    supplier = sources.Supplier(store, job.host_file, job.listener, log, job.offline)
    installer = toolkits.Installer(job.recipe, supplier, job.locked, licence_accepted)
    with console.working(f"toolkit of {job.recipe.name}"):
        parts = [*(map(installer.install, downloaded) if downloaded else installer.obtain())]
    yield Answer(parts, show_parts)


def show_parts(parts: "Iterable[Provided]") -> None:
    """Print where each part is; what it is goes to people."""
    for provided in parts:
        part = provided.part
        sources = f"{len(part.sources)} packages"
        if len(part.sources) == 1:
            sources = next(iter(part.sources))
        # Who accepted it stays with the toolkit: licences bind a person, not a machine.
        by = part.licence_accepted_by
        text.tell(
            f"{provided.title} {part.version} from {sources} ({part.way}), "
            f"{len(part.files):,} files{f'; licence accepted by {by}' if by else ''}"
        )
        text.tell(f"  tree {part.tree}")
        print(provided.root)
