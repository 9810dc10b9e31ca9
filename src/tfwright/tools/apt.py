"""Debian packages as files, through apt itself: nothing is installed, and root is not needed."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import files
from tfwright.tools.process import environment, runner
from tfwright.tools.process.command import Command
from tfwright.tools.python.package_clients import proxies

_COMPONENTS = "main contrib non-free"
"""CUDA is in the last; what Debian splits off of it, in the first."""
_CONFIGURATION = """\
Dir::State "{room}/state";
Dir::State::status "{room}/status";
Dir::Cache "{room}/cache";
Dir::Etc::sourcelist "{room}/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "{architecture}";
APT::Sandbox::User "root";
"""
"""A world of its own: the host's packages, sources and caches are neither read nor changed."""


def here() -> bool:
    """Say whether this host has apt."""
    return shutil.which("apt-get") is not None


def address() -> str:
    """Return the address of the Debian archive that this host itself uses; empty if none."""
    # Read from apt and not from its files: a host may name its archive in either of two
    # formats.
    argv = ("apt-get", "indextargets", "--format", "$(SITE)")
    printed = runner.answer(Command.of_system(*argv, here=True))
    for line in printed.splitlines():
        if re.fullmatch(r"https?://\S+/debian/?", line):
            return line
    return ""


@dataclass(frozen=True)
class PackageArchive:
    """One suite of a Debian archive."""

    address: str
    suite: str

    def __str__(self) -> str:
        # apt need not know the archive's signature: every file is compared with a
        # pinned digest.
        return f"deb [trusted=yes] {self.address} {self.suite} {_COMPONENTS}\n"


def download(names: Iterable[str], archive: PackageArchive, into: Path, log: Path) -> list[Path]:
    """Download packages into a directory; each is given by the name of its file, with its version.

    The caller compares each file with a digest. Raises SupplyError if apt cannot get one of them.
    """
    room = into / "apt"
    wanted = [_package(name) for name in names]
    _prepare(room, archive, _architecture(wanted))
    pins = [f"{name}={version}" for name, version, _ in wanted]
    for arguments in (("update", "-q"), ("download", "-q", *pins)):
        _run(arguments, room, log)
    return sorted((room / "got").iterdir())


def _architecture(wanted: Iterable[tuple[str, str, str]]) -> str:
    """Return the architecture whose index lists all of some packages."""
    for _, _, architecture in wanted:
        # Packages for "all" do not say which index has to be read: each lists them.
        if architecture != "all":
            return architecture
    return "amd64"


def _prepare(room: Path, archive: PackageArchive, architecture: str) -> None:
    """Write the configuration by which apt works in `room` and reads one archive."""
    # apt does not start without its "partial" directories.
    for folder in ("state/lists/partial", "cache/archives/partial", "got"):
        (room / folder).mkdir(parents=True, exist_ok=True)
    # With an empty list of installed packages apt takes every version for a new one.
    files.write(room / "status", "")
    files.write(room / "sources.list", str(archive))
    configuration = _CONFIGURATION.format(room=room, architecture=architecture)
    files.write(room / "apt.conf", configuration)


def _package(file: str) -> tuple[str, str, str]:
    """Return name, version and architecture of a package from the name of its file."""
    name, version, architecture = file.removesuffix(".deb").split("_")
    # apt writes the colon of a version's epoch as %3a.
    return name, unquote(version), architecture


def _run(arguments: Iterable[str], room: Path, log: Path) -> None:
    variables = {**proxies(), "APT_CONFIG": str(room / "apt.conf")}
    env = environment.clean(room, extra=variables)
    # apt-get download writes into the current directory.
    command = Command(("apt-get", *arguments), room / "got", env, here=True)
    remedy = (
        "Name a mirror that still has them in the host file: debian = 'http://…', or put the "
        "files into the folder that it names as 'drop'."
    )
    try:
        runner.run(command, log, remedy=remedy)
    except ToolError as fault:
        raise SupplyError(
            f"apt could not download the packages: {_complaint(fault)}",
            remedy=remedy,
            evidence=fault.evidence,
        ) from fault


def _complaint(fault: ToolError) -> str:
    # apt prints warnings (W:) about the same server before the error that matters.
    errors = [line for line in fault.evidence.lines if line.startswith("E: ")]
    return errors[0] if errors else fault.what
