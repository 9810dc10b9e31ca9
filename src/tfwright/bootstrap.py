"""Setting up a fresh checkout: a venv from hash-pinned requirements, then over to invoke.

Imports only the standard library: nothing else is installed yet.
"""

import compileall
import fcntl
import hashlib
import importlib
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
from typing import NoReturn

from tfwright import STARTED_AS
from tfwright.old_python import as_root
from tfwright.printable import shell_word

FOR_DEVELOPERS = {"lint", "types", "test"}
"""Commands that need the tools of requirements-dev.txt as well."""
HOST_STATUS, SUPPLY_STATUS = 3, 4
"""Exit statuses of HostError and SupplyError in errors.py. A worker that ends with the first gives
its recipe to another one."""
LONGEST_NAME = 64 * 1024
"""Bytes of a member's path in a bundle that is still read."""
INVOKE = b"""import tfwright
tfwright.let_interrupts_end_it()
from invoke.main import program
program.version += f", running tfwright {tfwright.__version__}"
"""
"""What starts `invoke`, and names tfwright's version as well: that option reads no tasks.py."""
PIP = "import runpy, signal; signal.signal(2, 0); runpy.run_module('pip', run_name='__main__')"
"""pip, without the traceback that it prints on Ctrl-C."""
UNPACKING = {"--unpack", "--lacking"}
"""The options of `bundle` that may be the first command on a host without a package index."""


