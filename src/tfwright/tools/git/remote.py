"""What a remote repository names, and the subjects of its commits, without its files."""

import fnmatch
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from tfwright.documents.release import ExactRelease
from tfwright.errors import RecipeError, SupplyError, ToolError
from tfwright.printable import shell_word
from tfwright.tools import files, git
from tfwright.tools.git import transport
from tfwright.tools.git.mirror import Origin

DEPTH = 500
"""Commits before the newest one that are asked for: some days of TensorFlow."""
COMMIT = re.compile(r"[0-9a-f]{40}")
SHOWN = 6
"""Names of a repository that an error lists."""


def head(store: Path, address: str, branch: str) -> str:
    """Return the newest commit of a branch.

    `store` is a directory that exists. Raises SupplyError if the server does not say.
    """
    # git also lists names that end so.
    commit = _refs(store, address, f"refs/heads/{branch}").get(f"refs/heads/{branch}")
    if commit is None:
        raise SupplyError(
            f"{address} has no branch {branch}", remedy="Correct follow.branch in nightly.toml."
        )
    return commit


def commit_of(store: Path, address: str, name: str) -> str:
    """Return the commit that a tag or, without such a tag, a branch leads to.

    Raises SupplyError if the repository has neither.
    """
    for kind in ("tags", "heads"):
        # The server lists the commit behind an annotated tag only if it is asked for all of them.
        names = _refs(store, address, f"refs/{kind}/{name}*")
        if found := _commit_behind(f"refs/{kind}/{name}", names):
            return found
    raise SupplyError(
        f"{address} has no tag and no branch {name}", remedy=_others(store, address, name)
    )


def _commit_behind(ref: str, listed: Mapping[str, str]) -> str | None:
    """Return the commit that a branch or a tag leads to; an annotated tag is an object itself."""
    return listed.get(f"{ref}^{{}}") or listed.get(ref)


def _others(store: Path, address: str, name: str) -> str:
    """Return a remedy with the names that a repository has of the same version."""
    version = re.search(r"\d+(?:\.\d+)*", name)
    listed = _refs(store, address, f"*{version[0]}*") if version else {}
    names = sorted(_names(listed))
    if not names:
        # A mirror often has the history and neither tags nor branches.
        return (
            f"'git ls-remote {shell_word(address)}' lists the names that it has. If it has the "
            "commit and no name for it, write VERSION@COMMIT."
        )
    more = " and others" if names[SHOWN:] else ""
    return f"Name one that it has: {', '.join(names[:SHOWN])}{more}."


def _names(refs: Iterable[str]) -> Iterator[str]:
    """Yield the names of tags and branches."""
    for ref in refs:
        kind, _, short = ref.removeprefix("refs/").partition("/")
        # Behind an annotated tag, ^{} stands for the commit that it leads to.
        if kind in {"tags", "heads"} and not short.endswith("^{}"):
            yield short


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


def release_of(store: Path, address: str, version: ExactRelease) -> tuple[str, str]:
    """Return the tag of an exact version, and its commit.

    Raises SupplyError if the repository has no such tag.
    """
    dashed = str(version)
    # TensorFlow spelled its tags in each of these ways: v1.8.0-rc1, v0.11.0rc0, 0.12.0-rc1.
    plain = dashed.replace("-", "")
    names = dict.fromkeys((f"v{dashed}", f"v{plain}", dashed, plain))
    for name in names:
        listed = _refs(store, address, f"refs/tags/{name}*")
        if found := _commit_behind(f"refs/tags/{name}", listed):
            return name, found
    raise SupplyError(
        f"{address} has no tag {next(iter(names))}",
        remedy=_others(store, address, str(version.line)),
    )


