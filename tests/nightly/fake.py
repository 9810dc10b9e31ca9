"""A builder without Bazel, for nights on a simulated clock: real wheels, scripted failures."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.nightly.wheels import write_wheel

from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import HostError, SupplyError
from tfwright.nightly import night
from tfwright.nightly.builds import Breakage, BuildOrder, CommitLine, NightlyBuild, SmokeLine
from tfwright.nightly.night import BuildHost, FreeSpace, LostArchives, NightOutcome

if TYPE_CHECKING:
    from tfwright.nightly.builder import PipelineBuilder


@dataclass
class SimulatedClock:
    """A clock that moves only when a test moves it."""

    now: dt.datetime = dt.datetime(2026, 1, 1, 2, 0, tzinfo=dt.UTC)

    def __call__(self) -> dt.datetime:
        """Return the simulated time."""
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.now += dt.timedelta(seconds=seconds)

    def next_night(self) -> None:
        """Go to the next two o'clock."""
        day = self.now.date() + dt.timedelta(days=1 if self.now.hour >= 2 else 0)
        self.now = dt.datetime(day.year, day.month, day.day, 2, tzinfo=dt.UTC)


@dataclass
class FakeBuilder:
    """Builds a small wheel from a fingerprint; each target's fate can be set."""

    clock: SimulatedClock
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Fingerprint by target."""
    broken: dict[str, Breakage] = field(default_factory=dict)
    smoke_fails: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    """Targets whose followed branch cannot be asked for."""
    rotten: set[str] = field(default_factory=set)
    """Targets that no longer become the same bytes."""
    lacking: dict[str, str] = field(default_factory=dict)
    """What this host lacks for a target: then its build takes no time, and is blocked."""
    blocks: dict[str, str] = field(default_factory=dict)
    """What this host lacks for a target, as a build finds it that leaves a directory."""
    archives: dict[str, LostArchives] = field(default_factory=dict)
    """What the servers of a target's archives say."""
    free: int = 10**15
    seconds: float = 600.0
    built: list[str] = field(default_factory=list)
    raises: dict[str, BaseException] = field(default_factory=dict)
    meanwhile: Callable[[], None] | None = None
    """What happens in the middle of the next build."""

    def fingerprint(self, target: Target) -> Mapping[str, str]:
        """Return the scripted fingerprint."""
        if target.name in self.unreachable:
            raise SupplyError("the server does not answer", remedy="Try again.")
        return self.parts.setdefault(target.name, {"recipe": "1", "the commit": "a" * 40})

    def obstacle(self, target: Target) -> str:
        """Say what the host lacks."""
        return self.lacking.get(target.name, "")

    def build(self, order: BuildOrder) -> NightlyBuild:
        """Write a wheel whose bytes follow from the fingerprint."""
        name = order.target.name
        if name in self.lacking:
            raise HostError(self.lacking[name], remedy="Install it.")
        self.built.append(name)
        self.clock.pass_seconds(self.seconds)
        happens, self.meanwhile = self.meanwhile, None
        if happens:
            happens()
        if name in self.raises:
            raise self.raises[name]
        fault = self.broken.get(name)
        if name in self.blocks:
            fault = Breakage(stage="check", line=self.blocks[name], remedy="Install it.")
        (order.work / "compile.log").write_text(f"INFO: building\n{fault.line if fault else ''}\n")
        common: dict[str, object] = {
            "seconds": self.seconds,
            "logs": ("compile.log",),
            "stages": {"fetch": 12.0, "compile": self.seconds - 12},
            "commits": (CommitLine(commit="a" * 40, subject="A commit <b>with</b> markup"),),
        }
        if fault:
            result = "blocked" if name in self.blocks else "failed"
            return order.outcome(**common, result=result, broken=fault)
        digest = hashlib.sha256(repr(sorted(order.fingerprint.items())).encode()).hexdigest()
        wheel = write_wheel(
            order.work,
            "tf_" + "".join(sign for sign in name if sign.isalnum()),
            f"1.0+g{digest[:10]}",
            body=f"made_from = {digest!r}\n",
        )
        status = "failed" if name in self.smoke_fails else "passed"
        smoke = (
            (SmokeLine(program="imports", status=status, detail="<tried>"),)
            if order.target.smoke
            else ()
        )
        return order.outcome(
            **common,
            result="built",
            wheel=wheel.name,
            version=wheel.name.split("-")[1],
            sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
            size=wheel.stat().st_size,
            smoke=smoke,
            needs={"glibc": "2.17", "gpu": "sm_86,sm_90"},
        )

    def reproduce(self, target: Target, wheel: Path) -> str:
        """Say whether the target still becomes the same bytes."""
        assert wheel.is_file()
        return "1 file differs" if target.name in self.rotten else ""

    def lost_archives(self, asked: Sequence[Target]) -> Mapping[str, LostArchives]:
        """Say that all archives are there, but for the scripted ones."""
        return {target.name: self.archives.get(target.name, LostArchives()) for target in asked}

    def make_room(self, wanted: int) -> FreeSpace:
        """Return the scripted free space."""
        del wanted
        return FreeSpace(self.free, self.free)