def hand_over(checkout: str, arguments: list[str]) -> None:
    """Become `invoke` with these arguments, in the checkout's own .venv; make it if needed."""
    _open_closed_streams()
    # invoke answers this with its own version, before it reads tasks.py.
    if arguments and arguments[0] in {"--version", "-V"}:
        from tfwright import __version__

        sys.stdout.write(f"tfwright {__version__}\n")
        sys.exit()
    root = Path(checkout)
    wanted = "requirements.txt"
    if FOR_DEVELOPERS.intersection(arguments):
        wanted = "requirements-dev.txt"
    place = root / ".venv"
    try:
        # Two commands on a fresh checkout would otherwise fill the same venv.
        with (root / ".venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _ready(place, root, wanted):
                with _bundled_packages(arguments) as variables:
                    _make(place, root, wanted, variables)
    except OSError as fault:
        # Of a checkout that its owner has set up, others need not write anything.
        if not _ready(place, root, wanted):
            room = shutil.disk_usage(root).free // 10**6
            _refuse(
                HOST_STATUS,
                f"{place} cannot be made, with {room} MB free on the disk: {fault}",
                "Make room for 200 MB, or take a copy of the checkout that you may write.",
            )
    # Not by the script's first line, which breaks when the checkout's path is long.
    command = [str(place / name) for name in ("bin/python", "bin/invoke")]
    command += [f"--search-root={root}", *(arguments or ["--list"])]
    # `invoke` itself is on PATH only where the venv is active.
    environment = {**os.environ, STARTED_AS: f"python3 {shell_word(sys.argv[0])}"}
    # Replaced, not called: Ctrl-C and the exit status then are invoke's own.
    os.execve(command[0], command, environment)  # noqa: S606 a fixed program, no shell


def _open_closed_streams() -> None:
    """Lead closed standard streams to /dev/null: no file may get one of their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 standard error
        os.set_inheritable(descriptor, True)  # noqa: FBT003 it takes no keywords
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 until exec


def _ready(place: Path, root: Path, wanted: str) -> bool:
    """Tell whether the venv was finished from the requirements as they are now."""
    marks = place / "tfwright-requirements"
    done = marks.read_text("utf-8", "replace").split() if marks.is_file() else []
    return _sha256(root / wanted) in done and _runs(place)


def _runs(place: Path) -> bool:
    """Tell whether the venv's Python imports a compiled package.

    It does not when the Python that it was made from is gone, or the checkout was copied from a
    host with another system, C library or Python.
    """
    command = [str(place / "bin/python"), "-c", "import pydantic_core"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 no shell
    except OSError:
        return False
    return done.returncode == 0


@contextmanager
def _bundled_packages(arguments: list[str]) -> Iterator[dict[str, str]]:
    """Give the variables that lead pip to the packages of the bundle that is to be unpacked.

    Its host may have no package index. The packages need no trust: pip compares their checksums
    with the requirements.
    """
    bundles = _bundles(arguments)
    with tempfile.TemporaryDirectory(prefix="tfwright-") as folder:
        for bundle in bundles:
            _extract_packages(bundle, Path(folder))
        yield {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder} if bundles else {}


def _bundles(arguments: list[str]) -> list[str]:
    """Return what ``bundle --unpack FILE`` and ``bundle --unpack=FILE`` name.

    That is a bundle, or a folder that another host sent with tfwright's own packages in it.
    """
    if arguments[:1] != ["bundle"]:
        return []
    words = [word for argument in arguments[1:] for word in argument.split("=", 1)]
    if not UNPACKING.intersection(words):
        return []
    return [word for word in words if Path(word).is_file() or Path(word, "tool").is_dir()]


class _PlainFile(tarfile.TarInfo):
    """A header of a bundle, which has no others: tarfile reads some for minutes, or for ever."""

    def _proc_member(self, archive: tarfile.TarFile) -> "_PlainFile":
        """Read on behind this header, as tarfile does for each. Raises ReadError.

        It is the method that tarfile lets subclasses replace; newer Pythons do not call `frombuf`.
        """
        # Paths of more than a hundred bytes have a header of their own.
        long_name = self.type == tarfile.GNUTYPE_LONGNAME
        most = LONGEST_NAME if long_name else sys.maxsize
        plain = long_name or self.type == tarfile.REGTYPE
        if not plain or not 0 <= self.size <= most:
            raise tarfile.ReadError("it is not a bundle of tfwright")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def _extract_packages(bundle: str, folder: Path) -> None:
    """Copy tfwright's own packages out of a bundle, or of a folder."""
    for wheel in Path(bundle, "tool").glob("*.whl"):
        shutil.copyfile(wheel, folder / wheel.name)
    if Path(bundle).is_dir():
        return
    try:
        with tarfile.open(bundle, "r:", tarinfo=_PlainFile) as members:
            for member in members:
                # The name has no slash, so nothing is written outside the folder.
                name = re.fullmatch(r"tool/(\w[\w.+!-]*\.whl)", member.name)
                if not name:
                    continue
                if stream := members.extractfile(member):
                    with (folder / name[1]).open("wb") as output:
                        shutil.copyfileobj(stream, output)
    except (tarfile.TarError, OSError, ValueError, OverflowError) as fault:
        _refuse(
            SUPPLY_STATUS,
            f"{bundle} is damaged: {fault}",
            "Copy it again, and compare its size and checksum with those where it was made.",
        )


def _make(place: Path, root: Path, wanted: str, variables: dict[str, str]) -> None:
    """Make the venv and install `wanted` into it; the mark is written last."""
    sys.stderr.write(f"Setting up {place} from {wanted} ...\n")
    _make_venv(place)
    _install(place, root / wanted, variables)
    script = place / "bin/invoke"
    script.write_bytes(script.read_bytes().replace(b"from invoke.main import program\n", INVOKE))
    # A .pth file instead of an installation: edits of the sources count at once.
    site = next((place / "lib").glob("python3*/site-packages"))
    # Python reads this file in the locale's encoding, which in C may not hold the checkout's path.
    (site / "tfwright.pth").write_text(f"{os.path.relpath(root / 'src', site)}\n", "utf-8")
    # As pip does with what it installs; the demo's tree is source to be built, not to be run.
    compileall.compile_dir(root / "src", rx=re.compile("/demo/"), quiet=1)
    # The developers' file includes all of the users' file.
    done = "\n".join(_sha256(root / name) for name in {wanted, "requirements.txt"})
    (place / "tfwright-requirements").write_text(done + "\n", "utf-8")


def _make_venv(place: Path) -> None:
    """Make an empty venv, unless there is a finished one."""
    # Only its requirements changed; pip then installs the difference.
    if (place / "tfwright-requirements").exists() and _runs(place):
        return
    shutil.rmtree(place, ignore_errors=True)
    try:
        # Debian packages it apart; its venv would print and exit in its own way.
        importlib.import_module("ensurepip")
        venv.create(place, with_pip=True)
    except subprocess.CalledProcessError as fault:
        # Of a full disk, venv says only that its pip failed.
        raise OSError(fault) from fault
    except ImportError:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        _refuse(
            HOST_STATUS,
            "Python's venv module cannot make an environment: ensurepip is missing.",
            "On Debian and Ubuntu: " + as_root(f"apt-get update && apt-get install {package}"),
        )


def _install(place: Path, requirements: Path, variables: dict[str, str]) -> None:
    """Install requirements, whose every line carries checksums, with the venv's own pip."""
    # Not by the script, whose first line breaks when the checkout's path is long.
    pip = [str(place / "bin/python"), "-c", PIP, "install", "--quiet"]
    options = ["--disable-pip-version-check", "--require-hashes", "-r", str(requirements)]
    environment = {**os.environ, **variables}
    done = subprocess.run(  # noqa: S603 no shell
        [*pip, *options], env=environment, check=False
    )
    if done.returncode != 0:
        _refuse(
            HOST_STATUS,
            f"pip could not install {requirements.name}; its message is above.",
            "Without a network, point pip at a local index or folder "
            "(PIP_INDEX_URL, PIP_FIND_LINKS) and run this again.",
        )


def _refuse(status: int, what: str, remedy: str) -> NoReturn:
    """End with a message like those of the commands, and their exit status."""
    sys.stderr.write(f"Failed: {what}\n  do:     {remedy}\n")
    sys.exit(status)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
