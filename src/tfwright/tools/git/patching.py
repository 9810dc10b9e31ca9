"""Patches: read, put into a tree's index by git, and believed only by the content afterwards."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from tfwright.documents.names import inner_path
from tfwright.errors import RecipeError, ToolError, invoke
from tfwright.printable import shell_word
from tfwright.tools.git import fitting, program
from tfwright.tools.git.fitting import Fit, Hunk
from tfwright.tools.git.repository import REGULAR, Change
from tfwright.tools.git.work_tree import WorkTree
from tfwright.tools.process.command import Command

if TYPE_CHECKING:
    from unidiff import patch as unidiff

_FILE = re.compile(r"diff --git a/(\S+) b/(\S+)\n")
_HUNK = re.compile(r"@@ -\d{1,9}(,\d{1,9})? \+\d{1,9}(,\d{1,9})? @@")
_MODE = re.compile(r"(?:(?:new file|deleted file|old|new) mode|index \w+\.\.\w+) (.*)\n")
_MOVED = re.compile(r"rename from |copy from |similarity index ")
_NAMED = re.compile(r"^(?:---|\+\+\+) \S+", re.MULTILINE)
_BINARY = re.compile(r"GIT binary patch|Binary files ")
_MODES = {"120000": "a link's", "160000": "a submodule's"}
MOST_DIFFERING = 4
"""Differing lines of a hunk that are shown as pairs."""
_FIELD = re.compile(r"^(Why|Upstream|Drop when):", re.MULTILINE)
_FIRST = re.compile(r"^diff --git ", re.MULTILINE)
"""Where the first file of a patch begins; a header may mention these words."""
# git shows a file that moved as a rename by default.
_REMADE = "Make the patch with 'git diff --no-renames' against the pinned commit."
_RENAMED = "Name the file in ASCII, without blanks, quotes and backslashes; or leave it out."
_LEFT_OUT = "Leave it out of the patch; a new file that is not text is an asset: [source.assets]."
LARGEST = 4 * 2**20
"""Bytes of a patch; the largest of ours has some thousand."""
MOST_HUNKS = 5_000
"""Hunks of a patch, each of which is looked for in the whole file; the most of ours are 14."""


@dataclass(frozen=True)
class PatchHeader:
    """What a patch says about itself before its first file."""

    why: str
    upstream: str
    """Where it is discussed or solved upstream, or ``none`` and the reason."""
    drop_when: str
    """What has to become true for the patch to go."""


@dataclass(frozen=True)
class FilePatch:
    """What a patch does to one file."""

    path: str
    hunks: tuple[Hunk, ...]
    gone: bool = False
    """Whether it deletes the file."""
    mode: int = 0
    """The permissions that it gives a file that is new or gets others; else 0."""


def read_header(patch: Path) -> PatchHeader:
    """Read the fields ``Why:``, ``Upstream:`` and ``Drop when:`` at the head of a patch.

    The next lines may go on.

    Raises RecipeError naming the fields that are missing, empty or said twice.
    """
    found = header_fields(text_above(_text(patch)))
    counts = Counter(name for name, text in found if text)
    wrong = [name for name in ("Why", "Upstream", "Drop when") if counts[name] != 1]
    if wrong:
        missing = ", ".join(f"{name}:" for name in wrong)
        raise RecipeError(
            f"{patch}: the header must say {missing} once, with a text",
            remedy=(
                "Begin the patch with 'Why: ...', 'Upstream: ...' (or 'none' and the reason) "
                "and 'Drop when: ...', each on a line of its own."
            ),
            where=f"{patch}:1",
        )
    known = dict(found)
    return PatchHeader(known["Why"], known["Upstream"], known["Drop when"])


def text_above(text: str) -> str:
    """Return what is above the first file of a patch."""
    return _FIRST.split(text, maxsplit=1)[0]


def header_fields(text: str) -> list[tuple[str, str]]:
    """Return the fields of a header that are there, each with its text on one line."""
    parts = _FIELD.split(text)
    # After the split names and texts alternate; what precedes the first name is a free text.
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(name, " ".join(text.split())) for name, text in pairs]


def written_header(patch: Path) -> str:
    """Return the header as it was written, without the commit that a port notes above it."""
    lines = [
        line for line in text_above(_text(patch)).splitlines() if not line.startswith("Base: ")
    ]
    return "\n".join(lines).strip("\n") + "\n"


def read(patch: Path) -> tuple[FilePatch, ...]:
    """Read what a patch does, file by file.

    Raises RecipeError for what cannot be checked afterwards or has no place in a patch: renames,
    binary files, links, and paths that lead out of the tree or into .git.
    """
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    lines = lines_of(_text(patch))
    starts = [number for number, line in enumerate(lines) if line.startswith("diff --git ")]
    if not starts:
        _refuse(patch, 1, "it has no 'diff --git a/FILE b/FILE' line")
    number, head, hunks, path = starts[0], "", 0, ""

    def checked() -> Iterator[str]:
        nonlocal number, head, hunks, path
        for line in lines[starts[0] :]:
            number += 1
            # The lines of a hunk begin with a sign or a blank, so that these are none of them.
            path = _check_line(patch, number, line, path)
            hunks += line.startswith("@@")
            if hunks > MOST_HUNKS:
                _refuse(patch, number, f"it has more than {MOST_HUNKS:,} hunks")
            yield line
            # Asked for the next line, the reader has taken this one.
            head = line if line.startswith("@@") else head

    try:
        found = PatchSet(checked())
    except UnidiffParseError as fault:
        # What follows the colon quotes the patch.
        why = str(fault).partition(":")[0]
        hunk = _HUNK.match(head)
        what = f"the hunk {hunk[0]}" if hunk else "it"
        _refuse(patch, number, f"{what} cannot be read: {why}")
    files = list[FilePatch]()
    for file in found:
        info = "".join(file.patch_info or ())
        mode = re.search(r"(?m)^new (?:file )?mode 100([0-7]{3})$", info)
        files.append(
            FilePatch(
                _path_in_tree(patch, file.diff_line_no or 0, file.path),
                tuple(map(_as_hunk, file)),
                # An empty file that it deletes has no hunk.
                gone="\ndeleted file mode " in info,
                mode=int(mode[1], 8) if mode else 0,
            )
        )
    return tuple(files)


def patch_texts(
    texts: Mapping[str, str], patches: Mapping[str, str], wanted: Callable[[str], bool]
) -> tuple[dict[str, str], list[tuple[str, "HunkPlace"]]]:
    """Return texts by path after patches, as far as these are about wanted files and fit.

    They are what a rule of Bazel applies to an archive, in whatever form. The hunks that do not fit
    come with the names of their patches.
    """
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    made = dict(texts)
    misfits = list[tuple[str, HunkPlace]]()
    for name, patch in patches.items():
        with suppress(UnidiffParseError):
            for file in PatchSet(lines_of(patch)):
                path = file.path
                if not file.is_added_file:
                    # The rule says how many folders to strip.
                    path = next(filter(made.__contains__, _paths_without_folders(path)), path)
                if wanted(path):
                    lines = lines_of(made.get(path, ""))
                    odd = list(fitting.apply_hunks(lines, list(map(_as_hunk, file))))
                    misfits += [(name, HunkPlace(path, *each)) for each in reversed(odd)]
                    if lines or path in made:
                        made[path] = "".join(lines)
    return made, misfits


def named_paths(patches: Iterable[str]) -> set[str]:
    """Return the paths that patches may mean, however many folders are stripped of them."""
    names = (line.split()[1] for patch in patches for line in _NAMED.findall(patch))
    return {path for name in names for path in _paths_without_folders(name)}


def _paths_without_folders(path: str) -> Iterator[str]:
    """Yield a path, and what is left of it without its first folders."""
    yield path
    while "/" in path:
        path = path.partition("/")[2]
        yield path


def _as_hunk(hunk: "unidiff.Hunk") -> Hunk:
    return Hunk(hunk.source_start, _side_lines(hunk, " -"), _side_lines(hunk, " +"))


def _side_lines(hunk: "unidiff.Hunk", signs: str) -> tuple[str, ...]:
    """Return the lines that a hunk has before or after it, by the signs that these have."""
    side = list[str]()
    last = ""
    for line in hunk:
        if line.line_type == "\\":
            # "\ No newline at end of file" is about the line before it.
            if last and last in signs:
                side[-1] = side[-1].removesuffix("\n")
        elif line.line_type and line.line_type in signs:
            side.append(line.value)
        last = line.line_type
    return tuple(side)


def _check_line(patch: Path, number: int, line: str, path: str) -> str:
    """Refuse a line that says something else than a change of a plain file's text.

    Returns the file that the next line is about, where `path` is that of this one.
    """
    if line.startswith("diff --git "):
        found = _FILE.fullmatch(line)
        if line.endswith("\r\n"):
            what = "its lines end in CRLF, and those of git in LF"
            converted = f"sed -i 's/\\r$//' {shell_word(str(patch))}"
            _refuse(patch, number, what, f"Let them end in LF again: {converted}")
        if not found or found[1] != found[2]:
            _refuse(
                patch,
                number,
                "one file under one plain name is expected, as in 'diff --git a/FILE b/FILE', and "
                f"not: {line.removeprefix('diff --git ').strip()}",
                # A rename has two plain names.
                _REMADE if found else _RENAMED,
            )
        path = _path_in_tree(patch, number, found[1])
    check_is_text(patch, number, line, path)
    if line.startswith("@@") and not _HUNK.match(line):
        _refuse(patch, number, "the head of a hunk is not as in '@@ -2,3 +2,4 @@'")
    if _MOVED.match(line):
        _refuse(patch, number, f"{line.strip()!r}: only changes of text can be verified")
    return path


def check_is_text(patch: Path, number: int, line: str, path: str) -> None:
    """Refuse a line that says that a file, `path`, is binary, a link or another repository."""
    of_file = f" ({path})" if path else ""
    mode = _MODE.fullmatch(line)
    if mode and mode[1] not in {f"{regular:o}" for regular in REGULAR}:
        what = _MODES.get(mode[1], "no plain file's")
        _refuse(patch, number, f"mode {mode[1]}{of_file} is {what}", _LEFT_OUT)
    if _BINARY.match(line):
        what = f"{line.strip()!r}{of_file}: only changes of text can be verified"
        _refuse(patch, number, what, _LEFT_OUT)


def _path_in_tree(patch: Path, number: int, path: str) -> str:
    """Return a path of a patch as the tree has it; refuse one that leads out of the tree."""
    try:
        return str(PurePosixPath(inner_path(path)))
    except ValueError as fault:
        _refuse(
            patch,
            number,
            f"{path} leads out of the tree or into .git, or is not a plain name: a path {fault}",
            _RENAMED,
        )


def _refuse(patch: Path, number: int, why: str, remedy: str = _REMADE) -> NoReturn:
    raise RecipeError(f"{patch}:{number}: {why}", remedy=remedy, where=f"{patch}:{number}")


def apply_command(tree: WorkTree, patch: Path) -> Command:
    """Return the command that puts a patch into the index of a tree."""
    return tree.command("apply", "--cached", "--whitespace=nowarn", str(patch))


Due = Callable[[str], str]
"""Takes a patch's ``Drop when:``; returns the condition in it that holds, empty if none does."""


