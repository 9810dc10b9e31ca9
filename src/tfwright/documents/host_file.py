"""The host file: what differs from host to host, and so is in no recipe."""

import os
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from tfwright.documents.names import HttpUrl
from tfwright.documents.recipe import ROOT, Recipe
from tfwright.documents.toml import Table, load


def _absolute(path: Path) -> Path:
    path = path.expanduser()
    if not path.is_absolute():
        message = f"{path} must be an absolute path (or start with ~)"
        raise ValueError(message)
    return path


_FIELD = re.compile(r"\{([a-z]\w*)\}")


def _repeating(mirrors: dict[str, str]) -> dict[str, str]:
    for pattern, mirror in mirrors.items():
        fields = _FIELD.findall(pattern)
        if len(set(fields)) < len(fields) or not set(fields).issuperset(_FIELD.findall(mirror)):
            message = f"{pattern} must hold each field once, and all those of {mirror}"
            raise ValueError(message)
    return mirrors


HostPath = Annotated[Path, AfterValidator(_absolute)]


class Sign(Table):
    """Who says that a wheel was built here."""

    key: HostPath
    """A private key in PEM, without a passphrase: Ed25519, ECDSA or RSA."""


class CacheTable(Table):
    """Where results of compiling are kept, and whose are believed."""

    enabled: bool = True
    """Without it every action is run."""
    directory: HostPath | None = None
    """Where this host keeps them; without it ``cache`` in build_out, shared by all recipes."""
    size: Annotated[float, Field(gt=0)] = 20.0
    """GiB that the directory may hold; what was not used for longest goes first."""
    server: Annotated[str, Field(pattern=r"^https?://[^\s/]")] | None = None
    """A server that several hosts share: bazel-remote, or nginx with DAV."""
    writes: bool = True
    """Whether this host adds to the server what it built."""
    secret: HostPath | None = None
    """Hosts with the same secret believe each other's entries; without it each host has its own."""
    logs: bool = False
    """Whether Bazel writes an execution log, which 'invoke cache --why' compares."""
    trust: tuple[HostPath, ...] = ()
    """Public keys, in PEM, of builders whose signed entries are believed as well."""


class ContainerTable(Table):
    """How podman is run for recipes that name an image."""

    runtime: Annotated[str, Field(pattern=r"^[\w./-]+$")] | None = None
    """The OCI runtime, as crun or runc; without it podman's own choice."""
    options: tuple[str, ...] = ()
    """Further options of ``podman run``, as ``--ulimit=nofile=1024:1024``."""


RemotePath = Annotated[str, Field(pattern=r"^[/~][^\x00-\x1f]*$")]
"""A path on another machine."""
OptionalPath = Annotated[str, Field(pattern=r"^([/~][^\x00-\x1f]*)?$")]
"""The same, or nothing."""


class WorkerTable(Table):
    """Another machine that builds, reached by OpenSSH."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    address: Annotated[str, Field(pattern=r"^[\w.][\w.@:-]*$")]
    """As ssh takes it: ``user@host``, or a name of ~/.ssh/config."""
    directory: RemotePath
    """A checkout of tfwright there."""
    python: Annotated[str, Field(pattern=r"^[\w/.~-]+$")] = "python3"
    host_file: OptionalPath = ""
    """The host file there; without it the user's own."""
    wheelhouse: OptionalPath = ""
    """Where wheels are there, to be copied here; without it the directory is shared."""
    config: OptionalPath = ""
    """A configuration file for ssh; without it the user's own."""


class SlurmTable(Table):
    """How this site's Slurm is asked."""

    directory: HostPath
    """A checkout of tfwright that all nodes see."""
    python: Annotated[str, Field(pattern=r"^[\w/.~-]+$")] = "python3"
    host_file: OptionalPath = ""
    options: tuple[Annotated[str, Field(pattern=r"^-[^\x00-\x1f]+$")], ...] = ()
    """Further options of sbatch: ``--partition=long``, ``--mem=32G``, ``--time=8:00:00``."""
    most: Annotated[int, Field(ge=0)] = 0
    """Builds that run at once; 0 leaves it to Slurm."""


