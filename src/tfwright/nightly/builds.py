"""A nightly build as a document, the immutable directory that holds it, and what it was made from.

A build directory is complete or absent: it is filled under ``work``, its ``build.json`` is written
last, and one rename puts it below ``site/builds``. Nothing changes in it after that, except that a
person may add a file ``keep``. Its recipe, patches and lock file are kept in it: `invoke bisect`
needs both ends exactly as they were, and a build that failed has no wheel whose record holds them.
"""

import datetime as dt
import hashlib
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tfwright.documents.nightly import Target
from tfwright.documents.recipe import Recipe
from tfwright.printable import printable_lines
from tfwright.tools import files, json_text, redaction
from tfwright.wheel.seal import build_record

DOCUMENT = "build.json"
WORK = "work"
"""The folder of unfinished builds; whatever lies in it at a start was cut off."""
KEEP = "keep"
"""A file of this name in a build's directory protects the build from retention."""

INPUTS, RECIPE, LOCK, PATCHES = "inputs", "recipe.json", "recipe.lock", "patches"
"""The folder of what a build was made from, and the names in it."""
PRIVATE = "private"
"""The folder, next to the site, of inputs that strangers may not read as they are."""

Result = Literal["built", "failed", "blocked"]
Verdict = Literal["good", "unchanged", "untested", "smoke failed", "failed", "blocked", "skipped"]
"""What one night gave for one target."""


class _Frozen(BaseModel):
    """A model whose texts come out of builds: no control character gets into it."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _printable(cls, values: object) -> object:
        return _each_text(values, printable_lines)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 any JSON
    """Return a value with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _each_text(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_text(inner, change) for inner in value]
    return value


class SmokeLine(_Frozen):
    """What one smoke program gave."""

    program: str
    status: str
    """``passed``, ``failed`` or ``skipped``."""
    detail: str = ""
    seconds: float = 0.0


OwnFile = Annotated[str, Field(pattern=r"^(logs/)?[^/\x00]*$")]
"""A file's path in the build's directory: a page shows what it holds, and a worker names it."""


class Breakage(_Frozen):
    """What broke: the one line, its cause and what helps."""

    stage: str
    line: str
    """The line of the log that says it, or the error message."""
    cause: str = ""
    remedy: str = ""
    log: OwnFile = ""
    """The log that holds the line."""
    number: int = 0
    """The line's number in that log; 0 where it is not known."""

    @property
    def why(self) -> str:
        """The cause, where that is more than the line."""
        return self.cause if self.cause != self.line else ""


def failure_digest(detail: str) -> str:
    """Return what stays the same from night to night while a target fails for one reason."""
    # Without numbers, paths and digests, which vary by night.
    plain = re.sub(r"/\S+|\b[0-9a-f]{7,}\b|\d+", "#", detail)
    return hashlib.sha256(f"failing\n{plain}".encode()).hexdigest()[:16]


class CommitLine(_Frozen):
    """A commit of the source between two builds."""

    commit: str
    subject: str
    author: str = ""


