"""`invoke patch --add`: a patch as people have it, in the form that the recipes' patches have.

git applies it to the recipe's tree, and what differs there is written like any other edit. So mail
headers, other paths, renames and wide contexts do not matter.
"""

import re
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError, ToolError, invoke
from tfwright.patch import reading, writing
from tfwright.patch.reading import ForeignPatch
from tfwright.patch.writing import WrittenPatch
from tfwright.pipeline import edits
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files
from tfwright.tools.git import program
from tfwright.tools.git.patching import PatchHeader
from tfwright.tools.git.work_tree import WorkTree

_PAIR = re.compile(r"(?m)^--- ([^\t\r\n]+).*\n\+\+\+ ([^\t\r\n]+).*\n@@ -(0,0 )?")
_PREFIX = re.compile(r'(?m)^(?:diff --git|---) "?[abciow]/')
"""git's own first directory: of `git diff`, or with diff.mnemonicPrefix."""
_DEEPEST = 12
"""Leading directories that a patch may have before the tree's paths: it may name whole paths."""
_PLACES = 64
"""Directories that are tried for a patch whose paths leave them out."""


_FITS = (
    (
        "--reverse",
        "is in the tree already",
        "Leave it out. If it takes a change back, make it again the other way round.",
    ),
    (
        "--ignore-whitespace",
        "fits the tree but for its blanks",
        "They were lost when it was copied, tabs above all: download it as a file instead.",
    ),
    (
        "-C1",
        "fits the tree but for the outer lines of its context",
        "Run '{apply}', look at the result, and write that: '{make}'.",
    ),
    ("--unidiff-zero", *reading.BARE),
)
"""Options of git by which a patch would fit, what that shows of it, and the remedy."""
_SAYS = (
    (
        "corrupt patch|No valid patches",
        "is damaged: hunks are missing, or have other lines than their heads say",
        "It was cut off or edited: download it again, or make it with 'git diff'.",
    ),
    (
        "invalid path",
        "names a file outside of the tree, or git's own",
        "Look at where it comes from. No patch of a recipe can name such a file.",
    ),
    (
        r"error: external/\S+: No such file",
        "changes an archive that Bazel unpacks, and not the tree",
        "Put it into third_party/, and name it in the archive's rule: '{make}'.",
    ),
    (
        "already exists in",
        "makes a file that the tree in {tree} has",
        "Compare the two; to change the tree's, edit it there, and write that: '{make}'.",
    ),
    (
        "",
        "does not fit the tree in {tree}",
        "It was made for another commit: make its change by hand, and write it: '{make}'.",
    ),
)
"""What git says of a patch that fits by none of them, in the same form."""
_ANYWHERE = (
    "",
    "was made below a directory, and fits several: {below}",
    "Make it again with paths from the top of the tree, as 'git diff' does without --relative.",
)
"""What is wrong with a patch whose paths begin anywhere, in the same form."""


def add(
    job: RecipeJob, path: Path, file: Path, name: str, ask: Callable[[PatchHeader], PatchHeader]
) -> list[WrittenPatch]:
    """Write each patch of `file` in the house form, and enter it into the recipe.

    `ask` completes a header, given what the file says. Raises RecipeError for what is no patch,
    does not fit, or changes what a patch of a recipe cannot; then nothing was added.
    """
    found = reading.read(file)
    tree = writing.tree_of(job)
    edited = sorted({*tree.changed_files(), *tree.foreign_files()} - edits.configure_output(job))
    if edited:
        raise RecipeError(
            f"{tree.place} holds edits that are in no patch yet",
            remedy=f"Write them first: 'invoke patch WORDS --recipe {job.recipe.argument}'. Or "
            f"make the tree again: 'invoke build --recipe {job.recipe.argument} --until source "
            "--again source'.",
            lines=edited,
        )
    # Asked first: an answer that is missing ends the command.
    headers = [ask(patch.said) for patch in found]
    written = list[WrittenPatch]()
    with ExitStack() as undo:
        undo.callback(files.write, path, path.read_bytes())
        undo.callback(tree.check_out, tree.content())
        undo.callback(tree.restore)
        for number, (patch, header) in enumerate(zip(found, headers, strict=True), 1):
            which = f"{file}" if len(found) == 1 else f"Patch {number} of {file}"
            if folder := _apply(tree, patch, which, file):
                job.listener.note(f"{which} was made below {folder}: its paths begin there")
            chosen = name if len(found) == 1 and name else patch.subject
            # The words of another script make no file name.
            words = chosen if re.search(r"[A-Za-z]{2}", chosen) else file.stem
            try:
                # All edits are the patch's, also files that the tree's .gitignore names.
                made = writing.write_new(job, path, words[:60], header, tree.foreign_files())
            except RecipeError as fault:
                what = fault.what.removeprefix("The edits make no patch: ")
                raise RecipeError(
                    f"{which} cannot become a patch of the recipe: {what}",
                    remedy=fault.template,
                    where=file,
                    lines=fault.evidence.lines,
                ) from fault
            undo.callback(files.remove, made.path)
            written.append(made)
            job = replace(job, recipe=recipes.read(str(path)))
        undo.pop_all()
    return written


