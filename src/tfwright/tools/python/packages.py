"""Python packages kept as files, by digest, so that pip installs them without a network."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from tfwright.errors import SupplyError, ToolError, invoke
from tfwright.tools import files, json_text
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command
from tfwright.tools.python import package_clients

PAGE = "index.html"
"""What pip reads: a link to each file, with its digest, which pip insists on."""
UNFETCHED = (
    f"Run '{invoke('fetch')}' once with a network, or unpack a bundle from a host that has them."
)
_WHEEL = re.compile(
    r"(?P<name>[\w.]+)-(?P<version>[\w.!+]+)(-\d[\w.]*)?(-[\w.]+){3}\.whl", re.ASCII
)
_SDIST = re.compile(
    r"(?P<name>[\w.-]+?)-(?P<version>\d[\w.!+]*(-\d+)?)\.(zip|tar\.(gz|bz2|xz|Z)|tgz)", re.ASCII
)


def package_folder(vault: Path) -> Path:
    """Return where packages are kept, each in a directory named by its digest."""
    return vault / "packages"


def offline_options(stores: Sequence[Path]) -> tuple[str, ...]:
    """Return the options that let pip see the packages of some stores and nothing else."""
    pages = (package_folder(store) / PAGE for store in stores)
    return ("--no-index", *(f"--find-links={page}" for page in pages))


def offline_environment(stores: Sequence[Path]) -> dict[str, str]:
    """Return the variables that do the same for a pip which someone else runs.

    rules_python isolates its pip from them unless a variable of its own says otherwise.
    """
    pages = (str(package_folder(store) / PAGE) for store in stores)
    found = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": " ".join(pages)}
    return {**found, "RULES_PYTHON_PIP_ISOLATED": "0"}


def stored_files(vault: Path) -> list[Path]:
    """Return the files that are kept, sorted by digest."""
    return sorted(
        path for path in package_folder(vault).glob("*/*") if not path.name.startswith(".")
    )


def store_files(found: Mapping[Path, tuple[str, str]], vault: Path) -> None:
    """Move files among the kept ones, each given with its name and its verified digest."""
    for path, (name, sha256) in found.items():
        files.move(path, package_folder(vault) / sha256 / name)
    write_page(vault)


def supply(
    python: Path, pins: Sequence[str], stores: Sequence[Path], log: Path, *, offline_only: bool
) -> list[Path]:
    """See to it that `pins` are in the first store; return their files.

    What any of the stores has is not asked for again. Raises SupplyError if the index does not have
    a pin.
    """
    vault = stores[0]
    if supplied := _chosen_before(python, pins, vault):
        return supplied
    with files.scratch_directory() as folder:
        wanted = write_requirements(folder / "pins.txt", pins)
        try:
            # First without an index: pip then makes no request for what is kept already.
            found = download(python, (*offline_options(stores), *wanted), folder / "here", log)
        except SupplyError as fault:
            if offline_only:
                # What is known of such a log is for people whose pip may ask an index.
                fault.evidence = replace(fault.evidence, log=None)
                raise
            found = download(python, wanted, folder / "brought", log)
        kept = [f"{files.sha256(path)}/{path.name}" for path in found]
        # Also a file that was at hand may have come from a folder of this host's pip.
        new = {
            path: (path.name, place.partition("/")[0])
            for path, place in zip(found, kept, strict=True)
            if not _is_sound(package_folder(vault) / place)
        }
        store_files(new, vault)
    files.write(_choice_file(python, pins, vault), "".join(f"{place}\n" for place in kept))
    return [package_folder(vault) / place for place in kept]


def _chosen_before(python: Path, pins: Sequence[str], vault: Path) -> list[Path]:
    """Return the files that an earlier run chose for the same pins, if all are as they were then.

    pip takes seconds to come to the same answer.
    """
    try:
        names = files.text(_choice_file(python, pins, vault)).splitlines()
        kept = [package_folder(vault) / name for name in names]
        sound = all(_is_sound(path) for path in kept)
    except (OSError, ValueError):
        # A damaged list: lines that are not text, or do not name files.
        return []
    return kept if sound else []


def _is_sound(path: Path) -> bool:
    """Tell whether a file has the digest that its directory is named by."""
    return path.is_file() and files.sha256(path) == path.parent.name


def _choice_file(python: Path, pins: Sequence[str], vault: Path) -> Path:
    """Return the file that names what was chosen for an interpreter and its pins."""
    # The path of a venv's Python says which version it is, and pip chooses by that.
    key = json_text.digest([str(python), *pins])
    return package_folder(vault) / f"{key[:16]}.list"


def write_page(vault: Path) -> None:
    """Write the page again; done after every change."""
    links = []
    for path in stored_files(vault):
        # The digest in the link is checked by pip itself, so that a damaged file is refused.
        digest = path.parent.name
        url = f"{digest}/{quote(path.name)}#sha256={digest}"
        links.append(f'<a href="{url}">{html.escape(path.name)}</a><br>')
    files.write(package_folder(vault) / PAGE, "\n".join(["<!DOCTYPE html>", *links, ""]))


def project_of_file(path: Path) -> str:
    """Return the name, as indexes compare it, of the project that a downloaded file is of."""
    return release_of_file(path.name)[0]


def release_of_file(file: str) -> tuple[str, str]:
    """Return the project and the version that a file's name says, as indexes compare them.

    Raises SupplyError for the name of anything else.
    """
    from packaging.utils import canonicalize_name, canonicalize_version

    # By hand: packaging refuses versions of before PEP 440, which old pins have.
    found = _WHEEL.fullmatch(file) or _SDIST.fullmatch(file)
    if not found:
        raise SupplyError(
            f"{file!r} is not the name of a Python package",
            remedy="Pin a version whose index lists a wheel or a source archive.",
        )
    return canonicalize_name(found["name"]), canonicalize_version(found["version"])


def name_of(requirement: str) -> str:
    """Return the name, as indexes compare it, of the project that a requirement asks for.

    Raises packaging's InvalidRequirement for a text that is not a requirement.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)


