"""What `invoke index` prints."""

from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.terminal import text
from tfwright.terminal.text import Column, Styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfwright.errors import WheelError
    from tfwright.index.matching import MatchedWheel
    from tfwright.index.wheels import IndexedWheel
    from tfwright.index.write import IndexUpdate


def show_update(update: "IndexUpdate", folder: str) -> None:
    """Say what the index holds, and what was not taken into it."""
    # Hidden wheels keep their files for a while, and are not offered any more.
    shown = [wheel for wheel in update.wheels if not wheel.hidden]
    projects = len({wheel.project for wheel in shown})
    wheels = text.counted(len(shown), "wheel")
    text.tell(f"{wheels} of {text.counted(projects, 'project')} in {folder}")
    text.tell(
        f"{text.counted(update.read, 'wheel')} read, {text.counted(update.written, 'file')} written"
    )
    _show_refused(update.refused)


def _show_refused(refused: "Sequence[WheelError]") -> None:
    # Each by itself: a wheel that cannot be listed keeps no other one out.
    for fault in refused:
        text.tell(f"  not in the index: {fault.what}")
        text.tell(f"    do: {fault.remedy}")


def show_use(update: "IndexUpdate", url: str) -> None:
    """Print the configuration that users need: for pip, for uv, and against confusion."""
    print("pip, in pip.conf:")
    print("    [global]")
    print(f"    extra-index-url = {url}simple/")
    newest = _newest(update)
    # Without a pin, pip compares the versions of both indexes, and a public wheel may win.
    if newest and "+" in newest.version:
        pin = f"{newest.project}=={newest.version}"
        print(f"  Pin the local version, as in {pin}: public indexes accept none.")
    else:
        print("  Give wheels a local version and pin it: public indexes accept none.")
    print("uv, in pyproject.toml; only what you name comes from this index:")
    print("    [[tool.uv.index]]")
    print('    name = "tfwright"')
    print(f'    url = "{url}simple/"')
    print("    explicit = true")
    print("    [tool.uv.sources]")
    project = newest.project if newest else "tensorflow"
    print(f'    {project} = {{ index = "tfwright" }}')


def _newest(update: "IndexUpdate") -> "IndexedWheel | None":
    """Return the newest wheel that is offered, one with a local version if there is any."""
    offered = [wheel for wheel in update.wheels if not wheel.hidden and wheel.yanked is None]
    local = [wheel for wheel in offered if "+" in wheel.version]
    return next(reversed(local or offered), None)


FITTING = (
    Column("wheel", cut="middle"),
    Column("MB", rank=1, right=True),
    Column("tests", rank=2),
    Column("differs"),
)
MOST_SHOWN = 20


def show_matches(found: "Sequence[MatchedWheel]", url: str, *, as_json: bool) -> None:
    """Print the wheels of an index for a machine: those that fit first."""
    if as_json:
        text.as_json([{**wheel.entry.model_dump(), "differs": wheel.differs} for wheel in found])
        return
    rows = []
    for wheel in found[:MOST_SHOWN]:
        entry = wheel.entry
        fits = ", ".join(wheel.differs) or Styled("fits", text.GOOD)
        rows.append((entry.filename, f"{entry.size / 1e6:,.0f}", entry.state or "-", fits))
    if not rows:
        text.tell("This index has no wheel.")
        return
    text.table(FITTING, rows)
    # Sorted by what differs, so only the first can fit best.
    best = found[0]
    if not best.differs:
        entry = best.entry
        pin = f"{entry.project}=={entry.version}"
        print(f"\npip install --extra-index-url {url.rstrip('/')}/simple/ {pin}")


def show_serving(url: str) -> None:
    """Say where the index is served."""
    text.tell(f"Serving {printable(url)} to this machine; Ctrl-C ends it")
