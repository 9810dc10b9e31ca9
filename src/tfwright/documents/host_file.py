"""The host file: the settings that differ from host to host, and so belong in no recipe."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from tfwright.documents import filesystem
from tfwright.documents.filesystem import HOST_FILE, INSTALLED, ROOT
from tfwright.documents.names import Flag, HttpUrl, Line, Version, WebAddress
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import Table, load

SPACE = 0x20
"""The first character that controls nothing."""


def _check_plain(path: Path) -> Path:
    # The system refuses a NUL in a path, and a line break would end a line of what we write.
    if any(ord(letter) < SPACE for letter in str(path)):
        raise ValueError("must be a path without control characters")
    return path


def _absolute_path(path: Path) -> Path:
    # A relative path would mean another place in each working directory.
    path = filesystem.expand_home(_check_plain(path))
    if not path.is_absolute():
        raise ValueError(f"{path} must be an absolute path (or start with ~)")
    return path


_FIELD = re.compile(r"\{([a-z]\w*)\}")


MOST_FIELDS = 2
"""Fields in one part of a path: with more of them there are too many ways to match a url."""


_REPOSITORY = re.compile(r"[/~]|bundled:|(https|ssh|file)://(?!-)")
"""How the address of a git repository begins that tfwright asks."""


def _check_fields(mirrors: dict[str, str]) -> dict[str, str]:
    for pattern, mirror in mirrors.items():
        if not _REPOSITORY.match(mirror):
            message = (
                f"{mirror} must be an absolute path (or start with ~), "
                "or a url with https, ssh or file"
            )
            raise ValueError(message)
        fields = _FIELD.findall(pattern)
        twice = len(set(fields)) < len(fields)
        # The value can repeat only what the key has matched.
        if twice or not set(fields).issuperset(_FIELD.findall(mirror)):
            message = f"{pattern} must hold each field once, and all those of {mirror}"
            raise ValueError(message)
        if any(len(_FIELD.findall(part)) > MOST_FIELDS for part in pattern.split("/")):
            message = f"{pattern} may hold {MOST_FIELDS} fields between two slashes"
            raise ValueError(message)
    return mirrors


HostPath = Annotated[Path, AfterValidator(_absolute_path)]
PlainPath = Annotated[Path, AfterValidator(_check_plain)]
"""A path without control characters, which may be relative."""


class Sign(Table):
    """The signature of the statement that a wheel was built on this host."""

    key: HostPath
    """A private key in PEM, without a passphrase: Ed25519, ECDSA or RSA."""


class CacheTable(Table):
    """The cache of compile actions: where it is, and whose entries this host trusts."""

    enabled: Flag = True
    """Whether builds use the cache; without it Bazel runs every action."""
    directory: HostPath | None = None
    """The cache on this host; by default ``cache`` in build_out, which all recipes share."""
    size: Annotated[float, Field(gt=0, le=1_000_000, strict=True)] = 20.0
    """GiB that the directory may hold; the entries that were used longest ago are removed first."""
    server: Annotated[str, Field(pattern=r"^https?://[^\s/]")] | None = None
    """A cache server that several hosts share: bazel-remote, or nginx with DAV. Before a build
    tfwright fetches from it what the directory lacks, after a good one it sends what is new."""
    writes: Flag = True
    """Whether this host uploads its results to the server."""
    secret: HostPath | None = None
    """A file with a secret. Hosts with the same secret trust each other's entries; by default
    ``cache-secret`` in build_out, so that each build_out trusts its own entries only."""


Engine = Literal["podman", "docker"]


class ContainerTable(Table):
    """How containers are run for recipes that name an image."""

    engine: Engine | None = None
    """``podman`` or ``docker``; by default podman where it is installed."""
    runtime: Annotated[str, Field(pattern=r"^[\w./-]+$")] | None = None
    """The OCI runtime, such as crun or runc; by default the engine chooses."""
    options: tuple[Line, ...] = ()
    """Further options of the engine's ``run`` command, such as ``--ulimit=nofile=1024:1024``."""


# Remote paths go into command lines that a remote shell reads, so control characters are refused.
RemotePath = Annotated[str, Field(pattern=r"^(~?/[^\x00-\x1f]*|~)$")]
"""A path on another machine, absolute or below its user's home."""
OptionalPath = Annotated[str, Field(pattern=r"^(~?/[^\x00-\x1f]*|~)?$")]
"""A path on another machine, or an empty text."""


