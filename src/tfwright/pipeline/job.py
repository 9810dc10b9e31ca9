"""What is asked of tfwright: one recipe, to be built on this host, in places of its own."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe, find, read
from tfwright.errors import HostError
from tfwright.progress import SILENCE, STAGES, Listener
from tfwright.tools import files


class Places:
    """Where everything of one recipe lies, under build_out."""

    def __init__(self, build_out: Path, recipe: str) -> None:  # noqa: PLR0915 half are docstrings
        """Name every place; nothing is made."""
        self.build_out = build_out
        # Outside of any recipe's directory, so --fresh and clean leave it alone.
        self.vault = build_out / "vault"
        """Inputs by digest, shared by all recipes."""
        self.archives = self.vault / "repository_cache"
        """What Bazel downloads, by digest: the repository cache of all recipes."""
        self.bundled = self.vault / "bundles" / recipe
        """What a bundle brought for this recipe and no checksum need hold: Bazel, packages, venvs.

        A vault of its own, so that no other recipe's build takes anything from it."""
        self.git = build_out / "git"
        """Bare mirrors, shared by all recipes."""
        self.install_root = build_out / "bazel_install"
        """Where each Bazel unpacks itself."""
        self.wheelhouse = build_out / "wheelhouse"
        """The wheels that passed."""
        self.own = own = build_out / recipe
        """This recipe's directory, which holds the rest."""
        self.tree = own / "tree"
        """The checkout that is patched, configured and built."""
        self.patched = own / "patched"
        """The patched commit in git's index, without files, and what each patch made of it."""
        self.readings = own / "readings"
        """The rules that were read, by what they were read from."""
        self.bazel = own / "bazel"
        """Bazel's output base."""
        self.asked = own / "asked"
        """The output base in which Bazel is asked for the lock, after a failure of that."""
        self.registry = own / "registry"
        """The files of registries of modules that the lock led to."""
        self.external = own / "external.json"
        """What Bazel left in its external repositories."""
        self.cache_entries = own / "cache-entries.json"
        """What the build cache did, and what its server is to get."""
        self.logs = own / "logs"
        """One log per stage and program."""
        self.events = self.logs / "compile.events.json"
        """What Bazel says that it built."""
        self.profile = self.logs / "compile.profile.json"
        """When each of Bazel's actions ran."""
        self.runs = self.logs / "compile.cost.jsonl"
        """What each run of Bazel took."""
        self.stamps = own / "stamps"
        """What was done."""
        self.dist = own / "dist"
        """The wheel before it is published."""
        # Programs would otherwise obey the user's .bazelrc, .gitconfig and pip settings.
        self.home = own / "home"
        """The empty home directory of the programs that are run."""
        self.git_settings = self.home / ".gitconfig"
        """What leads Bazel's git to the clones on this host."""
        self.programs = own / "bin"
        """First on the PATH of the programs that are run: the pinned Bazel, the target Python."""
        self.memory = own / "memory.json"
        """What earlier builds taught about this host's memory."""
        self.configured = own / "configured"
        """Copies of what ./configure wrote, for a run of which all is the same that it reads."""
        self.lock = own / "lock"
        """Held while this recipe is built."""

    @property
    def stores(self) -> tuple[Path, ...]:
        """Where Bazel and packages are looked for; what is new goes to the first."""
        return (self.bundled, self.vault) if self.bundled.is_dir() else (self.vault,)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every stage may read, and none may change: where it works, and how it was asked to.

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
    all_inputs: bool = False
    """Whether fetch brings the archives also for a build that needs none of them."""
    pinned_bazel: str = ""
    """The version that the recipe pins, where this host builds with another one in its place."""
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

    @property
    def wants_archives(self) -> bool:
        """Whether fetch brings the archives: no stage before compile reads them."""
        return self.all_inputs or self.until not in {"source", "configure"}

    def reaches(self, stage: str) -> bool:
        """Say whether a build goes as far as a stage."""
        return STAGES.index(stage) <= STAGES.index(self.until)

    def log(self, name: str) -> Path:
        """Return the log file of a stage, or of one program within it."""
        return self.places.logs / f"{name}.log"


@dataclass(frozen=True, kw_only=True)
class RecipeJob(Job):
    """A job together with the recipe that it is about: what commands pass to the engine."""

    name: str = field(init=False, default="")
    argument: str = field(init=False, default="")
    recipe: Recipe
    again: str = ""
    """The stage that runs even if its stamp holds."""
    fresh: bool = False
    """Whether everything but the caches is dropped first."""
    wait: bool | None = None
    """Whether to wait for another command that works on the recipe; None stands for a command that
    cannot be asked to."""

    def __post_init__(self) -> None:
        """Take the name from the recipe, so that the two cannot differ."""
        object.__setattr__(self, "name", self.recipe.name)
        object.__setattr__(self, "argument", self.recipe.argument)

    @classmethod
    def of(
        cls,
        named: str,
        settings: HostFile,
        *,
        cache: bool = True,
        complete: Callable[[dict[str, Any]], None] | None = None,
        **options: Any,  # noqa: ANN401 fields of the class
    ) -> Self:
        """Read a recipe, given by its name or the path of its file, into a job.

        `settings` are the host file's; without `cache` every action runs; `complete` is as for
        `recipe.read`, and `options` are fields of the job. Raises RecipeError.
        """
        # A lock belongs to the file, so a recipe that is given by its path has its own, too.
        locked = files.path_or_none(find(named).with_suffix(".lock"))
        recipe = read(named, complete)
        if other := settings.bazel_instead_of(recipe.bazel.version):
            options["pinned_bazel"] = recipe.bazel.version
            bazel = recipe.bazel.changed(version=other, sha256={})
            recipe = recipe.changed(bazel=bazel)
        job = cls(recipe=recipe, host_file=settings.of(recipe), locked=locked, **options)
        return job if cache else job.without_cache()

    def check_pinned_bazel(self, made: str) -> None:
        """Raise HostError where this host has another Bazel: what is `made` names the pinned one.

        Each version of Bazel has archives of its own, which lock files and bundles hold.
        """
        if self.pinned_bazel:
            raise HostError(
                f"{made} needs Bazel {self.pinned_bazel}, which the recipe pins; the host file "
                f"puts {self.recipe.bazel.version} in its place",
                remedy=f"Name a Bazel {self.pinned_bazel} in the host file: [bazels] "
                f'"{self.pinned_bazel}" = "/path/to/bazel"; or pin {self.recipe.bazel.version} in '
                f"[bazel] of {self.recipe.name}.",
            )

    def without_cache(self) -> Self:
        """Return the same, with every action run and none taken from the build cache."""
        cache = self.host_file.cache.changed(enabled=False)
        return replace(self, host_file=self.host_file.changed(cache=cache))

    @cached_property
    def job(self) -> Job:
        """The same without the recipe, as stages are handed it."""
        # A copy of the fields, not `self`: a stage could otherwise reach `recipe`.
        return Job(**{known.name: getattr(self, known.name) for known in fields(Job)})