def a_build(**values: object) -> NightlyBuild:
    """Return a nightly build of the demo, which failed unless the values say otherwise."""
    known: dict[str, object] = {
        "id": "x",
        "target": "demo",
        "recipe": "demo",
        "started": "2026-01-01T02:00:00Z",
        "seconds": 1.0,
        "result": "failed",
    }
    return NightlyBuild.model_validate(known | values)


@dataclass(frozen=True)
class PlayedHost(BuildHost):
    """A build host with the fake builder and a simulated clock."""

    @property
    def fake(self) -> FakeBuilder:
        """The builder, as a test sets it."""
        builder: object = self.builder
        assert isinstance(builder, FakeBuilder)
        return builder

    def pass_night(self, a: object = None, **options: Any) -> NightOutcome:  # noqa: ANN401 as `night.run`
        """Run a night and let the day pass; with `a`, the recipe a has changed to that."""
        if a is not None:
            self.change(a)
        outcome = night.run(self, **options)
        self.fake.clock.next_night()
        return outcome

    def pass_nights(self, count: int, *, changes: bool = False) -> None:
        """Pass some nights; with `changes`, the recipe a is another one in each."""
        for number in range(count):
            self.pass_night(a=number if changes else None)

    def change(self, recipe: object, commit: str = "a" * 40) -> None:
        """Change the recipe and the commit of target a."""
        self.fake.parts["a"] = {"recipe": str(recipe), "the commit": commit}

    def page(self, path: str = "index.html") -> str:
        """Return a file of the site."""
        return (self.site / path).read_text("utf-8")

    def latest(self) -> dict[str, dict[str, Any]]:
        """Return what `latest.json` says of each target."""
        return {
            target["name"]: target for target in json.loads(self.page("latest.json"))["targets"]
        }

    def listed(self, project: str) -> list[str]:
        """Return the wheels that the index lists of a project."""
        page = json.loads(self.page(f"simple/{project}/index.json"))
        return [str(file["filename"]) for file in page["files"]]

    def changed_after_a_night(self, commit: str = "b" * 40) -> FakeBuilder:
        """Let a night pass, then change the recipe and the commit of target a; return the builder."""
        self.pass_night()
        self.change(2, commit)
        return self.fake


def host_with(folder: Path, *names: str, nights: int = 0, **keys: object) -> PlayedHost:
    """Return a build host with these recipes, after some nights."""
    clock = SimulatedClock()
    recipes = [{"name": name} for name in names]
    nightly = NightlyFile.model_validate({"directory": str(folder), "recipe": recipes, **keys})
    host = PlayedHost(nightly, cast("PipelineBuilder", FakeBuilder(clock)), clock)
    host.pass_nights(nights)
    return host