class HostFile(Table):
    """This host's own settings, from ``~/.config/tfwright/host.toml``; every key is optional."""

    build_out: HostPath = ROOT / "build_out"
    """Where everything is built and kept."""
    jobs: Annotated[int, Field(gt=0)] | None = None
    """Actions that Bazel runs at once; without it: cores, bounded by memory."""
    mirrors: Annotated[dict[str, str], AfterValidator(_repeating)] = {}
    """Repository url = url or path of a mirror that is asked instead. A key may hold fields, which
    the value repeats: ``"https://github.com/{owner}/{name}.git" = "/mirrors/{owner}/{name}"``."""
    downloads: dict[str, str] = {}
    """Beginning of a url = what is put in its place, to be asked after the url itself:
    ``"https://github.com/" = "https://mirror.example/github/"``."""
    drop: HostPath | None = None
    """A folder of files given by hand, found by their digest: what needs a login, or has no server
    any more."""
    pythons: dict[str, HostPath] = {}
    """Target Python version = interpreter, before PATH and pyenv are searched."""
    bazels: dict[str, HostPath] = {}
    """Bazel version = binary."""
    cuda: HostPath | None = None
    """CUDA toolkit; stands in for the recipe's CUDA_TOOLKIT_PATH."""
    cudnn: HostPath | None = None
    """cuDNN prefix; stands in for the recipe's CUDNN_INSTALL_PATH."""
    compiler: HostPath | None = None
    """Host compiler of nvcc; overrides the recipe's GCC_HOST_COMPILER_PATH."""
    debian: HttpUrl | None = None
    """Address of a Debian archive that `invoke toolkit` asks instead of this host's own."""
    cache: CacheTable = CacheTable()
    """What was compiled before, here or on another host."""
    workers: tuple[WorkerTable, ...] = ()
    """Machines that 'invoke distribute' hands recipes to."""
    slurm: SlurmTable | None = None
    """With it, 'invoke distribute --slurm' submits recipes as a job array."""
    container: ContainerTable = ContainerTable()
    """How containers are run."""
    sign: Sign | None = None
    """With it, the statement beside each published wheel is signed."""

    @property
    def cache_directory(self) -> Path:
        """Where this host keeps what was compiled."""
        return self.cache.directory or self.build_out / "cache"

    def of(self, recipe: Recipe) -> Self:
        """Return these settings with the toolkit of a recipe where `invoke toolkit` made one.

        What the host file names itself comes first.
        """
        root = toolkit_root(self.build_out, recipe)
        cuda = root if root and (root / "include/cuda.h").exists() else None
        cudnn = root if root and any(root.glob("include/cudnn*.h")) else None
        places = {
            "cuda": self.cuda or cuda,
            "cudnn": self.cudnn or cudnn,
            "compiler": self.compiler or _compiler(self.build_out, recipe),
        }
        return self.model_copy(update=places)

    def mirror_of(self, url: str) -> str | None:
        """Return the mirror of a repository, if this host names one.

        A literal key wins over fields.
        """
        if url in self.mirrors:
            return self.mirrors[url]
        for pattern, mirror in self.mirrors.items():
            fields = re.fullmatch(
                re.sub(r"\\\{([a-z]\w*)\\\}", r"(?P<\1>[^/]+)", re.escape(pattern)), url
            )
            if fields:
                return _filled(mirror, fields)
        return None


def toolkit_root(build_out: Path, recipe: Recipe) -> Path | None:
    """Return where `invoke toolkit` puts CUDA and its libraries; None for a recipe without CUDA.

    They share one root: TensorFlow from 1.14 on finds headers only below it, earlier ones there
    too.
    """
    wanted = recipe.host
    versions = {
        "cuda": wanted.cuda,
        "cudnn": wanted.cudnn,
        "nccl": wanted.nccl,
        "tensorrt": wanted.tensorrt,
    }
    parts = [f"{name}-{version}" for name, version in versions.items() if version]
    return build_out / "toolkits" / "-".join(parts) if wanted.cuda else None


def compiler_root(build_out: Path, recipe: Recipe) -> Path | None:
    """Return where `invoke toolkit` puts nvcc's host compiler; None if the recipe pins none."""
    gcc = recipe.toolkit.gcc()
    return build_out / "toolkits" / f"gcc-{gcc[1]}" if gcc else None


def _compiler(build_out: Path, recipe: Recipe) -> Path | None:
    gcc, root = recipe.toolkit.gcc(), compiler_root(build_out, recipe)
    program = root / "usr/bin" / gcc[0] if gcc and root else None
    return program if program and program.exists() else None


def _filled(mirror: str, fields: re.Match[str]) -> str:
    return _FIELD.sub(lambda field: fields[field[1]], mirror)


def path() -> Path:
    """Return where the host file is looked for: $TFWRIGHT_HOST_FILE, else the XDG place."""
    named = os.environ.get("TFWRIGHT_HOST_FILE")
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(named) if named else Path(config) / "tfwright" / "host.toml"


def read() -> HostFile:
    """Read the host file; a host without one has the defaults.

    Raises RecipeError if the file is faulty, or is named by $TFWRIGHT_HOST_FILE and missing.
    """
    file = path()
    if not file.exists() and "TFWRIGHT_HOST_FILE" not in os.environ:
        return HostFile()
    return load(file, HostFile)
