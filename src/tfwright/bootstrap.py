"""Setting up a fresh checkout: a venv from hash-pinned requirements, then over to invoke.

Imports nothing but the standard library: nothing else is there yet.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

FOR_DEVELOPERS = {"lint", "types", "test"}
"""Commands that need the tools of requirements-dev.txt as well."""


def hand_over(root: Path, arguments: list[str]) -> None:
    """Become `invoke` with these arguments, in the checkout's own .venv; it is made first if need be."""
    wanted = "requirements-dev.txt" if FOR_DEVELOPERS.intersection(arguments) else "requirements.txt"
    place = root / ".venv"
    with (root / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _ready(place, root, wanted):
            _make(place, root, wanted)
    os.chdir(root)
    python = str(place / "bin/python")
    os.execv(python, [python, "-m", "invoke", *(arguments or ["--list"])])  # noqa: S606 a fixed program, no shell


def _ready(place: Path, root: Path, wanted: str) -> bool:
    """Tell whether the venv was finished from the requirements as they are now."""
    marks = place / "tfwright-requirements"
    done = marks.read_text("utf-8").split() if marks.is_file() else []
    return _digest(root / wanted) in done and (place / "bin/python").exists()


def _make(place: Path, root: Path, wanted: str) -> None:
    """Make the venv and install `wanted` into it; the mark is written last."""
    sys.stderr.write(f"Setting up {place} from {wanted} ...\n")
    try:
        if not (place / "bin/python").exists() or not (place / "tfwright-requirements").exists():
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
    except subprocess.CalledProcessError:
        sys.exit("Python's venv module cannot make an environment: ensurepip is missing.\nInstall it, for example: apt-get install python3-venv")
    pip = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    if subprocess.run([*pip, "-r", str(root / wanted)], check=False).returncode != 0:  # noqa: S603 a fixed program, no shell
        sys.exit(
            f"pip could not install {wanted}; its message is above.\nWithout a network, point pip at a local index or folder (PIP_INDEX_URL, PIP_FIND_LINKS) and run this again."
        )
    site = next((place / "lib").glob("python3*/site-packages"))
    (site / "tfwright.pth").write_text(f"{root / 'src'}\n", "utf-8")
    # The developers' file holds all of the users' file too.
    (place / "tfwright-requirements").write_text("\n".join(_digest(root / name) for name in {wanted, "requirements.txt"}) + "\n", "utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
