"""What is here: read off this host, whatever the recipe."""

import functools
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfwright import environment
from tfwright.tools import shell

Installer = Literal["apt-get", "dnf", "xcode-select", ""]


@dataclass(frozen=True)
class Host:
    """This host, as far as recipes care."""

    system: str
    """As ``uname -s`` says it: Linux, Darwin."""
    machine: str
    """As ``uname -m`` says it: x86_64, aarch64, arm64."""
    glibc: str = ""
    """Its version; empty where there is none."""
    compiler: str = ""
    """First line of what the C++ compiler says for ``--version``; empty without one."""
    git: bool = False
    npm: bool = False
    installer: Installer = ""
    """The program that installs what is missing; empty for one that we do not know."""
    free: int = 0
    """Bytes free where builds go."""

    def __str__(self) -> str:
        return f"{self.system}-{self.machine}"


def look(build_out: Path) -> Host:
    """Look around. Takes one short process; everything else is read from the system."""
    return Host(
        system=platform.system(),
        machine=platform.machine(),
        glibc=_glibc(),
        compiler=_compiler(),
        git=_has("git"),
        npm=bool(shutil.which("npm")),
        installer=_installer(),
        free=_free(build_out),
    )


def _has(program: str) -> bool:
    """Say whether the host itself, not only the caller's PATH, has a program."""
    return _where(program) is not None


def _where(program: str) -> str | None:
    return shutil.which(program, path=":".join(environment.SYSTEM_PATH))


@functools.cache
def _compiler() -> str:
    """Ask the C++ compiler that Bazel will find for its version."""
    compiler = next(filter(None, map(_where, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        return ""
    command = shell.Command((compiler, "--version"), Path("/"), environment.clean(Path("/")))
    return shell.answer(command).partition("\n")[0]


def _glibc() -> str:
    name, version = platform.libc_ver()
    return version if name == "glibc" else ""


def _installer() -> Installer:
    known: tuple[Installer, ...] = ("apt-get", "dnf", "xcode-select")
    return next((program for program in known if _has(program)), "")


def _free(path: Path) -> int:
    """Return the bytes free on the disk that holds a path, which need not be there yet."""
    there = next(parent for parent in (path, *path.parents) if parent.exists())
    return shutil.disk_usage(there).free
