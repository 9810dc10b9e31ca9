"""`invoke index`: the wheel index of a build host, or of the wheelhouse: refresh, serve, yank."""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file, nightly
from tfwright.documents.nightly import NightlyFile
from tfwright.errors import RecipeError
from tfwright.index import nginx, write
from tfwright.index.write import IndexUpdate
from tfwright.nightly import site
from tfwright.nightly import state as states
from tfwright.tools.http import server
from tfwright.tools.process import file_lock

LAST_PORT = 65535


@dataclass(frozen=True)
class IndexPlace:
    """Which index is meant, and how it is laid out."""

    folder: Path
    packages: str
    """The folder of the wheels below it."""
    nightly: NightlyFile | None = None
    """The build host that it belongs to; None for the wheelhouse of builds by hand."""

    @property
    def of_build_host(self) -> bool:
        """Whether the folder is the site of the build host, although it was named as a folder."""
        return (
            nightly.path().exists() and (nightly.read().directory / "site").resolve() == self.folder
        )


def place(folder: str = "") -> IndexPlace:
    """Return the index in a folder; without one the build host's, else the wheelhouse."""
    if folder:
        path = Path(folder).resolve()
        if not path.is_dir():
            raise RecipeError(
                f"The folder {path} does not exist", remedy="Name a folder that holds wheels."
            )
        # A plain folder of wheels is an index too; a build host's has them in a folder below.
        packages = write.PACKAGES if (path / write.PACKAGES).is_dir() else ""
        return IndexPlace(path, packages)
    if nightly.path().exists():
        wanted = nightly.read()
        return IndexPlace(wanted.directory / "site", write.PACKAGES, wanted)
    return IndexPlace(host_file.read().build_out / "wheelhouse", "")


def refresh(found: IndexPlace) -> IndexUpdate:
    """Bring an index up to date with its wheels."""
    found.folder.mkdir(parents=True, exist_ok=True)
    if found.nightly is None:
        # Two refreshes at once would write the same pages.
        lock = found.folder / ".lock"
        with file_lock.held(lock, "invoke index", wait=True):
            # Wheels in a folder `packages` are served as never changing, also to later clients.
            return write.refresh(found.folder, replace=not found.packages, packages=found.packages)
    with states.opened(found.nightly.directory) as state:
        return site.publish(found.nightly, state, dt.datetime.now(dt.UTC))


def yank(found: IndexPlace, filename: str, reason: str | None) -> None:
    """Yank a wheel, or take that back with None; the index shows it at once."""
    if found.nightly is None:
        remedy = f"Delete the wheel from {found.folder}, or set up nightly.toml."
        if found.of_build_host:
            remedy = "Leave out --folder: this one is the build host's."
        raise RecipeError("Only the index of a build host keeps yanked wheels", remedy=remedy)
    # The yank is stored before the index is written: a kill in between loses nothing.
    site.yank(found.nightly.directory, filename, reason)
    refresh(found)


@contextmanager
def serving(found: IndexPlace, port: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Listen on loopback; give the address and the function that serves until Ctrl-C."""
    # 0 takes a free one.
    _insist_on_port(port, 0)
    with server.listening(found.folder, port) as listener:
        yield (f"http://{server.LOOPBACK}:{listener.server_address[1]}/", listener.serve_forever)


def nginx_configuration(found: IndexPlace, port: int, name: str) -> str:
    """Return the nginx configuration that serves an index to other machines."""
    _insist_on_port(port, 1)
    return nginx.configuration(found.folder, port, name, found.packages)


def _insist_on_port(port: int, least: int) -> None:
    if not least <= port <= LAST_PORT:
        raise RecipeError(
            f"--port {port} is not a port",
            remedy=f"Choose a number from 1 to {LAST_PORT}; those up to 1023 are for root.",
        )
