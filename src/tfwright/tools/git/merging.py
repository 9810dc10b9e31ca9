"""A patch carried to other files than it was made for: a three-way merge, file by file."""

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tfwright.errors import RecipeError, ToolError
from tfwright.tools import files
from tfwright.tools.git import fitting, patching
from tfwright.tools.git.patching import FilePatch
from tfwright.tools.git.repository import GitRepository

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
    text = patching.text_above(patch.read_text("utf-8", "surrogateescape"))
    found = _BASE.search(text)
    return found[1] if found else ""


class Merge:
    """Patches that are carried into the files of a tree for which they may not have been made."""

    def __init__(
        self, tree: Path, repository: Path | None, base: str, note: Callable[[str], None]
    ) -> None:
        """Take the commit that the patches were made for, and a repository that holds it.

        Where no commit is known, there is no repository, and each hunk is put in by itself.
        """
        self._tree = tree.resolve()
        self._original = GitRepository(repository) if repository else None
        self._base = base
        self._note = note

    def apply_patch(self, patch: Path) -> list[str]:
        """Carry a patch into the files; return the paths in which conflicts are left.

        Each file becomes the merge of the tree's own with the patched one, and where both changed
        the same lines it shows all three versions between git's marks. A file that the tree has
        elsewhere by now is merged there. The change to one that is gone, and the deletion of one
        that differs, are next to its place as ``FILE.rej``.
        """
        conflicting = []
        for file in patching.read(patch):
            before = self._original.text(f"{self._base}:{file.path}") if self._original else ""
            place = self._place_in_tree(file.path)
            changes = any(hunk.before for hunk in file.hunks)
            if file.gone or (changes and not place.is_file()):
                moved = (
                    self._find_moved(file.path, before) if before and not place.is_file() else None
                )
                if moved is None:
                    if self._delete_file(place, file, before):
                        conflicting.append(file.path)
                    continue
                self._note(f"{file.path} is {moved} in the new commit")
                place = self._place_in_tree(moved)
            place.parent.mkdir(parents=True, exist_ok=True)
            ours = _read_text(place)
            # After an earlier patch of a series, it was not made for what the commit has.
            lines = patching.lines_of(before)
            follows = not self._original or not all(hunk.fit(lines).good for hunk in file.hunks)
            merged = "" if follows else self._merge_texts(ours, before, _apply_hunks(before, file))
            # One hunk after the other leaves less to resolve than git does where all lines changed.
            # So does a conflict much larger than the patch, as after a file was indented again.
            conflicts = re.findall(r"(?ms)^<<<<<<< .*?^>>>>>>> ", merged)
            lost = sum(str(conflict).count("\n") for conflict in conflicts)
            of_patch = sum(len(hunk.before) + len(hunk.after) for hunk in file.hunks)
            if follows or lost > LARGEST_CONFLICT + 3 * of_patch:
                merged = _apply_hunks(ours, file, conflicts=True)
            _write(place, merged, file.mode)
            if has_conflicts(place):
                conflicting.append(file.path)
        return conflicting

    def _delete_file(self, place: Path, file: FilePatch, before: str) -> bool:
        """Delete a file that a patch deletes; return whether a person has to do what is left.

        That is where it differs, and where a file to be changed is gone.
        """
        known = {before, "".join(line for hunk in file.hunks for line in hunk.before)}
        if file.gone and (not place.is_file() or _read_text(place) in known):
            place.unlink(missing_ok=True)
            return False
        now = "differs now from what the patch deletes" if file.gone else "is gone"
        self._note(f"{file.path} {now}")
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(place.with_name(f"{place.name}.rej"), _reject_text(file))
        return True

    def _place_in_tree(self, path: str) -> Path:
        """Refuse a path that a link of the tree leads out: a merged file would be written there."""
        place = self._tree / path
        if place.is_symlink() or not place.resolve().is_relative_to(self._tree):
            raise RecipeError(
                f"{path} is reached by a link of the tree",
                remedy="Leave this file out of the patch, or name the file that the link leads to.",
            )
        return place

    def _find_moved(self, path: str, before: str) -> str | None:
        """Return where the tree has a file that moved away from a path; None if it lacks it.

        It is the most similar one that is new in the same directory or below it.
        """
        parent = str(Path(path).parent)
        below = "" if parent == "." else f"{parent}/"
        assert self._original  # noqa: S101 it gave the text
        known = self._original.plain_files(self._base, lambda name: name.startswith(below))
        lines = before.splitlines()
        similar = dict[str, float]()
        for place in sorted((self._tree / parent).rglob("*")):
            name = str(place.relative_to(self._tree))
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

    def _merge_texts(self, *texts: str) -> str:
        """Return git's three-way merge, with its marks where both sides changed a place.

        The texts are the tree's, that of the patch's commit and the patched one.
        """
        with files.scratch_directory() as folder:
            places = [folder / name for name in ("ours", "base", "theirs")]
            for place, text in zip(places, texts, strict=True):
                _write(place, text)
            options = [part for label in LABELS for part in ("-L", label)]
            assert self._original  # noqa: S101 it gave one of the texts
            try:
                self._original.run("merge-file", "--diff3", *options, *map(str, places))
            except ToolError:
                # git exits with the number of conflicts; what it wrote tells them from a failure.
                if not has_conflicts(places[0]):
                    raise
            return _read_text(places[0])


def _apply_hunks(text: str, file: FilePatch, *, conflicts: bool = False) -> str:
    """Return a text with each hunk where it belongs; one that does not fit is left out.

    With `conflicts` it is between git's marks then.
    """
    lines = patching.lines_of(text)
    for _, hunk, fit in fitting.apply_hunks(lines, file.hunks):
        if conflicts and fit.verdict != "done":
            first = min(fit.line - 1, len(lines))
            place = slice(first, first + len(hunk.before))
            if fit.verdict in {"missing", "too long"}:
                place = slice(first, first)
            elif fit.verdict == "exists":
                place = slice(len(lines))
            # All three versions of the place, as git shows them.
            lines[place] = [
                f"<<<<<<< {LABELS[0]}\n",
                *_end_lines(lines[place]),
                f"||||||| {LABELS[1]}\n",
                *_end_lines(hunk.before),
                "=======\n",
                *_end_lines(hunk.after),
                f">>>>>>> {LABELS[2]}\n",
            ]
    return "".join(lines)


def _end_lines(lines: Sequence[str]) -> list[str]:
    """Return lines of which the last one ends as well: a mark follows."""
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _read_text(path: Path) -> str:
    """Return a file with its line ends as they are; empty if there is none."""
    return files.text(path, "surrogateescape") if path.is_file() else ""


def _reject_text(file: FilePatch) -> str:
    """Return what a patch changes in a file, for a person to make elsewhere."""
    parts = []
    for hunk in file.hunks:
        removed = "".join(f"-{line}" for line in hunk.before)
        added = "".join(f"+{line}" for line in hunk.after)
        parts.append(f"@@ line {hunk.start} @@\n{removed}{added}")
    return f"--- {file.path}\n{''.join(parts)}"


def _write(path: Path, text: str, mode: int = 0) -> None:
    # A program stays one: a mode that differs would become a part of the patch.
    kept = path.stat().st_mode & 0o777 if path.is_file() else 0o644
    # Bytes that are not UTF-8 go through as they are: old sources have Latin-1 names in comments.
    files.write(path, text.encode("utf-8", "surrogateescape"), mode or kept)


def has_conflicts(path: Path) -> bool:
    """Say whether a file still has the marks of a conflict."""
    return any(line.startswith(MARKS) for line in patching.lines_of(_read_text(path)))
