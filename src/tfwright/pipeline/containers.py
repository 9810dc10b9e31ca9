"""Which stages run their programs in the recipe's container image, and what is visible there."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tfwright
from tfwright.documents import filesystem
from tfwright.errors import SupplyError
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    from tfwright.tools.container.engine import ContainerPlan


ONLINE = ("fetch",)
"""Its pip asks an index for the target Python's packages."""
ENCLOSED = ("check", *ONLINE, "configure", "compile", "nccl", "package", "verify")
"""Source and seal run nothing but git and Python, on the host."""
CLIENT_FILES = ("/etc/pip.conf", "~/.config/pip", "~/.pip", "/etc/ssl/certs")
"""What tells this host's pip which index it asks, and whose certificates it believes."""


@contextmanager
def stage_container(job: RecipeJob, stage: str) -> Iterator[None]:
    """Let a stage's programs run in the recipe's image, if it names one.

    Raises SupplyError if the image is not in the vault, HostError without an engine.
    """
    # Asked before the import: most recipes name no image, and need no engine.
    if not has_container(job, stage):
        yield
        return
    from tfwright.tools.container import engine

    pull_image(job)
    # The container sees build_out, and has a /tmp of its own.
    temporary = job.places.own / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    with engine.running_container(plan(job, stage)):
        # Where programs inside see them as well.
        before, tempfile.tempdir = tempfile.tempdir, str(temporary)
        try:
            yield
        finally:
            tempfile.tempdir = before
            files.remove(temporary)


def pull_image(job: RecipeJob) -> None:
    """Pull the recipe's image from its registry if the vault lacks it.

    Already the first stage runs in it, so that this cannot wait for `fetch`. Raises SupplyError.
    """
    from tfwright.tools.container import image, registry

    pinned = job.recipe.host.image
    vault = job.places.vault
    if pinned is None or job.offline or image.path_of(vault, pinned.digest).is_dir():
        return
    job.listener.note(f"Pulling the container image {pinned.shown}")
    registry.pull(pinned.name, pinned.digest, vault)


def has_container(job: RecipeJob, stage: str) -> bool:
    """Say whether a stage's programs run in a container."""
    return job.recipe.host.image is not None and stage in ENCLOSED


def steps(job: RecipeJob, stage: str) -> Sequence[Command]:
    """Return the command that starts a stage's container, if it has one and the image is here."""
    # Also for recipes without an image, so that callers need not ask.
    if not has_container(job, stage):
        return ()
    from tfwright.tools.container import engine

    try:
        return (engine.start_command(plan(job, stage), Path("@ROOM@")),)
    # The first stage pulls the image, so the first plan of a recipe cannot show the command.
    except SupplyError:
        return ()


def plan(job: RecipeJob, stage: str) -> "ContainerPlan":
    """Return how the container of a stage is started. Raises SupplyError."""
    from tfwright.tools.container import engine, image
    from tfwright.tools.container.engine import ContainerPlan

    pinned = job.recipe.host.image
    table = job.host_file.container
    if pinned is None:
        raise ValueError(f"{job.name} names no image")
    # Every other stage works on what fetch brought, and proves it by having no network.
    online = stage in ONLINE and not job.offline
    build_out = job.places.build_out
    build_out.mkdir(parents=True, exist_ok=True)
    # The demo's tree and the smoke programs are run from here.
    readable = [Path(tfwright.__file__).parent]
    readable += filter(None, (job.host_file.cuda, job.host_file.cudnn))
    # Only where there is a network: pip's settings can hold the password of an index.
    client = map(filesystem.expand_home, CLIENT_FILES if online else ())
    # Another build_out may share the vault of this one by a link.
    shared = (job.places.vault.resolve(), job.places.git.resolve())
    outside = (path for path in shared if not path.is_relative_to(build_out.resolve()))
    return ContainerPlan(
        image=image.find_image(job.places.vault, pinned.digest),
        job=f"{job.places.own}",
        # By the same path inside as outside: Bazel and ./configure write absolute paths down.
        writable=(build_out, *outside),
        readable=(*readable, *filter(Path.exists, client)),
        network=online,
        runtime=table.runtime,
        options=table.options,
        engine=engine.choose(table.engine),
    )