def combine_errors(faults: Sequence[RecipeError]) -> RecipeError:
    """Return one error for the patches that do not fit."""
    if len(faults) == 1:
        return faults[0]
    listed = "\n".join(f"  {number}. {fault.what}" for number, fault in enumerate(faults, 1))
    remedies = "\n".join(f"{number}. {fault.template}" for number, fault in enumerate(faults, 1))
    lines = list[str]()
    for fault in faults:
        lines += [f"-- {fault.what}", *fault.evidence.lines]
    return RecipeError(
        f"{len(faults)} patches do not fit the pinned commit:\n{listed}",
        remedy=remedies,
        where=faults[0].evidence.where,
        lines=lines,
    )


def apply(
    tree: WorkTree, patch: Path, due: Due = lambda _: "", before: str | None = None
) -> list[str]:
    """Put a patch into the index of a tree, and verify by content that it is in.

    Returns a sentence for each hunk that git found elsewhere than the patch says. `before` is the
    id of what the index holds, where that is known. Raises RecipeError with file and hunk if the
    patch does not fit, and if git skipped a part of it, which git can do without an error.
    """
    before = before or tree.content()
    wanted = read(patch)
    places = list(_hunk_places(tree, before, wanted))
    try:
        program.run(apply_command(tree, patch))
    except ToolError as fault:
        raise _misfit_error(patch, places, fault, due) from fault
    # git exits with 0 even where it skipped a file; only the content proves what it did.
    _verify(tree, patch, wanted, tree.changes(before, tree.content()))
    notes = []
    for place in places:
        if offset := place.fit.line - place.hunk.start if place.fit.verdict == "moved" else 0:
            where = "below" if offset > 0 else "above"
            counted = "1 line" if abs(offset) == 1 else f"{abs(offset)} lines"
            notes.append(
                f"{patch.name}: {place} applies at line {place.fit.line}, "
                f"{counted} {where} where the patch has it"
            )
    return notes


