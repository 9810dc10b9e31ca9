"""The command toolkit."""

from invoke import Context

from tfwright.options import OFFLINE, RECIPE, explained, job_of, task


@task(
    help=RECIPE
    | OFFLINE
    | {
        "cuda": "CUDA as downloaded: .run file for Linux, .tar.gz for macOS",
        "cudnn": "cuDNN as downloaded: .tgz, .tar.xz, wheel or .deb",
        "nccl": "NCCL as downloaded: .txz, wheel or .deb",
        "tensorrt": "TensorRT as downloaded: .tar.gz, wheel or .deb",
        "cuda-sha256": "with --cuda: checksum of that file, where the recipe pins none",
        "cudnn-sha256": "with --cudnn: checksum of that file",
        "nccl-sha256": "with --nccl: checksum of that file",
        "tensorrt-sha256": "with --tensorrt: checksum of that file",
        "licence-accepted": "state that you have read and accepted NVIDIA's licences",
    }
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
) -> None:
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
    with explained(recipe):
        from tfwright.terminal import text
        from tfwright.toolkit import providing as toolkits
        from tfwright.toolkit import sources

        job = job_of(recipe, offline=offline)
        downloaded = toolkits.downloaded(given)
        # Before the first part is put into place: half a toolkit serves no build.
        toolkits.insist(job.recipe, downloaded)
        store = sources.store(job.places.vault)
        supplier = sources.Supplier(
            store, job.host_file, job.listener, job.log("toolkit"), job.offline
        )
        installer = toolkits.Installer(job.recipe, supplier, job.locked, licence_accepted)
        for provided in installer.provide(downloaded):
            part = provided.part
            count = len(part.sources)
            origin = next(iter(part.sources)) if count == 1 else f"{count} packages"
            # Who accepted it stays with the toolkit: licences bind a person, not a machine.
            by = part.licence_accepted_by
            licence = f"; licence accepted by {by}" if by else ""
            text.tell(
                f"{provided.title} {part.version} from {origin} ({part.way}), "
                f"{len(part.files):,} files{licence}"
            )
            text.tell(f"  tree {part.tree}")
            print(provided.root)
