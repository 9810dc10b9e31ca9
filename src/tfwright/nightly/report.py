"""`invoke report`: one build as Markdown, fit for an issue, a mail or a job summary."""

from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import nightly
from tfwright.errors import RecipeError
from tfwright.nightly import builds
from tfwright.nightly import state as states
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages import build as pages


@dataclass(frozen=True)
class FoundBuild:
    """A build, and the directory that holds its files."""

    build: NightlyBuild
    folder: Path


def find(wanted: str) -> FoundBuild:
    """Return a nightly build: by identifier, by the path of its directory, or a recipe's newest.

    Without a name, it is the newest build of all. Raises RecipeError if there is none.
    """
    folder = Path(wanted)
    # A path works without nightly.toml: the directory may have come from another host.
    if wanted and (folder / builds.DOCUMENT).is_file():
        found = builds.read(folder)
        if found:
            return FoundBuild(found, folder)
    host = nightly.read()
    home = host.directory / "site" / "builds"
    with states.opened(host.directory) as state:
        named = state.build(wanted)
        kept = state.builds(wanted if wanted and not named else "")
        newest = named or (state.build(kept[-1].id) if kept else None)
    if newest is None:
        what = "This host has no nightly build yet"
        if wanted:
            what = f"No nightly build has the name {wanted!r}"
        raise RecipeError(
            what,
            remedy="Give an identifier from the page, or a recipe's name; 'invoke nightly' builds.",
        )
    # Builds lie below the site, so a web server shows the same files.
    return FoundBuild(newest, home / newest.id)


def markdown(found: FoundBuild) -> str:
    """Return the report, without secrets, tokens and home paths."""
    return pages.markdown(found.build, found.folder)


def html(found: FoundBuild) -> str:
    """Return the build's page as it is made now."""
    home = found.folder.parent
    against = found.build.against
    last = builds.read(home / against) if against else None
    return pages.page(found.build, found.folder, last, home)
