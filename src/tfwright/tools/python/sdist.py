"""Source packages of Python, through the ordinary client, with nothing in them run."""

import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import files
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients

_URL = re.compile(
    r"https?://[^/]+/(?:.+/)?packages/(?:source/\w|\w{2}/\w{2})/[\w.-]+/"
    r"(?P<name>[A-Za-z][\w.-]*?)-(?P<version>\d[\w.+!-]*)\.(?:tar\.gz|zip)"
)
_BACKEND = """\
import os, sys

__legacy__ = sys.modules[__name__]

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name, version = os.environ["SDIST_NAME"], os.environ["SDIST_VERSION"]
    made = "%s-%s.dist-info" % (name.replace("-", "_"), version)
    os.mkdir(os.path.join(folder, made))
    with open(os.path.join(folder, made, "METADATA"), "w") as stream:
        stream.write("Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (name, version))
    return made
"""
"""What pip takes for the package's build backend. pip asks a package for its version before it
hands it over, which runs its setup.py, and that of an old package fails under a Python of today;
here the answer is known beforehand."""
_BACKENDS = (
    "setuptools/build_meta",
    "flit_core/buildapi",
    "hatchling/build",
    "poetry/core/masonry/api",
)
"""The modules that packages name as build backends; this host need not have them."""


@dataclass(frozen=True)
class Sdist:
    """A source package at a version."""

    name: str
    version: str
    """As packaging writes it: ``3.2.3.post2`` for a file named ``3.2.3-2``."""

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Read an address of a source package in the index or a mirror; None for any other."""
        from packaging.version import Version

        # The path says enough: a mirror has another host, and often a prefix of its own.
        found = _URL.fullmatch(url)
        try:
            return cls(found["name"], str(Version(found["version"]))) if found else None
        except ValueError:
            return None


def download(wanted: Sdist, sha256: str, target: Path) -> None:
    """Let pip bring a source package to `target`.

    What the index is, and how it is reached, is left to this host's pip.

    An empty `sha256` leaves it to the caller to verify the bytes. Raises SupplyError if pip cannot
    bring the package, or finds other bytes.
    """
    with files.scratch_directory() as scratch:
        for backend in _BACKENDS:
            files.write(scratch / "backend" / backend.partition("/")[0] / "__init__.py", "")
            files.write(scratch / "backend" / f"{backend}.py", _BACKEND)
        hashed = f" --hash=sha256:{sha256}" if sha256 else ""
        files.write(scratch / "requirements.txt", f"{wanted.name}=={wanted.version}{hashed}\n")
        try:
            command = _download_command(wanted, scratch, hashed=bool(hashed))
            runner.run(command, remedy="Repair the pip that runs tfwright.")
        except ToolError as fault:
            reason = _last_error(fault)
            raise package_clients.error_kind(fault)(
                f"pip cannot bring {wanted.name} {wanted.version}: {reason}",
                remedy=package_clients.pip_remedy(fault, reason),
                evidence=fault.evidence,
            ) from fault
        downloads = sorted((scratch / "brought").glob("*"))
        # One requirement without dependencies gives one file, unless this host's pip is set up to
        # do something else.
        if len(downloads) != 1:
            names = ", ".join(path.name for path in downloads) or "nothing"
            raise SupplyError(
                f"pip was to bring {wanted.name} {wanted.version}, and brought {names}",
                remedy="Check the configuration of this host's pip: 'pip config list'.",
            )
        shutil.move(downloads[0], target)


def _last_error(fault: ToolError) -> str:
    # The last one: pip names the cause at its end, behind the attempts. Where pip itself fails,
    # a traceback ends with it.
    lines = fault.evidence.lines
    errors = [line for line in lines if "ERROR" in line]
    last = [fault.what, *lines[-1:], *errors[-1:]][-1]
    # pip's own words are what it says of wheels too, and their remedies do not fit.
    absent = "No matching distribution" in last
    return "no index has this source package" if absent else last


def _download_command(wanted: Sdist, scratch: Path, *, hashed: bool) -> Command:
    """Return pip's command line: one source package, without dependencies, nothing built."""
    # Without build isolation pip takes the backend of PYTHONPATH.
    options = (
        "--no-deps",
        "--no-binary=:all:",
        *(("--require-hashes",) if hashed else ()),
        # Without it an old setup.py is run directly, whatever backend there is.
        "--use-pep517",
        "--no-build-isolation",
    )
    where = (f"--dest={scratch / 'brought'}", f"--requirement={scratch / 'requirements.txt'}")
    # By our own Python, which an image does not have.
    own = package_clients.pip_command(
        Path(sys.executable), "download", *options, *where, cwd=scratch
    )
    known = {
        "PYTHONPATH": str(scratch / "backend"),
        "SDIST_NAME": wanted.name,
        "SDIST_VERSION": wanted.version,
    }
    return replace(own, env={**package_clients.client_environment("pip"), **known}, here=True)
