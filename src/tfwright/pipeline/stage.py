"""What a stage is: a module with a docstring and one function whose signature declares it."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict

from tfwright.documents.toml import Table
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import files, trees
from tfwright.tools.process.command import Command


class Result(BaseModel):
    """What a stage makes, and what its stamp keeps: a resumed build is handed the same."""

    # A stage that is kept reads its own stamp only, so pydantic compiles a validator at first use.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    incidental: ClassVar[frozenset[str]] = frozenset()
    """Fields that say how it was made. Two results that differ in nothing else are the same to the
    stages that need one."""

    def essence(self) -> Mapping[str, Any]:
        """Return what later stages depend on."""
        # JSON, since digests of this decide which later stages run again.
        return self.model_dump(mode="json", exclude=set(self.incidental))


Kind = TypeVar("Kind")
Made = TypeVar("Made", bound=Result)


class Results(dict[type[Result], Result]):
    """What stages made, by type, in the order of the pipeline."""

    def of(self, kind: type[Made]) -> Made:
        """Return the result of a type."""
        return cast("Made", self[kind])

    @property
    def last(self) -> Result:
        """What the last stage made."""
        return self[next(reversed(self))]


Known = Mapping[type[Result], Result]
"""What is known of earlier results: some of them may be missing, or be those of the last build."""


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

    def changed(self) -> bool:
        """Read it, and say whether it holds anything else than it did."""
        return files.sha256(self.path) != self.sha256


class Folder(Result):
    """A directory that a stage made, with everything in it."""

    path: Path
    sha256: str
    """Of its content, see `trees.content_digest`."""
    follow: bool = False
    """Whether links in it count as what they lead to."""
    without: tuple[str, ...] = ()
    """Ends of the paths that another stage replaces, and answers for."""

    @classmethod
    def of(cls, path: Path, *, follow: bool = False, without: tuple[str, ...] = ()) -> "Folder":
        """Describe a directory that is there."""
        sha256 = trees.content_digest(path, follow=follow, without=without)
        return cls(path=path, sha256=sha256, follow=follow, without=without)

    def changed(self) -> bool:
        """Read it, and say whether it holds anything else than it did."""
        now = trees.content_digest(self.path, follow=self.follow, without=self.without)
        return now != self.sha256


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
    ``CACHED = False`` (always run), and four hooks, which declare what they are handed as ``run``
    does: ``inputs`` returns name and digest of outside content, such as patches; ``steps`` the
    commands and files, for the plan; ``warnings`` what is hardly meant; ``damage`` says what on
    disk differs from a result. Nothing has run yet when a plan is made, so ``steps`` asks for a
    result as ``Tree | None``, and is handed what that stage made last.
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

    # Annotations may be strings, or behind "from __future__"; get_type_hints resolves both.
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
        return self._parameters(Result)

    @property
    def tables(self) -> tuple[type[Table], ...]:
        """The types of the recipe tables that it receives; Recipe stands for all of them."""
        return self._parameters(Table)

    def _parameters(self, base: type[Kind]) -> tuple[type[Kind], ...]:
        parameters = (kind for name, kind in self.types.items() if name != "return")
        return tuple(kind for kind in parameters if issubclass(kind, base))

    @property
    def revision(self) -> int:
        """Raised when a new version of the stage would make something else from the same inputs."""
        return getattr(self.module, "REVISION", 1)

    @property
    def cached(self) -> bool:
        """Whether a stamp can take the place of a run."""
        return getattr(self.module, "CACHED", True)

    def inputs(self, job: RecipeJob) -> Mapping[str, str]:
        """Return the digests of what the stage reads from outside the recipe and other results."""
        return self._call_hook("inputs", job, {}) or {}

    def steps(self, job: RecipeJob, last: Known) -> Sequence[Step]:
        """Return the commands that the stage would run and the files that it would write.

        `last` is what the stages made in earlier builds, as far as there were any.
        """
        return self._call_hook("steps", job, last) or ()

    def warnings(self, job: RecipeJob) -> Iterable[tuple[str, str]]:
        """Return what the stage would do that is hardly meant: a heading and a text for each."""
        return self._call_hook("warnings", job, {}) or ()

    def damage(self, job: RecipeJob, result: Result) -> str | None:
        """Say what on disk differs from `result`, beyond its artefacts; None if nothing does."""
        damage: str | None = self._call_hook("damage", job, {type(result): result})
        return damage

    def _call_hook(self, hook: str, job: RecipeJob, made: Known) -> Any:  # noqa: ANN401
        function = getattr(self.module, hook, None)
        return function(**_arguments(function, job, made)) if function else None

    def run(self, job: RecipeJob, made: Known) -> Result:
        """Run the stage with what its signature asks for."""
        result = self.module.run(**_arguments(self.module.run, job, made))
        if not isinstance(result, self.makes):
            promised, returned = self.makes.__name__, type(result).__name__
            raise TypeError(f"stage {self.name} promised {promised}, not {returned}")
        return result


def _arguments(function: Callable[..., Any], job: RecipeJob, made: Known) -> dict[str, object]:
    """Return what is handed over for each parameter, by its type.

    A function gets nothing else, so it cannot depend on what its stamp does not cover.
    """
    arguments = dict[str, object]()
    for name, kind in get_type_hints(function).items():
        if name == "return":
            continue
        # Only a union such as "Tree | None" has arguments: a result that there may not be yet.
        if optional := get_args(kind):
            arguments[name] = made.get(optional[0])
        elif issubclass(kind, Result):
            arguments[name] = made[kind]
        elif issubclass(kind, Table):
            # "is", since a subclass would be another table of the recipe.
            tables = (job.recipe, *vars(job.recipe).values())
            arguments[name] = next(table for table in tables if type(table) is kind)
        else:
            # Without the recipe.
            arguments[name] = job.job
    return arguments
