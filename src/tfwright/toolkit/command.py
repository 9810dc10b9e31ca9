"""The command toolkit."""

from collections.abc import Iterator

from invoke import Context

from tfwright.options import JSON, OFFLINE, RECIPE, job_of, task
from tfwright.terminal.answer import Answer, Shown


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
    """Obtain the CUDA, its libraries and the compiler that a recipe pins.

    With --cuda, --cudnn and so on, what you downloaded is unpacked instead. Builds of the recipe
    then find it. It needs no root and leaves /usr/local alone.
    """
    # Paths and checksums are separate options, and belong together here.
    given = {
        "cuda": (cuda, cuda_sha256),
        "cudnn": (cudnn, cudnn_sha256),
        "nccl": (nccl, nccl_sha256),
        "tensorrt": (tensorrt, tensorrt_sha256),
    }
    from tfwright.toolkit import page, sources
    from tfwright.toolkit import providing as toolkits

    job = job_of(recipe, offline=offline)
    downloaded = toolkits.downloaded(given)
    # Before the first part is put into place: half a toolkit serves no build.
    toolkits.insist(job.recipe, downloaded)
    store, log = sources.store(job.places.vault), job.log("toolkit")
    supplier = sources.Supplier(store, job.host_file, job.listener, log, job.offline)
    installer = toolkits.Installer(job.recipe, supplier, job.locked, licence_accepted)
    yield Answer([*installer.provide(downloaded)], page.show)
