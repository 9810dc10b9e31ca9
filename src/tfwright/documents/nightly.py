"""``nightly.toml``: which recipes a build host builds at night, and what it does with the wheels.

It is part of the host's configuration, next to ``host.toml``. docs/build-host.md describes each
key.
"""

import os
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from tfwright.documents import host_file
from tfwright.documents.host_file import HostPath, PlainPath
from tfwright.documents.names import Flag, Line, Name, PythonVersion, WebAddress
from tfwright.documents.recipe import Capabilities
from tfwright.documents.toml import Table, load
from tfwright.errors import RecipeError
from tfwright.printable import did_you_mean


def _size_in_bytes(value: object) -> object:
    """Read a size such as ``"200 GiB"``; a plain number is bytes."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(
        r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(?:([KMGT])(i?)B|B?)", value.strip(), re.IGNORECASE
    )
    if not found:
        raise ValueError('must be a size: a number of bytes, or text such as "200 GiB"')
    # Disks are sold in powers of ten, memory is counted in powers of two; both are written.
    power = "KMGT".index(found[2].upper()) + 1 if found[2] else 0
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def _normalised_local(text: str) -> str:
    # packaging normalises the text (PEP 440), so that the index and the wheel spell it alike.
    try:
        local = Version(f"0+{text}").local
    except InvalidVersion:
        local = None
    if not local:
        raise ValueError('must be a local version such as "cu118.sm86": letters, digits and dots')
    return local


def _normalised_address(text: str) -> str:
    if not re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w.~%+-]*)*", text):
        raise ValueError("must be an http:// or https:// address without query or user name")
    return text.rstrip("/") + "/"


Size = Annotated[int, BeforeValidator(_size_in_bytes), Field(ge=0)]
LocalVersion = Annotated[str, AfterValidator(_normalised_local)]
"""What stands after the ``+`` of a version."""
MailAddress = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+-]+@[A-Za-z0-9_.-]+$")]


class FollowTable(Table):
    """What a recipe follows, instead of the commit that its file pins."""

    branch: Name | None = None
    """The newest commit of this branch is built."""
    tags: Annotated[str, StringConstraints(pattern=r"^[\w.*?\[\]/-]+$")] | None = None
    """The newest version among the tags that match this pattern is built: ``v2.*``."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.branch) == bool(self.tags):
            raise ValueError("give either branch or tags")
        return self


class NightlyRecipe(Table):
    """A recipe that this host builds."""

    name: Name
    """As ``invoke recipes`` lists it, or the path of a file that ends in ``.toml``."""
    local: LocalVersion | None = None
    """The local version of its wheels: ``cu118`` makes ``2.20.0+cu118``. Without it, none is added
    to a pinned recipe without axes."""
    follow: FollowTable | None = None
    """``{ branch = "master" }`` or ``{ tags = "v2.*" }``: build what that names now, instead of the
    pinned commit."""
    python: tuple[PythonVersion, ...] = ()
    """Build it for each of these Pythons instead of the recipe's own."""
    capabilities: tuple[Capabilities, ...] = ()
    """Build it for each of these sets of compute capabilities: ``["8.6", "8.9,9.0"]``."""
    smoke: Flag = True
    """Whether tfwright tests the wheel in a new venv; otherwise wheels stay ``untested``."""


class RetentionTable(Table):
    """How long builds are kept. The last good one, and what a pointer names, always stay."""

    # Builds, not days: 60 days were too short for users who pin a nightly wheel.
    count: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 60
    """Builds of one target that the index lists; older ones are hidden."""
    size: Size = 500 * 10**9
    """Bytes of all builds together, logs and pages too; beyond that the oldest are hidden."""
    # Hidden before it is deleted: a build that is missed can still be brought back.
    hidden_days: Annotated[int, Field(ge=0, le=36_500, strict=True)] = 14
    """Days between hiding a build and deleting it."""
    free: Size = 30 * 10**9
    """Bytes that must be free before a build begins."""


