"""Images built by podman from a Containerfile, and kept in the vault by digest.

A second build of the same file gives another image as soon as a package of its distribution
changed. What a recipe pins is therefore the image that was made, not the file. Podman builds it,
also where Docker runs it: Docker before 25 gives no image in OCI's form.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfwright.errors import HostError, RecipeError
from tfwright.tools import files
from tfwright.tools.container import engine, image
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import runner

FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*", re.IGNORECASE)
ARG = re.compile(r'ARG\s+(\w+)=(?:"([^"]*)"|(\S+))\s*', re.IGNORECASE)
TAKEN = re.compile(r"--from=(\S+)|--mount=\S*?\bfrom=([^,\s]+)", re.IGNORECASE)
"""What `COPY` and `RUN` name to take files of."""
MOST_HALVES = 20
"""Lines that an instruction is put together from."""
DIRECTIVE = re.compile(r"^\W*#\s*escape\s*=.*$", re.IGNORECASE | re.MULTILINE)
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
PINNED = re.compile(r"(.+@)?sha256:[0-9a-f]{64}")


def check_pins(containerfile: Path) -> None:
    """Refuse a Containerfile that names another image than by digest. Raises RecipeError."""
    try:
        text = files.text(containerfile, "strict")
    except (OSError, UnicodeDecodeError) as fault:
        raise RecipeError(
            f"{containerfile} cannot be read: {fault}",
            remedy="Correct its name; a recipe's Containerfile is next to the recipe.",
        ) from fault
    if found := DIRECTIVE.search(text):
        raise RecipeError(
            f"{containerfile.name} changes the character that joins lines",
            remedy=f"Take the line {found[0].strip()!r} out, and join lines by a backslash.",
        )
    for number, named in _unpinned_images(text):
        raise RecipeError(
            f"{containerfile.name}:{number}: the image {named} has no digest",
            remedy=f"Write {named}@sha256:…; a tag can move to another image.",
        )


def _unpinned_images(text: str) -> Iterator[tuple[int, str]]:
    """Yield the images without a digest, each with the number of its line."""
    stages = {"scratch"}
    arguments = dict[str, str]()
    count = 0
    lines = text.removeprefix("\ufeff").split("\n")
    # From each line on: the end of a here-document may look like the first half of a FROM.
    for number in range(len(lines)):
        line = _join_lines(lines[number : number + MOST_HALVES])
        # An ARG after the first FROM is one of that stage, and no later FROM sees it.
        if not count and (argument := ARG.fullmatch(line)):
            arguments[argument[1]] = argument[2] or argument[3] or ""
        names = [found[1] or found[2] for found in TAKEN.finditer(line)]
        if named := FROM.fullmatch(line):
            names.append(named[1])
        for name in names:
            # The Containerfile's own arguments are filled in.
            image = VARIABLE.sub(lambda found: arguments.get(found[1], found[0]), name)
            if image.lower() not in stages and not PINNED.fullmatch(image):
                yield number + 1, image
        if named:
            # Later instructions name a stage by its name or by its number.
            stages |= {str(count), (named[2] or str(count)).lower()}
            count += 1


def _join_lines(lines: Sequence[str]) -> str:
    """Return the instruction that lines begin with, joined as podman joins lines."""
    whole = ""
    for line in lines:
        # A comment is dropped also between two halves, and its last character joins nothing.
        comment = line.lstrip().startswith("#")
        if comment and not whole:
            return ""
        if comment or (whole and not line.strip()):
            continue
        half = line.rstrip()
        if not half.endswith("\\"):
            return (whole + half).strip()
        whole += half[:-1]
    return whole.strip()


def build(containerfile: Path, vault: Path, log: Path, runtime: str | None = None) -> KeptImage:
    """Build an image and move it into the vault; its programs reach the network.

    Raises RecipeError for a base without digest, HostError without podman, ToolError where it
    fails.
    """
    check_pins(containerfile)
    if not engine.is_installed("podman"):
        raise HostError(
            "podman builds images, and is not installed",
            remedy=f"{engine.install_remedy('podman')}.",
        )
    (vault / "images").mkdir(parents=True, exist_ok=True)
    with files.scratch_directory(vault / "images", "building-") as scratch:
        # An empty context: what an image is made from is in the Containerfile alone.
        context = scratch / "context"
        named = scratch / "id"
        layout = scratch / "layout"
        context.mkdir()
        making = engine.client_command(
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
        push = engine.client_command("podman", "push", identifier, f"oci:{layout}")
        runner.run(push, log.with_suffix(".push.log"), remedy="Look at what podman says above.")
        return image.import_layout(layout, vault)
