"""What a TensorFlow tree downloads, as far as its rules say."""

import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfwright.tools.git.clones import Clone


BAZELS_PLACE = "@bazel//"
"""Where the files are that a Bazel brings along, as findings say it."""


@dataclass(frozen=True)
class Repository:
    """One file that a repository rule downloads.

    A rule with one file per platform gives several.
    """

    name: str
    """As other rules refer to it; empty if only a caller would tell."""
    rule: str
    file: str
    line: int
    urls: tuple[str, ...] = ()
    """For a rule that clones, the remote; for a container, its image."""
    sha256: str = ""
    """Empty if the rule has none: then nothing can be locked."""
    strip_prefix: str = ""
    form: str = ""
    """How the archive is packed, where the rule says it, as ``zip``: its ending then says
    nothing."""
    patches: tuple[str, ...] = ()
    """The patches that the rule applies after unpacking, as far as they can be read: by their paths
    in the tree, or in the archive whose file it is."""
    commit: str = ""
    """For rules that clone: the commit, or the tag, that they check out; for a container, its
    digest."""
    reached: bool = True
    """Whether WORKSPACE leads there; Bazel never sees a repository that nothing declares."""
    by_url: bool = False
    """Whether the rule names one file by ``url`` or ``urls``, so that it can name a ``sha256``."""

    @property
    def lockable(self) -> bool:
        """Say whether the rule pins the bytes that it downloads."""
        return bool(self.sha256)

    @property
    def pinned(self) -> bool:
        """Say whether a checksum or a whole commit id holds what the rule brings."""
        return self.lockable or self.clone is not None

    @property
    def of_tree(self) -> bool:
        """Say whether the tree itself declares it.

        What other repositories declare by a name of the tree's comes too late.
        """
        return not self.file.startswith("@")

    @property
    def of_bazel(self) -> bool:
        """Say whether Bazel itself declares it, and not the tree or what that leads to."""
        return self.file.startswith(BAZELS_PLACE)

    @property
    def clone(self) -> "Clone | None":
        """What the rule clones, if it pins a whole commit id: a tag may move."""
        # Every build imports this module, and few ask for this.
        from tfwright.tools.git.clones import Clone

        # A rule with a digest downloads an archive, even where it names a commit in addition.
        pinned = re.fullmatch(r"[0-9a-f]{40}", self.commit) and not self.sha256
        return Clone(self.urls[0], self.commit) if pinned and self.urls else None


@dataclass(frozen=True)
class Unreadable:
    """A place that declares a download which only running it would reveal."""

    file: str
    line: int
    why: str
    reached: bool = True
    """Whether WORKSPACE leads there."""
    name: str = ""
    """The repository that wants it, where only one does."""


@dataclass(frozen=True)
class Reference:
    """What leads into another repository: a call of a symbol of it, or a load of a file.

    Bazel reads a file that is loaded, whether or not anything in it is called.
    """

    archive: str
    """Name of that repository. Not all are archives: a rule of the tree may write one itself, as
    ``local_config_android``."""
    path: str
    """The file in it."""
    file: str
    """Where it is called or loaded."""
    line: int
    symbol: str = ""
    """What is called; empty for a load."""


@dataclass(frozen=True)
class Linked:
    """A repository that a rule makes of a folder of another one.

    TFRT makes ``rules_cuda`` so, which TensorFlow 2.6 loads.
    """

    name: str
    archive: str
    """Name of that other repository; empty for the tree itself."""
    folder: str
    """The folder in it."""


@dataclass(frozen=True)
class Listed:
    """A file in a dictionary, from which a rule takes one by version and platform."""

    table: str
    """The name of the dictionary."""
    file: str
    line: int
    version: str = ""
    platform: str = ""
    url: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Component:
    """The repository that a rule makes of a component that NVIDIA lists under another name."""

    name: str
    repository: str


@dataclass(frozen=True)
class Rules:
    """Everything that was found to be downloaded."""

    repositories: tuple[Repository, ...]
    unreadable: tuple[Unreadable, ...]
    references: tuple[Reference, ...] = ()
    linked: tuple[Linked, ...] = ()
    listed: tuple[Listed, ...] = ()
    components: tuple[Component, ...] = ()

    @property
    def calls(self) -> list[Reference]:
        """The calls, which `follow` reads once the files of their repositories are there."""
        return [reference for reference in self.references if reference.symbol]

    @property
    def loads(self) -> list[Reference]:
        """What Bazel reads before it makes any of the repositories.

        Without one of these files it makes none.
        """
        return [reference for reference in self.references if not reference.symbol]

    @cached_property
    def loaded(self) -> set[str]:
        """Return the names of the repositories that Bazel reads a file of."""
        return {load.archive for load in self.loads}

    def __add__(self, other: "Rules") -> "Rules":
        """Put two findings together."""
        return Rules(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(self))
        )
