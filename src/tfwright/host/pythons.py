"""Interpreters of the target Python: where they are, and which version they really are."""

import functools
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tfwright.documents import filesystem
from tfwright.documents.host_file import HostFile
from tfwright.facts.compatibility import version_numbers
from tfwright.host.place import HERE, NOTHING, Place, Seen
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, container_name, open_container

CONDA_ROOTS = ("~/miniforge3", "~/miniconda3", "~/anaconda3", "/opt/conda")
TELL_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
"""Understood by every Python since 2.0."""
TELL_PARTS = """
import os, sys
name = 'python%d.%d%s' % (sys.version_info[0], sys.version_info[1], getattr(sys, 'abiflags', ''))
header = os.path.join(getattr(sys, 'base_prefix', sys.prefix), 'include', name, 'Python.h')
pip = os.path.join(os.path.dirname(os.__file__), 'ensurepip')
found = [('headers', os.path.exists(header)), ('pip', os.path.exists(pip))]
util = os.path.join(os.path.dirname(os.__file__), 'distutils', 'util.py')
if sys.version_info[:2] < (3, 12) and not os.path.exists(util):
    found.append(('distutils', False))
for name in ('numpy', 'wheel'):
    folders = [os.path.join(entry, name) for entry in sys.path]
    found.append((name, any(os.path.isdir(folder) for folder in folders)))
print(', '.join(part if there else 'no ' + part for part, there in found))
"""
"""Says which parts of it are installed: Debian keeps the headers, and the pip that a venv gets, in
packages of their own; older ones also distutils, which that pip imports. numpy and wheel matter to
people who build by hand; tfwright's builds bring their own."""


def find(version: str, host_file: HostFile, place: Place = HERE) -> Path | None:
    """Return an interpreter of a Python version such as ``3.6``; None if there is none.

    ``any`` is the interpreter that runs tfwright. The host file decides if it names one; else PATH,
    pyenv and conda are searched in this order.
    Only an interpreter that runs, and says itself that it is of the version, is returned.
    """
    if open_container():
        return HERE.which(_program(version))
    if version == "any":
        return running_python()
    named = host_file.pythons.get(version)
    candidates = [place.at(named)] if named else _candidates(version, place)
    for path in candidates:
        # Asked of each: python3.6 on PATH may be a wrapper that starts another version.
        if version_of(path).startswith(f"{version}."):
            return path
    return None


class Absence(NamedTuple):
    """Why a Python was not found."""

    found: str
    """What there is instead."""
    wanted: str
    remedy: str


def absence(version: str, host_file: HostFile, place: Place = HERE) -> Absence:
    """Say what to do where `find` finds no Python."""
    if open_container():
        wanted = f"{_program(version)} on the PATH of the image"
        return Absence(f"no Python {version}", wanted, "Add it to the image.")
    # The host file decides alone: a search might find a Python that its author avoids.
    if named := host_file.pythons.get(version):
        # The path is right and its Python is another: say which, not only "missing".
        seen = version_of(place.at(named))
        return Absence(
            f"{named} is Python {seen}" if seen else f"{named} does not run",
            f"Python {version}, as the host file says",
            f"Correct pythons.{version!r} in the host file.",
        )
    return Absence(
        f"no Python {version}",
        "an interpreter on PATH, in pyenv, in conda or in the host file",
        f"Install it with pyenv (https://github.com/pyenv/pyenv): pyenv install {version}. Or name "
        f"one in the host file: [pythons] {version!r} = '/path/to/python'.",
    )


def _program(version: str) -> str:
    """Return how an image calls its interpreter of a version; ``any`` is its python3."""
    return "python3" if version == "any" else f"python{version}"


def running_python() -> Path:
    """Return the interpreter that runs tfwright, outside of any virtual environment."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # A venv made from a venv would end with the first one.
    base = Path(sys.base_prefix, "bin", name)
    return base if base.exists() else Path(sys.executable)


def version_of(interpreter: Path) -> str:
    """Return the full version, ``3.6.15``, as the interpreter says it; empty if it does not run."""
    return _version(interpreter, container_name())


@functools.cache
def _version(interpreter: Path, image: str) -> str:
    # Known without a start: `demo` and every recipe with python = "any" ask for it.
    if interpreter == running_python() and not image:
        return platform.python_version()
    # -E and -S: no site-packages, which is most of the time that a start takes.
    argv = (str(interpreter), "-E", "-S", "-c", TELL_VERSION)
    return runner.short_output(Command.of_system(*argv))


def installed_parts(interpreter: Path, place: Place = HERE) -> Seen:
    """Say which of ``headers``, ``pip``, ``numpy`` and ``wheel`` an interpreter has.

    The answer is empty if the interpreter does not run.
    """
    shown = place.shown_path(interpreter)
    seen = place.ask(shown, "-E", "-c", TELL_PARTS)
    return Seen(seen.value, f"{shown}: its own files") if seen else NOTHING


def _candidates(version: str, place: Place) -> Iterator[Path]:
    """List the places where an interpreter of a version is likely to be, the likeliest first."""
    home = place.env.get("HOME") or str(filesystem.home())
    folders = place.env.get("PATH", os.defpath).split(os.pathsep)
    # Without the venv of tfwright itself, and without pyenv's shims: a shim runs whatever version
    # the current directory names.
    own_venv = Path(sys.prefix, "bin")
    kept = [each for each in folders if Path(each) != own_venv and Path(each).name != "shims"]
    if on_path := place.which(f"python{version}", kept):
        yield on_path
    pyenv = place.at(place.env.get("PYENV_ROOT") or f"{home}/.pyenv")
    built = _glob_sorted(pyenv, f"versions/{version}.*/bin/python")
    # The newest patch level first; as text, 3.6.9 would come after 3.6.15.
    yield from sorted(built, key=lambda path: version_numbers(path.parts[-3]), reverse=True)
    roots = [place.at(root.replace("~", home)) for root in CONDA_ROOTS]
    # The running one first.
    if running := place.env.get("CONDA_EXE"):
        roots.insert(0, place.at(running).parents[1])
    for root in roots:
        yield from _glob_sorted(root, f"bin/python{version}")
        yield from _glob_sorted(root, f"envs/*/bin/python{version}")


def _glob_sorted(root: Path, pattern: str) -> list[Path]:
    """Return the paths below a directory that fit; none of one that this user may not read."""
    try:
        return sorted(root.glob(pattern))
    # sudo and su may leave PYENV_ROOT or CONDA_PREFIX of another user.
    except OSError:
        return []