class NightlyBuild(_Frozen):
    """Everything that is known of one build."""

    id: str
    target: str
    recipe: str
    started: dt.datetime
    seconds: float = Field(ge=0, lt=1e9)
    result: Result
    version: str = ""
    wheel: str = ""
    """File name; empty without a wheel."""
    sha256: str = ""
    size: int = Field(0, ge=0, lt=2**63)
    commit: str = ""
    source: str = ""
    """The address of the repository that the commit is in."""
    fingerprint: dict[str, str] = {}
    """What decides the wheel: name of each part to its digest or its text."""
    changed: tuple[str, ...] = ()
    """In which parts it differs from the last good build."""
    commits: tuple[CommitLine, ...] = ()
    """Commits since the last good build, newest first."""
    against: str = ""
    """Identifier of that last good build."""
    broken: Breakage | None = None
    smoke: tuple[SmokeLine, ...] = ()
    sweep: dict[str, tuple[tuple[float, float], ...]] = {}
    """What the smoke program ``sweep`` measured: by device, rows of a matrix and GFLOP/s."""
    stages: dict[str, float] = {}
    """Seconds by stage."""
    needs: dict[str, str] = {}
    """``glibc``, ``cpu``, ``gpu``, ``cuda``, as ``invoke inspect`` read them."""
    sizes: dict[str, int] = {}
    """Bytes of the largest files in the wheel."""
    architectures: dict[str, int] = {}
    """Bytes of GPU code by architecture."""
    differences: tuple[str, ...] = ()
    """In what the wheel differs from the last good one."""
    logs: tuple[OwnFile, ...] = ()
    profile: OwnFile = ""
    """Bazel's profile."""
    host: dict[str, str] = {}
    worker: str = ""
    """The machine that built it; empty for the build host itself."""
    lost: tuple[str, ...] = ()
    """Machines that died while they built it."""
    unpublished: str = ""
    """Why the index refuses the wheel: most often its name is taken."""

    def redact(self) -> "NightlyBuild":
        """Return the build as strangers may read it."""
        # Not its names, which lead to files, nor what decides whether it is built again.
        names = "recipe source changed commits broken smoke differences host unpublished"
        texts = self.model_dump(include=set(names.split()))
        shown = _each_text(texts, redaction.redact_text)
        if self.broken and self.broken.log:
            shown["broken"]["log"] = self.broken.log
        return self.model_validate({**self.model_dump(), **shown})

    @property
    def smoke_failures(self) -> list[SmokeLine]:
        """The smoke programs that failed."""
        return [line for line in self.smoke if line.status == "failed"]

    @property
    def tested(self) -> Literal["passed", "smoke failed", "untested"]:
        """What the tests of the wheel gave, as the index shows it."""
        if self.smoke_failures:
            return "smoke failed"
        return "passed" if any(line.status != "skipped" for line in self.smoke) else "untested"

    @property
    def good(self) -> bool:
        """Whether it gave a wheel that failed no test."""
        return self.verdict in {"good", "untested"}

    @property
    def verdict(self) -> Verdict:
        """What it means for its target."""
        if self.result != "built":
            return self.result
        # Users cannot install such a wheel, however good it is.
        if self.unpublished:
            return "failed"
        tested = self.tested
        return "good" if tested == "passed" else tested

    @property
    def detail(self) -> str:
        """The one line that says what broke; empty if nothing did."""
        if self.unpublished:
            return self.unpublished
        if self.broken:
            return f"{self.broken.stage}: {self.broken.line}"
        return f"smoke: {self.smoke_failures[0].program}" if self.smoke_failures else ""


@dataclass(frozen=True)
class FollowedCommit:
    """What a followed branch or tag pattern names now."""

    commit: str
    name: str
    """The branch, or the tag."""


class BuildOrder(BaseModel):
    """An order for one build: the builder here gets it, a worker reads it as a document."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    """Of the protocol: docs/cluster.md."""
    id: str
    target: Target
    fingerprint: Mapping[str, str]
    started: dt.datetime
    followed: FollowedCommit | None = None
    """The commit and the name that the target follows, for a worker."""
    last_good: NightlyBuild | None = None
    reproduce: bool = True
    """Whether the night reproduces wheels; otherwise every build runs without the cache."""
    offline: bool = False
    """Whether the build host has sent all inputs, so that the worker asks no server."""
    worker: str = ""
    """What the build host calls the machine; empty by Slurm, which chooses one later."""
    last_wheel: str = ""
    """The last good wheel, to compare with: a path, or a name in the order's own folder."""
    again: bool = False
    """Whether that wheel is to be built again from nothing, and compared."""
    work: SkipJsonSchema[Path] = Field(Path(), exclude=True)
    """An empty directory that the builder fills; each machine has its own."""

    @property
    def known(self) -> dict[str, object]:
        """What is known of the build before it begins."""
        return {
            "id": self.id,
            "target": self.target.name,
            "recipe": self.target.recipe,
            "started": self.started,
            "fingerprint": dict(self.fingerprint),
            "against": self.last_good.id if self.last_good else "",
        }

    def outcome(self, **found: object) -> NightlyBuild:
        """Return the build that was ordered, with what was found of it.

        One that ended before its stages, or on no machine, is compared with the last good one too.
        """
        last = self.last_good.fingerprint if self.last_good else self.fingerprint
        changed = differing_parts(last, self.fingerprint)
        return NightlyBuild.model_validate({**self.known, "changed": changed, **found})