@dataclass(frozen=True)
class HunkPlace:
    """A hunk of a patch, and how it fits the tree."""

    path: str
    number: int
    """Among the hunks of its file, from 1."""
    hunk: Hunk
    fit: Fit

    def __str__(self) -> str:
        return f"hunk {self.number} of {self.path}"

    def describe(self, where: str) -> str:
        """Say how it does not fit what is there."""
        return f"{self}{_SAYS[self.fit.verdict](self)}".replace("the tree", where)


def _hunk_places(tree: WorkTree, content: str, wanted: Sequence[FilePatch]) -> Iterator[HunkPlace]:
    """Judge every hunk of a patch against the content of a tree."""
    texts = tree.texts_at(content, [file.path for file in wanted])
    for file in wanted:
        lines = lines_of(texts.get(file.path, ""))
        for number, hunk in enumerate(file.hunks, 1):
            yield HunkPlace(file.path, number, hunk, hunk.fit(lines))


def _misfit_error(
    patch: Path, places: Sequence[HunkPlace], fault: ToolError, due: Due
) -> RecipeError:
    """Say of every hunk that does not fit what the tree has in its place, and what to do."""
    unfit = [place for place in places if not place.fit.good]
    if not unfit:
        why = fault.what
        for place in places:
            # It changes lines of a file and has none around them; git refuses that.
            if place.hunk.after and 0 < len(place.hunk.before) == len(place.hunk.removed):
                why = f"{place} has no line of context"
                break
        return RecipeError(
            f"{patch} does not fit: {why}", remedy=_redo_remedy(patch), evidence=fault.evidence
        )
    says = "; ".join(place.describe("the tree") for place in unfit)
    lines = list[str]()
    for place in unfit:
        # What the tree has in a hunk's place, with the lines that differ first.
        lines.append(f"{place.path}, hunk {place.number}:")
        for expected, present in place.fit.differing[:MOST_DIFFERING]:
            lines += [f"  patch: {expected}", f"  tree:  {present}"]
        lines += place.fit.shown
    return RecipeError(
        f"{patch} does not fit: {says}",
        remedy=_misfit_remedy(patch, {place.fit.verdict for place in places}, due),
        where=f"{unfit[0].path}:{unfit[0].fit.line}",
        lines=lines,
    )


