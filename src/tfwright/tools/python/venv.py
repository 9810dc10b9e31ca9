"""The target Python's venv: the interpreter that TensorFlow is built for, with exact pins."""

import re
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents.names import EXACT_PIN
from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.printable import shell_word
from tfwright.tools import files, json_text, trees
from tfwright.tools.process import file_lock, runner
from tfwright.tools.process.command import (
    Command,
    clean_environment,
    container_name,
    open_container,
)
from tfwright.tools.python import package_clients, packages, pips

_HASH = " --hash=sha256:"
_FULL_VERSION = re.compile(r"^\d+\.\d+\.\d+\S*$", re.MULTILINE | re.ASCII)
DONE = "complete"
"""The marker that is written last: scripts of a venv hold its path, so it cannot be made elsewhere
and renamed."""


def make_venv(
    interpreter: Path,
    requirements: Sequence[str],
    stores: Sequence[Path],
    *,
    offline: bool,
    log: Path,
) -> Path:
    """Return the Python of a venv of `interpreter` that holds the pinned `requirements`.

    It is made once per interpreter, version and pins, and kept in the first store. Digests are not
    in its path, which goes into every action of a build: it notes those of the files that went in,
    and is made again in its place where others are wanted. What the index is, and how it is
    reached, is left to this host's pip configuration; offline, what the stores have is all that
    there is. Raises RecipeError for a requirement that is not an exact pin, HostError if the
    interpreter cannot make a venv, SupplyError if pip cannot find a pin.
    """
    for line in requirements:
        if not EXACT_PIN.fullmatch(line):
            raise RecipeError(
                f"{line!r} is not an exact pin",
                remedy=(
                    'Write host.requirements as "name==version", with --hash=sha256:… where you '
                    "like."
                ),
            )
    version = _ask_version(interpreter, log)
    home = path_of(interpreter, version, requirements, stores)
    with file_lock.locked(home.with_name(f"{home.name}.lock"), "making a venv", wait=True):
        if _is_usable(home, requirements):
            return home / "bin/python"
        if requirements and offline and not any(map(packages.stored_files, stores)):
            raise SupplyError(
                f"The venv of Python {version} with {', '.join(requirements)} is not there yet, "
                "and this build is offline",
                remedy=packages.UNFETCHED,
            )
        options = packages.offline_options(stores) if offline else ()
        # An interrupted attempt leaves packages by half, which pip takes for installed.
        files.remove(home)
        create(interpreter, version, home, log)
        installed = []
        # A pip of its time cannot read every wheel of its time.
        for lines in filter(None, pips.split_pip(requirements)):
            installed += _install(home, lines, log, options)
        # pip installs the pins, and not what they need.
        check = package_clients.pip_command(home / "bin/python", "check", cwd=home)
        try:
            runner.run(check, log, remedy="Pin in the recipe what the pinned packages need.")
        except ToolError as fault:
            raise RecipeError(
                f"The pins are not all that their packages need: {runner.last_line(log)}",
                remedy=fault.remedy,
                evidence=fault.evidence,
            ) from fault
        files.write(home / DONE, "".join(f"{line}\n" for line in sorted(installed)))
        files.write(_digest_file(home), f"{trees.content_digest(home)}\n")
    return home / "bin/python"


def path_of(
    interpreter: Path, version: str, requirements: Sequence[str], stores: Sequence[Path]
) -> Path:
    """Return the directory of a venv, whether it is there or not; `version` is the full one."""
    pins = sorted(map(_pin, requirements))
    # The same path in a container image is another interpreter.
    key = json_text.digest([str(interpreter.resolve()) + container_name(), version, *pins])[:12]
    # Its path is part of every action's key: one that was reached by a link is the same.
    return stores[0].resolve() / "pythons" / f"{version}-{key}"


def is_damaged(home: Path) -> bool:
    """Read a venv, and say whether it holds anything else than when it was made.

    Also true of one that was made before tfwright kept a digest of them.
    """
    try:
        return content_digest(home) != trees.content_digest(home)
    except OSError:
        return True


def was_changed(home: Path) -> bool:
    """Say whether a venv whose digest is known holds anything else than when it was made."""
    return _digest_file(home).is_file() and is_damaged(home)


def content_digest(home: Path) -> str:
    """Return the digest that `make_venv` found for a venv."""
    return files.text(_digest_file(home)).strip()


