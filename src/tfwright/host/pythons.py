"""Interpreters of the target Python: where they are, and which version they really are."""

import functools
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tfwright import environment
from tfwright.settings import Settings
from tfwright.tools import shell

CONDA_ROOTS = ("~/miniforge3", "~/miniconda3", "~/anaconda3", "/opt/conda")
TELL_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
"""Understood by every Python since 2.0."""


def find(version: str, settings: Settings) -> Path | None:
    """Return an interpreter of a Python version such as ``3.6``; ``any`` is the one that runs tfwright.

    The host file decides if it names one; else PATH, pyenv and conda are searched in this order.
    Only an interpreter that runs, and says itself that it is of the version, is returned.
    """
    if version == "any":
        return own()
    named = settings.pythons.get(version)
    candidates = [named] if named else _candidates(version)
    return next((path for path in candidates if version_of(path).startswith(f"{version}.")), None)


def own() -> Path:
    """Return the interpreter that runs tfwright, outside of any virtual environment."""
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return base if base.exists() else Path(sys.executable)


@functools.cache
def version_of(interpreter: Path) -> str:
    """Return the full version, ``3.6.15``, as the interpreter says it; empty if it does not run."""
    if interpreter == own():
        return platform.python_version()
    # -E and -S: no site-packages, which is most of the time that a start takes.
    command = shell.Command((str(interpreter), "-E", "-S", "-c", TELL_VERSION), Path("/"), environment.clean(Path("/")))
    return shell.answer(command)


def _candidates(version: str) -> Iterator[Path]:
    """List the places where an interpreter of a version is likely to be, the likeliest first."""
    on_path = shutil.which(f"python{version}", path=_search_path())
    if on_path:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"), key=_numbers, reverse=True)
    for root in _conda_roots():
        yield from root.glob(f"bin/python{version}")
        yield from sorted(root.glob(f"envs/*/bin/python{version}"))


def _search_path() -> str:
    """Return the caller's PATH without the venv of tfwright itself and without pyenv's shims.

    A shim runs whatever version the current directory names, which is no pin.
    """
    entries = [Path(entry) for entry in os.get_exec_path()]
    return os.pathsep.join(str(entry) for entry in entries if entry != Path(sys.prefix, "bin") and entry.name != "shims")


def _conda_roots() -> Iterator[Path]:
    """List where conda may be installed; the running one first."""
    running = os.environ.get("CONDA_EXE")
    if running:
        yield Path(running).parents[1]
    yield from (Path(root).expanduser() for root in CONDA_ROOTS)


def _numbers(path: Path) -> list[int]:
    """Return the version in ``versions/3.6.15/bin/python`` as numbers, for sorting."""
    return [int(number) for number in re.findall(r"\d+", path.parts[-3])]