def _redo_remedy(patch: Path) -> str:
    """Return the command that makes a patch again; what knows the recipe adds its name."""
    which = shell_word(f"{patch.parent.name}/{patch.name}")
    return (
        f"Redo the patch against the pinned commit: '{invoke(f'patch --refresh {which}')}' "
        "prepares a tree, and writes the patch from your edits."
    )


_SAYS: dict[str, Callable[[HunkPlace], str]] = {
    "done": lambda place: f" is in the tree already, at line {place.fit.line}",
    "reformatted": lambda place: (
        f" seems to be in the tree already, at line {place.fit.line}, "
        "with other blanks and line breaks"
    ),
    "fuzz": lambda place: (
        f" fits at line {place.fit.line} but for its context: "
        + "; ".join(_line_change(*pair) for pair in place.fit.differing[:MOST_DIFFERING])
    ),
    "changed": lambda place: (
        f" belongs at line {place.fit.line}, where "
        + ("one line differs" if len(place.fit.differing) == 1 else "several lines differ")
    ),
    "ends": lambda place: f" fits at line {place.fit.line} but for the ends of its lines",
    "missing": lambda _: " has no counterpart in the tree",
    "too long": lambda _: " is not in the tree as it stands, and too long to be compared",
    "exists": lambda _: " creates a file that exists already",
    "no file": lambda _: " changes a file that does not exist",
    "gone": lambda _: " removes a file that is not there any more",
}


