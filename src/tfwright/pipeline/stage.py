"""What a stage is: a module with a docstring and one function whose signature declares it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import Table
from tfwright.progress import SILENCE, Listener
from tfwright.tools import files
from tfwright.tools.process.runner import Command


class Result(BaseModel):
    """What a stage makes; also what its stamp keeps, so that a resumed build is handed the same."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def damage(self) -> str | None:
        """Say what on disk is no longer as this result says, beyond its artefacts; None if all is well."""
        return None


class Artefact(Result):
    """A file that a stage made."""

    path: Path
    sha256: str
    size: int
    """Bytes."""

    @classmethod
    def of(cls, path: Path) -> "Artefact":
        """Describe a file that is there."""
        return cls(path=path, sha256=files.sha256(path), size=path.stat().st_size)


@dataclass(frozen=True)
class Places:
    """Where everything of one recipe lies, under build_out."""

    build_out: Path
    recipe: str

    @property
    def vault(self) -> Path:
        """Inputs by digest, shared by all recipes."""
        return self.build_out / "vault"

    @property
    def git(self) -> Path:
        """Bare mirrors, shared by all recipes."""
        return self.build_out / "git"

    @property
    def wheelhouse(self) -> Path:
        """The wheels that passed."""
        return self.build_out / "wheelhouse"

    @property
    def own(self) -> Path:
        """This recipe's directory, which holds the rest."""
        return self.build_out / self.recipe

    @property
    def tree(self) -> Path:
        """The checkout that is patched, configured and built."""
        return self.own / "tree"

    @property
    def bazel(self) -> Path:
        """Bazel's output base."""
        return self.own / "bazel"

    @property
    def logs(self) -> Path:
        """One log per stage and program."""
        return self.own / "logs"

    @property
    def stamps(self) -> Path:
        """What was done."""
        return self.own / "stamps"

    @property
    def dist(self) -> Path:
        """The wheel before it is published."""
        return self.own / "dist"

    @property
    def home(self) -> Path:
        """The empty home directory of the programs that are run."""
        return self.own / "home"

    @property
    def programs(self) -> Path:
        """What the programs that are run find first on their PATH: the pinned Bazel, the target Python."""
        return self.own / "bin"

    @property
    def memory(self) -> Path:
        """What earlier builds taught about this host's memory."""
        return self.own / "memory.json"

    @property
    def lock(self) -> Path:
        """Held while this recipe is built."""
        return self.own / "lock"


@dataclass(frozen=True)
class Job:
    """One request to build one recipe on this host. Stages read it; nobody writes it."""

    recipe: Recipe
    host_file: HostFile
    listener: Listener = SILENCE
    offline: bool = False
    jobs: int | None = None
    """Actions that Bazel runs at once, as the user asked; None leaves it to the host file and the memory."""
    until: str = "publish"
    """The last stage that is wanted; what only later stages need may be missing."""
    locked: Path | None = None
    """The lock beside the recipe, where there is one: an input that differs from it is refused."""

    @cached_property
    def places(self) -> Places:
        """Where this job works."""
        return Places(self.host_file.build_out, self.recipe.name)

    def without_cache(self) -> "Job":
        """Return the same job, with every action run and none taken from the build cache."""
        cache = self.host_file.cache.model_copy(update={"enabled": False})
        return replace(self, host_file=self.host_file.model_copy(update={"cache": cache}))

    def log(self, name: str) -> Path:
        """Return the log file of a stage, or of one program within it."""
        return self.places.logs / f"{name}.log"


@dataclass(frozen=True)
class Writes:
    """A file that a stage writes by itself, as `invoke plan` announces it."""

    path: Path
    content: str = ""
    """The text, where it is known beforehand."""


Step = Command | Writes


@dataclass(frozen=True)
class Stage:
    """A stage module, read: what it needs and makes comes from the signature of its ``run``.

    A module may also define ``REVISION`` (raised when the stage's own logic changes what it makes),
    ``CACHED = False`` (always run), ``inputs(job)`` (name and digest of outside content, such as
    patches) and ``steps(job)`` (the commands and files, for the plan).
    """

    module: ModuleType

    @property
    def name(self) -> str:
        """The stage's name, as users type it."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The first line of the module's docstring."""
        return (inspect.getdoc(self.module) or "").partition("\n")[0]

    @cached_property
    def types(self) -> Mapping[str, type]:
        """The type of each parameter of ``run``, and of its ``return``."""
        return get_type_hints(self.module.run)

    @property
    def makes(self) -> type[Result]:
        """The type of the result."""
        return self.types["return"]

    @property
    def needs(self) -> tuple[type[Result], ...]:
        """The types of the earlier results that it is handed."""
        return tuple(
            kind
            for name, kind in self.types.items()
            if name != "return" and issubclass(kind, Result)
        )

    @property
    def tables(self) -> tuple[type[Table], ...]:
        """The types of the recipe tables that it is handed."""
        return tuple(kind for kind in self.types.values() if issubclass(kind, Table))

    @property
    def revision(self) -> int:
        """Raised when a new version of the stage would make something else from the same inputs."""
        return getattr(self.module, "REVISION", 1)

    @property
    def cached(self) -> bool:
        """Whether a stamp can stand in for a run."""
        return getattr(self.module, "CACHED", True)

    def inputs(self, job: Job) -> Mapping[str, str]:
        """Return the digests of what the stage reads from outside the recipe and earlier results."""
        hook: Callable[[Job], Mapping[str, str]] | None = getattr(self.module, "inputs", None)
        return hook(job) if hook else {}

    def steps(self, job: Job) -> Sequence[Step]:
        """Return the commands that the stage would run and the files that it would write."""
        hook: Callable[[Job], Sequence[Step]] | None = getattr(self.module, "steps", None)
        return hook(job) if hook else ()

    def run(self, job: Job, results: Mapping[type[Result], Result]) -> Result:
        """Run the stage with what its signature asks for."""
        arguments = {
            name: self._argument(kind, job, results)
            for name, kind in self.types.items()
            if name != "return"
        }
        made = self.module.run(**arguments)
        if not isinstance(made, self.makes):
            raise TypeError(
                f"stage {self.name} promised {self.makes.__name__}, not {type(made).__name__}"
            )
        return made

    def _argument(self, kind: type, job: Job, results: Mapping[type[Result], Result]) -> Any:  # noqa: ANN401 chosen by the stage's signature
        if issubclass(kind, Result):
            return results[kind]
        return table_of(job.recipe, kind) if issubclass(kind, Table) else job


def table_of(recipe: Recipe, kind: type[Table]) -> Table:
    """Return the recipe's table of a type."""
    return next(value for value in vars(recipe).values() if type(value) is kind)
