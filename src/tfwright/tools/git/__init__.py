"""git: how it is run, what its repositories hold, and the tree that is checked out of them.

Everything runs as a Command, so that `invoke plan` can show what changes a repository, with an
environment that knows neither the user's configuration nor the network.

A tree has its repository next to it, not inside: ``.git`` is a file. TensorFlow's gen_git_source.py
takes that for an export, writes "unknown" as the version of git, and runs no git during the build.
"""

import hashlib
import os
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from tfwright.errors import (
    Evidence,
    HostError,
    RecipeError,
    SupplyError,
    TfwrightError,
    ToolError,
    invoke,
)
from tfwright.tools import disk, files
from tfwright.tools.process import environment, pipes
from tfwright.tools.process.command import Command
from tfwright.tools.process.runner import TAIL_LINES, UMASK

CONFIG = Path(__file__).with_name("gitconfig")
PROTOCOLS = "https:ssh:file"
"""The transports that run no program that a url names."""
PASSED_ON = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
)
"""The caller's variables that a network command needs to get out, and to trust whom it reaches."""
REGULAR = {0o100644, 0o100755}
"""Modes of files that are neither links nor repositories of their own."""
LINK = 0o120000
LARGEST_LISTING = 64 * 2**20
"""Bytes that git takes to list the files of a commit; TensorFlow 2.20 takes four million."""
LARGEST_TEXTS = 256 * 2**20
"""Bytes of the texts that are read at once; all rules of a TensorFlow have less than five
million."""
OVERRIDING = {
    # Nothing that a repository names is run.
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "remote.origin.uploadpack": "git-upload-pack",
    # A changed file is seen by its time of change, and its bytes are compared as they are.
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
}
"""Settings that win over those of a repository, which lies where others may have edited it."""
REPAIR = f"Run 'invoke vault --verify --repair', then '{invoke('fetch')}' with a network."
"""What helps where objects of a repository of ours are damaged."""
_DAMAGED = re.compile(
    r"hash mismatch|is corrupt|is empty|unable to (read|unpack)|bad (object|tree|signature)"
)
"""How git says that."""
PLAIN = "* -text -ident -filter !eol !working-tree-encoding\n"
"""What overrides a commit's own .gitattributes, with which git would check out other bytes."""
OLDEST = (2, 32)
"""The first git that can be kept from the user's configuration, by GIT_CONFIG_GLOBAL."""


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