class MailTable(Table):
    """Notices by mail."""

    to: tuple[MailAddress, ...]
    """The recipients."""
    sender: MailAddress
    """The address in the From field."""
    host: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")] = "localhost"
    """The mail server."""
    port: Annotated[int, Field(gt=0, lt=65536, strict=True)] = 25
    """Its port: usually 25, 587 with ``starttls``, 465 with ``tls``."""
    security: Literal["none", "starttls", "tls"] = "none"
    """How the connection is encrypted."""
    user: Line | None = None
    """The user name for the mail server; without it tfwright does not log in."""
    # Never the password itself, so that nightly.toml can be shown to others.
    password_file: PlainPath | None = None
    """A file that only its owner can read, or the name of a systemd credential."""


class WebhookTable(Table):
    """Notices as JSON, posted to an address."""

    url_file: PlainPath | None = None
    """A file that holds the address, for addresses that are secrets themselves."""
    url: WebAddress | None = None
    """The address that notices are posted to."""
    format: Literal["plain", "slack", "teams", "matrix"] = "plain"
    """What receives it: a program of yours (``plain``), an incoming webhook of Slack or
    Mattermost, a workflow of Teams, or the generic webhook of hookshot for Matrix."""
    token_file: PlainPath | None = None
    """A file that only its owner can read; tfwright sends its text as ``Authorization: Bearer``."""

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if bool(self.url) == bool(self.url_file):
            raise ValueError("give either url or url_file")
        return self


class ProgramTable(Table):
    """Notices as JSON on the standard input of a program."""

    command: Annotated[tuple[Line, ...], Field(min_length=1)]
    """The program and its arguments; no shell reads them."""


class NoticesTable(Table):
    """How tfwright reports failures."""

    # A host that is switched off reports no failure; only its silence can be noticed.
    stale_nights: Annotated[int, Field(ge=1, le=36_500, strict=True)] = 3
    """Nights without a good build, or without any run, after which a notice is sent."""
    wheels: Flag = False
    """Whether a notice is sent for each new wheel; the feed has them in any case."""
    mail: tuple[MailTable, ...] = ()
    """Mail by SMTP: ``to``, ``sender``, ``host``, ``port``, ``security``, ``user``,
    ``password_file``."""
    webhook: tuple[WebhookTable, ...] = ()
    """JSON posted to ``url``, or to the address in ``url_file``, in a ``format``, with the token in
    ``token_file``."""
    program: tuple[ProgramTable, ...] = ()
    """JSON on the standard input of ``command``."""


class ProjectTable(Table):
    """What the index says of a project (PEP 792)."""

    status: Literal["active", "archived", "quarantined", "deprecated"]
    """The status that installers show."""
    reason: Line = ""
    """Why, in one line."""


class NightlyFile(Table):
    """The whole of ``nightly.toml``."""

    PAGE: ClassVar[str] = "docs/build-host.md"
    directory: HostPath
    """Where state, builds, index and pages are kept; ``site`` in it is what a web server serves."""
    title: Line = "Nightly wheels"
    """Heading of the first page and of the feed."""
    url: Annotated[str, AfterValidator(_normalised_address)] | None = None
    """Where users find the site; install commands and the feed name it."""
    hours: Annotated[float, Field(gt=0, le=24 * 7, strict=True)] = 8.0
    """The night's budget: a build that would not end within it waits for the next night."""
    on: Literal["here", "workers", "slurm"] = "here"
    """Which machines build: this one, the ``[[workers]]`` of the host file, or its ``[slurm]``."""
    reproduce: Flag = True
    """Whether one unchanged recipe a night is built again from nothing, offline. Without it, all
    builds run with the build cache off, since ``stable`` must not rest on it."""
    links: Flag = True
    """Whether the servers of all archives are asked each night, each address once."""
    bisect: Flag = True
    """Whether a night looks for the change that broke a recipe for a new reason, within `hours`,
    where it builds on this host."""
    pages: Flag = True
    """Whether the pages for people are written; the index is written in any case."""
    publish: tuple[Line, ...] = ()
    """A program and its arguments that copies the site elsewhere; it runs in the folder of the site
    after each change of it, as ``["rsync", "-a", "--delete-after", "./", "web:/srv/wheels/"]``."""
    recipe: tuple[NightlyRecipe, ...] = ()
    """What is built: one ``[[recipe]]`` each."""
    projects: dict[Name, ProjectTable] = {}
    """Status of a project in the index, by its normalised name:
    ``{ demo = { status = "deprecated", reason = "use tensorflow" } }``. The other statuses are
    ``active``, ``archived`` and ``quarantined``."""
    retention: RetentionTable = RetentionTable.defaults()
    """How long builds are kept."""
    notices: NoticesTable = NoticesTable.defaults()
    """How tfwright reports failures."""

    @property
    def site(self) -> Path:
        """What a web server serves."""
        return self.directory / "site"

    @property
    def builds(self) -> Path:
        """The complete builds, below the site: a web server shows the same files."""
        return self.site / "builds"

    @model_validator(mode="after")
    def _targets_differ(self) -> Self:
        names = [target.name for target in targets(self)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"recipe: {twice[0]} is listed twice; each name needs its own line")
        return self


