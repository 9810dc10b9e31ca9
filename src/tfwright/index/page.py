"""What `invoke index` prints."""

from collections.abc import Mapping, Sequence

from tfwright.index.matching import MatchedWheel
from tfwright.index.write import IndexUpdate
from tfwright.terminal import text
from tfwright.terminal.text import Column

FITTING = (
    Column("wheel", cut="middle"),
    Column("MB", rank=1, right=True),
    Column("tests", rank=2),
    Column("differs", cut="end"),
)
MOST_SHOWN = 20


def show_update(update: IndexUpdate, folder: object) -> None:
    """Say what the index holds, and what was not taken into it."""
    # Hidden wheels keep their files for a while, and are not offered any more.
    shown = [wheel for wheel in update.wheels if not wheel.hidden]
    projects = text.counted(len({wheel.project for wheel in shown}), "project")
    text.tell(f"{text.counted(len(shown), 'wheel')} of {projects} in {folder}")
    text.tell(
        f"{text.counted(update.read, 'wheel')} read, {text.counted(update.written, 'file')} written"
    )
    # Each by itself: a wheel that cannot be listed keeps no other one out.
    for fault in update.refused:
        text.tell(f"  not in the index: {fault.what}")
        text.tell(f"    do: {fault.remedy}")


def show_use(update: IndexUpdate, url: str) -> None:
    """Print the configuration that users need: for pip, for uv, and against confusion."""
    # Of the newest wheel that is offered, one with a local version if there is any.
    offered = [wheel for wheel in update.wheels if not wheel.hidden and wheel.yanked is None]
    local = [wheel for wheel in offered if "+" in wheel.version]
    newest = next(reversed(local or offered), None)
    project = newest.project if newest else "tensorflow"
    # Without a pin, pip compares the versions of both indexes, and a public wheel may win.
    advice = "Give wheels a local version and pin it"
    if local:
        advice = f"Pin the local version, as in {project}=={local[-1].version}"
    print(
        f"""\
pip, in pip.conf:
    [global]
    extra-index-url = {url}simple/
  {advice}: public indexes accept none.
uv, in pyproject.toml; only what you name comes from this index:
    [[tool.uv.index]]
    name = "tfwright"
    url = "{url}simple/"
    explicit = true
    [tool.uv.sources]
    {project} = {{ index = "tfwright" }}"""
    )


def show_matches(found: Sequence[MatchedWheel], url: str) -> None:
    """Print the wheels of an index for a machine: those that fit first."""
    if not found:
        text.tell("This index has no wheel.")
        return
    rows = []
    for wheel in found[:MOST_SHOWN]:
        entry = wheel.entry
        fits = ", ".join(wheel.differs) or text.good("fits")
        rows.append((entry.filename, f"{entry.size / 1e6:,.0f}", entry.state or "-", fits))
    text.table(FITTING, rows)
    # Sorted by what differs, so only the first can fit best.
    best = found[0]
    if not best.differs:
        pin = f"{best.entry.project}=={best.entry.version}"
        print(f"\npip install --extra-index-url {url.rstrip('/')}/simple/ {pin}")


def matches_data(found: Sequence[MatchedWheel]) -> list[dict[str, object]]:
    """Return the wheels for machines."""
    return [{**wheel.entry.model_dump(), "differs": wheel.differs} for wheel in found]


def show_yank(change: Mapping[str, object]) -> None:
    """Say what a yank changed."""
    what = "is yanked: only an exact pin takes it" if change["yanked"] else "is offered again"
    text.tell(f"{change['wheel']} {what}")
