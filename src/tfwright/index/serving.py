"""`invoke index`: where an index is, and how it is refreshed and served."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file, nightly
from tfwright.documents.nightly import NightlyFile
from tfwright.errors import RecipeError
from tfwright.index import write
from tfwright.index.write import IndexUpdate
from tfwright.tools.http import server
from tfwright.tools.process import file_lock
from tfwright.tools.render import content_policy, render

LAST_PORT = 65535
PORT, TLS_PORT, PLAIN_PORT = 8080, 443, 80
"""Where an index is served unless another port is named, and what web servers use with TLS and
without it."""


@dataclass(frozen=True)
class IndexPlace:
    """Which index is meant, and how it is laid out."""

    folder: Path
    packages: str
    """The folder of the wheels below it."""
    nightly: NightlyFile | None = None
    """The build host that it belongs to; None for the wheelhouse of builds by hand."""

    def build_host(self) -> NightlyFile:
        """Return the build host, which keeps yanked wheels. Raises RecipeError if it has none."""
        if self.nightly:
            return self.nightly
        remedy = f"Delete the wheel from {self.folder}, or set up nightly.toml."
        if nightly.path().exists() and nightly.read().site.resolve() == self.folder:
            remedy = "Leave out --folder: this one is the build host's."
        raise RecipeError("Only the index of a build host keeps yanked wheels", remedy=remedy)


def find_index(folder: str = "") -> IndexPlace:
    """Return the index in a folder; without one the build host's, else the wheelhouse."""
    if folder:
        path = Path(folder).resolve()
        if not path.is_dir():
            raise RecipeError(
                f"The folder {path} does not exist", remedy="Name a folder that holds wheels."
            )
        # A plain folder of wheels is an index too; a build host's has them in a folder below.
        packages = write.PACKAGES if (path / write.PACKAGES).is_dir() else ""
        # Any other folder that was named by mistake would get pages of an index.
        if not packages and not any(path.glob("*.whl")) and not (path / "simple").is_dir():
            raise RecipeError(f"{path} has no wheel", remedy="Name a folder that holds wheels.")
        return IndexPlace(path, packages)
    if nightly.path().exists():
        nightly_file = nightly.read()
        return IndexPlace(nightly_file.site, write.PACKAGES, nightly_file)
    return IndexPlace(host_file.read().build_out / "wheelhouse", "")


def refresh(place: IndexPlace) -> IndexUpdate:
    """Bring an index that is not a build host's up to date with its wheels."""
    place.folder.mkdir(parents=True, exist_ok=True)
    # Two refreshes at once would write the same pages.
    with file_lock.locked(place.folder / ".lock", "invoke index", wait=True):
        return write.refresh(place.folder, packages=place.packages)


@contextmanager
def serving(place: IndexPlace, port: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Listen on loopback; give the address and the function that serves until Ctrl-C."""
    # 0 takes a free one.
    _check_port(port, 0)
    with server.listening(place.folder, port) as listener:
        yield (f"http://{server.LOOPBACK}:{listener.server_address[1]}/", listener.serve_forever)


def nginx_configuration(place: IndexPlace, port: int, name: str) -> str:
    """Return the configuration that serves an index to other machines, for nginx's http block.

    Without a folder of `packages`, wheels may be replaced: then nothing is kept for ever. Raises
    RecipeError for a path or a server name that could end its directive.
    """
    _check_port(port, 1)
    # nginx has no quoting that is safe for every character.
    for value in (str(place.folder), name):
        if not value.isprintable() or set(value) & set("'\"\\;{}$# "):
            raise RecipeError(
                f"{value!r} cannot be written into an nginx configuration",
                remedy="Choose a path and a server name without quotes, blanks, backslashes, "
                "$, #, ; and braces.",
            )
    url = (place.nightly.url if place.nightly else "") or ""
    tls = port == TLS_PORT or url.startswith("https://")
    # Port 80 leads to the one with TLS.
    if tls and port in {PORT, PLAIN_PORT}:
        port = TLS_PORT
    values = {
        "folder": place.folder,
        "port": port,
        "tls": tls,
        "secure": f"https://{name}" + ("" if port == TLS_PORT else f":{port}"),
        "name": name,
        "packages": place.packages,
        "safety": content_policy(),
    }
    return render("nginx.conf.j2", values)


def _check_port(port: int, least: int) -> None:
    if not least <= port <= LAST_PORT:
        raise RecipeError(
            f"--port {port} is not a port",
            remedy=f"Choose a number from 1 to {LAST_PORT}; those up to 1023 are for root.",
        )