class Target(Table):
    """One line of the page: a recipe with one choice of Python and compute capabilities."""

    name: str
    recipe: str
    local: str = ""
    python: str = ""
    """Empty for the recipe's own."""
    capabilities: str = ""
    """Empty for the recipe's own."""
    follow: FollowTable | None = None
    smoke: Flag = True


def targets(nightly: NightlyFile) -> list[Target]:
    """Return every target of a host, in the order of the file."""
    return [
        _target(recipe, python, capabilities)
        for recipe in nightly.recipe
        # A recipe without an axis is one target.
        for python in recipe.python or ("",)
        for capabilities in recipe.capabilities or ("",)
    ]


def named_targets(nightly: NightlyFile, name: str, *, of_recipe: bool = True) -> list[Target]:
    """Return the target of a name, or with `of_recipe` those of the recipe that has it.

    Raises RecipeError with the nearest name if there is none.
    """
    every = targets(nightly)
    if not (found := [it for it in every if name == it.name or (of_recipe and name == it.recipe)]):
        names = [target.name for target in every]
        listed = ", ".join(names) or "none"
        raise RecipeError(
            f"nightly.toml has no recipe {name!r}{did_you_mean(name, names)}",
            remedy=f"Choose one of: {listed}; or add a [[recipe]] with this name.",
        )
    return found


def _target(recipe: NightlyRecipe, python: str, capabilities: str) -> Target:
    """Return a recipe's target for one choice on each axis."""
    architectures = [
        # compute_70 asks for PTX, which a driver compiles for its GPU.
        ("ptx" if text.startswith("compute") else "sm")
        + text.removeprefix("sm_").removeprefix("compute_").replace(".", "")
        for text in capabilities.split(",")
        if text
    ]
    parts = [Path(recipe.name).stem if recipe.name.endswith(".toml") else recipe.name]
    if python:
        parts.append(f"py{python}")
    if architectures:
        parts.append("_".join(architectures))
    # The Python is in the wheel's tag already; two sets of architectures would share one name.
    local = ".".join(part for part in (recipe.local, *architectures) if part)
    return Target(
        name="-".join(parts),
        recipe=recipe.name,
        local=local,
        python=python,
        capabilities=capabilities,
        follow=recipe.follow,
        smoke=recipe.smoke,
    )


def path() -> Path:
    """Return where the file is: $TFWRIGHT_NIGHTLY_FILE, else next to the host file."""
    named = os.environ.get("TFWRIGHT_NIGHTLY_FILE")
    return Path(named) if named else host_file.path().with_name("nightly.toml")


def read(file: Path | None = None) -> NightlyFile:
    """Read ``nightly.toml``; raise RecipeError if it is missing or faulty."""
    place = file or path()
    if not place.exists():
        raise RecipeError(
            f"{place} does not exist",
            remedy="Write the file; docs/build-host.md begins with an example of six lines.",
        )
    return load(place, NightlyFile)
