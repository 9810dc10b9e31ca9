"""Images built by podman from a Containerfile, and kept in the vault by digest.

A second build of the same file gives another image as soon as a package of its distribution
changed. What a recipe pins is therefore the image that was made, not the file. Podman builds it,
also where Docker runs it: Docker before 25 gives no image in OCI's form.
"""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tfwright.errors import RecipeError
from tfwright.tools import files
from tfwright.tools.container import engine, image
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import runner

FROM = re.compile(
    r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE
)
ARG = re.compile(r'^\s*ARG\s+(\w+)=(?:"([^"]*)"|(\S+))\s*$', re.IGNORECASE)
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
PINNED = re.compile(r"(.+@)?sha256:[0-9a-f]{64}")


def insist_on_pins(containerfile: Path) -> None:
    """Refuse a Containerfile whose base images are not named by digest. Raises RecipeError."""
    stages, arguments = {"scratch"}, {}
    try:
        lines = files.text(containerfile, "strict").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise RecipeError(
            f"{containerfile} cannot be read: {fault}",
            remedy="Correct its name; a recipe's Containerfile is next to the recipe.",
        ) from fault
    for number, line in enumerate(lines, 1):
        if given := ARG.match(line):
            arguments[given[1]] = given[2] or given[3] or ""
        named = FROM.match(line)
        if named is None:
            continue
        base = _expanded(named[1], arguments)
        if base not in stages and not PINNED.fullmatch(base):
            raise RecipeError(
                f"{containerfile.name}:{number}: the base image {base} has no digest",
                remedy=f"Write {base}@sha256:…; a tag can move to another image.",
            )
        stages.add(named[2] or "")


def build(
    containerfile: Path, vault: Path, log: Path, runtime: str | None = None
) -> KeptImage:
    """Build an image and move it into the vault; its programs reach the network.

    Raises RecipeError for a base without digest, ToolError where podman fails.
    """
    insist_on_pins(containerfile)
    engine.insist("podman")
    (vault / "images").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="building-", dir=vault / "images"
    ) as folder:
        room = Path(folder)
        # An empty context: what an image is made from is in the Containerfile alone.
        context, named, layout = room / "context", room / "id", room / "layout"
        context.mkdir()
        made = engine.client(
            "podman",
            *((f"--runtime={runtime}",) if runtime else ()),
            "build",
            "--file",
            str(containerfile.absolute()),
            "--iidfile",
            str(named),
            # Without the time of the build, the same packages give the same image.
            "--timestamp=0",
            "--format=oci",
            "--network=host",
            str(context),
        )
        runner.run(
            made, log, remedy=f"Correct {containerfile.name}; look at {log}."
        )
        identifier = named.read_text("ascii").strip()
        push = engine.client("podman", "push", identifier, f"oci:{layout}")
        runner.run(
            push,
            log.with_suffix(".push.log"),
            remedy="Look at what podman says above.",
        )
        kept = image.adopt(layout, vault)
        files.remove(layout)
    return kept


def _expanded(text: str, arguments: Mapping[str, str]) -> str:
    """Return a base image with the Containerfile's own arguments filled in."""
    return VARIABLE.sub(lambda found: arguments.get(found[1], found[0]), text)
