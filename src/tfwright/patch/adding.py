"""`invoke patch --add`: a patch as people have it, in the form that the recipes' patches have.

git applies it to the recipe's tree, and what differs there is written like any other edit. So mail
headers, other paths, renames and wide contexts do not matter.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email import policy
from email.parser import Parser
from pathlib import Path

from tfwright.configure.program import EDITED_FILES
from tfwright.documents import filesystem
from tfwright.documents import recipe as recipes
from tfwright.errors import Evidence, RecipeError, ToolError, invoke
from tfwright.patch import writing
from tfwright.patch.writing import WrittenPatch
from tfwright.pipeline.job import RecipeJob
from tfwright.tools.git import patching
from tfwright.tools.git.patching import PatchHeader
from tfwright.tools.git.work_tree import WorkTree

_MAIL = re.compile(r"(?m)^(?=From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$)")
"""How git begins each mail of a series; the date is always this one."""
_CHANGE = re.compile(r"(?m)^(diff --git |--- \S|Index: )")
_FOLDERS = (1, 0, 2)
"""Leading directories that a patch may have before the tree's paths: a/FILE, FILE, x/a/FILE."""


@dataclass(frozen=True)
class Foreign:
    """One patch of a file, with what its mail says about it."""

    subject: str
    body: str
    text: str


def add(
    job: RecipeJob, path: Path, file: Path, name: str, ask: Callable[[str], PatchHeader]
) -> list[WrittenPatch]:
    """Write each patch of `file` in the house form, and enter it into the recipe.

    `ask` completes a header, given what the mail says. Raises RecipeError for what is no patch,
    does not fit, or changes what a patch of a recipe cannot.
    """
    found = list(read(file))
    written = list[WrittenPatch]()
    for number, patch in enumerate(found, 1):
        tree = WorkTree(job.places.tree)
        if tree.exists():
            _insist_on_no_edits(job, tree)
        header = ask(". ".join(filter(None, [patch.subject, patch.body])))
        words = name if len(found) == 1 and name else patch.subject or file.stem
        undo = _applied(tree, patch, file, number) if tree.exists() else None
        try:
            made = writing.make(job, path, words[:60], header)
        except RecipeError:
            if undo:
                undo()
            raise
        # The next one of a series starts from here.
        tree.run("add", "--all", "--", *made.files)
        written.append(made)
        job = replace(job, recipe=recipes.read(str(path)))
    return written


def read(file: Path) -> Iterator[Foreign]:
    """Yield the patches of a file. Raises RecipeError saying what it is instead."""
    try:
        with filesystem.open_file(file) as stream:
            content = stream.read(patching.LARGEST + 1)
    except OSError as fault:
        raise RecipeError(
            f"{file} cannot be read: {fault.strerror}", remedy="Check the path and its permissions."
        ) from fault
    if len(content) > patching.LARGEST:
        _refuse(file, f"is larger than {patching.LARGEST:,} bytes", "Check that this is the file.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        _refuse(file, "is not text in UTF-8", "Save it as UTF-8, or download it again.")
    # Bytes that are no UTF-8 are kept: a patch may change a file in another encoding.
    text = content.decode("utf-8-sig", "surrogateescape")
    if re.match(r"\s*<(!doctype|html|\?xml)", text, re.IGNORECASE):
        _refuse(
            file,
            "is a web page, and no patch",
            "Download the patch itself: on GitHub, add .patch to the address of the commit or the "
            "pull request.",
        )
    if not _CHANGE.search(text):
        _refuse(
            file, "changes no file", "Make it with 'git diff', 'git format-patch' or 'diff -u'."
        )
    for part in filter(_CHANGE.search, _MAIL.split(text)):
        yield _of_mail(part)


def _of_mail(text: str) -> Foreign:
    change = _CHANGE.search(text)
    head = text[: change.start()] if change else ""
    # The line "From COMMIT date" stands before the fields of a mail.
    mail = Parser(policy=policy.compat32).parsestr(re.sub(r"^From .*\n", "", head))
    said = str(mail["Subject"] or "")
    subject = re.sub(r"^\s*\[[^\]]*\]\s*", "", " ".join(said.split()))
    body = str(mail.get_payload()).partition("\n---\n")[0] if said else ""
    ended = text if text.endswith("\n") else f"{text}\n"
    return Foreign(subject.rstrip("."), " ".join(body.split()), ended)


def _insist_on_no_edits(job: RecipeJob, tree: WorkTree) -> None:
    edited = sorted({*tree.changed(), *tree.strangers()} - {*EDITED_FILES})
    if edited:
        raise RecipeError(
            f"{tree.place} holds edits that are in no patch yet",
            remedy=f"Write them first: 'invoke patch WORDS --recipe {job.recipe.argument}'. Or "
            f"make the tree again: 'invoke build --recipe {job.recipe.argument} --until source'.",
            evidence=Evidence(lines=edited),
        )


def _applied(tree: WorkTree, patch: Foreign, file: Path, number: int) -> Callable[[], object]:
    """Apply a patch to the files of a tree; return what takes it back."""
    said = list[str]()
    # With the line ends as they are first: the tree may have files with CRLF.
    for text in dict.fromkeys([patch.text, patch.text.replace("\r\n", "\n")]):
        for folders in _FOLDERS:
            options = ("apply", "--whitespace=nowarn", f"-p{folders}")
            with tempfile.TemporaryDirectory() as room:
                place = Path(room, "patch")
                place.write_bytes(text.encode("utf-8", "surrogateescape"))
                try:
                    tree.run(*options, str(place))
                except ToolError as fault:
                    said += [line for line in fault.evidence.lines if line not in said]
                    continue
            return tree.restore
    raise RecipeError(
        f"Patch {number} of {file} does not fit the tree in {tree.place}",
        remedy="It was made for another commit: make the change there by hand, then write it with "
        f"'{invoke('patch WORDS')}'. The lines are what git says with one leading directory, none "
        "and two.",
        evidence=Evidence(where=str(file), lines=said),
    )


def _refuse(file: Path, what: str, remedy: str) -> None:
    raise RecipeError(f"{file} {what}", remedy=remedy, evidence=Evidence(where=str(file)))
