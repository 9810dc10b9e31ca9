"""What a repository of git holds."""

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.tools.git import program
from tfwright.tools.process import pipes
from tfwright.tools.process.command import Command

REGULAR = {0o100644, 0o100755}
"""Modes of files that are neither links nor repositories of their own."""
LINK = 0o120000
LARGEST_LISTING = 64 * 2**20
"""Bytes that git takes to list the files of a commit; TensorFlow 2.20 takes four million."""
LARGEST_TEXTS = 256 * 2**20
"""Bytes of the texts that are read at once; all rules of a TensorFlow have less than five
million."""
_NO_OBJECT = "0" * 40


class TreeEntry(NamedTuple):
    """A file of a commit or tree."""

    path: str
    mode: int
    blob: str


class Change(NamedTuple):
    """How a file differs between two trees; an id of zeros where it is in one only."""

    mode: int
    """In the later tree; 0 where it is gone."""
    old: str
    new: str


def is_excluded(path: str, exclude: Collection[str]) -> bool:
    """Say whether a path is one of those left out, or lies beneath one."""
    return any(path == each or path.startswith(f"{each}/") for each in exclude)


def id_of(kind: str, content: bytes) -> str:
    """Return the id that git gives to an object."""
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(header + content).hexdigest()  # noqa: S324 git's own


