"""Files out of packages of registries, each through the registry's ordinary client.

Nothing of a package is run.

A package often carries an archive of somebody else's, byte for byte: npm's sqlite3 holds SQLite's
own tarball, a source package of Debian the release of its author.
"""

import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from tfwright.documents.names import PACKAGE_URL
from tfwright.errors import SupplyError, TfwrightError, ToolError
from tfwright.tools import files, unpacking
from tfwright.tools.process import environment, runner
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import UnstartableError
from tfwright.tools.python import package_clients, sdist
from tfwright.tools.python.sdist import Sdist

APT_SOURCES = Path("/etc/apt")
"""Where a Debian or Ubuntu names its servers."""
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
    bring = {"npm": _npm, "pypi": _pypi, "deb": _deb}[package.kind]
    with tempfile.TemporaryDirectory() as folder:
        try:
            brought = bring(package, Path(folder))
            # apt downloads the member itself; npm and pip download an archive that
            # holds it.
            if (brought / member).is_file():
                shutil.copyfile(brought / member, target)
                return
            with unpacking.reading(str(package)):
                _copy_member(package, brought, member, target)
        except (ToolError, UnstartableError) as fault:
            raise package_clients.kind_of(fault)(
                f"{package} could not be downloaded: {_complaint(fault)}", remedy=fault.remedy
            ) from fault


def _copy_member(package: RegistryPackage, folder: Path, member: str, target: Path) -> None:
    """Copy a member of the one archive in a folder; no path of the archive is written to."""
    # A wheel or a zip from pip, a .tgz from npm; a folder also holds the log, which is
    # neither.
    for archive in sorted(folder.iterdir()):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                if member in zipped.namelist():
                    with zipped.open(member) as stream:
                        _copy(stream, target)
                    return
        elif unpacking.is_tar(archive):
            with unpacking.open_tar(archive) as tarred:
                # Not extractall(): a hostile archive may name paths outside of the
                # folder, and devices.
                for info in unpacking.members(tarred):
                    stream_of_member = tarred.extractfile(info) if info.isfile() else None
                    if info.name == member and stream_of_member:
                        _copy(stream_of_member, target)
                        return
    raise SupplyError(
        f"{package} has no file {member}",
        remedy="Correct 'member' in [[fetch.sources]] of the recipe.",
    )


def _copy(stream: IO[bytes], target: Path) -> None:
    """Copy no more than a file may have."""
    with target.open("wb") as output:
        output.writelines(files.pieces(stream.read, LARGEST_MEMBER))


def _client(name: str) -> str:
    """Return the path of a registry's client. Raises SupplyError if it is not installed."""
    found = shutil.which(name)
    if not found:
        raise SupplyError(f"{name} is not installed", remedy=f"Install {name}.")
    return found


def _run(argv: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> None:
    command = Command(argv, folder, env, here=True)
    name = Path(argv[0]).name
    remedy = f"Check that {name} runs, and reaches its servers: '{_ASKING[name]}' names them."
    runner.run(command, folder / ".log", remedy=remedy)


def _npm(package: RegistryPackage, folder: Path) -> Path:
    npm = _client("npm")
    # Scripts of a package would run as the user: they are never wanted here.
    argv = (
        npm,
        "pack",
        "--ignore-scripts",
        # npm retries twice by default, after ten seconds and more.
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        f"{package.name}@{package.version}",
    )
    _run(argv, folder, package_clients.of("npm", (Path(npm).parent,)))
    return folder


def _pypi(package: RegistryPackage, folder: Path) -> Path:
    sdist.download(Sdist(package.name, package.version), "", folder / "sdist.tar.gz")
    return folder


def _deb(package: RegistryPackage, folder: Path) -> Path:
    """Let apt download a source package, with lists of its own: most hosts have none of sources."""
    apt = _client("apt-get")
    state = folder / "apt"
    for place in ("lists/partial", "cache/archives/partial"):
        (state / place).mkdir(parents=True)
    brought = folder / "brought"
    brought.mkdir()
    options = (
        "-q",
        f"-oDir::Etc::SourceList={_deb_sources(state)}",
        "-oDir::Etc::SourceParts=/dev/null",
        f"-oDir::State::Lists={state / 'lists'}",
        f"-oDir::Cache={state / 'cache'}",
        # apt cannot enter a private directory as its own user.
        "-oAPT::Sandbox::User=root",
    )
    env = environment.clean(folder, extra=package_clients.proxies())
    _run((apt, *options, "update"), state, env)
    wanted = f"{package.name}={package.version}" if package.version else package.name
    # --only-source: apt takes the name of a program for that of its source package
    # otherwise.
    _run((apt, *options, "source", "--download-only", "--only-source", wanted), brought, env)
    return brought


def _deb_sources(folder: Path) -> Path:
    """Write a list of the servers that this host's apt uses, for sources instead of programs."""
    # Debian 12 and Ubuntu 24.04 have stanzas in *.sources, older ones lines in *.list.
    # apt tells the two formats apart by the suffix of the file.
    if stanzas := _stanzas():
        listed = folder / "own.sources"
        files.write(listed, stanzas)
    else:
        listed = folder / "own.list"
        files.write(listed, _lines())
    return listed


def _stanzas() -> str:
    """Return the stanzas of *.sources files, for sources; empty where there are none."""
    modern = sorted(APT_SOURCES.glob("sources.list.d/*.sources"))
    found = [path.read_text("utf-8", "replace") for path in modern]
    if not any("Types: deb" in text for text in found):
        return ""
    return re.sub(r"^Types:.*$", "Types: deb-src", "\n\n".join(found), flags=re.MULTILINE)


def _lines() -> str:
    """Return the lines of *.list files, for sources."""
    found = []
    for path in (APT_SOURCES / "sources.list", *APT_SOURCES.glob("sources.list.d/*.list")):
        # A host with *.sources only has no sources.list.
        if path.is_file():
            found += path.read_text("utf-8", "replace").splitlines()
    binary = [line for line in found if re.match(r"deb\s", line)]
    return "".join(f"deb-src{line.removeprefix('deb')}\n" for line in binary)


def _complaint(fault: TfwrightError) -> str:
    """Return the lines in which a client says what is wrong: npm's first has only a code."""
    said = [
        line.strip()
        for line in fault.evidence.lines
        # Not the stack of npm's own code.
        if re.match(r"(E:|npm (error|ERR!)(?! +at )|ERROR)", line)
    ]
    return "; ".join(said[:2]) or fault.what
