"""Images built by podman from a Containerfile, and kept in the vault by digest.

A second build of the same file gives another image as soon as a package of its distribution
changed. What a recipe pins is therefore the image that was made, not the file. Podman builds it,
also where Docker runs it: Docker before 25 gives no image in OCI's form.
"""

import re
from pathlib import Path

from tfwright.errors import HostError, RecipeError
from tfwright.tools import files
from tfwright.tools.container import engine, image
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import runner

IMAGE = re.compile(
    r"^[ \t]*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?[ \t]*$"
    r"|--from=(\S+)|--mount=\S*?\bfrom=([^,\s]+)",
    re.IGNORECASE | re.MULTILINE,
)
"""An image that a Containerfile names: a base, perhaps with the name of its stage, or one that
`COPY` and `RUN` take files of."""
PINNED = re.compile(r"(.+@)?sha256:[0-9a-f]{64}")


def insist_on_pins(containerfile: Path) -> None:
    """Refuse a Containerfile that names another image than by digest. Raises RecipeError."""
    try:
        text = files.text(containerfile, "strict")
    except (OSError, UnicodeDecodeError) as fault:
        raise RecipeError(
            f"{containerfile} cannot be read: {fault}",
            remedy="Correct its name; a recipe's Containerfile is next to the recipe.",
        ) from fault
    # Comments go first: one may stand between two halves of a line.
    plain = re.sub(r"(?m)^[ \t]*#.*\n", "", text.removeprefix("\ufeff"))
    found = list(IMAGE.finditer(re.sub(r"\\[ \t]*\n", "", plain)))
    # Later instructions name a stage by its name or by its number.
    stages = {"scratch", *map(str, range(len(found))), *(one[2].lower() for one in found if one[2])}
    for one in found:
        named = one[1] or one[3] or one[4]
        if named.lower() not in stages and not PINNED.fullmatch(named):
            raise RecipeError(
                f"{containerfile.name}: the image {named} has no digest",
                remedy=f"Write {named}@sha256:…; a tag can move to another image.",
            )


def build(containerfile: Path, vault: Path, log: Path, runtime: str | None = None) -> KeptImage:
    """Build an image and move it into the vault; its programs reach the network.

    Raises RecipeError for a base without digest, HostError without podman, ToolError where it
    fails.
    """
    insist_on_pins(containerfile)
    if not engine.installed("podman"):
        raise HostError(
            "podman builds images, and is not installed", remedy=f"{engine.installation('podman')}."
        )
    (vault / "images").mkdir(parents=True, exist_ok=True)
    with files.scratch(vault / "images", "building-") as scratch:
        # An empty context: what an image is made from is in the Containerfile alone.
        context = scratch / "context"
        named = scratch / "id"
        layout = scratch / "layout"
        context.mkdir()
        making = engine.client(
            "podman",
            *((f"--runtime={runtime}",) if runtime else ()),
            "build",
            f"--file={containerfile.absolute()}",
            f"--iidfile={named}",
            # Without the time of the build, the same packages give the same image.
            "--timestamp=0",
            "--format=oci",
            "--network=host",
            str(context),
        )
        runner.run(
            making, log, remedy=f"Correct {containerfile.name}, or the network; look at {log}."
        )
        identifier = named.read_text("ascii").strip()
        push = engine.client("podman", "push", identifier, f"oci:{layout}")
        runner.run(push, log.with_suffix(".push.log"), remedy="Look at what podman says above.")
        kept = image.adopt(layout, vault)
        files.remove(layout)
    return kept