def differing_parts(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Name the parts of two fingerprints that differ."""
    # A dictionary keeps the order of the recipe's tables, which a set would lose.
    names = dict.fromkeys((*now, *before))
    return tuple(name for name in names if before.get(name) != now.get(name))


@dataclass(frozen=True)
class KeptInputs:
    """What one build was made from."""

    recipe: Recipe
    locked: Path | None = None
    """The lock file; None if the recipe had none."""


def identifier(started: dt.datetime, target: str, fingerprint: Mapping[str, str]) -> str:
    """Return a build's name: date, target, and a digest that no other build of the day has."""
    # The time of the start is part of it: the same inputs may be built twice on a day.
    short = json_text.digest([started, fingerprint])[:8]
    return f"{started:%Y-%m-%d}-{target}-{short}"


def remove_unfinished(work: Path, home: Path) -> None:
    """Remove unfinished builds; raise OSError if a finished one could not be moved below `home`.

    Better now than after hours: one of them may be a mount point.
    """
    files.remove(work)
    work.mkdir(parents=True)
    home.mkdir(parents=True, exist_ok=True)
    work.rename(home / ".work").rmdir()


def finish(work: Path, home: Path, build: NightlyBuild) -> None:
    """Complete a build's directory and put it in its place below `home`.

    Secrets are taken out of its files, but for the wheel and what is signed with it.
    """
    inputs = work / INPUTS
    for path in [path for path in work.rglob("*") if path.is_file()]:
        if inputs not in path.parents and not (build.wheel and path.name.startswith(build.wheel)):
            redaction.redact_file(path)
    # `invoke bisect` builds from them again, so that not a byte of them can change.
    if any(redaction.has_secrets(path) for path in inputs.rglob("*") if path.is_file()):
        private = home.parent.parent / PRIVATE / build.id
        files.remove(private)
        private.mkdir(parents=True, mode=0o700)
        inputs.rename(private / INPUTS)
    # A web server has to read what a build's tools may have kept to themselves.
    for path in (work, *work.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files.write(work / DOCUMENT, build.model_dump_json(indent=1))
    work.rename(home / build.id)
    # Without this, a power cut may undo the rename after the state has recorded the build.
    files.sync(home)


def read(folder: Path) -> NightlyBuild | None:
    """Return the document of a build's directory; None if there is none that can be read."""
    return json_text.load_or_none(folder / DOCUMENT, NightlyBuild)


def read_all(home: Path, known: Collection[str]) -> list[NightlyBuild]:
    """Return every complete build below a folder, oldest first, without the known ones."""
    present = {folder.name for folder in home.glob("*")}
    documents = {name: read(home / name) for name in present.difference(known)}
    # A copy under another name would count a build twice.
    found = [build for name, build in documents.items() if build and build.id == name]
    # Not by name: two builds of one day differ in a digest only.
    return sorted(found, key=lambda build: (build.started, build.id))


def keep_inputs(inputs: KeptInputs, build: Path) -> None:
    """Copy the inputs of a build into its directory."""
    folder = build / INPUTS
    source = inputs.recipe.source
    for name in source.named_files:
        target = folder / PATCHES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.file(name), target)
    content = build_record.recipe_content(inputs.recipe)
    files.write(folder / RECIPE, content.model_dump_json(indent=1))
    if inputs.locked and inputs.locked.is_file():
        shutil.copyfile(inputs.locked, folder / LOCK)


def read_inputs(build: Path) -> KeptInputs | None:
    """Return the inputs of a build; None if it has none, or none that this version can read."""
    folder = build / INPUTS
    if not folder.is_dir():
        folder = build.parents[2] / PRIVATE / build.name / INPUTS
    recipe = build_record.read_recipe(folder / RECIPE)
    if recipe is None:
        return None
    # Its own patches come first: those of the checkout may be others by now.
    own = recipe.changed(source=recipe.source.located(folder))
    return KeptInputs(own, files.path_or_none(folder / LOCK))
