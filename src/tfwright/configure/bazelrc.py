"""Files that Bazel reads its flags from: their names, compared, amended."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tfwright.documents.release import Release
from tfwright.rules.configurations import Setting, settings

FIRST_OWN_FILE = Release(1, 2)
"""Older releases have no .tf_configure.bazelrc; they make tools/bazel.rc."""
OWN_FILE = ".tf_configure.bazelrc"
OLD_FILE = "tools/bazel.rc"


def file_name(release: Release) -> str:
    """Return the path, in the tree, of the file that ./configure writes."""
    return OWN_FILE if release >= FIRST_OWN_FILE else OLD_FILE


def written_files(release: Release, *, own_file: bool) -> tuple[str, ...]:
    """Return the paths of all files that ./configure spreads the settings over.

    `own_file` says whether this version has a file of its own for them.
    """
    # 1.1 alone wrote both: tools/bazel.rc was on its way out, and 1.2 dropped it. Two of its
    # candidates already had the file that came with 1.2.
    if release == Release(1, 1):
        return OLD_FILE, OWN_FILE if own_file else ".bazelrc"
    return (file_name(release),)


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
    ours, theirs = set(settings(rendered)), set(settings(written))
    # As sets: 1.3 writes TF_CUDNN_VERSION twice, and 2.6 --config=cuda_clang.
    return BazelrcDifference(_sort_settings(ours - theirs), _sort_settings(theirs - ours))


def _sort_settings(found: Iterable[Setting]) -> tuple[Setting, ...]:
    return tuple(sorted(found, key=str))


# Lines are compared as settings and not as text: Bazel does not care how a flag is spelled.
def amend(text: str, adds: Iterable[str], omits: Iterable[str], values: Mapping[str, str]) -> str:
    """Return a bazelrc without some settings and with others added at its end.

    ``@NAME@`` in an added or omitted line stands for the value of NAME.
    """
    unwanted = set(settings("\n".join(fill_places(line, values) for line in omits)))
    kept = list[str]()
    for line in text.splitlines():
        here = set(settings(line))
        # A line may hold several settings, of which only some are unwanted.
        rest = [str(setting) for setting in _sort_settings(here - unwanted)]
        kept += rest if here & unwanted else [line]
    added = [fill_places(line, values) for line in adds]
    return "".join(f"{line}\n" for line in (*kept, *added))


def fill_places(line: str, values: Mapping[str, str]) -> str:
    """Put values in the place of ``@NAME@``; a name without a value stays."""
    return re.sub(r"@([A-Z][A-Z0-9_]*)@", lambda found: values.get(found[1], found[0]), line)
