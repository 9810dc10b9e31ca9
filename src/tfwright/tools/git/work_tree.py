"""The tree that is checked out of a commit, with patches and assets in git's index.

A tree has its repository next to it, not inside: ``.git`` is a file. TensorFlow's gen_git_source.py
takes that for an export, writes "unknown" as the version of git, and runs no git during the build.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from tfwright.errors import RecipeError, TfwrightError, ToolError
from tfwright.tools import files
from tfwright.tools.git import program
from tfwright.tools.git.repository import LINK, REGULAR, GitRepository, id_of, is_excluded
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import UMASK

PLAIN = "* -text -ident -filter !eol !working-tree-encoding\n"
"""What overrides a commit's own .gitattributes, with which git would check out other bytes."""
SAME = ("HEAD", "shallow", "info/attributes", "info/sparse-checkout", "objects/info/alternates")
"""Files of a tree's repository that say which commit, of which mirror, without which paths, how."""
NAMED = "--pathspec-from-file=-"
"""Paths come by standard input: they may be more than a command line takes."""


def repository_of(tree: Path) -> Path:
    """Return the repository of a tree: its own, which borrows the mirror's objects."""
    return tree.with_name(f"{tree.name}.git")


class WorkTree(GitRepository):
    """A tree of files, with its repository next to it."""

    def __init__(self, place: Path) -> None:
        """Name the directory of the files, which need not exist yet."""
        super().__init__(repository_of(place), place)
        self.place = place

    def exists(self) -> bool:
        """Say whether the tree and its repository are there."""
        return (self.place / ".git").is_file() and (self.path / "index").is_file()

    def preparing_commands(self, commit: str) -> tuple[Command, ...]:
        """Return the commands that put a commit into the index of a tree without files."""
        return (
            self.command("init", "--quiet"),
            self.command("update-ref", "--no-deref", "HEAD", commit),
            self.command("read-tree", commit),
        )

    def prepare(self, mirror: Path, commit: str, exclude: Sequence[str]) -> None:
        """Start from nothing: the commit in the index, no file checked out.

        What becomes of the tree is decided in the index, so that a patch or asset that does not fit
        leaves no half-changed files, and none can write past the tree.
        """
        self._begin()
        files.write(self.path / "objects/info/alternates", f"{mirror / 'objects'}\n")
        # The mirror has no parents of the commit; git must not look for them.
        files.write(self.path / "shallow", f"{commit}\n")
        files.write(self.path / "info/attributes", PLAIN)
        for each in self.preparing_commands(commit):
            program.run(each)
        if exclude:
            # Written so that git's patterns mean each path literally.
            literal = (re.sub(r"([*?\[\\ ])", r"\\\1", path) for path in exclude)
            excluded = "".join(f"!/{path}\n" for path in literal)
            files.write(self.path / "info/sparse-checkout", f"/*\n{excluded}")
            self.run("config", "core.sparseCheckout", "true")

    def _begin(self) -> None:
        self.discard()
        self.place.mkdir(parents=True)
        self.place.chmod(0o777 & ~UMASK)

    def discard(self) -> None:
        """Remove the tree and its repository."""
        files.remove(self.place)
        files.remove(self.path)

    def put(self, content: str) -> None:
        """Put a content that was made before into the index, whatever that holds."""
        # A git that was killed leaves its lock, and no other works on a tree of ours.
        for leftover in ("index", "index.lock"):
            (self.path / leftover).unlink(missing_ok=True)
        self.run("read-tree", content)

    def add(self, path: str, source: Path) -> None:
        """Put a file into the index, under a path where there is none."""
        try:
            taken = self.run("ls-files", "--", f":(literal){path}")
            name = self.run("hash-object", "-w", "--no-filters", "--", str(source)).strip()
            if not taken:
                self.run("update-index", "--add", "--cacheinfo", f"100644,{name},{path}")
        except ToolError as fault:
            raise RecipeError(
                f"{path} cannot be put into the tree: git refuses the path",
                remedy="Choose a path without a file, a link or .git among its directories.",
                evidence=fault.evidence,
            ) from fault
        if taken:
            raise RecipeError(
                f"{path} is in the tree already",
                remedy="Assets are new files; change an existing one with a patch.",
            )

    def replace(self, path: str, text: str) -> None:
        """Replace the content of a plain file in the index."""
        mode = self.run("ls-files", "--stage", "--", f":(literal){path}").partition(" ")[0]
        with tempfile.NamedTemporaryFile() as content:
            content.write(text.encode("utf-8", "surrogateescape"))
            content.flush()
            name = self.run("hash-object", "-w", "--no-filters", "--", content.name).strip()
        self.run("update-index", "--cacheinfo", f"{mode},{name},{path}")

    def content(self) -> str:
        """Return the id of what the index holds."""
        return self.run("write-tree", "--missing-ok").strip()

    def check_out_command(self, content: str) -> Command:
        """Return the command that writes the files of a content."""
        return self.command("read-tree", "--reset", "-u", content)

    def check_out(self, content: str) -> None:
        """Write the files of a content into a tree that has none yet, and verify them.

        Raises SupplyError if git's objects are damaged, ToolError if the disk changed a file.
        """
        files.write(self.place / ".git", f"gitdir: {self.path}\n")
        program.run(self.check_out_command(content))
        self.verify_objects(content)
        self.verify_files(content)
        if wrong := self.changed_files():
            raise ToolError(
                f"{wrong[0]} was not checked out as it is in the commit",
                remedy="Set build_out to a disk that tells upper from lower case, and has links.",
            )

    def verify_files(self, content: str, only: Collection[str] | None = None) -> None:
        """Insist that the files have the bytes that a content's ids stand for.

        With `only`, of these paths. Raises SupplyError for an object that was damaged or replaced.
        """
        wrong = []
        for path, mode, blob in self.entries(content):
            file = self.place / path
            # What is left out is not there, and whether it should be is asked elsewhere.
            if (only is None or path in only) and os.path.lexists(file):
                if mode == LINK:
                    sound = id_of("blob", os.fsencode(file.readlink())) == blob
                else:
                    sound = mode not in REGULAR or id_of("blob", files.content(file)) == blob
                if not sound:
                    wrong.append(f"{blob} ({path})")
        self.refuse_damaged(wrong)

    def bring_to(self, prepared: "WorkTree", content: str, exclude: Collection[str]) -> None:
        """Bring the files to a content that the repository of a scratch tree holds.

        Only the files that differ are written: TensorFlow has ten to thirty thousand. Writing all
        of them for a change of one patch takes a minute on a busy disk, and gives Bazel new times
        of change for every file. The paths in `exclude` are left out of both. Whatever else is in
        the tree is removed. Where it is not of the same commit, or not sound, it is made from
        nothing. `prepared` stays as it is.
        """
        if self.exists() and all(
            _blob_content(self.path / name) == _blob_content(prepared.path / name) for name in SAME
        ):
            # A git that was killed left a lock or a damaged index, or an object of the tree's own
            # is damaged: start from nothing.
            with suppress(TfwrightError):
                # git would not write a file either that its index says to skip.
                if not self.unwatched_files(exclude) and self._update_files(prepared, content):
                    return
        self._begin()
        shutil.copytree(prepared.path, self.path)
        # A repository holds the path of its tree.
        self.run("config", "core.worktree", str(self.place))
        self.check_out(content)

    def _update_files(self, prepared: "WorkTree", content: str) -> bool:
        """Write the files that differ; return whether the tree is exactly the content then."""
        # The few objects that patches made.
        for source in (prepared.path / "objects").glob("??/*"):
            target = self.path / "objects" / source.relative_to(prepared.path / "objects")
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(source, target)
        # What was edited, deleted or added since the last checkout goes first: git would leave it
        # alone in every file that is the same in both contents.
        touched = self.changed_files()
        before = self.content()
        self.restore()
        program.run(self.check_out_command(content))
        self.verify_objects(content)
        self.verify_files(content, {*touched, *self.changes(before, content)})
        return not self.changed_files()

    def changed_files(self) -> list[str]:
        """Return the tracked files that changed since they were checked out.

        Only touched ones are read.
        """
        return self.fields("diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules")

    def staged_files(self, content: str) -> list[str]:
        """Return the files of which the index has another state than the content.

        As after ``git add`` or ``git commit`` in it, which hide a change from `changed_files`.
        """
        return self.fields("diff-index", "--cached", "--name-only", "-z", "--no-renames", content)

    def unwatched_files(self, exclude: Collection[str]) -> list[str]:
        """Return the files at which git does not look, except those that are left out.

        ``git update-index --assume-unchanged`` and ``--skip-worktree`` hide a change from
        `changed_files`.
        """
        # "H path": a small letter for the first flag, S for the second.
        listed = self.fields("ls-files", "-v", "-z")
        flagged = (line[2:] for line in listed if not line.startswith("H"))
        return [path for path in flagged if not is_excluded(path, exclude)]

    def foreign_files(self) -> list[str]:
        """Return the files that are not of the commit, or not as there; without Bazel's links."""
        options = ("--others", "--modified", "-z", "--exclude=/bazel-*")
        return sorted(set(self.fields("ls-files", *options)))

    def is_plain(self) -> bool:
        """Say whether git takes every file as it is, whatever its attributes say."""
        attributes = self.path / "info/attributes"
        return attributes.is_file() and files.text(attributes) == PLAIN

    def restore(self) -> None:
        """Put back what was checked out, and remove all other files but Bazel's links."""
        self.run("checkout", "--force", "--", ".")
        self.run("clean", "--quiet", "-ffdx", "--exclude=/bazel-*")

    def ignored_files(self, but: Collection[str]) -> tuple[str, ...]:
        """Return the new files that the tree's .gitignore names, except Bazel's links."""
        listed = self.fields("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
        links = (name for name in listed if name.startswith("bazel-"))
        return tuple(sorted({*listed} - {*links, *but}))

    def difference(
        self, context: int, but: Collection[str] = (), also: Collection[str] = ()
    ) -> str:
        """Return the diff from the index to the files, new files included.

        Of those that .gitignore names only the ones in `also`. Without git's ids of the contents,
        which say nothing to people and differ from clone to clone.
        """
        excluded = [f":(exclude,literal){path}" for path in but]
        # A new file counts from the moment that git knows that it is meant to be added. Only new
        # files are named: "git add ." would put deletions into the index, where no difference shows
        # them.
        own = ("--exclude-standard", "--exclude=/bazel-*")
        listing = ("ls-files", "--others", *own, "-z", "--", ".", *excluded)
        named = {*also}.intersection(self.fields("ls-files", "--others", "-z")).difference(but)
        new = [f":(literal){path}" for path in {*self.fields(*listing), *named}]
        options = (f"--unified={context}", "--no-renames", "--no-color", "--no-ext-diff")
        try:
            # git takes no empty list.
            if new:
                self.collect("add", "--intent-to-add", "--force", NAMED, lines=new)
            diff = self.run("diff", *options, "--", ".", *excluded)
        finally:
            # A new file that is moved away after this was never deleted.
            if new:
                self.collect("rm", "--cached", "--quiet", "--ignore-unmatch", NAMED, lines=new)
        # The lines of a hunk begin with a sign, so that only headers match.
        return re.sub(r"(?m)^index [0-9a-f]+\.\.[0-9a-f]+(?: \d+)?\n", "", diff)


def _blob_content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
