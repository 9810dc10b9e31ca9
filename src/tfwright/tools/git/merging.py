"""A patch carried to other files than it was made for: a three-way merge, file by file."""

import difflib
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.errors import RecipeError, ToolError
from tfwright.tools import files, git
from tfwright.tools.git import fitting, patching
from tfwright.tools.git.fitting import Hunk
from tfwright.tools.git.patching import FilePatch

_BASE = re.compile(r"^Base: ([0-9a-f]{40})$", re.MULTILINE)
MARKS = ("<<<<<<< ", "||||||| ", ">>>>>>> ")
"""How git begins the lines around a conflict."""
LABELS = ("the new commit", "the commit of the patch", "the patch")
LEAST_SIMILAR = 0.6
"""Share of equal lines from which a file counts as the one that was elsewhere before."""
LARGEST_CONFLICT = 20
"""Lines of conflicts, above those of the patch itself, that a person can still take in."""


def base_line(commit: str) -> str:
    """Return the line, before a patch's header, that names the commit it was made for."""
    return f"Base: {commit}"


def base_of(patch: Path) -> str:
    """Return the commit that a patch was made for; empty where it does not say."""
    text = patch.read_text("utf-8", "surrogateescape").partition("diff --git ")[0]
    found = _BASE.search(text)
    return found[1] if found else ""


def merge(
    tree: Path, patch: Path, repository: Path, base: str, note: Callable[[str], None]
) -> list[str]:
    """Carry a patch into the files of a tree; return the paths in which conflicts are left.

    `base` is the commit that the patch was made for, and `repository` holds it. Each file becomes
    the merge of the tree's own with the patched one, and where both changed the same lines it shows
    all three versions between git's marks. A file that the tree has elsewhere by now is merged
    there; the change to one that is gone is next to its place as ``FILE.rej``.
    """
    conflicting = []
    for file in patching.read(patch):
        before = git.text(repository, f"{base}:{file.path}")
        place = tree / file.path
        _insist_on_inside(tree, place)
        # Without its old text it is a file that the patch creates.
        if before and not place.is_file():
            moved = _moved(tree, repository, base, file.path, before)
            if moved is None:
                note(f"{file.path} is gone in the new commit")
                place.parent.mkdir(parents=True, exist_ok=True)
                files.write(place.with_name(f"{place.name}.rej"), _rejected(file))
                conflicting.append(file.path)
                continue
            note(f"{file.path} is {moved} in the new commit")
            place = tree / moved
            _insist_on_inside(tree, place)
        _merge_into(place, tree, before, file)
        if unresolved(place):
            conflicting.append(file.path)
    return conflicting


def _merge_into(place: Path, tree: Path, before: str, file: FilePatch) -> None:
    """Merge what a patch made of the text `before` into a file, which may not exist yet."""
    place.parent.mkdir(parents=True, exist_ok=True)
    ours = place.read_text("utf-8", "surrogateescape") if place.is_file() else ""
    merged = _merged(tree, ours, before, _patched(before, file))
    # One hunk after the other leaves less to resolve than git does where all lines changed.
    if _unreadable(merged, file):
        merged = _in_place(ours, file)
    _write(place, merged)


def _moved(tree: Path, repository: Path, base: str, path: str, before: str) -> str | None:
    """Return where a tree has a file that moved away from a path; None if the tree lacks it.

    It is the most similar one that is new in the same directory or below it.
    """
    parent = str(Path(path).parent)
    below = "" if parent == "." else f"{parent}/"
    known = git.named(repository, base, lambda name: name.startswith(below))
    lines = before.splitlines()
    similar = dict[str, float]()
    for place in sorted((tree / parent).rglob("*")):
        name = str(place.relative_to(tree))
        if name in known or place.is_symlink() or not place.is_file():
            continue
        # A text of another length cannot be as similar as that.
        if place.stat().st_size > len(before) / LEAST_SIMILAR + 4096:
            continue
        theirs = place.read_text("utf-8", "replace").splitlines()
        matcher = difflib.SequenceMatcher(None, lines, theirs, autojunk=False)
        if matcher.quick_ratio() >= LEAST_SIMILAR:
            similar[name] = matcher.ratio()
    best = max(similar, key=lambda name: similar[name], default=None)
    return best if best and similar[best] >= LEAST_SIMILAR else None


