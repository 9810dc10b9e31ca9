"""The external repositories in an output base: Bazel compiles whatever it finds there."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfwright.tools import files, json_text, trees


def recorded(output_base: Path, kept: Path) -> None:
    """Write down what the external repositories hold; what was read before is not read again."""
    before = _read(kept)
    found = {name: _state(path, before.get(name)) for name, path in _repositories(output_base)}
    files.write(kept, json.dumps(found, indent=1))


def changed(output_base: Path, kept: Path) -> list[str]:
    """Return the repositories that hold something else than Bazel left in them.

    One of a run that was killed, which is not recorded, counts as unchanged.
    """
    before = _read(kept)
    return [
        name
        for name, path in _repositories(output_base)
        if name in before and _state(path, before[name])[1] != before[name][1]
    ]


def discard(output_base: Path, name: str) -> None:
    """Remove a repository, with what tells Bazel that it is there."""
    folder = output_base / "external"
    files.remove(folder / f"@{name}.marker")
    files.remove(folder / name)


def _repositories(output_base: Path) -> Iterator[tuple[str, Path]]:
    folder = output_base / "external"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        # A link leads to a directory elsewhere: Bazel's own, or one that a rule names.
        if path.is_dir() and not path.is_symlink():
            yield path.name, path


def _state(path: Path, before: tuple[str, str] | None) -> tuple[str, str]:
    glance = trees.glance(path)
    if before and before[0] == glance:
        return before
    return glance, trees.content(path).sha256


def _read(kept: Path) -> Mapping[str, tuple[str, str]]:
    """Return what was written down; nothing where that is missing or damaged."""
    return {
        name: (state[0], state[1])
        for name, state in json_text.record(kept).items()
        if isinstance(state, list) and [type(part) for part in state] == [str, str]
    }
