"""Python packages kept as files, by digest, so that pip installs them without a network."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from tfwright.errors import SupplyError, ToolError
from tfwright.tools import files, package_clients, shell
from tfwright.tools.shell import Command

PAGE = "index.html"
"""What pip reads: a link to each file, with its digest, which pip insists on."""


def shelf(vault: Path) -> Path:
    """Return where packages are kept, each in a directory named by its digest."""
    return vault / "packages"


def offline(vault: Path) -> tuple[str, ...]:
    """Return the options that let pip see the kept packages and nothing else."""
    return ("--no-index", f"--find-links={shelf(vault) / PAGE}")


def kept(vault: Path) -> list[Path]:
    """Return the files that are kept, sorted by digest."""
    return sorted(path for path in shelf(vault).glob("*/*") if not path.name.startswith("."))


def keep(found: Mapping[Path, tuple[str, str]], vault: Path) -> None:
    """Move files among the kept ones, each given with its name and its verified digest."""
    for path, (name, sha256) in found.items():
        files.move(path, shelf(vault) / sha256 / name)
    write_page(vault)


def write_page(vault: Path) -> None:
    """Write the page anew; done after every change."""
    links = [f'<a href="{path.parent.name}/{quote(path.name)}#sha256={path.parent.name}">{html.escape(path.name)}</a><br>' for path in kept(vault)]
    files.write(shelf(vault) / PAGE, "\n".join(["<!DOCTYPE html>", *links, ""]))


def bring(python: Path, options: Sequence[str], folder: Path, log: Path) -> list[Path]:
    """Let the pip of `python` download what `options` name, and what that needs, as it would install it.

    Raises SupplyError if something is not to be had.
    """
    argv = (str(python), "-m", "pip", "--disable-pip-version-check", "download", "--dest", str(folder), *options)
    try:
        shell.run(Command(argv, folder, package_clients.of("pip", (python.parent,))), log, remedy="Check how pip reaches its index.")
    except ToolError as fault:
        said = next((line for line in fault.evidence.lines if "ERROR" in line), fault.what)
        raise SupplyError(f"pip could not download what goes into the bundle: {said}", remedy=fault.remedy, evidence=fault.evidence) from fault
    return sorted(folder.iterdir())