class WorkerTable(Table):
    """Another machine that builds, reached by OpenSSH."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    """A name for this machine in messages and tables."""
    # Never a leading '-': ssh would take the address for an option, which can run a program.
    address: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.@:-]*$")]
    """The address for ssh: ``user@host``, or a name in ~/.ssh/config."""
    directory: RemotePath
    """A checkout of tfwright on that machine."""
    # No blank: the name goes into a shell's command line on the other machine.
    python: Annotated[str, Field(pattern=r"^[\w/.~-]+$")] = "python3"
    """The Python that runs tfwright on that machine."""
    host_file: OptionalPath = ""
    """The host file on that machine; by default the user's own."""
    build_out: OptionalPath = ""
    """The ``build_out`` of that machine's host file, if both machines do not share one. Wheels are
    then copied here by rsync."""
    inputs: Flag = False
    """Whether that machine gets what a build takes from this host's vault: it then builds offline.
    """
    toolkit: Flag = False
    """With ``inputs``, whether it gets the packages of CUDA and its libraries as well. You state
    that you have accepted their licences and that these allow it."""
    config: HostPath | None = None
    """A configuration file for ssh, on this host; by default the user's own."""

    @property
    def supplied(self) -> bool:
        """Whether it builds on a disk of its own, from what this host sends."""
        return bool(self.build_out) and self.inputs


class SlurmTable(Table):
    """How builds are submitted to this site's Slurm."""

    directory: HostPath
    """A checkout of tfwright that all nodes see."""
    python: Annotated[str, Field(pattern=r"^[\w/.~-]+$")] = "python3"
    """The Python that runs tfwright on the nodes."""
    host_file: OptionalPath = ""
    """The host file on the nodes; by default the user's own."""
    options: tuple[Annotated[str, Field(pattern=r"^-[^\x00-\x1f]+$")], ...] = ()
    """Further options of sbatch: ``--partition=long``, ``--mem=32G``, ``--time=8:00:00``."""
    most: Annotated[int, Field(ge=0, le=10_000, strict=True)] = 0
    """Builds that are in Slurm's queue at once; 0 leaves the number to Slurm."""
    inputs: Flag = False
    """Whether this host fetches the inputs of each build before it submits it: the nodes then build
    offline."""


class OtherBazel(Table):
    """A Bazel of another version than the one that it stands for."""

    path: HostPath
    """The binary."""
    version: Version
    """Its version."""


