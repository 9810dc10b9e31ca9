"""Debian packages as files, through apt itself: nothing is installed, and root is not needed."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, clean_environment
from tfwright.tools.python.package_clients import proxy_variables

# CUDA is in non-free; what Debian splits off of it, in main. apt need not know the archive's
# signature: every file is compared with a pinned digest.
_SOURCES = "deb [trusted=yes] {address} {suite} main contrib non-free\n"
_CONFIGURATION = """\
Dir::State "{scratch}/state";
Dir::State::status "{scratch}/status";
Dir::Cache "{scratch}/cache";
Dir::Etc::sourcelist "{scratch}/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "{architecture}";
APT::Sandbox::User "root";
"""
"""A world of its own: the host's packages, sources and caches are neither read nor changed."""


def is_available() -> bool:
    """Say whether this host has apt."""
    return shutil.which("apt-get") is not None


def host_archives(form: str) -> list[str]:
    """Return the archives that this host itself uses, each once, as a text in apt's own form.

    None without apt.
    """
    # Read from apt and not from its files: a host may name its archive in either of two formats.
    argv = ("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    return list(
        dict.fromkeys(runner.short_output(Command.of_system(*argv, here=True)).splitlines())
    )


def host_archive_url() -> str:
    """Return the address of the Debian archive that this host itself uses; empty if none."""
    found = (
        line for line in host_archives("$(SITE)") if re.fullmatch(r"https?://\S+/debian/?", line)
    )
    return next(found, "")


def isolated_environment(
    scratch: Path, sources: str, architecture: str = "amd64"
) -> dict[str, str]:
    """Make a world of its own for apt, which knows these sources; return the environment for it."""
    # apt does not start without its "partial" directories.
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True, exist_ok=True)
    # With an empty list of installed packages apt takes every version for a new one.
    files.write(scratch / "status", "")
    files.write(scratch / "sources.list", sources)
    files.write(
        scratch / "apt.conf", _CONFIGURATION.format(scratch=scratch, architecture=architecture)
    )
    return clean_environment(
        scratch, extra={**proxy_variables(), "APT_CONFIG": str(scratch / "apt.conf")}
    )


def download(names: Iterable[str], address: str, suite: str, into: Path, log: Path) -> list[Path]:
    """Download packages of one suite of an archive into a directory.

    Each is given by the name of its file, with its version. The caller compares each file with a
    digest. Raises SupplyError if apt cannot get one of them.
    """
    scratch = into / "apt"
    wanted = [name.removesuffix(".deb").split("_") for name in names]
    # Packages for "all" do not say which index has to be read: each lists them.
    architectures = (architecture for *_, architecture in wanted if architecture != "all")
    sources = _SOURCES.format(address=address, suite=suite)
    env = isolated_environment(scratch, sources, next(architectures, "amd64"))
    (scratch / "got").mkdir(exist_ok=True)
    # apt writes the colon of a version's epoch as %3a.
    pins = [f"{name}={unquote(version)}" for name, version, _ in wanted]
    remedy = (
        "Name a mirror that still has them in the host file: debian = 'http://…', or put the "
        "files into the folder that it names as 'drop'."
    )
    try:
        for arguments in (("update", "-q"), ("download", "-q", *pins)):
            # apt-get download writes into the current directory.
            command = Command(("apt-get", *arguments), scratch / "got", env, here=True)
            runner.run(command, log, remedy=remedy)
    except ToolError as fault:
        # apt prints warnings (W:) about the same server before the error that matters.
        errors = [line for line in fault.evidence.lines if line.startswith("E: ")]
        raise SupplyError(
            f"apt could not download the packages: {errors[0] if errors else fault.what}",
            remedy=remedy,
            evidence=fault.evidence,
        ) from fault
    return sorted((scratch / "got").iterdir())
