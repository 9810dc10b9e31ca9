"""The pages of vault, lock and bundle: what is kept, locked, carried and still served."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.vault.bundle import Manifest
    from tfwright.vault.links import LinkRow
    from tfwright.vault.lock import Lock
    from tfwright.vault.usage import Inventory, VaultEntry

LINKS = (
    Column("archive", 0, least=20),
    Column("sources left", 0, "never"),
    Column("in the vault", 1, "never"),
    Column("source", 0, "middle", least=24),
)
MEMBERS = (
    Column("", 0, "never"),
    Column("files", 0, "never", right=True),
    Column("size", 0, "never", right=True),
)
KINDS = (
    Column("kind", 0, "never"),
    Column("entries", 0, "never", right=True),
    Column("size", 0, "never", right=True),
)
NEEDS = (
    Column("recipe", 0, "never"),
    Column("needs", 0, "never", right=True),
    Column("shared", 2, "never", right=True),
    Column("with", 1, least=16),
)
UNUSED = (
    Column("", 0, "never", right=True),
    Column("", 1, "never"),
    Column("", 0, "middle", least=24),
)


def show_lock(path: Path, lock: "Lock") -> None:
    """Say what was locked, and what could not be; print the file's name on stdout, for scripts."""
    # None of them where Bazel could not be asked; then nothing is said about needs.
    needed = [archive for archive in lock.archives if archive.needed]
    wanted = f", {len(needed)} of them needed by the target" if needed else ""
    archives = text.counted(len(lock.archives), "archive")
    packages = text.counted(len(lock.requirements), "package")
    files = f"{len(lock.files):,} patches and assets"
    text.tell(f"  {archives}{wanted}; {packages}; {files}")
    for substitute in lock.substitutes:
        text.tell(f"  not the pinned bytes: {substitute.source}: {substitute.reason}", text.WARNING)
    if lock.unlockable:
        declared = text.counted(len(lock.unlockable), "declaration")
        text.tell(
            f"  {declared} that no checksum holds: [[unlockable]] in the lock file", text.WARNING
        )
    if open_ones := [entry.name for entry in lock.unlockable if entry.needed]:
        text.tell(
            f"  the target needs {', '.join(open_ones)}, so that builds stop in fetch "
            "and say how to pin them",
            text.WARNING,
        )
    print(path)


def show_links(rows: "Sequence[LinkRow]", *, as_json: bool) -> None:
    """Print which sources of each archive still have it; archives with the fewest come first."""
    if as_json:
        text.as_json([_link_row(row) for row in rows])
        return
    if not rows:
        text.line("The rules of this recipe's tree download no archive.")
        return
    cells: list[tuple[Part, ...]] = []
    # The archives that are nearest to being lost come first.
    for row in sorted(rows, key=lambda row: row.left):
        cells += _link_cells(row)
    text.table(LINKS, cells)
    gone = sum(row.left == 0 for row in rows)
    single = sum(row.left == 1 for row in rows)
    text.tell(
        f"  {text.counted(len(rows), 'archive')}: {gone} without a source, "
        f"{single} with one source, {len(rows) - gone - single} with more"
    )


def _link_row(row: "LinkRow") -> dict[str, object]:
    return {**vars(row), "left": row.left, "links": [vars(link) for link in row.links]}


def _link_cells(row: "LinkRow") -> list[tuple[Part, ...]]:
    """Return the lines of one archive: one for each source."""
    sources = []
    for link in row.links:
        why = f" ({link.why})" if link.why else ""
        sources.append(f"{link.where}: {link.state}{why}")
    # One source is a warning: when it goes, only a vault has the archive.
    style = {0: text.BAD, 1: text.WARNING}.get(row.left, text.GOOD)
    left = Styled(f"{row.left} of {len(row.links)}", style)
    first, *others = sources or ["no source"]
    # Several rules may share an archive; the first name is enough to find it.
    name = row.name.partition(",")[0]
    kept = "yes" if row.kept else "no"
    further = [("", "", "", source) for source in others]
    return [(name, left, kept, first), *further]


def show_lacking(paths: Sequence[str]) -> None:
    """Print what a worker lacks, for the host that sends it: JSON on one line."""
    print(json.dumps([*paths]))


