"""Setting up a fresh checkout: a venv from hash-pinned requirements, then over to invoke.

Imports nothing but the standard library: nothing else is there yet.
"""

import compileall
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOR_DEVELOPERS = {"lint", "types", "test"}
"""Commands that need the tools of requirements-dev.txt as well."""


def hand_over(root: Path, arguments: list[str]) -> None:
    """Become `invoke` with these arguments, in the checkout's own .venv; it is made first if need be."""
    wanted = (
        "requirements-dev.txt" if FOR_DEVELOPERS.intersection(arguments) else "requirements.txt"
    )
    place = root / ".venv"
    with (root / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _ready(place, root, wanted):
            with _carried(arguments) as variables:
                _make(place, root, wanted, variables)
    python = str(place / "bin/python")
    os.execv(python, [python, "-m", "invoke", f"--search-root={root}", *(arguments or ["--list"])])  # noqa: S606 a fixed program, no shell


def _ready(place: Path, root: Path, wanted: str) -> bool:
    """Tell whether the venv was finished from the requirements as they are now."""
    marks = place / "tfwright-requirements"
    done = marks.read_text("utf-8").split() if marks.is_file() else []
    return _digest(root / wanted) in done and (place / "bin/python").exists()


@contextmanager
def _carried(arguments: list[str]) -> Iterator[dict[str, str]]:
    """Give the variables that lead pip to the packages of the bundle which is to be unbundled: there may be no index on its host.

    What they are worth, pip finds out: the requirements hold their digests.
    """
    with tempfile.TemporaryDirectory(prefix="tfwright-") as folder:
        bundles = (
            [word for word in arguments if Path(word).is_file()]
            if arguments[:1] == ["unbundle"]
            else []
        )
        for bundle in bundles:
            _take_tools(bundle, Path(folder))
        yield {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder} if bundles else {}


def _take_tools(bundle: str, folder: Path) -> None:
    """Copy tfwright's own packages out of a bundle."""
    try:
        with tarfile.open(bundle, "r:") as members:
            for member in members:
                name = re.fullmatch(r"tool/(\w[\w.+!-]*\.whl)", member.name)
                if (
                    name
                    and member.type == tarfile.REGTYPE
                    and (stream := members.extractfile(member))
                ):
                    with (folder / name[1]).open("wb") as output:
                        shutil.copyfileobj(stream, output)
    except tarfile.TarError as fault:
        sys.exit(
            f"{bundle} is no whole bundle: {fault}\nBring it again, and compare its size and digest with where it was made."
        )


def _make(place: Path, root: Path, wanted: str, variables: dict[str, str]) -> None:
    """Make the venv and install `wanted` into it; the mark is written last."""
    sys.stderr.write(f"Setting up {place} from {wanted} ...\n")
    try:
        if not (place / "bin/python").exists() or not (place / "tfwright-requirements").exists():
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
    except subprocess.CalledProcessError:
        sys.exit(
            "Python's venv module cannot make an environment: ensurepip is missing.\nInstall it, for example: apt-get install python3-venv"
        )
    pip = [
        str(place / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    if (
        subprocess.run(  # noqa: S603 a fixed program, no shell
            [*pip, "-r", str(root / wanted)], env={**os.environ, **variables}, check=False
        ).returncode
        != 0
    ):
        sys.exit(
            f"pip could not install {wanted}; its message is above.\nWithout a network, point pip at a local index or folder (PIP_INDEX_URL, PIP_FIND_LINKS) and run this again."
        )
    site = next((place / "lib").glob("python3*/site-packages"))
    # Python reads this file in the locale's encoding, which in C may not hold the checkout's own path.
    (site / "tfwright.pth").write_text(f"{os.path.relpath(root / 'src', site)}\n", "utf-8")
    # As pip does with what it installs; the demo's tree is not ours to run.
    compileall.compile_dir(root / "src", rx=re.compile("/demo/"), quiet=1)
    # The developers' file holds all of the users' file too.
    (place / "tfwright-requirements").write_text(
        "\n".join(_digest(root / name) for name in {wanted, "requirements.txt"}) + "\n", "utf-8"
    )


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
