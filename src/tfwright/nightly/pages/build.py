"""A build's own page: what changed and what broke on top, then times, sizes and the log.

And the same as Markdown, fit for an issue, a mail or a job summary.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tfwright.documents import nightly
from tfwright.errors import RecipeError
from tfwright.nightly import builds, pages
from tfwright.nightly import state as states
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages import charts, log
from tfwright.smoke import page as smoke
from tfwright.tools import redaction
from tfwright.tools.git import forge
from tfwright.tools.redaction import redact_text
from tfwright.tools.render import render
from tfwright.wheel.seal import statement

PAGE = "index.html"
MOST_LOGS = 2
"""Logs that a page shows; the others are linked."""
AROUND = 15
"""Lines of a log that a report shows before and after the one that broke."""


def find(name: str) -> tuple[NightlyBuild, Path]:
    """Return a nightly build and its directory: by identifier, by path, or a recipe's newest.

    Without a name, it is the newest build of all. Raises RecipeError if there is none.
    """
    # A path works without nightly.toml: the directory may have come from another host.
    if name and (found := builds.read(Path(name))):
        return found, Path(name)
    host = nightly.read()
    with states.open_state(host.directory) as state:
        named = state.build(name)
        kept = state.builds(name if name and not named else "")
        newest = named or (state.build(kept[-1].id) if kept else None)
    if newest is None:
        what = "This host has no nightly build yet"
        if name:
            what = f"No nightly build has the name {name!r}"
        raise RecipeError(
            what,
            remedy="Give an identifier from the page, or a recipe's name; 'invoke nightly' builds.",
        )
    return newest, host.builds / newest.id


def html(build: NightlyBuild, folder: Path) -> str:
    """Return the page of a kept build as it is made now."""
    against = builds.read(folder.parent / build.against) if build.against else None
    # An earlier tfwright may have kept it as it was.
    return page(build.redact(), folder, against, folder.parent)


def page(build: NightlyBuild, folder: Path, last_good: NightlyBuild | None, home: Path) -> str:
    """Return the page of a build whose files lie in `folder`.

    `home` holds the directories of the other builds.
    """
    # Without a profile these are directories, in which nothing can be read.
    earlier = home / last_good.id / last_good.profile if last_good else None
    # What the page links elsewhere.
    known = {build.wheel, PAGE, *build.logs}
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    values: dict[str, object] = {
        "build": build,
        "words": pages,
        "forge": forge,
        "statement": statement,
        "root": "../../",
        "plot": smoke.sweep_plot(build.sweep),
        "timeline": charts.compare_profiles(folder / build.profile, earlier),
        "logs": shown_logs(build, folder),
        "last_good": last_good,
        # The last ones are written only after the page.
        "files": [
            name
            for name in (*names, "report.md", builds.DOCUMENT, *filter(None, (build.profile,)))
            if name not in known and not name.startswith(".")
        ],
        "inputs": sorted(
            str(path.relative_to(folder))
            for path in (folder / builds.INPUTS).rglob("*")
            if path.is_file() and not redaction.has_secrets(path)
        ),
    }
    return render("nightly_build.html.j2", values)


def shown_logs(build: NightlyBuild, folder: Path) -> list[log.ShownLog]:
    """Return the logs that a page shows: the one with the broken line, or the last ones."""
    broken = build.broken
    if broken is None:
        return []
    # One log with the reason is enough: the others would bury it.
    if broken.log:
        return [log.read(folder, broken.log, broken.number)]
    return [log.read(folder, name) for name in build.logs[-MOST_LOGS:]]


def markdown(build: NightlyBuild, folder: Path) -> str:
    """Return the same report as Markdown: for mail, a job summary, or an issue.

    Secrets, tokens and home paths are taken out.
    """
    around = []
    if build.broken and build.broken.log:
        near = log.read(folder, build.broken.log, build.broken.number).lines
        # The last ones where the line is unknown.
        number = build.broken.number or (near[-1].number if near else 0)
        around = [entry.text for entry in near if abs(entry.number - number) <= AROUND]
    values = {
        "build": build,
        "around": around,
        "words": pages,
        "inline": _inline,
        "code_block": _code_block,
    }
    return redact_text(render("nightly_report.md.j2", values))


def _code_block(lines: Sequence[str]) -> str:
    """Return a block of code; its fence is longer than any run of backticks in the text."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([fence, *lines, fence])


def _inline(text: str) -> str:
    """Return text on one line in which nothing is markup: no link, no mention, no image."""
    plain = re.sub(r"[\\`*_\[\]<>#|!~]", r"\\\g<0>", " ".join(text.split()))
    # An @ would notify whoever has that name.
    return plain.replace("@", "@\N{ZERO WIDTH SPACE}")
