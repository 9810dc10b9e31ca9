"""Files that Bazel reads its flags from: their names, parsed, compared."""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tfwright.documents.release import Release

FIRST_OWN_FILE = Release(1, 2)
"""Older releases have no .tf_configure.bazelrc; they make tools/bazel.rc."""
OWN_FILE = ".tf_configure.bazelrc"
OLD_FILE = "tools/bazel.rc"


def name(release: Release) -> str:
    """Return the path, in the tree, of the file that ./configure writes."""
    return OWN_FILE if release >= FIRST_OWN_FILE else OLD_FILE


def written_in(release: Release, *, own_file: bool) -> tuple[str, ...]:
    """Return the paths of all files that ./configure spreads the settings over.

    `own_file` says whether this version has a file of its own for them.
    """
    # 1.1 alone wrote both: tools/bazel.rc was on its way out, and 1.2 dropped it. Two of its
    # candidates already had the file that came with 1.2.
    if release == Release(1, 1):
        return OLD_FILE, OWN_FILE if own_file else ".bazelrc"
    return (name(release),)


class Setting(NamedTuple):
    """One flag for one command: ``build:opt --copt=-O2`` has the config ``opt``."""

    command: str
    config: str
    flag: str

    def __str__(self) -> str:
        head = f"{self.command}:{self.config}" if self.config else self.command
        return f"{head} {_quoted(self.flag)}"


def _quoted(flag: str) -> str:
    """Spell a flag so that Bazel and `parse` read it back as one word."""
    # Bazel wants the value of -c as a word of its own.
    if re.match(r"-\w=", flag):
        return f"{flag[:2]} {_quoted(flag[3:])}"
    # Most flags need no quotes, and then look as ./configure writes them.
    return flag if re.fullmatch(r"[^\s\"'#\\]+", flag) else shlex.quote(flag)


def parse(text: str) -> set[Setting]:
    """Read a bazelrc. ``--define a=b`` is ``--define=a=b``; quotes and order do not count.

    A line whose quotes do not match is split at its blanks.
    """
    settings = set[Setting]()
    # As Bazel does: a backslash at the end of a line joins it with the next one.
    for line in text.replace("\\\n", "").splitlines():
        # A blank line or a comment has no words, and then no command.
        command, *flags = _words(line) or [""]
        head, _, config = command.partition(":")
        settings |= {Setting(head, config, flag) for flag in flags}
    return settings


def _words(line: str) -> list[str]:
    """Split a line, with each flag and its value joined, if that is the next word."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        # ./configure does not escape answers, so that a quote in an answer may stay open.
        words = line.split()
    # Releases differ in how they write a flag, and Bazel reads both spellings alike.
    joined = words[:1]
    for word in words[1:]:
        flag = joined[-1] if len(joined) > 1 else ""
        # The value of these begins with a dash of its own: --linkopt -lasan.
        of_compiler = re.fullmatch(r"--(host_)?(c|cxx|conly|link)opt", flag)
        if flag and (of_compiler or not (word.startswith("-") or "=" in flag.partition(" ")[0])):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


class BazelrcDifference(NamedTuple):
    """The settings that only one of two bazelrc files has; false if the files agree."""

    only_rendered: tuple[Setting, ...]
    only_written: tuple[Setting, ...]

    def __bool__(self) -> bool:
        return bool(self.only_rendered or self.only_written)

    def lines(self) -> tuple[str, ...]:
        """Show both sides, one setting a line."""
        return (
            *(f"- rendered only: {setting}" for setting in self.only_rendered),
            *(f"+ written only:  {setting}" for setting in self.only_written),
        )


def compare(rendered: str, written: str) -> BazelrcDifference:
    """Say how two bazelrc files differ, as sets of settings."""
    ours = parse(rendered)
    theirs = parse(written)
    # As sets: 1.3 writes TF_CUDNN_VERSION twice, and 2.6 --config=cuda_clang.
    return BazelrcDifference(_sorted(ours - theirs), _sorted(theirs - ours))


def _sorted(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    return tuple(sorted(settings, key=str))


# Lines are compared as settings and not as text: Bazel does not care how a flag is spelled.
def amended(text: str, adds: Iterable[str], omits: Iterable[str], values: Mapping[str, str]) -> str:
    """Return a bazelrc without some settings and with others added at its end.

    ``@NAME@`` in an added or omitted line stands for the value of NAME.
    """
    unwanted = parse("\n".join(filled(line, values) for line in omits))
    kept = list[str]()
    for line in text.splitlines():
        settings = parse(line)
        # A line may hold several settings, of which only some are unwanted.
        rest = [str(setting) for setting in _sorted(settings - unwanted)]
        kept += rest if settings & unwanted else [line]
    added = [filled(line, values) for line in adds]
    return "".join(f"{line}\n" for line in (*kept, *added))


def filled(line: str, values: Mapping[str, str]) -> str:
    """Put values in the place of ``@NAME@``; a name without a value stays."""
    return re.sub(r"@([A-Z][A-Z0-9_]*)@", lambda found: values.get(found[1], found[0]), line)