class HostFile(Table):
    """This host's own settings, from ``~/.config/tfwright/host.toml``; every key is optional."""

    PAGE: ClassVar[str] = "docs/host.md"

    build_out: HostPath = ROOT / "build_out"
    """The directory for all builds and their results."""
    jobs: Annotated[int, Field(gt=0, le=10_000, strict=True)] | None = None
    """Actions that Bazel runs at once; by default as many as there are cores, or as fit in
    memory."""
    mirrors: Annotated[dict[Line, Line], AfterValidator(_check_fields)] = {}
    """Repository url = url or path of a mirror that replaces it. A key may hold fields, which the
    value repeats: ``"https://github.com/{owner}/{name}.git" = "/mirrors/{owner}/{name}"``."""
    downloads: dict[Line, WebAddress] = {}
    """Beginning of a url = text that replaces it. tfwright tries the new url after the original
    one: ``"https://github.com/" = "https://mirror.example/github/"``. For files on this host see
    ``drop``."""
    drop: HostPath | None = None
    """A directory of files that you downloaded by hand, such as those behind a login. tfwright
    finds a file there by its checksum."""
    pythons: dict[str, HostPath] = {}
    """Target Python version = interpreter; tfwright searches PATH and pyenv only for the others."""
    bazels: dict[str, HostPath | OtherBazel] = {}
    """Bazel version = binary. ``"5.1.1" = {path = "/opt/bazel-4.2.3", version = "4.2.3"}`` builds
    with another version than the recipe pins: such a build need not succeed, and its wheel has
    another digest."""
    cuda: HostPath | None = None
    """The CUDA toolkit; overrides the recipe's CUDA_TOOLKIT_PATH."""
    cudnn: HostPath | None = None
    """The prefix of cuDNN; overrides the recipe's CUDNN_INSTALL_PATH."""
    compiler: HostPath | None = None
    """The host compiler of nvcc; overrides the recipe's GCC_HOST_COMPILER_PATH."""
    debian: HttpUrl | None = None
    """Address of a Debian archive that `invoke toolkit` uses instead of this host's own."""
    cache: CacheTable = CacheTable.defaults()
    """The cache of compile actions."""
    workers: tuple[WorkerTable, ...] = ()
    """Machines that 'invoke build' with several recipes and 'invoke nightly' hand builds to."""
    slurm: SlurmTable | None = None
    """The Slurm that 'invoke build' with several recipes and 'invoke nightly' submit builds to."""
    container: ContainerTable = ContainerTable.defaults()
    """How containers are run."""
    sign: Sign | None = None
    """With it, tfwright signs the statement that it publishes with each wheel."""

    def bazel(self, version: str) -> Path | None:
        """Return the binary of a version that this host names, if any."""
        entry = self.bazels.get(version)
        if entry and not isinstance(entry, OtherBazel):
            return entry
        others = (one for one in self.bazels.values() if isinstance(one, OtherBazel))
        return next((one.path for one in others if one.version == version), None)

    def bazel_instead_of(self, version: str) -> str:
        """Return the version that this host has in place of one; empty if it has none."""
        entry = self.bazels.get(version)
        return entry.version if isinstance(entry, OtherBazel) else ""

    @property
    def cache_directory(self) -> Path:
        """Where this host keeps what was compiled."""
        return self.cache.directory or self.build_out / "cache"

    @property
    def cache_secret(self) -> Path:
        """The file with the secret that this host's entries are sealed with."""
        return self.cache.secret or self.build_out / "cache-secret"

    def of(self, recipe: Recipe) -> Self:
        """Return these settings with the toolkit of a recipe where `invoke toolkit` made one.

        What the host file names itself comes first.
        """
        root = toolkit_root(self.build_out, recipe)
        cuda = root if root and (root / "include/cuda.h").exists() else None
        cudnn = root if root and any(root.glob("include/cudnn*.h")) else None
        compiler = None
        # Debian's packages are unpacked below the root as they are.
        if (gcc := recipe.toolkit.gcc()) and (folder := compiler_root(self.build_out, recipe)):
            program = folder / "usr/bin" / gcc[0]
            compiler = program if program.exists() else None
        return self.changed(
            cuda=self.cuda or cuda, cudnn=self.cudnn or cudnn, compiler=self.compiler or compiler
        )

    def mirror_of(self, url: str) -> str | None:
        """Return the mirror of a repository, if this host names one.

        A literal key wins over fields.
        """
        # Literal first: a person who names one repository means it.
        if url in self.mirrors:
            return self.mirrors[url]
        for pattern, mirror in self.mirrors.items():
            # A field is one part of the path: [^/]+ keeps it from matching several.
            escaped = re.escape(pattern)
            expression = re.sub(r"\\\{([a-z]\w*)\\\}", r"(?P<\1>[^/]+)", escaped)
            if fields := re.fullmatch(expression, url):
                # In one pass: a part of the url that looks like a field is none.
                return _FIELD.sub(lambda field: fields[field[1]], mirror)
        return None


def toolkit_root(build_out: Path, recipe: Recipe) -> Path | None:
    """Return where `invoke toolkit` puts CUDA and its libraries; None for a recipe without CUDA."""
    # They share one root: from 1.14 on, TensorFlow finds headers only below it.
    wanted = recipe.host
    if not wanted.cuda:
        return None
    # All versions are in the name, so recipes that pin the same ones share a toolkit.
    names = ("cuda", "cudnn", "nccl", "tensorrt")
    parts = [f"{name}-{version}" for name in names if (version := getattr(wanted, name))]
    return build_out / "toolkits" / "-".join(parts)


def compiler_root(build_out: Path, recipe: Recipe) -> Path | None:
    """Return where `invoke toolkit` puts nvcc's host compiler; None if the recipe pins none."""
    gcc = recipe.toolkit.gcc()
    return build_out / "toolkits" / f"gcc-{gcc[1]}" if gcc else None


def path() -> Path:
    """Return where the host file is looked for: $TFWRIGHT_HOST_FILE, else the XDG place.

    In a directory that `tfwright init` made, its own comes before that.
    """
    named = os.environ.get("TFWRIGHT_HOST_FILE")
    if INSTALLED and not named and (ROOT / HOST_FILE).is_file():
        return ROOT / HOST_FILE
    return Path(named) if named else filesystem.settings_path("host.toml")


def drop_folder(settings: HostFile) -> str:
    """Name the drop folder in a message, with the line to write where there is none yet."""
    if settings.drop and (settings.drop.is_dir() or not settings.drop.exists()):
        return str(settings.drop)
    return f'a folder, and name it in {path()}: drop = "/path/to/folder"'


def read() -> HostFile:
    """Read the host file; without a file, return the defaults.

    Raises RecipeError if the file is faulty, or is named by $TFWRIGHT_HOST_FILE and missing.
    """
    file = path()
    # A file that the user names must exist; the one in the usual place is optional. Where its
    # directory is closed to this user, reading the file says so.
    with suppress(OSError):
        if not file.exists() and "TFWRIGHT_HOST_FILE" not in os.environ:
            return HostFile.defaults()
    return load(file, HostFile)