def _rejected(file: FilePatch) -> str:
    """Return what a patch changes in a file, for a person to make elsewhere."""
    parts = []
    for hunk in file.hunks:
        removed = "".join(f"-{line}" for line in hunk.before)
        added = "".join(f"+{line}" for line in hunk.after)
        parts.append(f"@@ line {hunk.start} @@\n{removed}{added}")
    return f"--- {file.path}\n{''.join(parts)}"


def _insist_on_inside(tree: Path, place: Path) -> None:
    """Refuse a path that a link of the tree leads out: what is merged would be written there."""
    if place.is_symlink() or not place.resolve().is_relative_to(tree.resolve()):
        raise RecipeError(
            f"{place.relative_to(tree)} is reached by a link of the tree",
            remedy="Leave this file out of the patch, or name the file that the link leads to.",
        )


def _unreadable(merged: str, file: FilePatch) -> bool:
    """Say whether conflicts are much larger than the patch, as after a file was indented again."""
    conflicts = re.findall(r"(?ms)^<<<<<<< .*?^>>>>>>> ", merged)
    lines = sum(str(conflict).count("\n") for conflict in conflicts)
    of_patch = sum(len(hunk.before) + len(hunk.after) for hunk in file.hunks)
    return lines > LARGEST_CONFLICT + 3 * of_patch


def _in_place(ours: str, file: FilePatch) -> str:
    """Return a text with each hunk where it belongs now; between marks where it does not fit."""
    lines = ours.splitlines(keepends=True)
    # From the end, so that the line numbers of the others stay true.
    for hunk in reversed(file.hunks):
        fit = fitting.judge(lines, hunk)
        first = min(fit.line - 1, len(lines))
        place = slice(first, first + len(hunk.before))
        if fit.verdict in {"fits", "moved"}:
            lines[place] = hunk.after
        elif fit.verdict == "missing":
            lines[first:first] = _conflict((), hunk)
        elif fit.verdict in {"fuzz", "changed"}:
            lines[place] = _conflict(lines[place], hunk)
    return "".join(lines)


def _conflict(ours: Sequence[str], hunk: Hunk) -> list[str]:
    """Return the three versions of one place, as git shows them."""
    return [
        f"<<<<<<< {LABELS[0]}\n",
        *ours,
        f"||||||| {LABELS[1]}\n",
        *hunk.before,
        "=======\n",
        *hunk.after,
        f">>>>>>> {LABELS[2]}\n",
    ]


def _write(path: Path, text: str) -> None:
    # A program stays one: a mode that differs would become a part of the patch.
    mode = path.stat().st_mode & 0o777 if path.is_file() else 0o644
    # Bytes that are not UTF-8 go through as they are: old sources have Latin-1 names in comments.
    files.write(path, text.encode("utf-8", "surrogateescape"), mode)


def unresolved(path: Path) -> bool:
    """Say whether a file still has the marks of a conflict."""
    if not path.is_file():
        return False
    lines = path.read_text("utf-8", "surrogateescape").splitlines()
    return any(line.startswith(MARKS) for line in lines)


def _patched(before: str, file: FilePatch) -> str:
    """Return a file's text after its hunks; one that does not fit there is left out."""
    lines = before.splitlines(keepends=True)
    # From the end, so that the line numbers of the others stay true.
    for hunk in reversed(file.hunks):
        fit = fitting.judge(lines, hunk)
        if fit.verdict in {"fits", "moved"}:
            start = fit.line - 1
            lines[start : start + len(hunk.before)] = hunk.after
    return "".join(lines)


def _merged(tree: Path, ours: str, base: str, theirs: str) -> str:
    """Return the three-way merge of a text, with git's marks where both sides changed it."""
    with tempfile.TemporaryDirectory(prefix="tfwright-merge-") as folder:
        places = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for place, text in zip(places, (ours, base, theirs), strict=True):
            _write(place, text)
        options = [part for label in LABELS for part in ("-L", label)]
        command = git.inside(tree, "merge-file", "--diff3", *options, *map(str, places))
        try:
            git.run(command)
        except ToolError:
            # git exits with the number of conflicts; what it wrote tells them from a failure.
            if not unresolved(places[0]):
                raise
        return places[0].read_text("utf-8", "surrogateescape")
