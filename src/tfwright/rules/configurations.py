"""What a .bazelrc makes of the flags of a build."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

BAZELRCS = (".bazelrc", "tools/bazel.rc")
"""The files of a tree with its configurations of Bazel: the second one up to 1.12."""


def of_tree(tree: Path) -> str:
    """Return the .bazelrc of a tree on disk; empty if it has none."""
    path = tree / BAZELRCS[0]
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def in_force(bazelrc: str, flags: Sequence[str]) -> list[str]:
    """Return the flags of a build on Linux in their order, with those of its configurations."""
    lines = [line.split() for line in bazelrc.splitlines()]
    seen = set[str]()

    def of(config: str) -> Iterator[str]:
        for words in lines:
            if words and words[0] in {f"common{config}", f"build{config}"}:
                yield from expanded(words[1:])

    def expanded(words: Sequence[str]) -> Iterator[str]:
        for word in words:
            yield word
            name = word.removeprefix("--config=")
            # A configuration may lead back to itself.
            if name != word and name not in seen:
                seen.add(name)
                yield from of(f":{name}")

    always = list(of(""))
    # Lines such as build:rbe hold for a configuration that the user has to ask for. Those of the
    # platform hold by themselves in a tree that says so.
    if "--enable_platform_specific_config" in always:
        always += of(":linux")
    return [*always, *expanded(flags)]


def defined(bazelrc: str) -> set[str]:
    """Return the names that the lines of a bazelrc give a meaning as ``--config=NAME``."""
    return set(re.findall(r"(?m)^(?:build|common):(\S+)", bazelrc))
