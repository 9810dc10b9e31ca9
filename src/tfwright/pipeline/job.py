"""What is asked of tfwright: one recipe, to be built on this host, in places of its own."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe, find, read
from tfwright.progress import SILENCE, Listener
from tfwright.tools import files


@dataclass(frozen=True)
class Places:
    """Where everything of one recipe lies, under build_out."""

    build_out: Path
    recipe: str

    @property
    def vault(self) -> Path:
        """Inputs by digest, shared by all recipes."""
        # Outside of any recipe's directory, so --fresh and clean leave it alone.
        return self.build_out / "vault"

    @property
    def bundled(self) -> Path:
        """What a bundle brought for this recipe and no checksum need hold: Bazel, packages, venvs.

        A vault of its own, so that no other recipe's build takes anything from it.
        """
        return self.vault / "bundles" / self.recipe

    @property
    def stores(self) -> tuple[Path, ...]:
        """Where Bazel and packages are looked for; what is new goes to the first."""
        return (self.bundled, self.vault) if self.bundled.is_dir() else (self.vault,)

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
    def patched(self) -> Path:
        """The patched commit in git's index, without files, and what each patch made of it."""
        return self.own / "patched"

    @property
    def readings(self) -> Path:
        """The rules that were read, by what they were read from."""
        return self.own / "readings"

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
        # Programs would otherwise obey the user's
        # .bazelrc, .gitconfig and pip settings.
        return self.own / "home"

    @property
    def programs(self) -> Path:
        """First on the PATH of the programs that are run: the pinned Bazel, the target Python."""
        return self.own / "bin"

    @property
    def memory(self) -> Path:
        """What earlier builds taught about this host's memory."""
        return self.own / "memory.json"

    @property
    def unmet(self) -> Path:
        """The downloads for which the last build stopped."""
        return self.own / "unmet.json"

    @property
    def lock(self) -> Path:
        """Held while this recipe is built."""
        return self.own / "lock"


@dataclass(frozen=True, kw_only=True)
class Job:
    """The part of a request that every stage may read, and none may change.

    It carries no recipe: a stage is handed the tables that its signature names, and nothing else
    of the recipe can then change what it makes without changing the key of its stamp.
    """

    name: str
    """The recipe's name, which is also the name of its directory."""
    argument: str = ""
    """What ``--recipe`` takes for it, for commands that messages name."""
    host_file: HostFile
    listener: Listener = SILENCE
    offline: bool = False
    jobs: int | None = None
    """Actions that Bazel runs at once, as the user asked; None leaves it to the host file and to
    what earlier builds taught."""
    until: str = "publish"
    """The last stage that is wanted; what only later stages need may be missing."""
    locked: Path | None = None
    """The lock file next to the recipe, where there is one: an input that differs is refused."""

    def __post_init__(self) -> None:
        """Take the name, without a path."""
        if not self.argument:
            object.__setattr__(self, "argument", self.name)

    @cached_property
    def places(self) -> Places:
        """Where this job works."""
        return Places(self.host_file.build_out, self.name)

    @property
    def private_cache(self) -> Path:
        """Where its Bazel finds the build cache: on the disk of the cache, for the links."""
        # Several build_out may share a cache, and have recipes of the same name.
        place = hashlib.sha256(str(self.places.own.resolve()).encode()).hexdigest()[:8]
        return self.host_file.cache_directory / "private" / f"{self.name}-{place}"

    def log(self, name: str) -> Path:
        """Return the log file of a stage, or of one program within it."""
        return self.places.logs / f"{name}.log"


@dataclass(frozen=True, kw_only=True)
class BuildRequest(Job):
    """A job together with the recipe that it is about: what commands pass to the engine."""

    name: str = field(init=False, default="")
    argument: str = field(init=False, default="")
    recipe: Recipe

    def __post_init__(self) -> None:
        """Take the name from the recipe, so that the two cannot differ."""
        object.__setattr__(self, "name", self.recipe.name)
        object.__setattr__(self, "argument", self.recipe.argument)

    @classmethod
    def of(  # noqa: PLR0913 each is a fact of its own
        cls,
        named: str,
        settings: HostFile,
        *,
        listener: Listener = SILENCE,
        offline: bool = False,
        jobs: int | None = None,
        until: str = "publish",
        complete: Callable[[dict[str, Any]], None] | None = None,
    ) -> Self:
        """Read a recipe, given by its name or the path of its file, into a request.

        `settings` are the host file's; `complete` is as for `recipe.read`. Raises RecipeError.
        """
        # A lock belongs to the file, so a recipe that is
        # given by its path has its own, too.
        lock = find(named).with_suffix(".lock")
        recipe = read(named, complete)
        return cls(
            recipe=recipe,
            host_file=settings.of(recipe),
            locked=files.existing(lock),
            listener=listener,
            offline=offline,
            jobs=jobs,
            until=until,
        )

    def without_cache(self) -> "BuildRequest":
        """Return the same, with every action run and none taken from the build cache."""
        cache = self.host_file.cache.changed(enabled=False)
        host_file = self.host_file.changed(cache=cache)
        return replace(self, host_file=host_file)

    @cached_property
    def job(self) -> Job:
        """The same without the recipe, as stages are handed it."""
        # A copy of the fields, not `self`: a stage could otherwise reach `recipe`.
        shared = {known.name: getattr(self, known.name) for known in fields(Job)}
        return Job(**shared)