def pin_of(line: str) -> str:
    """Return the ``name==version`` of an exact pin, named as indexes compare it.

    What else the line says, extras and checksums, is left out.
    """
    from packaging.utils import canonicalize_name

    name, _, version = line.partition(" ")[0].partition("==")
    return f"{canonicalize_name(name.partition('[')[0])}=={version}"


def download(python: Path, options: Sequence[str], folder: Path, log: Path) -> list[Path]:
    """Let the pip of `python` download exactly the pins that `options` name, as for an install.

    Raises SupplyError if the index does not have a pin.
    """
    folder.mkdir(exist_ok=True)
    # What the pins need is pinned as well: pip must not choose more.
    where = ("--no-deps", "--dest", str(folder))
    command = package_clients.pip_command(python, "download", *where, *options, cwd=folder)
    remedy = UNFETCHED if "--no-index" in options else ""
    run_pip(command, log, "could not download the packages", remedy)
    return sorted(folder.iterdir())


def run_pip(command: Command, log: Path, what: str, remedy: str) -> None:
    """Run pip; raise SupplyError with `what` it failed to do, and its first complaint.

    Without a remedy it is about the index.
    """
    try:
        runner.run(command, log, remedy=remedy)
    except ToolError as fault:
        reason = complaint(log)
        raise SupplyError(
            f"pip {what}: {reason}",
            remedy=package_clients.pip_remedy(fault, reason, remedy),
            evidence=fault.evidence,
        ) from fault


def write_requirements(file: Path, requirements: Iterable[str]) -> tuple[str, str]:
    """Write requirements into a file, and return the options that let pip read it.

    pip takes checksums only from a file, and there a leading dash is no option.
    """
    files.write(file, "".join(f"{line}\n" for line in requirements))
    return "-r", str(file)


def complaint(log: Path) -> str:
    """Return what pip says is wrong, mostly its first such line; old ones do not mark it."""
    text = log.read_text("utf-8", "replace")
    if conflict := re.search(r"(?m)^The conflict is caused by:\n((?: +.*\n)+)", text):
        return "; ".join(line.strip() for line in conflict[1].splitlines())
    # pip first says which versions there are, then only that none of them fits.
    marked = re.search(
        r"^ *(?:ERROR: )?(Could not find a version.*|No matching distribution.*"
        r"|THESE PACKAGES DO NOT MATCH.*|In --require-hashes mode.*|.*Error: .*)$",
        text,
        re.MULTILINE,
    )
    # To an index that does not answer it says the same as to one without any version.
    silent = marked and "(from versions: none)" in marked[1]
    if silent and (broken := re.search(r"after connection broken by '(.*)': /", text)):
        return f"its index does not answer: {broken[1]}"
    return marked[1] if marked else runner.last_line(log)
