"""What a .bazelrc makes of the flags of a build."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

BAZELRCS = (".bazelrc", "tools/bazel.rc")
"""The files of a tree with its configurations of Bazel: the second one up to 1.12."""


def read_bazelrc(tree: Path) -> str:
    """Return the .bazelrc of a tree on disk; empty if it has none."""
    path = tree / BAZELRCS[0]
    return path.read_text("utf-8", "replace") if path.is_file() else ""


class Setting(NamedTuple):
    """One flag for one command: ``build:opt --copt=-O2`` has the config ``opt``."""

    command: str
    config: str
    flag: str

    def __str__(self) -> str:
        head = f"{self.command}:{self.config}" if self.config else self.command
        return f"{head} {_quote_flag(self.flag)}"


def _quote_flag(flag: str) -> str:
    """Spell a flag so that Bazel and `settings` read it back as one word."""
    # Bazel wants the value of -c as a word of its own.
    if re.match(r"-\w=", flag):
        return f"{flag[:2]} {_quote_flag(flag[3:])}"
    # Most flags need no quotes, and then look as ./configure writes them.
    return flag if re.fullmatch(r"[^\s\"'#\\]+", flag) else shlex.quote(flag)


def settings(text: str) -> list[Setting]:
    """Read a bazelrc. ``--define a=b`` is ``--define=a=b``; quotes do not count.

    A line whose quotes do not match is split at its blanks.
    """
    found = list[Setting]()
    # As Bazel does: a backslash at the end of a line joins it with the next one.
    for line in text.replace("\\\n", "").splitlines():
        # A blank line or a comment has no words, and then no command.
        command, *flags = _words(line) or [""]
        head, _, config = command.partition(":")
        found += [Setting(head, config, flag) for flag in flags]
    return found


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


def flags_in_force(bazelrc: str, flags: Sequence[str]) -> list[str]:
    """Return the flags of a build on Linux in their order, with those of its configurations."""
    lines = [line for line in settings(bazelrc) if line.command in {"common", "build"}]
    seen = set[str]()

    def of(config: str) -> Iterator[str]:
        for line in lines:
            if line.config == config:
                yield from expanded(line.flag)

    def expanded(flag: str) -> Iterator[str]:
        yield flag
        name = flag.removeprefix("--config=")
        # A configuration may lead back to itself.
        if name != flag and name not in seen:
            seen.add(name)
            yield from of(name)

    always = list(of(""))
    # Lines such as build:rbe hold for a configuration that the user has to ask for. Those of the
    # platform hold by themselves in a tree that says so.
    if "--enable_platform_specific_config" in always:
        always += of("linux")
    return [*always, *(one for flag in flags for one in expanded(flag))]


def defined_configs(bazelrc: str) -> set[str]:
    """Return the names that the lines of a bazelrc give a meaning as ``--config=NAME``."""
    return {line.config for line in settings(bazelrc) if line.command in {"common", "build"}} - {""}
