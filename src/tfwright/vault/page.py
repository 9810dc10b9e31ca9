"""The pages of vault, lock and bundle: what is kept, locked, carried and still served."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfwright.documents.composing import other_paths
from tfwright.printable import shell_word
from tfwright.terminal import text
from tfwright.terminal.text import Column, Part, Styled

if TYPE_CHECKING:
    from tfwright.vault.bundle import Manifest
    from tfwright.vault.links import LinkRow
    from tfwright.vault.lock import Lock
    from tfwright.vault.usage import Inventory, VaultEntry

LINKS = (
    Column("archive", cut="end", least=20),
    Column("sources left"),
    Column("in the vault", rank=1),
    Column("source", cut="middle", least=24),
)
KINDS = (Column("  kind"), Column("entries", right=True), Column("size", right=True))
MEMBERS = (Column(""), replace(KINDS[1], head="files"), KINDS[2])
NEEDS = (
    Column("recipe"),
    Column("needs", right=True),
    Column("shared", rank=2, right=True),
    Column("with", rank=1, cut="end", least=16),
)
UNUSED = (Column("", right=True), Column("", rank=1), Column("", cut="middle", least=24))


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
    others = other_paths(path.with_suffix(".toml"))
    text.next_commands(*(f"invoke lock --recipe {shell_word(str(other))}" for other in others))
    print(path)


def show_links(rows: "Sequence[LinkRow]") -> None:
    """Print which sources of each archive still have it; archives with the fewest come first."""
    if not rows:
        text.line("The rules of this recipe's tree download no archive.")
        return
    cells: list[tuple[Part, ...]] = []
    # The archives that are nearest to being lost come first.
    for row in sorted(rows, key=lambda row: row.left):
        sources = [
            f"{link.where}: {link.state}{f' ({link.why})' if link.why else ''}"
            for link in row.links
        ]
        # One source is a warning: when it goes, only a vault has the archive.
        style = {0: text.BAD, 1: text.WARNING}.get(row.left, text.GOOD)
        left = Styled(f"{row.left} of {len(row.links)}", style)
        first, *others = sources or ["no source"]
        # Several rules may share an archive; the first name is enough to find it.
        cells.append((row.name.partition(",")[0], left, "yes" if row.kept else "no", first))
        cells += [("", "", "", source) for source in others]
    text.table(LINKS, cells)
    gone = sum(row.left == 0 for row in rows)
    single = sum(row.left == 1 for row in rows)
    text.tell(
        f"  {text.counted(len(rows), 'archive')}: {gone} without a source, "
        f"{single} with one source, {len(rows) - gone - single} with more"
    )


def show_bundle(manifest: "Manifest") -> None:
    """Print what a bundle holds, what it lacks, and the checksum to compare on the other host."""
    # A bundle holds hundreds of archives; their kinds and sizes are what matters.
    text.table(MEMBERS, _kind_rows((member.kind, member.size) for member in manifest.members))
    # What licences keep out of a bundle, with the checksums to compare on the other host.
    for absent in manifest.absent:
        text.line(text.warning(f"  without {absent.name}"))
        for path, sha256 in absent.files.items():
            text.line(f"    {sha256}  {path}")
    text.line(
        f"  for {manifest.platform}, tfwright {manifest.tfwright} on Python {manifest.python}"
    )
    text.line(f"  manifest sha256 {manifest.sha256}")


def _kind_rows(sizes: Iterable[tuple[str, int]]) -> list[tuple[str, str, str]]:
    """Return a row for each kind: its name, how many there are, and their size."""
    kinds: dict[str, list[int]] = {}
    for kind, size in sizes:
        kinds.setdefault(kind, []).append(size)
    return [
        (f"  {kind}", f"{len(each):,}", text.as_size(sum(each))) for kind, each in kinds.items()
    ]


def show_vault(inventory: "Inventory") -> None:
    """Print what the vault holds by kind, what each recipe needs of it, and what is unused."""
    entries = inventory.entries
    if not entries:
        text.line("The vault is empty: 'invoke fetch' fills it.")
        return
    rows = _kind_rows((entry.kind, entry.size) for entry in entries)
    if len(rows) > 1:
        rows.append(("  total", f"{len(entries):,}", _total_size(entries)))
    text.table(KINDS, rows)
    text.line()
    text.table(NEEDS, _need_rows(inventory))
    # Without Bazel's word an archive counts as needed: a vault must not lose a source.
    if inventory.undecided:
        undecided = text.counted(len(inventory.undecided), "archive")
        text.line()
        text.line(
            f"{undecided} kept: what {', '.join(inventory.unknown)} needs is unknown; "
            "'invoke lock' finds out"
        )
    text.line()
    for name in inventory.broken:
        text.line(
            f"What {name} needs is unknown, since it does not load: 'invoke lint --recipe {name}'"
        )
    if not inventory.broken:
        show_unused(inventory.unused)


def vault_data(inventory: "Inventory") -> list[dict[str, Any]]:
    """Return what the vault holds, for machines."""
    unused, entries = {*inventory.unused}, inventory.entries
    return [
        {**data, "recipes": inventory.users(entry), "unused": entry in unused}
        for entry, data in zip(entries, entries_data(entries), strict=True)
    ]


def entries_data(entries: "Sequence[VaultEntry]") -> list[dict[str, Any]]:
    """Return entries for machines; sizes are in bytes."""
    return [
        {"kind": entry.kind, "name": entry.name, "path": entry.path, "size": entry.size}
        for entry in entries
    ]


def _total_size(entries: "Iterable[VaultEntry]") -> str:
    return text.as_size(sum(entry.size for entry in entries))


def _need_rows(inventory: "Inventory") -> list[tuple[str, ...]]:
    """Return one row for each recipe that needs something of the vault."""
    users = {entry: set(inventory.users(entry)) for entry in inventory.entries}
    rows: list[tuple[str, ...]] = []
    for need in inventory.needs:
        own = [entry for entry in users if need.recipe in users[entry]]
        # Shared entries count for each recipe, so the column does not add up to the vault.
        shared = [entry for entry in own if len(users[entry]) > 1]
        others = set[str]().union(*(users[entry] for entry in own)) - {need.recipe}
        if own:
            size = _total_size(shared) if others else "-"
            rows.append((need.recipe, _total_size(own), size, ", ".join(sorted(others)) or "-"))
    return rows


def show_unused(entries: "Sequence[VaultEntry]") -> None:
    """Print what is unused, with the total."""
    if not entries:
        text.line("Everything in the vault is needed by a recipe or a lock.")
        return
    rows = [(f"  {text.as_size(entry.size)}", entry.kind, entry.name) for entry in entries]
    text.table(UNUSED, rows)
    count = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
    total = _total_size(entries)
    text.line(f"{total} in {count} that no recipe and no lock needs; 'invoke vault --gc' frees it")


def show_verified(entries: "Sequence[VaultEntry]") -> None:
    """Say that every file matches its checksum."""
    files = text.counted(len(entries), "file")
    text.line(text.good("ok"), f": {files}, {_total_size(entries)}; each matches its checksum")
