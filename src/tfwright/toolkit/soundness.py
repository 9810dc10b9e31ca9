"""Whether a toolkit is still what was unpacked: looked at in every build, read only where touched.

A toolkit has some gigabytes in a few thousand files. Their states take a hundredth of a second,
their bytes many; while its state stays, a file's content stays.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tfwright.errors import Evidence, SupplyError
from tfwright.toolkit import nvcc, tree
from tfwright.tools import files, json_text

Seen = dict[str, list[int | str]]
"""Inode, size, times of change in nanoseconds, and checksum of each file when it was last read."""
SHOWN = 15
"""Files that an error names."""


def insist(root: Path, recipe: str) -> None:
    """Raise SupplyError if a file of a toolkit is not as it was unpacked, or a script is outdated.

    What users added to it, and toolkits that `invoke toolkit` did not make, are left alone.
    """
    recorded: dict[str, str] = {}
    for part in tree.read(root).parts.values():
        recorded |= part.files
    remedy = f"Run 'invoke toolkit --recipe {recipe}': it unpacks those packages again."
    if nvcc.outdated(recorded):
        raise SupplyError(
            f"The toolkit {root} has scripts of another version of tfwright",
            remedy=remedy,
            evidence=Evidence(where=str(root)),
        )
    if wrong := changed(root, recorded):
        count = f"{len(wrong)} files of" if len(wrong) > 1 else f"{wrong[0]} in"
        raise SupplyError(
            f"{count} the toolkit {root} changed since it was unpacked",
            remedy=remedy,
            evidence=Evidence(where=str(root), lines=wrong[:SHOWN]),
        )


def changed(root: Path, recorded: Mapping[str, str]) -> list[str]:
    """Return the paths, of those with a recorded checksum, that have changed since."""
    before, wrong = _kept(root), list[str]()
    now: Seen = {}
    for path, checksum in recorded.items():
        state = _state(root / path)
        if state and before.get(path) == [*state, checksum]:
            now[path] = before[path]
        elif state and _content(root / path) == checksum:
            now[path] = [*state, checksum]
        else:
            wrong.append(path)
    if now != before:
        # Only the next look is slower without it: the toolkit may be on a disk of someone else.
        with suppress(OSError):
            files.write(_place(root), json.dumps(now))
    return wrong


def _content(path: Path) -> str:
    """Return what a record says of a file: its checksum, or where a link leads."""
    return f"-> {path.readlink()}" if path.is_symlink() else files.sha256(path)


def _state(path: Path) -> list[int | str]:
    """Return what the file system says of a file or link; nothing where there is none."""
    try:
        state = path.lstat()
    except OSError:
        return []
    return [state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]


def _kept(root: Path) -> Seen:
    return json_text.record(_place(root))


def _place(root: Path) -> Path:
    """Return the file, next to the toolkit, that holds what was seen."""
    return root.with_name(f"{root.name}.seen.json")