def _line_change(expected: str, present: str) -> str:
    """Say what became of one line of a hunk's context."""
    if not present.strip():
        return f"{expected.strip()!r} is gone"
    if not expected.strip():
        return f"{present.strip()!r} is new"
    return f"{expected.strip()!r} is now {present.strip()!r}"


def _misfit_remedy(patch: Path, verdicts: Collection[str], due: Due) -> str:
    """Say what to do about a patch that does not fit, with what its header says of its end."""
    try:
        drop_when = read_header(patch).drop_when
    except RecipeError:
        drop_when = ""
    # The author of the patch knew when it is not needed any more, so that comes first.
    if held := due(drop_when):
        return f"Remove the patch from the recipe; its header says: drop when {held}."
    header_says = f" Its header says: drop when {drop_when}" if drop_when else ""
    if {"done", "gone"}.issuperset(verdicts):
        return f"Remove the patch from the recipe; all of it is in the tree.{header_says}"
    if {"done", "gone", "reformatted"}.issuperset(verdicts):
        return (
            "Compare the lines above with the patch. If they do the same, "
            f"remove it from the recipe.{header_says}"
        )
    return _redo_remedy(patch) + header_says


def _verify(
    tree: WorkTree, patch: Path, wanted: Sequence[FilePatch], changes: dict[str, Change]
) -> None:
    """Raise RecipeError unless exactly the patch's files changed, as its hunks say."""
    # In both directions: files that git left alone, and files that the patch does not name.
    skipped = {file.path for file in wanted} ^ set(changes)
    # A mode of 0 is a deleted file's; links and submodules are refused.
    odd = [path for path, change in changes.items() if change.mode not in {0, *REGULAR}]
    texts = tree.blobs(name for change in changes.values() for name in (change.old, change.new))
    present = [file for file in wanted if file.path in changes]
    wrong = [file.path for file in present if not _has_changes(texts, file, changes[file.path])]
    if path := next(iter([*sorted(skipped), *odd, *wrong]), ""):
        raise RecipeError(
            f"{patch}: {path} is not what the patch says after git applied it",
            remedy=(
                "Make the patch again with 'git diff' against the pinned commit, "
                "one section for each file."
            ),
            where=path,
        )


def _has_changes(texts: Mapping[str, str], file: FilePatch, change: Change) -> bool:
    """Say whether a file lost and gained just the lines of its hunks, and holds the result."""
    # A file that is in one of the two only has an id of zeros in the other, and no text.
    before, after = (lines_of(texts.get(name, "")) for name in (change.old, change.new))
    # Counted without their order: a hunk that git placed elsewhere gives the same counts.
    expected = Counter(before)
    for hunk in file.hunks:
        expected.subtract(hunk.before)
        expected.update(hunk.after)
    return (
        +expected == Counter(after)
        and min(expected.values(), default=0) >= 0
        and all(fitting.places(after, hunk.after) for hunk in file.hunks)
    )


def lines_of(text: str) -> list[str]:
    """Split at line feeds only, as git does; lines keep them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _text(patch: Path) -> str:
    # One byte more than is allowed: a longer file is refused without being read.
    with patch.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise RecipeError(
            f"{patch} is larger than {LARGEST:,} bytes",
            remedy="Leave out what need not change; new files can be assets: [source.assets].",
        )
    return content.decode("utf-8", "surrogateescape")