def show_bundle(manifest: "Manifest") -> None:
    """Print what a bundle holds, what it lacks, and the checksum to compare on the other host."""
    # A bundle holds hundreds of archives; their kinds and sizes are what matters.
    counts = Counter(member.kind for member in manifest.members)
    rows = []
    for kind, count in counts.items():
        size = sum(member.size for member in manifest.members if member.kind == kind)
        rows.append((f"  {kind}", f"{count:,}", text.as_size(size)))
    text.table(MEMBERS, rows)
    # What licences keep out of a bundle, with the
    # checksums to compare on the other host.
    for absent in manifest.absent:
        text.line(Styled(f"  without {absent.name}", text.WARNING))
        for path, sha256 in absent.files.items():
            text.line(f"    {sha256}  {path}")
    text.line(
        f"  for {manifest.platform}, tfwright {manifest.tfwright} on Python {manifest.python}"
    )
    text.line(f"  manifest sha256 {manifest.sha256}")


def show_vault(inventory: "Inventory", *, as_json: bool) -> None:
    """Print what the vault holds by kind, what each recipe needs of it, and what is unused."""
    if as_json:
        unused = set(inventory.garbage)
        text.as_json([_entry(thing, inventory, unused) for thing in inventory.entries])
        return
    # Asked once: the size of a directory is a walk through it.
    sizes = {thing: thing.size for thing in inventory.entries}
    if not sizes:
        text.line("The vault is empty: 'invoke fetch' fills it.")
        return
    text.table(KINDS, _kinds(sizes))
    text.line()
    text.table(NEEDS, _needs(inventory, sizes))
    # Without Bazel's word an archive counts as needed: a vault must not lose a source.
    if inventory.undecided:
        text.line()
        undecided = text.counted(len(inventory.undecided), "archive")
        reason = (
            f"{undecided} kept: what {', '.join(inventory.unknown)} needs is unknown; "
            "'invoke lock' finds out"
        )
        text.paragraph("", reason, indent=0)
    text.line()
    show_garbage(inventory.garbage)


def _entry(
    thing: "VaultEntry", inventory: "Inventory", unused: "set[VaultEntry]"
) -> dict[str, object]:
    """Return one entry for machines; its size is in bytes."""
    return {
        "kind": thing.kind,
        "name": thing.name,
        "path": str(thing.path),
        "size": thing.size,
        "recipes": inventory.users(thing),
        "unused": thing in unused,
    }


def _kinds(sizes: "dict[VaultEntry, int]") -> list[tuple[str, str, str]]:
    """Return one row for each kind of entry: its name, how many, and their size."""
    counts = Counter(thing.kind for thing in sizes)
    rows = []
    for kind, count in counts.items():
        size = sum(size for thing, size in sizes.items() if thing.kind == kind)
        rows.append((kind, f"{count:,}", text.as_size(size)))
    if len(rows) > 1:
        total = text.as_size(sum(sizes.values()))
        rows.append(("total", f"{len(sizes):,}", total))
    return rows


def _needs(inventory: "Inventory", sizes: "dict[VaultEntry, int]") -> list[tuple[str, ...]]:
    """Return one row for each recipe that needs something of the vault."""
    users = {thing: set(inventory.users(thing)) for thing in inventory.entries}
    rows: list[tuple[str, ...]] = []
    for need in inventory.needs:
        own = {thing: sizes[thing] for thing in sizes if need.recipe in users[thing]}
        if own:
            rows.append(_need_row(need.recipe, own, users))
    return rows


def _need_row(
    recipe: str, own: "dict[VaultEntry, int]", users: "dict[VaultEntry, set[str]]"
) -> tuple[str, ...]:
    # Shared entries count for each recipe, so the column does not add up to the vault.
    shared = [size for thing, size in own.items() if len(users[thing]) > 1]
    others = set[str]()
    for thing in own:
        others |= users[thing]
    return (
        recipe,
        text.as_size(sum(own.values())),
        text.as_size(sum(shared)) if shared else "-",
        ", ".join(sorted(others - {recipe})) or "-",
    )


def show_garbage(things: "Sequence[VaultEntry]") -> None:
    """Print what is unused, with the total."""
    if not things:
        text.line("Everything in the vault is needed by a recipe or a lock.")
        return
    rows = [(f"  {text.as_size(thing.size)}", thing.kind, thing.name) for thing in things]
    text.table(UNUSED, rows)
    total = text.as_size(sum(thing.size for thing in things))
    count = "1 entry" if len(things) == 1 else f"{len(things):,} entries"
    text.line(f"{total} in {count} that no recipe and no lock needs; 'invoke vault --gc' frees it")


def show_sound(things: "Sequence[VaultEntry]") -> None:
    """Say that every file matches its checksum."""
    total = text.as_size(sum(thing.size for thing in things))
    files = text.counted(len(things), "file")
    text.line(Styled("ok", text.GOOD), f": {files}, {total}; each matches its checksum")