class GitRepository:
    """A bare repository: a mirror of ours, or one on this host that the host file names."""

    def __init__(self, path: Path, tree: Path | None = None) -> None:
        """Name the directory, which need not exist yet, and the files that belong to it."""
        self.path = path
        # git must not search for a repository.
        self._options = (f"--git-dir={path}", *((f"--work-tree={tree}",) if tree else ()))
        self._cwd = tree or path

    def command(self, *arguments: str, env: Mapping[str, str] | None = None) -> Command:
        """Return a git command here; with `program.network_variables()` it reaches servers."""
        return Command(
            ("git", *self._options, *arguments),
            self._cwd,
            program.variables(self.path, **(env or {})),
            here=True,
            # Without `network_variables()` it never waits for a server.
            brief=env is None,
        )

    def run(self, *arguments: str, most: int = pipes.LARGEST_OUTPUT) -> str:
        """Run git on this repository and return what it printed; raise as `program.run`."""
        return program.run(self.command(*arguments), most)

    def fields(self, *arguments: str, most: int = pipes.LARGEST_OUTPUT) -> list[str]:
        """Return what git prints with ``-z``, taken apart."""
        return self.run(*arguments, most=most).split("\0")[:-1]

    def collect(
        self,
        *arguments: str,
        lines: Iterable[str] = (),
        into: IO[bytes] | None = None,
        most: int = pipes.LARGEST_OUTPUT,
    ) -> bytes:
        """Run git with lines for its input, and return its output or write it to a file."""
        return program.collect(self.command(*arguments), lines, into, most)

    def make(self) -> "GitRepository":
        """Make an empty repository here; one that is here already stays as it is."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.run("init", "--quiet", "--bare")
        return self

    def check_version(self) -> None:
        """Raise HostError if this host's git is too old."""
        found = re.search(r"(\d+)\.(\d+)", self.run("version"))
        oldest = tuple(map(int, program.OLDEST.split(".")))
        if found and (int(found[1]), int(found[2])) < oldest:
            raise HostError(
                f"git {found[0]} is too old: {program.OLDEST} or newer is needed",
                remedy=f"Install git {program.OLDEST} or newer.",
            )

    def exists(self) -> bool:
        """Say whether the directory is a repository."""
        return self.path.is_dir() and bool(self.kind("HEAD"))

    def answer(self, *arguments: str) -> str:
        """Return what git prints, without blanks around it; empty if it fails."""
        try:
            return self.run(*arguments).strip()
        except ToolError:
            return ""

    def kind(self, name: str) -> str:
        """Return what an id names, such as ``commit`` or ``tag``; empty if it is not here."""
        return self.answer("cat-file", "-t", name)

    def is_ancestor(self, older: str, newer: str) -> bool | None:
        """Say whether a commit is in the history of another one.

        None if that cannot be known: the repository lacks one of them, or the history between them.
        """
        if self.kind(older) != "commit" or self.kind(newer) != "commit":
            return None
        try:
            self.run("merge-base", "--is-ancestor", older, newer)
        except ToolError:
            # Where history is cut off, git cannot see what came before.
            cut = self.run("rev-parse", "--is-shallow-repository").strip()
            return None if cut == "true" else False
        return True

    def commit_named(self, name: str) -> str:
        """Return the commit that a tag names; empty if it names none, or it is not here."""
        return self.answer("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")

    def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def epoch(self, commit: str) -> int:
        """Return when a commit was made, in seconds. Raises RecipeError if it does not say."""
        date = self.run("show", "--no-patch", "--format=%ct", commit).strip()
        # git keeps whatever somebody wrote there: no number, or one of thousands of digits.
        if not re.fullmatch(r"[0-9]{1,11}", date):
            raise RecipeError(
                f"{commit[:12]} has no date that a calendar knows",
                remedy="Pin another commit: the date goes into the wheel.",
            )
        return int(date)

    def entries(self, commit: str) -> list[TreeEntry]:
        """Return the files of a commit or tree, and the places of repositories in it (submodules).

        Raises SupplyError for more than any source has: a few trees that repeat each other can have
        any number of files.
        """
        found = []
        for line in self.fields("ls-tree", "-r", "-z", "--full-tree", commit, most=LARGEST_LISTING):
            # "100644 blob <id>", a tab and the path.
            fields, _, path = line.partition("\t")
            mode, _, blob = fields.split()
            found.append(TreeEntry(path, int(mode, 8), blob))
        return found

    def changes(self, before: str, after: str) -> dict[str, Change]:
        """Return what differs between two trees, by path."""
        listed = self.fields("diff-tree", "-r", "--raw", "-z", "--no-renames", before, after)
        changes = {}
        # Pairs of ":100644 100755 <old> <new> M" and the path.
        for fields, path in zip(listed[::2], listed[1::2], strict=True):
            _, mode, old, new, _ = fields.split()
            changes[path] = Change(int(mode, 8), old, new)
        return changes

    def missing_ids(self, commit: str) -> set[str]:
        """Return the ids of what a commit has and the repository lacks.

        What it borrows from others it has.
        """
        listed = self.run("rev-list", "--objects", "--no-walk", "--missing=print", commit)
        return {line[1:] for line in listed.splitlines() if line.startswith("?")}

    def missing_entries(self, commit: str, exclude: Collection[str] = ()) -> list[TreeEntry]:
        """Return the files of a commit that the repository lacks, without excluded ones."""
        missing = self.missing_ids(commit)
        return [
            entry
            for entry in self.entries(commit)
            if entry.blob in missing and not is_excluded(entry.path, exclude)
        ]

    def size(self, commit: str) -> int:
        """Return the bytes of all files of a commit or tree, as far as they are here.

        A file that is there twice counts twice. Raises SupplyError as `entries` does.
        """
        counts = Counter(entry.blob for entry in self.entries(commit))
        printed = self.collect(
            "cat-file", "--batch-check=%(objectname) %(objectsize)", lines=counts
        )
        pairs = (line.split(" ") for line in printed.decode().splitlines())
        # "<name> missing" for what a partial repository does not have.
        return sum(counts[name] * int(size) for name, size in pairs if size.isdigit())

    def text(self, name: str) -> str:
        """Return the content of a file, by its id or as ``TREE:PATH``; empty if there is none."""
        return self.blobs([name]).get(name, "")

    def blobs(self, names: Iterable[str]) -> dict[str, str]:
        """Return the texts of files, by id or as ``TREE:PATH``; what is not a file is left out.

        One process of git reads them all: for each file one of its own, a tree's two hundred files
        of rules took longer than everything that is done with them.
        """
        # git reads a name to the end of its line, so that one with a line break names nothing.
        asked = [name for name in dict.fromkeys(names) if "\n" not in name]
        try:
            objects = list(self._objects(asked))
        except ToolError:
            if len(asked) <= 1:
                return {}
            # A git of before 2.44 gives up at the first file that a partial mirror does not have.
            return {name: text for one in asked for name, text in self.blobs([one]).items()}
        return {
            name: content.decode("utf-8", "surrogateescape")
            for name, (kind, content) in zip(asked, objects, strict=True)
            if kind == "blob"
        }

    def _objects(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield kind and content of each object; an empty kind for what is not here."""
        answer = self.collect("cat-file", "--batch", lines=names, most=LARGEST_TEXTS)
        place = 0
        for _ in names:
            end = answer.index(b"\n", place)
            # "<id> blob <size>", or "<name> missing".
            _, *kind, size = answer[place:end].rsplit(b" ", 2)
            place = end + 1
            if not size.isdigit():
                yield "", b""
                continue
            until = place + int(size)
            yield kind[0].decode(), answer[place:until]
            place = until + 1

    def texts_at(self, commit: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the texts of some files of a commit by path, those that it has."""
        found = self.blobs([f"{commit}:{path}" for path in paths])
        return {name.partition(":")[2]: text for name, text in found.items()}

    def plain_files(self, tree: str, wanted: Callable[[str], bool]) -> dict[str, str]:
        """Return the ids of those plain files of a commit or tree whose path is wanted, by path."""
        return {
            entry.path: entry.blob
            for entry in self.entries(tree)
            if entry.mode in REGULAR and wanted(entry.path)
        }

    def texts(self, tree: str, wanted: Callable[[str], bool]) -> dict[str, str]:
        """Return the texts of those plain files of a commit or tree whose path is wanted."""
        names = self.plain_files(tree, wanted)
        contents = self.blobs(names.values())
        absent = [path for path, name in names.items() if name not in contents]
        if absent:
            raise ToolError(
                f"{self.path} lacks {len(absent)} files of {tree[:12]}: {absent[0]}",
                remedy=program.REPAIR,
                where=self.path,
                lines=absent,
            )
        return {path: contents[name] for path, name in names.items()}

    def loose_objects(self) -> Iterator[tuple[str, bool]]:
        """Yield the id of each object that is a file of its own, and whether it has its bytes.

        git trusts what it reads from its own disk, and does not hash it again. Packed objects, and
        those of the mirror that a tree's repository borrows from, do not count.
        """
        for path in (self.path / "objects").glob("[0-9a-f][0-9a-f]/*"):
            name = path.parent.name + path.name
            try:
                content = zlib.decompress(path.read_bytes())
            except (OSError, zlib.error):
                yield name, False
            else:
                yield name, hashlib.sha1(content).hexdigest() == name  # noqa: S324 git's own

    def verify_objects(self, root: str, blobs: Iterable[str] = ()) -> None:
        """Insist that a commit or tree, its directories and some files have their ids' bytes.

        Raises SupplyError for an object that was damaged or replaced.
        """
        lines = self.fields("ls-tree", "-r", "-d", "-z", "--full-tree", root, most=LARGEST_LISTING)
        # "040000 tree <id>", a tab and the path; a submodule is a commit of another repository.
        fields = (line.partition("\t")[0].split() for line in lines)
        folders = [name for _, kind, name in fields if kind == "tree"]
        whole = self.tree_of(root)
        wanted = sorted({root, whole, *folders, *blobs} - {_NO_OBJECT})
        found = zip(wanted, self._objects(wanted), strict=True)
        self.refuse_damaged(
            [name for name, (kind, content) in found if id_of(kind, content) != name]
        )

    def refuse_damaged(self, wrong: Sequence[str]) -> None:
        """Raise SupplyError if there are objects whose bytes do not have their id."""
        if wrong:
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise SupplyError(
                f"git's object {wrong[0]}{more} does not have the bytes of its id: it was damaged "
                "or replaced on this disk",
                remedy=program.REPAIR,
                where=self.path,
                lines=wrong[:20],
            )
