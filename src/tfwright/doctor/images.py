"""The container image of a recipe: whether this host has it, and its registry still does."""

import shutil
from collections.abc import Iterator
from dataclasses import replace

from tfwright.doctor.inventory import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ImageTable, Recipe


def without_engine(host_file: HostFile) -> Iterator[Finding]:
    """Yield the finding for a host that cannot run any image."""
    # Every build imports this module, and most recipes name no image.
    from tfwright.tools.container import engine

    program = engine.choose(host_file.container.engine)
    if not engine.is_installed(program):
        yield Finding(
            f"no {program}",
            "podman or Docker, to run the recipe's container image",
            f"apt install {engine.PACKAGES[program]}",
            "check",
        )


def missing_image(recipe: Recipe, host_file: HostFile) -> Iterator[Finding]:
    """Yield the finding for an image that the vault lacks; no registry is asked."""
    pinned = recipe.host.image
    if pinned is None:
        return
    from tfwright.tools.container import image, registry

    if image.path_of(host_file.build_out / "vault", pinned.digest).is_dir():
        return
    if not registry.names_registry(pinned.name):
        # A name without a registry: the image was made here or on another host.
        yield _image_finding(recipe, pinned, "no registry has it")
        return
    remedy = f"invoke image --recipe {recipe.argument} --pull  # or build, which pulls it"
    yield Finding("the container image is not here yet", pinned.shown, remedy, "check")


def findings(recipe: Recipe, host_file: HostFile) -> Iterator[Finding]:
    """Yield what is wrong with the image of a recipe; its registry is asked."""
    pinned = recipe.host.image
    if pinned is None:
        return
    from tfwright.tools.container import registry

    yield from without_engine(host_file)
    absent = [*missing_image(recipe, host_file)]
    if not registry.names_registry(pinned.name):
        yield from absent
        return
    presence, answer = registry.ask(pinned.name, pinned.digest)
    why = f"{pinned.name}@{pinned.digest} ({answer}, asked just now)"
    if presence == "there":
        # A build pulls it, so that this stops none.
        yield from (replace(finding, blocks="", why=why) for finding in absent)
    elif absent and presence == "no answer" and not shutil.which("skopeo"):
        yield Finding("no skopeo", "it pulls the recipe's image", "apt install skopeo", "check")
    elif absent:
        yield _image_finding(recipe, pinned, f"its registry says {answer}")
    elif presence == "gone":
        yield Finding(
            "the image is gone from its registry",
            pinned.shown,
            f"invoke bundle --recipe {recipe.argument} "
            "--output FILE  # keeps it apart from the vault",
            why=why,
        )


def _image_finding(recipe: Recipe, pinned: ImageTable, reason: str) -> Finding:
    """Return the finding for an image that this host cannot obtain."""
    command = "invoke image --add ROOTFS.tar"
    if pinned.containerfile:
        command = f"invoke image --recipe {recipe.argument} --build"
    return Finding(
        f"no container image; {reason}",
        pinned.shown,
        f"{command}\ninvoke bundle --unpack FILE  # of a host that has it",
        "check",
    )
