"""What a remote repository names, and the subjects of its commits, without its files."""

import fnmatch
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from tfwright.documents.release import ExactRelease, Rank
from tfwright.errors import RecipeError, SupplyError, ToolError
from tfwright.printable import shell_word
from tfwright.tools import files
from tfwright.tools.git import program, transport
from tfwright.tools.git.mirror import Origin
from tfwright.tools.git.repository import GitRepository

DEPTH = 500
"""Commits before the newest one that are asked for: some days of TensorFlow."""
COMMIT = re.compile(r"[0-9a-f]{40}")
VERSION = re.compile(r"[rv]?\d{1,4}\.\d{1,4}")
SHOWN = 3
"""Names of a repository before and after a version that an error lists."""


class RemoteCommit(NamedTuple):
    """A commit of a remote repository."""

    commit: str
    author: str
    subject: str


class Remote:
    """A repository on a server, or on this host."""

    def __init__(self, store: Path, address: str) -> None:
        """Name it; `store` is a directory that exists, for what has to be transferred."""
        self._store, self._address = store, address

    def head(self, branch: str) -> str:
        """Return the newest commit of a branch. Raises SupplyError if the server does not say."""
        commit = self._commit_behind(f"refs/heads/{branch}")
        if commit is None:
            raise SupplyError(
                f"{self._address} has no branch {branch}",
                remedy="Correct follow.branch in nightly.toml.",
            )
        return commit

    def commit_of(self, name: str) -> str:
        """Return the commit that a tag or, without such a tag, a branch leads to.

        Raises SupplyError if the repository has neither.
        """
        found = self._commit_behind(f"refs/tags/{name}") or self._commit_behind(
            f"refs/heads/{name}"
        )
        if not found:
            raise SupplyError(
                f"{self._address} has no tag and no branch {name}",
                remedy=self.other_names_remedy(name),
            )
        return found

    def release_of(self, version: ExactRelease) -> tuple[str, str]:
        """Return the tag of an exact version, and its commit.

        Raises SupplyError if the repository has no such tag.
        """
        dashed = str(version)
        # TensorFlow spelled its tags in each of these ways: v1.8.0-rc1, v0.11.0rc0, 0.12.0-rc1.
        plain = dashed.replace("-", "")
        names = list(dict.fromkeys((f"v{dashed}", f"v{plain}", dashed, plain)))
        for name in names:
            if found := self._commit_behind(f"refs/tags/{name}"):
                return name, found
        raise SupplyError(
            f"{self._address} has no tag {names[0]}", remedy=self.other_names_remedy(names[0])
        )

    def _commit_behind(self, ref: str) -> str | None:
        """Return the commit that a branch or a tag leads to; an annotated tag is an object too."""
        # The server lists the commit behind an annotated tag only if it is asked for all of them.
        listed = self._refs(f"{ref}*")
        return listed.get(f"{ref}^{{}}") or listed.get(ref)

    def other_names_remedy(self, name: str) -> str:
        """Return a remedy with other names that a repository has, the nearest to a version."""
        # A mirror often has the history and neither tags nor branches.
        listing = (
            f"'git ls-remote {shell_word(self._address)}' lists the names that it has. If it has "
            "the commit and no name for it, write VERSION@COMMIT."
        )
        # Behind an annotated tag, ^{} stands for the commit that it leads to.
        refs = (
            re.fullmatch(r"refs/(?:tags|heads)/(.*)(?<!\^\{\})", ref) for ref in self._refs("*")
        )
        names = {name, *(ref[1] for ref in refs if ref)}
        ordered = sorted(filter(VERSION.match, names), key=_rank)
        if name not in ordered:
            return listing
        place = ordered.index(name)
        near = ordered[max(0, place - SHOWN) : place] + ordered[place + 1 :][:SHOWN]
        return f"Name one that it has, such as {', '.join(near)}. {listing}" if near else listing

    def newest_tag(self, pattern: str) -> tuple[str, str]:
        """Return the name and the commit of the newest version among the tags of a pattern."""
        found = []
        for name, commit in self._refs("refs/tags/*").items():
            tag = name.removeprefix("refs/tags/").removesuffix("^{}")
            if fnmatch.fnmatchcase(tag, pattern):
                # InvalidVersion is a ValueError; a number of more than 4,300 digits is another.
                with suppress(ValueError):
                    version = Version(tag.rpartition("/")[2].removeprefix("v"))
                    # An annotated tag is listed twice; the second line names its commit.
                    found.append((version, name.endswith("^{}"), tag, commit))
        if not found:
            raise SupplyError(
                f"No tag of {self._address} that is a version matches {pattern}",
                remedy="Correct follow.tags in nightly.toml.",
            )
        _, _, tag, commit = max(found)
        return tag, commit

    def _refs(self, pattern: str) -> dict[str, str]:
        """Ask a server which names it has; the server's answer is read with suspicion."""
        try:
            # In a directory of its own, whose growth is watched: others may work in the store.
            with files.scratch_directory(self._store) as folder:
                printed = transport.list_refs(
                    GitRepository(folder), "--end-of-options", self._address, pattern
                )
        except ToolError as fault:
            here = re.match(r"/|file://", self._address)
            first = "Correct the path" if here else "Check the network"
            raise SupplyError(
                f"git cannot list the commits of {self._address}: {program.reason(fault)}",
                remedy=f"{first}, or name a mirror in the host file: [mirrors].",
                evidence=fault.evidence,
            ) from fault
        pairs = (line.split("\t", 1) for line in printed.splitlines() if "\t" in line)
        # A name with control characters could rewrite the user's terminal.
        return {
            name: commit
            for commit, name in pairs
            if COMMIT.fullmatch(commit) and name.isprintable()
        }

    def texts(self, commit: str, paths: Sequence[str]) -> dict[str, str]:
        """Return some files of a commit by path, those that it has; empty if none is given.

        Only these files are transferred, and the list of all files.
        """
        local = Origin.of(self._address).local
        scratch = GitRepository(self._store / "looking.git")
        try:
            if local and local.is_dir():
                return GitRepository(local).texts_at(commit, paths)
            self._fetch_texts(scratch.make(), commit, paths)
            return scratch.texts_at(commit, paths)
        except (ToolError, SupplyError):
            # A server may have no filters, or no network; whoever asks has to do without.
            return {}
        finally:
            files.remove(scratch.path)

    def _fetch_texts(self, into: GitRepository, commit: str, paths: Sequence[str]) -> None:
        transport.fetch(into, "--depth=1", "--filter=blob:none", self._address, commit)
        listed = into.run("ls-tree", commit, "--", *paths)
        if ids := re.findall(r"(?m)^100\d+ blob ([0-9a-f]{40})\t", listed):
            transport.fetch(into, "--filter=blob:none", self._address, *ids)

    def commits(self, before: str, now: str) -> list[RemoteCommit]:
        """Return the commits after `before` up to `now`, newest first.

        Only commits are transferred, no files. Returns nothing if `before` is too far back, or is
        not an ancestor, as after a rewritten branch.
        """
        history = GitRepository(self._store / "history.git")
        try:
            extent = (f"--depth={DEPTH}", "--filter=tree:0")
            transport.fetch(history.make(), *extent, self._address, now)
            history.run("merge-base", "--is-ancestor", before, now)
            options = (f"--max-count={DEPTH}", "--format=%H%x09%an%x09%s")
            printed = history.run("log", *options, f"{before}..{now}")
        except (ToolError, SupplyError):
            return []
        return [RemoteCommit(*line.split("\t", 2)) for line in printed.split("\n") if line]


def named_commit(text: str) -> tuple[str, str]:
    """Take ``v1.12.0@COMMIT`` apart; the commit is empty where none is named.

    A mirror may have the history and not the tags. Raises RecipeError unless all 40 digits are
    there.
    """
    name, at, commit = text.partition("@")
    if at and not COMMIT.fullmatch(commit):
        raise RecipeError(
            f"{commit!r} is not the 40 digits of a commit",
            remedy=f"Write {name or 'v1.12.0'}@COMMIT with all of them.",
        )
    return name, commit


def _rank(name: str) -> tuple[Rank, str, str]:
    version = ExactRelease.parse(name)
    return version.rank, version.fork, name