def _apply(tree: WorkTree, patch: ForeignPatch, which: str, file: Path) -> str:
    """Apply a patch to the files of a tree; return the directory that its paths leave out.

    Raises RecipeError saying why it does not fit.
    """
    depth = _strip_depth(tree.place, patch.text)
    # With the line ends as they are first: the tree may have files with CRLF.
    texts = dict.fromkeys([patch.text, patch.text.replace("\r\n", "\n")])
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "patch")

        def refused(text: str, *options: str) -> list[str]:
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
            try:
                tree.run("apply", "--whitespace=nowarn", f"-p{depth}", *options, str(place))
            except ToolError as fault:
                return [program.reason(fault), *fault.evidence.lines]
            return []

        complaint = list[str]()
        for text in texts:
            complaint = refused(text)
            if not complaint:
                return ""
        places = [(text, each) for text in texts for each in _fitting_folders(tree, text, depth)]
        fitting = [
            (text, each)
            for text, each in places
            if not refused(text, "--check", f"--directory={each}")
        ]
        if len(fitting) == 1:
            ((text, folder),) = fitting
            refused(text, f"--directory={folder}")
            return folder
        # What would fit says what is wrong; it is only asked for.
        found = [row for row in _FITS if not refused(text, row[0], "--check")]
        found += [_ANYWHERE] if fitting else []
        found += [row for row in _SAYS if re.search(row[0], "\n".join(complaint))]
    _, what, remedy = found[0]
    words = {
        "tree": tree.place,
        "make": invoke("patch WORDS"),
        "below": ", ".join(each for _, each in fitting),
        "apply": f"git -C {tree.place} apply -C1 -p{depth} {file.resolve()}",
    }
    raise RecipeError(
        f"{which} {what.format(**words)}",
        remedy=remedy.format(**words),
        where=file,
        lines=complaint,
    )


def _fitting_folders(tree: WorkTree, text: str, depth: int) -> list[str]:
    """Return the directories of a tree below which all files are that a patch changes."""
    paths = {
        "/".join(PurePosixPath(_unquote(before)).parts[depth:])
        for before, _, new in _PAIR.findall(text)
        if not new
    }
    # What the tree has where the patch says belongs there.
    if not paths or any((tree.place / path).exists() for path in paths):
        return []
    every = tree.run("ls-files", "-z").split("\0")
    places = (
        {each[: -len(path) - 1] for each in every if each.endswith(f"/{path}")} for path in paths
    )
    found = set.intersection(*places)
    # What is everywhere, as a BUILD, says nothing of its place.
    return sorted(found) if len(found) <= _PLACES else []


def _strip_depth(tree: Path, text: str) -> int:
    """Return how many leading directories a patch has before the paths that the tree has.

    Files that exist say it, or else the directories of new ones. Where neither does, it is what
    git writes. Raises RecipeError for new files whose place nothing says.
    """
    # The files of the patch, and whether they are new.
    names = [
        (_unquote(after if new or before == "/dev/null" else before), bool(new))
        for before, after, new in _PAIR.findall(text)
    ]
    usual = 1 if _PREFIX.search(text) else 0
    if not names:
        return 1

    def found(depth: int) -> int:
        return sum(_has_path(tree, name, depth, new=new) for name, new in names)

    depths = sorted(range(_DEEPEST), key=lambda depth: depth != usual)
    return max(depths, key=found) if any(map(found, depths)) else usual


def _unquote(path: str) -> str:
    """Return a path as the file system has it: git writes other bytes than ASCII in octal."""
    if not path.startswith('"'):
        return path
    content = path.strip('"').encode("utf-8", "surrogateescape")
    plain = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), content)
    return plain.decode("utf-8", "surrogateescape")


def _has_path(tree: Path, name: str, depth: int, *, new: bool) -> bool:
    parts = PurePosixPath(name).parts[depth:]
    if not parts or {"..", "/", ".git"}.intersection(parts):
        return False
    if not new:
        return tree.joinpath(*parts).is_file()
    # At the top of the tree every new name would fit.
    return tree.joinpath(*parts[:-1]).is_dir() and (len(parts) > 1 or depth in (0, 1))