def _digest_file(home: Path) -> Path:
    """Return the file, next to a venv, with the digest of the files in it."""
    return home.with_name(f"{home.name}.sha256")


def _ask_version(interpreter: Path, log: Path) -> str:
    """Ask an interpreter for its full version."""
    code = "import platform; print(platform.python_version())"
    # The path's name says little: python3.6 of two hosts may be 3.6.3 and 3.6.15.
    command = Command.of_system(str(interpreter), "-c", code)
    remedy = "Name the target Python in the host file: [pythons]."
    printed = runner.run(command, log, remedy=remedy)
    # A wrapper of an interpreter may print more than the interpreter.
    found = _FULL_VERSION.findall(printed)
    if not found:
        raise HostError(
            f"{interpreter} does not say its version, but: {printed[:200]}", remedy=remedy
        )
    return str(found[-1])


def _is_usable(home: Path, requirements: Sequence[str]) -> bool:
    """Say whether a venv is finished, undamaged, and made from files with a wanted digest."""
    # The packages in it take part in every action: one that was changed must not pass.
    finished = (home / DONE).is_file() and (home / "bin/python").exists()
    if not finished or is_damaged(home):
        return False
    # A pin without digests accepts whatever file the index gave for it.
    installed = dict(line.split(_HASH) for line in files.text(home / DONE).splitlines())
    wanted = (line.split(_HASH) for line in requirements)
    return all(not digests or installed.get(pin) in digests for pin, *digests in wanted)


def create_command(
    interpreter: str, version: str, place: Path, home: Path, *options: str
) -> Command:
    """Return the making of an empty venv; Python 2 needs virtualenv for it."""
    # Of the interpreter itself: its own module makes a venv of exactly its version.
    module = "virtualenv" if version.startswith("2.") else "venv"
    argv = (interpreter, "-m", module, *options, str(place))
    return Command(argv, place.parent, clean_environment(home))


def create(interpreter: Path, version: str, home: Path, log: Path) -> None:
    """Make an empty venv. Raises HostError if the interpreter cannot."""
    # A link to an interpreter of an image would be broken on the host.
    copies = ("--copies",) if open_container() else ()
    command = create_command(str(interpreter), version, home, home.parent, *copies)
    try:
        runner.run(command, log, remedy=install_remedy(interpreter, version))
    except ToolError as fault:
        raise HostError(
            f"{interpreter} (Python {version}) cannot make a {command.argv[2]}",
            remedy=fault.remedy,
            evidence=fault.evidence,
        ) from fault


def install_remedy(interpreter: Path, version: str) -> str:
    """Say what to install where an interpreter cannot make a venv."""
    if not version.startswith("2."):
        line = ".".join(version.split(".")[:2])
        return (
            "Install the rest of that Python; Debian and Ubuntu keep it in a package of its own, "
            f"python{line}-venv."
        )
    python = shell_word(str(interpreter))
    return (
        f"Python 2 has no venv of its own: run '{python} -m pip install virtualenv==20.15.1', "
        "the last that supports it."
    )


def _install(
    home: Path, requirements: Sequence[str], log: Path, options: Sequence[str]
) -> list[str]:
    """Let the venv's own pip install exact pins, and return each with the digest of its file.

    `options` say where pip may look.
    """
    python = home / "bin/python"
    listed = home / "requirements.txt"
    with files.scratch_directory() as folder:
        wanted = (*options, *packages.write_requirements(listed, requirements))
        downloads = packages.download(python, wanted, folder, log)
        # The hashes of the downloaded files: pip installs these files, or fails.
        digests = {packages.project_of_file(path): files.sha256(path) for path in downloads}
        exact = [pin + _HASH + digests[packages.name_of(pin)] for pin in map(_pin, requirements)]
        where = (f"--find-links={folder}", "--no-deps", *packages.write_requirements(listed, exact))
        command = package_clients.pip_command(python, "install", *options, *where, cwd=home)
        what = f"could not install {', '.join(requirements)}"
        remedy = "Pin another version: this one does not build or install here."
        packages.run_pip(command, log, what, remedy)
    return exact


def _pin(requirement: str) -> str:
    """Return a requirement without the checksums that it may name."""
    return requirement.partition(_HASH)[0]
