"""What is kept, locked, carried and still served, as people read it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.vault.bundle import Manifest
    from tfwright.vault.links import LinkRow
    from tfwright.vault.lock import Lock
    from tfwright.vault.usage import Inventory, Thing


def show_lock(path: Path, lock: "Lock") -> None:
    """Say what was locked, and what could not be; the file's name on stdout, for scripts."""
    needed = [one for one in lock.archives if one.needed]
    known = f", {len(needed)} of them wanted by the target" if needed else ""
    text.tell(
        f"  {len(lock.archives)} archives{known}; {len(lock.requirements)} packages, {len(lock.files)} patches and assets"
    )
    for one in lock.substitutes:
        text.tell(f"  not the pinned bytes: {one.source}: {one.reason}")
    if lock.unlockable:
        text.tell(f"  {len(lock.unlockable)} downloads that no digest holds; the lock names them")
    print(path)


def show_links(rows: "Sequence[LinkRow]", *, as_json: bool) -> None:
    """Print, per archive, how many of its sources still have it, and the ones that do not."""
    if as_json:
        text.as_json(
            [
                {**vars(row), "left": row.left, "links": [vars(link) for link in row.links]}
                for row in rows
            ]
        )
        return
    lines = [("archive", "left", "vault", "sources")]
    for row in sorted(rows, key=lambda row: row.left):
        told = [
            f"{link.where}: {link.state}{f' ({link.why})' if link.why else ''}"
            for link in row.links
        ] or ["no source"]
        lines.append(
            (
                row.name.partition(",")[0],
                f"{row.left} of {len(row.links)}",
                "yes" if row.kept else "no",
                told[0],
            )
        )
        lines.extend(("", "", "", text) for text in told[1:])
    text.table(lines)
    counts = [sum(row.left == 0 for row in rows), sum(row.left == 1 for row in rows)]
    text.tell(
        f"  {len(rows)} archives: {counts[0]} have no source left, {counts[1]} have one, {len(rows) - sum(counts)} more"
    )


def show_bundle(manifest: "Manifest") -> None:
    """Print what a bundle holds, what it does not, and the digest to compare on the other host."""
    for kind, count in Counter(member.kind for member in manifest.members).items():
        size = sum(member.size for member in manifest.members if member.kind == kind)
        print(f"  {kind:<8} {count:>4}  {size:>14,} bytes")
    for absent in manifest.absent:
        print(
            f"  without {absent.name}"
            + "".join(f"\n    {sha256}  {path}" for path, sha256 in absent.files.items())
        )
    print(
        f"  for {manifest.platform}, tfwright {manifest.tfwright} on Python {manifest.python}; manifest sha256 {manifest.sha256}"
    )


def show_vault(inventory: "Inventory") -> None:
    """Print what the vault holds by kind, what each recipe needs of it, what they share, and what nobody needs."""
    users = {thing: inventory.users(thing) for thing in inventory.things}
    sizes = {thing: thing.size for thing in inventory.things}
    for kind, count in Counter(thing.kind for thing in sizes).items():
        print(
            f"{kind:<10} {count:>5}  {sum(size for thing, size in sizes.items() if thing.kind == kind):>16,} bytes"
        )
    for need in inventory.needs:
        own = [thing for thing in sizes if need.recipe in users[thing]]
        others = sorted({user for thing in own for user in users[thing]} - {need.recipe})
        shared = sum(sizes[thing] for thing in own if len(users[thing]) > 1)
        print(
            f"  {need.recipe}: {sum(sizes[thing] for thing in own):,} bytes"
            + (f", {shared:,} of them shared with {', '.join(others)}" if others else "")
        )
    if inventory.undecided:
        print(
            f"{len(inventory.undecided)} archives stay: what they need is not known of {', '.join(inventory.unknown)} ('invoke lock' finds out)"
        )
    show_garbage(inventory.garbage)


def show_garbage(things: "Sequence[Thing]") -> None:
    """Print what nobody needs, with the total."""
    for thing in things:
        print(f"  {thing.size:>16,}  {thing.kind} {thing.name}")
    print(
        f"{sum(thing.size for thing in things):,} bytes in {len(things)} things that no recipe and no lock needs"
    )


def show_sound(things: "Sequence[Thing]") -> None:
    """Say that everything is what it was."""
    print(
        f"{len(things)} files, {sum(thing.size for thing in things):,} bytes: each is what its digest says"
    )