def texts(store: Path, address: str, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """Return some files of a commit by path, those that it has; empty if the server gives none.

    Only these files are transferred, and the list of all files.
    """
    local = Origin.of(address).local
    scratch = store / "looking.git"
    try:
        if local:
            return git.texts_at(local, commit, paths)
        git.run(git.command(store, "init", "--quiet", "--bare", str(scratch)))
        _bring_texts(scratch, address, commit, paths)
        return git.texts_at(scratch, commit, paths)
    except (ToolError, SupplyError):
        # A server may have no filters, or no network; whoever asks has to do without.
        return {}
    finally:
        files.remove(scratch)


def _bring_texts(repository: Path, address: str, commit: str, paths: Sequence[str]) -> None:
    options = ("--filter=blob:none", "--no-tags", "--no-write-fetch-head", "--quiet")
    env = git.network()
    command = ("fetch", "--depth=1", *options, address, commit)
    transport.fetch(git.command(repository, *command, env=env), repository)
    listed = git.run(git.command(repository, "ls-tree", commit, "--", *paths))
    ids = re.findall(r"(?m)^100\d+ blob ([0-9a-f]{40})\t", listed)
    if ids:
        some = git.command(repository, "fetch", *options, address, *ids, env=env)
        transport.fetch(some, repository)


def newest_tag(store: Path, address: str, pattern: str) -> tuple[str, str]:
    """Return the name and the commit of the newest version among the tags of a pattern."""
    names = _refs(store, address, "refs/tags/*")
    found = []
    for name, commit in names.items():
        tag = name.removeprefix("refs/tags/").removesuffix("^{}")
        version = _version(tag)
        if version and fnmatch.fnmatchcase(tag, pattern):
            # An annotated tag is listed twice; the second line names its commit.
            found.append((version, name.endswith("^{}"), tag, commit))
    if not found:
        raise SupplyError(
            f"No tag of {address} that is a version matches {pattern}",
            remedy="Correct follow.tags in nightly.toml.",
        )
    _, _, tag, commit = max(found)
    return tag, commit


def _version(tag: str) -> Version | None:
    """Return the version that a tag names: ``v2.20.0-rc1``; None if it names none."""
    try:
        return Version(tag.rpartition("/")[2].removeprefix("v"))
    # InvalidVersion is one; a number of more than 4,300 digits is another.
    except ValueError:
        return None


def _refs(store: Path, address: str, pattern: str) -> dict[str, str]:
    """Ask a server which names it has; the server's answer is read with suspicion."""
    arguments = ("ls-remote", "--end-of-options", address, pattern)
    try:
        # In a directory of its own, whose growth is watched: others may work in the store.
        with tempfile.TemporaryDirectory(dir=store) as folder:
            place = Path(folder)
            command = git.command(place, *arguments, env=git.network())
            printed = transport.ask(command, place)
    except ToolError as fault:
        raise SupplyError(
            f"{address} does not say which commits it has: {fault.what}",
            remedy="Check the network, or name a mirror in the host file: [mirrors].",
            evidence=fault.evidence,
        ) from fault
    found = {}
    for line in printed.splitlines():
        commit, _, name = line.partition("\t")
        # A name with control characters could rewrite the user's terminal.
        if COMMIT.fullmatch(commit) and name.isprintable():
            found[name] = commit
    return found


def subjects(store: Path, address: str, before: str, now: str) -> list[tuple[str, str]]:
    """Return the commits after `before` up to `now`, newest first, each with its subject.

    Only commits are transferred, no files. Returns nothing if `before` is too far back, or is not
    an ancestor, as after a rewritten branch.
    """
    history = store / "history.git"
    try:
        if not history.exists():
            git.run(git.command(store, "init", "--quiet", "--bare", str(history)))
        _bring(history, address, now)
        git.run(git.command(history, "merge-base", "--is-ancestor", before, now))
        options = (f"--max-count={DEPTH}", "--format=%H%x09%s")
        printed = git.run(git.command(history, "log", *options, f"{before}..{now}"))
    except (ToolError, SupplyError):
        return []
    pairs = (line.partition("\t") for line in printed.splitlines())
    return [(commit, subject) for commit, _, subject in pairs]


def _bring(history: Path, address: str, commit: str) -> None:
    options = (
        f"--depth={DEPTH}",
        "--filter=tree:0",
        "--no-tags",
        "--no-write-fetch-head",
        "--quiet",
    )
    asked = git.command(history, "fetch", *options, address, commit, env=git.network())
    transport.fetch(asked, history)