def command(
    repository: Path,
    *arguments: str,
    tree: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Command:
    """Return a git command on a repository; git must not search for one."""
    place = (f"--git-dir={repository}", *((f"--work-tree={tree}",) if tree else ()))
    return Command(
        ("git", *place, *arguments),
        tree or repository,
        environment.clean(repository, extra={**_settled(), **(env or {})}),
        here=True,
        # Without `network()` it never waits for a server.
        brief=env is None,
    )


def network() -> dict[str, str]:
    """Return the variables of a command that may use the network; no other can reach it."""
    caller = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**caller, "GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}


def _settled() -> dict[str, str]:
    overriding = {"GIT_CONFIG_COUNT": str(len(OVERRIDING))}
    for number, (name, value) in enumerate(OVERRIDING.items()):
        overriding[f"GIT_CONFIG_KEY_{number}"] = name
        overriding[f"GIT_CONFIG_VALUE_{number}"] = value
    return {
        **overriding,
        # No transport at all: only commands with `network()` reach a server.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_CONFIG_GLOBAL": str(CONFIG),
        "GIT_CONFIG_NOSYSTEM": "1",
        # git would fetch what a partial mirror lacks in the middle of any command.
        "GIT_NO_LAZY_FETCH": "1",
        # A replaced object has the content of another under the pinned id.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run(command: Command, most: int = pipes.LARGEST_OUTPUT) -> str:
    """Run git to its end and return what it printed.

    Raise ToolError with what it complained about, also if it prints more than `most` bytes.
    """
    ended = collect(command, most=most)
    return ended.printed.decode("utf-8", "surrogateescape")


def collect(
    command: Command,
    given: IO[Any] | None = None,
    into: IO[bytes] | None = None,
    most: int = pipes.LARGEST_OUTPUT,
) -> pipes.Collected:
    """Run git to its end, with `given` for its input and `into` for its output; raise as `run`."""
    try:
        ended = pipes.collect(command, given, into, most)
    except OSError as fault:
        raise unusable(fault) from fault
    if ended.cut:
        raise SupplyError(
            f"git printed more than {most:,} bytes, and was ended",
            remedy="Do not use this repository: no source has so many files, or such large ones.",
            evidence=Evidence(command=command.argv),
        )
    if ended.status != 0:
        raise failure(command, ended.status, ended.complaint.splitlines())
    return ended


@contextmanager
def input_of(lines: Iterable[str]) -> Iterator[IO[bytes]]:
    """Open a file with these lines, as the input of `collect`."""
    # A file and no pipe: git reads it at its own pace while its output is read here.
    with tempfile.TemporaryFile() as given:
        for line in lines:
            # The names of files need not be UTF-8.
            given.write(f"{line}\n".encode("utf-8", "surrogateescape"))
        given.seek(0)
        yield given


def unusable(fault: OSError) -> HostError:
    """Return the error for a git that does not start."""
    return HostError(
        f"git cannot be run: {fault.strerror}", remedy=f"Install git {_said(OLDEST)} or newer."
    )


def failure(command: Command, status: int, complaint: Sequence[str]) -> TfwrightError:
    """Return the error for a git that failed, with the last of what it said."""
    evidence = Evidence(command=command.argv, status=status, lines=tuple(complaint[-TAIL_LINES:]))
    no_room = any("No space left on device" in line for line in complaint)
    # git's checkout does not say why it could not write.
    if no_room or disk.is_full(command.cwd):
        return disk.full("git could not write", evidence)
    faults = [line for line in complaint if line.startswith(("fatal:", "error:"))]
    said = faults[0] if faults else f"exit status {status}"
    remedy = "Read what git said; the next build starts this stage again."
    return ToolError(
        f"git failed: {said}", remedy=REPAIR if _DAMAGED.search(said) else remedy, evidence=evidence
    )


def insist_on_version(repository: Path) -> None:
    """Raise HostError if this host's git is too old."""
    found = re.search(r"(\d+)\.(\d+)", run(command(repository, "version")))
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise HostError(
            f"git {found[0]} is too old: {_said(OLDEST)} or newer is needed",
            remedy=f"Install git {_said(OLDEST)} or newer.",
        )


def _said(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def is_repository(path: Path) -> bool:
    """Say whether a directory is a repository."""
    return path.is_dir() and kind(path, "HEAD") is not None


def kind(repository: Path, name: str) -> str | None:
    """Return what an id names, such as ``commit`` or ``tag``.

    None if the repository does not have it.
    """
    try:
        return run(command(repository, "cat-file", "-t", name)).strip()
    except ToolError:
        return None


def is_ancestor(repository: Path, older: str, newer: str) -> bool | None:
    """Say whether a commit is in the history of another one.

    None if that cannot be known: the repository lacks one of them, or the history between them.
    """
    if kind(repository, older) != "commit" or kind(repository, newer) != "commit":
        return None
    try:
        run(command(repository, "merge-base", "--is-ancestor", older, newer))
    except ToolError:
        # Where history is cut off, git cannot see what came before.
        cut = run(command(repository, "rev-parse", "--is-shallow-repository")).strip()
        return None if cut == "true" else False
    return True


def entries(repository: Path, commit: str) -> list[TreeEntry]:
    """Return the files of a commit or tree, and the places of repositories in it (submodules).

    Raises SupplyError for more than any source has: a few trees that repeat each other can have
    any number of files.
    """
    listing = command(repository, "ls-tree", "-r", "-z", "--full-tree", commit)
    listed = run(listing, LARGEST_LISTING)
    return list(map(_entry, listed.split("\0")[:-1]))


def _entry(line: str) -> TreeEntry:
    # "100644 blob <id>", a tab and the path.
    fields, _, path = line.partition("\t")
    mode, _, blob = fields.split()
    return TreeEntry(path, int(mode, 8), blob)


def missing(repository: Path, commit: str) -> set[str]:
    """Return the ids of what a commit has and a repository lacks.

    What it borrows from others it has.
    """
    listed = run(
        command(repository, "rev-list", "--objects", "--no-walk", "--missing=print", commit)
    )
    return {line[1:] for line in listed.splitlines() if line.startswith("?")}


def size(repository: Path, commit: str) -> int:
    """Return the bytes of all files of a commit or tree, as far as a repository has them.

    A file that is there twice counts twice. Raises SupplyError as `entries` does.
    """
    counts = Counter(entry.blob for entry in entries(repository, commit))
    with input_of(counts) as given:
        form = "--batch-check=%(objectname) %(objectsize)"
        said = collect(command(repository, "cat-file", form), given).printed
    sizes = _sizes(said.decode())
    return sum(counts[name] * size for name, size in sizes)


def _sizes(printed: str) -> Iterator[tuple[str, int]]:
    """Yield the objects that a repository has, with their bytes."""
    for line in printed.splitlines():
        name, _, size = line.partition(" ")
        # "<name> missing" for what a partial repository does not have.
        if size.isdigit():
            yield name, int(size)


def text(repository: Path, name: str) -> str:
    """Return the content of a file, named by its id or as ``TREE:PATH``; empty if there is none."""
    return blobs(repository, [name]).get(name, "")


def blobs(repository: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of files, by id or as ``TREE:PATH``; what is not a file is left out.

    One process of git reads them all: for each file one of its own, a tree's two hundred files of
    rules took longer than everything that is done with them.
    """
    # git reads a name to the end of its line, so that one with a line break names nothing.
    asked = [name for name in dict.fromkeys(names) if "\n" not in name]
    try:
        return _blobs(repository, asked)
    except ToolError:
        if len(asked) <= 1:
            return {}
    # A git of before 2.44 gives up at the first file that a partial mirror does not have.
    found: dict[str, str] = {}
    for name in asked:
        found |= blobs(repository, [name])
    return found


def _blobs(repository: Path, asked: Sequence[str]) -> dict[str, str]:
    with input_of(asked) as given:
        answer = collect(
            command(repository, "cat-file", "--batch"), given, most=LARGEST_TEXTS
        ).printed
    found, place = {}, 0
    for name in asked:
        end = answer.index(b"\n", place)
        # "<id> blob <size>", or "<name> missing".
        fields, place = answer[place:end].rsplit(b" ", 2), end + 1
        if not fields[-1].isdigit():
            continue
        until = place + int(fields[-1])
        if fields[1] == b"blob":
            found[name] = answer[place:until].decode("utf-8", "surrogateescape")
        place = until + 1
    return found


def texts_at(repository: Path, commit: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the texts of some files of a commit by path, those that it has."""
    found = blobs(repository, [f"{commit}:{path}" for path in paths])
    return {name.partition(":")[2]: text for name, text in found.items()}


def named(repository: Path, tree: str, wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the ids of those plain files of a commit or tree whose path is wanted, by path."""
    return {
        entry.path: entry.blob
        for entry in entries(repository, tree)
        if entry.mode in REGULAR and wanted(entry.path)
    }


def texts(repository: Path, tree: str, wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the texts of those plain files of a commit or tree whose path is wanted, by path."""
    names = named(repository, tree, wanted)
    contents = blobs(repository, names.values())
    absent = [path for path, name in names.items() if name not in contents]
    if absent:
        raise ToolError(
            f"{repository} lacks {len(absent)} files of {tree[:12]}: {absent[0]}",
            remedy=REPAIR,
            evidence=Evidence(where=str(repository), lines=absent),
        )
    return {path: contents[name] for path, name in names.items()}


def own_objects(repository: Path) -> set[str]:
    """Return the ids of the objects that a repository holds by itself and that are not damaged.

    git trusts what it reads from its own disk, and does not hash it again. Packed objects, and
    those of the mirror that a tree's repository borrows from, do not count.
    """
    return {name for name, is_sound in _loose(repository) if is_sound}


def damaged_objects(repository: Path) -> list[str]:
    """Return the ids of the objects that `own_objects` leaves out, in order."""
    return sorted(name for name, is_sound in _loose(repository) if not is_sound)


def _loose(repository: Path) -> Iterator[tuple[str, bool]]:
    """Yield the id of each object that is a file of its own, and whether it has its bytes."""
    for path in (repository / "objects").glob("[0-9a-f][0-9a-f]/*"):
        name = path.parent.name + path.name
        yield name, _is_sound(path, name)


def _is_sound(path: Path, name: str) -> bool:
    """Say whether the file of an object has the content that its name promises."""
    try:
        content = zlib.decompress(path.read_bytes())
    except (OSError, zlib.error):
        return False
    return hashlib.sha1(content).hexdigest() == name  # noqa: S324 git's own


def replace(tree: Path, path: str, text: str) -> None:
    """Replace the content of a plain file in the index of a tree."""
    mode = run(inside(tree, "ls-files", "--stage", "--", f":(literal){path}")).partition(" ")[0]
    content = f"{mode},{_stored(tree, text)},{path}"
    run(inside(tree, "update-index", "--cacheinfo", content))


def _stored(tree: Path, text: str) -> str:
    """Put a text into the repository of a tree; return its id."""
    with tempfile.NamedTemporaryFile() as content:
        content.write(text.encode("utf-8", "surrogateescape"))
        content.flush()
        options = ("-w", "--no-filters", "--", content.name)
        return run(inside(tree, "hash-object", *options)).strip()


def commit_named(repository: Path, name: str) -> str:
    """Return the commit that a tag names; empty if it names none, or the repository lacks it."""
    asked = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    try:
        return run(command(repository, *asked)).strip()
    except ToolError:
        return ""


def tree_of(repository: Path, commit: str) -> str:
    """Return the id of a commit's tree."""
    return run(command(repository, "rev-parse", "--verify", f"{commit}^{{tree}}")).strip()


def epoch(repository: Path, commit: str) -> int:
    """Return when a commit was made, in seconds. Raises RecipeError if it does not say."""
    shown = ("show", "--no-patch", "--format=%ct", commit)
    said = run(command(repository, *shown)).strip()
    # git keeps whatever somebody wrote there: no number, or one of thousands of digits.
    if not re.fullmatch(r"[0-9]{1,11}", said):
        raise RecipeError(
            f"{commit[:12]} has no date that a calendar knows",
            remedy="Pin another commit: the date goes into the wheel.",
        )
    return int(said)


def left_out(path: str, exclude: Collection[str]) -> bool:
    """Say whether a path is one of those left out, or lies beneath one."""
    return any(path == each or path.startswith(f"{each}/") for each in exclude)


def repository_of(tree: Path) -> Path:
    """Return the repository of a tree: its own, which borrows the mirror's objects."""
    return tree.with_name(f"{tree.name}.git")


def is_tree(tree: Path) -> bool:
    """Say whether a tree and its repository are there."""
    return (tree / ".git").is_file() and (repository_of(tree) / "index").is_file()


def inside(tree: Path, *arguments: str) -> Command:
    """Return a git command on a tree and its repository."""
    return command(repository_of(tree), *arguments, tree=tree)


def preparation(tree: Path, commit: str) -> tuple[Command, ...]:
    """Return the commands that put a commit into the index of a tree without files."""
    return (
        inside(tree, "init", "--quiet"),
        inside(tree, "update-ref", "--no-deref", "HEAD", commit),
        inside(tree, "read-tree", commit),
    )


def prepare(tree: Path, mirror: Path, commit: str, exclude: Sequence[str]) -> None:
    """Start a tree from nothing: the commit in its index, no file checked out.

    What becomes of the tree is decided in the index, so that a patch or asset that does not fit
    leaves no half-changed files, and none can write past the tree.
    """
    repository = repository_of(tree)
    files.remove(tree)
    files.remove(repository)
    tree.mkdir(parents=True)
    tree.chmod(0o777 & ~UMASK)
    files.write(repository / "objects/info/alternates", f"{mirror / 'objects'}\n")
    # The mirror has no parents of the commit; git must not look for them.
    files.write(repository / "shallow", f"{commit}\n")
    files.write(repository / "info/attributes", PLAIN)
    for each in preparation(tree, commit):
        run(each)
    if exclude:
        left_out = "".join(f"!/{_literal(path)}\n" for path in exclude)
        files.write(repository / "info/sparse-checkout", f"/*\n{left_out}")
        run(inside(tree, "config", "core.sparseCheckout", "true"))


def discard(tree: Path) -> None:
    """Remove a tree and its repository."""
    files.remove(tree)
    files.remove(repository_of(tree))


def copy(tree: Path, to: Path) -> None:
    """Make a second tree with the same index, no file checked out."""
    discard(to)
    to.mkdir(parents=True)
    to.chmod(0o777 & ~UMASK)
    shutil.copytree(repository_of(tree), repository_of(to))
    # A repository holds the path of its tree.
    run(inside(to, "config", "core.worktree", str(to)))


def put(tree: Path, content: str) -> None:
    """Put a content that was made before into the index of a tree, whatever that holds."""
    # A git that was killed leaves its lock, and no other works on a tree of ours.
    for leftover in ("index", "index.lock"):
        (repository_of(tree) / leftover).unlink(missing_ok=True)
    run(inside(tree, "read-tree", content))


def _literal(path: str) -> str:
    """Write a path so that git's patterns mean it literally."""
    return re.sub(r"([*?\[\\ ])", r"\\\1", path)


def add(tree: Path, path: str, source: Path) -> None:
    """Put a file into the index of a tree, under a path where there is none."""
    try:
        taken = run(inside(tree, "ls-files", "--", f":(literal){path}"))
        name = run(inside(tree, "hash-object", "-w", "--no-filters", "--", str(source))).strip()
        if not taken:
            run(inside(tree, "update-index", "--add", "--cacheinfo", f"100644,{name},{path}"))
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


def content(tree: Path) -> str:
    """Return the id of what the index of a tree holds."""
    return run(inside(tree, "write-tree", "--missing-ok")).strip()


def changes(tree: Path, before: str, after: str) -> dict[str, Change]:
    """Return what differs between two contents of a tree, by path."""
    asked = inside(tree, "diff-tree", "-r", "--raw", "-z", "--no-renames", before, after)
    said = run(asked).split("\0")[:-1]
    # Pairs of ":100644 100755 <old> <new> M" and the path.
    pairs = zip(said[::2], said[1::2], strict=True)
    return {path: _change(*fields.split()) for fields, path in pairs}


def _change(_: str, mode: str, old: str, new: str, __: str) -> Change:
    return Change(int(mode, 8), old, new)


def checking_out(tree: Path, content: str) -> Command:
    """Return the command that writes the files of a content."""
    return inside(tree, "read-tree", "--reset", "-u", content)


def check_out(tree: Path, content: str) -> None:
    """Write the files of a content into a tree that has none yet, and verify them.

    Raises SupplyError if git's objects are damaged, ToolError if the disk changed a file.
    """
    from tfwright.tools.git import soundness

    files.write(tree / ".git", f"gitdir: {repository_of(tree)}\n")
    run(checking_out(tree, content))
    soundness.insist(repository_of(tree), content)
    soundness.insist_on_files(tree, content)
    wrong = changed(tree)
    if wrong:
        raise ToolError(
            f"{wrong[0]} was not checked out as it is in the commit",
            remedy="Set build_out to a disk that tells upper from lower case, and has links.",
        )


def changed(tree: Path) -> list[str]:
    """Return the tracked files of a tree that changed since they were checked out.

    Only touched ones are read.
    """
    options = ("--name-only", "-z", "--no-ext-diff", "--ignore-submodules")
    return run(inside(tree, "diff", *options)).split("\0")[:-1]


def staged(tree: Path, content: str) -> list[str]:
    """Return the files of which the index of a tree has another state than the content.

    As after ``git add`` or ``git commit`` in it, which hide a change from `changed`.
    """
    options = ("--cached", "--name-only", "-z", "--no-renames")
    return run(inside(tree, "diff-index", *options, content)).split("\0")[:-1]


def unwatched(tree: Path, exclude: Collection[str] = ()) -> list[str]:
    """Return the files of a tree at which git does not look, except those that are left out.

    ``git update-index --assume-unchanged`` and ``--skip-worktree`` hide a change from `changed`.
    """
    listed = run(inside(tree, "ls-files", "-v", "-z")).split("\0")[:-1]
    # "H path": a small letter for the first flag, S for the second.
    flagged = (line[2:] for line in listed if not line.startswith("H"))
    return [path for path in flagged if not left_out(path, exclude)]


def strangers(tree: Path) -> list[str]:
    """Return the files of a tree that are not of its commit, or not as there.

    Without Bazel's links.
    """
    options = ("--others", "--modified", "-z", "--exclude=/bazel-*")
    listed = run(inside(tree, "ls-files", *options)).split("\0")[:-1]
    return sorted(set(listed))


def is_plain(tree: Path) -> bool:
    """Say whether git takes every file of a tree as it is, whatever its attributes say."""
    attributes = repository_of(tree) / "info/attributes"
    return attributes.is_file() and files.text(attributes) == PLAIN


def restore(tree: Path) -> None:
    """Put a tree back to what was checked out, and remove all other files but Bazel's links."""
    run(inside(tree, "checkout", "--force", "--", "."))
    run(inside(tree, "clean", "--quiet", "-ffdx", "--exclude=/bazel-*"))


AT_ONCE = 500
"""Paths on one command line."""


def difference(tree: Path, context: int, but: Sequence[str] = ()) -> str:
    """Return the diff from the index of a tree to its files, new files included.

    Without git's ids of the contents, which say nothing to people and differ from clone to clone.
    """
    excluded = [f":(exclude,literal){path}" for path in but]
    # A new file counts from the moment that git knows that it is meant to be added. Only new files
    # are named: "git add ." would put deletions into the index, where no difference shows them.
    listing = ("ls-files", "--others", "--exclude-standard", "-z", "--", ".", *excluded)
    new = [path for path in run(inside(tree, *listing)).split("\0") if path]
    options = (f"--unified={context}", "--no-renames", "--no-color", "--no-ext-diff")
    try:
        _for_all(tree, ("add", "--intent-to-add"), new)
        diff = run(inside(tree, "diff", *options, "--", ".", *excluded))
    finally:
        # A new file that is moved away after this was never deleted.
        _for_all(tree, ("rm", "--cached", "--quiet", "--ignore-unmatch"), new)
    # The lines of a hunk begin with a sign, so that only headers match.
    return re.sub(r"(?m)^index [0-9a-f]+\.\.[0-9a-f]+(?: \d+)?\n", "", diff)


def _for_all(tree: Path, command: Sequence[str], paths: Sequence[str]) -> None:
    """Run a command of git on files of a tree, however many they are."""
    for start in range(0, len(paths), AT_ONCE):
        names = [f":(literal){path}" for path in paths[start : start + AT_ONCE]]
        run(inside(tree, *command, "--", *names))


def apply_what_fits(tree: Path, patch: Path) -> None:
    """Apply a patch to the files of a tree; what does not fit is left next to them as FILE.rej."""
    with suppress(ToolError):  # git exits with 1 where it left a part out; the tree shows which
        run(inside(tree, "apply", "--reject", "--whitespace=nowarn", str(patch)))
