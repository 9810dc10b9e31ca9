"""Images of a registry, by digest: skopeo asks whether it has one, and copies it into the vault.

skopeo and not the engine: podman and docker unpack what they pull, and what they save of it has
another digest. Every document and every layer is compared with its digest all the same.
"""

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tfwright.errors import HostError, SupplyError, ToolError
from tfwright.tools import files
from tfwright.tools.container import engine, image
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import pipes, runner
from tfwright.tools.process.command import Command

LOCAL = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")
"""Registries that are asked without TLS."""
GONE = re.compile(r"manifest unknown|name unknown|not found|unauthorized|denied", re.IGNORECASE)
"""What registries say of an image that they do not have; of deleted ones also that one may not."""
ANSWER_SECONDS = 60
INSTALL = "Install skopeo (Debian and Ubuntu: apt install skopeo)."
Presence = Literal["there", "gone", "no answer"]


def names_registry(name: str) -> bool:
    """Say whether the name of an image begins with a registry.

    One without is a name that somebody gave to an image of their own. Docker would look for it on
    its hub, where a stranger may hold the name.
    """
    host, _, repository = name.partition("/")
    return bool(repository) and ("." in host or ":" in host or host == "localhost")


def ask(name: str, digest: str) -> tuple[Presence, str]:
    """Ask whether a registry has an image; return also what was said."""
    try:
        ended = _inspect(name, digest)
    except OSError:
        return "no answer", "skopeo is not installed"
    if ended.status == 0:
        return "there", "it has it"
    complaint = (ended.complaint.splitlines() or ["nothing"])[-1]
    return ("gone" if GONE.search(complaint) else "no answer"), complaint


def pull(name: str, digest: str, vault: Path) -> KeptImage:
    """Copy an image into the vault, for this machine's kind of processor.

    Raises HostError without skopeo, SupplyError if the registry does not have it, does not answer,
    or sends other bytes.
    """
    if not names_registry(name):
        raise image.missing_error(vault, digest)
    if not shutil.which("skopeo"):
        raise HostError("skopeo pulls images by digest, and is not installed", remedy=INSTALL)
    with (
        image.new_layout(vault) as incoming,
        files.scratch_directory(vault / "images", "incoming-") as scratch,
    ):
        ended = _inspect(name, digest)
        # A list of manifests has the digest, too; skopeo would keep the one that it chooses only.
        if ended.status == 0 and f"sha256:{hashlib.sha256(ended.printed).hexdigest()}" == digest:
            incoming.blob(digest).write_bytes(ended.printed)
            chosen = incoming.manifest(digest).digest
            folder = scratch / "copy"
            try:
                # As it is: other forms than ``dir:`` would change the manifest.
                copying = _skopeo(
                    "copy",
                    "--quiet",
                    "--preserve-digests",
                    "--retry-times=2",
                    f"--src-tls-verify={_tls_flag(name)}",
                    f"docker://{name}@{chosen}",
                    f"dir:{folder}",
                )
                runner.run(copying, remedy=INSTALL)
            except ToolError as fault:
                raise _pull_error(name, digest, fault.evidence.lines[-1:]) from fault
            (folder / "version").unlink()
            (folder / "manifest.json").rename(incoming.blob(chosen))
            for part in folder.iterdir():
                part.rename(incoming.blob(part.name))
            return incoming.move_into(digest, vault)
        raise _pull_error(name, digest, ended.complaint.splitlines()[-1:])


def _pull_error(name: str, digest: str, complaint: Sequence[str]) -> SupplyError:
    return SupplyError(
        f"{name} cannot be pulled by its digest {digest[:19]}…: "
        f"{''.join(complaint) or 'its registry sent other bytes'}",
        remedy="Unpack a bundle that carries the image, or copy vault/images from a host that "
        "has it; else build the image again and pin the new digest.",
    )


def _inspect(name: str, digest: str) -> pipes.Collected:
    """Ask for the document that a digest names. Raises OSError without skopeo."""
    image_url = f"docker://{name}@{digest}"
    command = _skopeo("inspect", "--raw", f"--tls-verify={_tls_flag(name)}", image_url)
    return pipes.collect(command, most=image.LARGEST_DOCUMENT)


def _skopeo(verb: str, *arguments: str) -> Command:
    # Only a question has a time limit: an image may have gigabytes.
    limit = (f"--command-timeout={ANSWER_SECONDS}s",) if verb == "inspect" else ()
    return engine.host_command("skopeo", *limit, verb, *arguments)


def _tls_flag(name: str) -> str:
    return "false" if LOCAL.fullmatch(name.partition("/")[0]) else "true"
