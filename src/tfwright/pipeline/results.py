"""What the stages hand to each other, in the order of the pipeline."""

from collections.abc import Mapping
from pathlib import Path

from tfwright.documents.names import Commit
from tfwright.documents.recipe import FetchTable, SourceTable
from tfwright.documents.release import StatedRelease
from tfwright.errors import HostError
from tfwright.pipeline.stage import Artefact, Folder, Result
from tfwright.tools.cache.usage import CacheUse

NCCL_LIBRARY = "tensorflow/contrib/nccl/python/ops/_nccl_ops.so"
"""The library that the nccl stage puts in the place of Bazel's, by its path in the tree."""


class HostFacts(Result):
    """What of this host can change the wheel's bytes; free space, for example, cannot."""

    system: str
    machine: str
    glibc: str
    """Empty where there is none."""
    # Part of the key of every later stage: another Python is another build.
    interpreter: Path
    """The target Python, as found; builds use the venv made from it."""
    python: str
    """Its full version, ``3.6.15``."""
    compiler: str
    """First line of ``cc --version``; empty where there is none."""
    named: tuple[str, ...] = ()
    """The same of each compiler that the recipe or the host file names."""
    cuda: Path | None = None
    cudnn: Path | None = None
    toolkit: str = ""
    """The digest of the toolkit's files; empty for one that `invoke toolkit` did not make."""


class Programs(Result):
    """The programs that a build runs, for this host."""

    bazel: Artefact
    python: Path
    """Interpreter of a venv of the target Python with the recipe's requirements."""
    venv: Folder | None = None
    """That venv, whose packages take part in the build."""


class Copied(Result):
    """A commit that a repository rule clones, on this host."""

    remote: str
    """What the rule names."""
    commit: Commit
    repository: Path
    """The bare repository that Bazel's git is led to."""


class Unpinned(Result):
    """A download without a checksum, which only Bazel can bring."""

    name: str
    """Of the external repository."""
    urls: tuple[str, ...]
    lines: tuple[str, ...]
    """Where it is declared, and the table that pins it where one can."""
    by_table: bool
    """Whether a table of the recipe can pin it."""


class Inputs(Result):
    """Every downloaded input, verified; the stages after fetch need no network."""

    incidental = frozenset({"whole", "absent"})
    mirror: Path
    """The bare repository that holds the pinned commit."""
    commit: Commit
    epoch: int
    """When that commit was made, in seconds: the SOURCE_DATE_EPOCH of everything after it."""
    programs: Programs | None
    """None on a host of another system, where no more than the source can be had."""
    archives: tuple[Artefact, ...] = ()
    """What Bazel finds in the vault instead of downloading it."""
    absent: tuple[str, ...] = ()
    """The names of archives that no source gave; without a lock file, the build may want them."""
    clones: tuple[Copied, ...] = ()
    """What Bazel's git finds on this host instead of a server."""
    substitutes: Mapping[str, str] = {}
    """External repositories whose archive is replaced = the checksum that was pinned."""
    starts: tuple[str, ...] = ("WORKSPACE",)
    """The files that Bazel begins with, where substitutes are to be put into their rules."""
    unpinned: tuple[Unpinned, ...] = ()
    """What is left to Bazel, which may not want it."""
    packages: tuple[str, ...] = ()
    """What rules of the tree let pip install during the build, each pinned; the files are in the
    vault."""
    registry: Mapping[str, str] = {}
    """The files of registries that say which modules there are: checksums by path; the files are in
    the vault."""
    whole: bool = True
    """Whether the archives are among it, without which nothing can be compiled."""

    def used_substitutes(self, table: FetchTable) -> FetchTable:
        """Return what a recipe's table amounts to: a substitute may not have been needed."""
        return table.without(table.other_bytes.keys() - self.substitutes.keys())

    def used_source(self, source: SourceTable, fetch: FetchTable) -> SourceTable:
        """Return the source without the patches of substitutes that were not needed."""
        unneeded = fetch.patches - self.used_substitutes(fetch).patches
        return source.changed(patches=tuple(p for p in source.patches if p not in unneeded))

    @property
    def bazel(self) -> Artefact:
        """The pinned Bazel."""
        return self._require_programs().bazel

    @property
    def python(self) -> Path:
        """The target Python of this recipe."""
        return self._require_programs().python

    def _require_programs(self) -> Programs:
        if self.programs is None:
            raise HostError(
                "The programs of this recipe do not run on this host",
                remedy="Build on a host of the recipe's system, or stop earlier: --until source.",
            )
        return self.programs


class Tree(Result):
    """A clean checkout with assets and patches in place."""

    path: Path
    commit: Commit
    epoch: int
    release: StatedRelease
    content: str
    """Digest of everything in it: git's own tree id of the patched state."""


class Configured(Result):
    """A tree that ``./configure`` has been through."""

    incidental = frozenset({"others", "programs"})
    bazelrc: Artefact
    """The rendered file, which the build uses; what configure wrote agrees with it."""
    asked: tuple[str, ...]
    """The variables that configure asked for, in its order."""
    written: tuple[Artefact, ...] = ()
    """Every file of the tree that is not of its commit, or not as there. Another one could be taken
    into the wheel: rules collect what lies in a directory."""
    others: tuple[str, ...] = ()
    """The same of what is not a file: links to directories with where they lead, and directories
    that are repositories of their own."""
    programs: Folder
    """The directory that is first on the PATH of later stages: what appeared in it would be run."""
    exported: dict[str, str] = {}
    """What the build needs in its environment because no file carries it: the answers of TensorFlow
    0.10 to 1.1."""


class Built(Result):
    """What Bazel built."""

    incidental = frozenset({"actions", "cache"})
    target: str
    outputs: tuple[Artefact, ...]
    """The target's own output files."""
    runfiles: tuple[Folder, ...] = ()
    """What the outputs that are programs find when they run: it is what build_pip_package packs."""
    actions: int
    """Actions that Bazel counted in this run, cached ones included."""
    cache: CacheUse | None = None
    """What the build cache did; None where it was off."""


class NcclOps(Result):
    """The separately rebuilt NCCL op library."""

    library: Artefact | None
    """None where the recipe does not ask for it."""
    # Part of the build record: a user of the wheel must be able to learn it.
    stub: bool
    """True if no NCCL operation of the library can run: TensorFlow imports it, and that is all."""


class RawWheel(Result):
    """The wheel as TensorFlow's own packaging made it."""

    wheel: Artefact


class SealedWheel(Result):
    """The same wheel in canonical bytes."""

    wheel: Artefact


class Check(Result):
    """One thing that was tried with the wheel."""

    name: str
    passed: bool
    """False only of what this machine cannot try, such as a program for its GPU where there is
    none; what fails ends the stage."""
    detail: str


class Verdict(Result):
    """What the wheel was seen to do."""

    wheel: Artefact
    checks: tuple[Check, ...]


class Published(Result):
    """The wheel where users find it."""

    wheel: Artefact
    statement: Artefact
    """SLSA provenance in an in-toto statement, next to the wheel."""
    envelope: Artefact | None = None
    """The same, signed; None where the host file names no key."""
    metadata: Artefact | None = None
    """The wheel's METADATA next to it, for installers; None where the index refused the wheel."""
    listed: bool = False
    """Whether the index has it."""
