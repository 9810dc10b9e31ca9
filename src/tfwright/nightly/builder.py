"""Builds a target with the pipeline: doctor, build, inspect, smoke, compare.

What a page shows of the build is kept next to its wheel.
"""

import gzip
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

from tfwright.build import reproduce as reproduction
from tfwright.doctor import requirements
from tfwright.documents import nightly as nightly_document
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import HostError, SupplyError, TfwrightError
from tfwright.host import probes
from tfwright.lock import inputs as lock_inputs
from tfwright.nightly import builds, targets, versions
from tfwright.nightly.builds import (
    Breakage,
    BuildOrder,
    FollowedCommit,
    KeptInputs,
    NightlyBuild,
    SmokeLine,
)
from tfwright.nightly.night import FreeSpace, LostArchives
from tfwright.pipeline import caching, engine, stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, Tree, Verdict
from tfwright.pipeline.stage import Results
from tfwright.pipeline.stages import publish
from tfwright.progress import SILENCE, STAGES, Listener
from tfwright.smoke import smoking
from tfwright.smoke.smoking import SmokeReport
from tfwright.tools import files, trees
from tfwright.tools.cache import store
from tfwright.vault import usage
from tfwright.wheel import archive
from tfwright.wheel.compare import comparison
from tfwright.wheel.inspect import inspection
from tfwright.wheel.seal import build_record

UNREACHABLE = re.compile(
    r"could not resolve|name or service not known|connection (refused|reset|timed out)"
    r"|timed? ?out|network is unreachable|no route to host|HTTP 50[234]",
    re.IGNORECASE,
)
"""How git, pip and tfwright itself say that a server did not answer."""
LARGEST_FILES = 25
"""Files of a wheel whose sizes are kept."""
PLAIN_LOG = 4 * 1024**2
"""Bytes from which on a log is kept packed."""
MOST_LINES = 200
"""Differences from the last good wheel that are kept."""


@dataclass
class PipelineBuilder:
    """The builder of a real build host."""

    nightly: NightlyFile
    host_file: HostFile
    listener: Listener = SILENCE
    offline: bool = False
    """Whether builds use only what is on this host."""
    followed: dict[str, FollowedCommit | None] = field(default_factory=dict)
    """What each target follows, by name: asked once a night, or ordered."""

    def fingerprint(self, target: Target) -> Mapping[str, str]:
        """Return what decides the target's wheel now."""
        # Asked here, once: a branch that moves during the night would build what was not judged.
        self.followed[target.name] = targets.resolve(target, self.host_file)
        return self.known_fingerprint(target)

    def known_fingerprint(self, target: Target) -> Mapping[str, str]:
        """Return what decides the target's wheel, with the commit that was found before."""
        parts = targets.fingerprint(self.job(target), self.followed.get(target.name))
        # It is part of the wheel's name: whoever corrects it wants a new wheel.
        return {**parts, "the local version": target.local} if target.local else parts

    def job(self, target: Target) -> RecipeJob:
        """Return the job that builds a target."""
        followed = self.followed.get(target.name)
        job = targets.job_of(target, self.host_file, followed, self.listener)
        # Its wheel goes to the site, under a version of its own. In the wheelhouse, which is for
        # builds by hand, it could take the place of another recipe's.
        job = replace(job, offline=self.offline, until="verify")
        # The pointer `stable` must not rest on the build cache. Where nights reproduce wheels, they
        # do so without it; where they do not, this build is the only one.
        return job if self.nightly.reproduce else job.without_cache()

    def obstacle(self, target: Target) -> str:
        """Say what keeps this host from building a target, as `invoke doctor` finds it."""
        # Workers are asked when they are given an order.
        if self.nightly.on != "here":
            return ""
        job = self.job(target)
        return requirements.obstacle(job.recipe, job.host_file) or ""

    def build(self, order: BuildOrder) -> NightlyBuild:
        """Build one target; whatever fails is in the result."""
        begun, at = time.monotonic(), time.time()
        # The same commit as in the fingerprint, even if the branch moved since.
        job = self.job(order.target)
        # First of all: `invoke bisect` needs them most where a build fails.
        builds.keep_inputs(KeptInputs(job.recipe, job.locked), order.work)
        found: dict[str, object] = {
            "commit": job.recipe.source.commit,
            "source": job.recipe.source.url,
            "host": targets.host_lines(),
            **self._since_last_good(order, job),
        }
        # Any expected failure is a result of the night, and the next target is built.
        try:
            found |= self._attempt(order, job)
        except TfwrightError as fault:
            found |= _failure(fault, order.work)
        broken = found.get("broken")
        until = broken.stage if isinstance(broken, Breakage) else ""
        found |= _copy_logs(job, order.work, until)
        found["stages"] = _stage_times(job, until, at)
        return order.outcome(**found, seconds=time.monotonic() - begun)

    def _since_last_good(self, order: BuildOrder, job: RecipeJob) -> dict[str, object]:
        """Return what changed since the last good build."""
        last, source = order.last_good, job.recipe.source
        if last is None:
            return {}
        changed = builds.differing_parts(last.fingerprint, order.fingerprint)
        # A driver or a kernel decides no wheel, and may still be what broke the build.
        of_host = builds.differing_parts(last.host, targets.host_lines())
        changed += tuple(f"host: {name}" for name in of_host)
        found: dict[str, object] = {"changed": changed}
        if last.commit and last.commit != source.commit:
            commits = targets.commits(source.url, last.commit, source.commit, self.host_file)
            found["commits"] = commits
            if not commits:
                # The page would list no commit, and a reader would miss the reason.
                rewritten = "the history: no path leads from the last good commit to this one"
                found["changed"] = (*changed, rewritten)
        return found

    def _attempt(self, order: BuildOrder, job: RecipeJob) -> dict[str, object]:
        """Run doctor and the pipeline, then look at the wheel."""
        # First what costs seconds: a host that lacks something would fail after hours.
        for finding in requirements.examine(job.recipe, job.host_file, probes.this_host()):
            if finding.blocks:
                raise HostError(str(finding), remedy=finding.remedy)
        made = engine.build(job)
        wheel = self._copy_with_version(order, job, made)
        caching.push_entries(job, made.of(Built))
        report = inspection.inspect(wheel)
        try:
            inspection.check_sound(report)
        except TfwrightError as fault:
            # It comes after the pipeline, whose stages name themselves.
            fault.stage = "inspect"
            raise
        # A wheel of a recipe with an interface of its own may have no bill.
        with archive.open_wheel(wheel) as content:
            # The largest first: a page shows what makes a wheel grow.
            largest = nlargest(LARGEST_FILES, archive.files(content), key=attrgetter("file_size"))
            with suppress(KeyError):
                bill = content.read(
                    f"{archive.metadata_directory(content)}/{build_record.BILL_NAME}"
                )
                # Where programs find it without unpacking.
                files.write(_next_to(wheel, ".cdx.json"), bill)
        return {
            "result": "built",
            "wheel": wheel.name,
            "version": wheel.name.split("-")[1],
            "sha256": files.sha256(wheel),
            "size": wheel.stat().st_size,
            "needs": report.needs_of_machine(),
            "sizes": {member.filename: member.file_size for member in largest},
            "architectures": dict(report.summary.gpu) if report.summary else {},
            "differences": tuple(_differences(Path(order.last_wheel), wheel)),
            **self._smoke(order, job, wheel),
        }

    def _copy_with_version(self, order: BuildOrder, job: RecipeJob, made: Results) -> Path:
        """Put the wheel under its nightly version, with its provenance, into the build."""
        verdict, followed = made.of(Verdict), self.followed.get(order.target.name)
        source, wheel = verdict.wheel.path, order.work / verdict.wheel.path.name
        before = source.name.split("-")[1]
        version = versions.nightly_version(
            before,
            order.target.local,
            commit=followed.commit if followed else "",
            epoch=made.of(Tree).epoch,
        )
        if version == before:
            shutil.copyfile(source, wheel)
        else:
            wheel = versions.with_version(source, order.work, version)
        stated = publish.statements(job, wheel, files.sha256(wheel), verdict, made.of(Built))
        for suffix, content in stated.items():
            files.write(_next_to(wheel, suffix), content)
        return wheel

    @staticmethod
    def _smoke(order: BuildOrder, job: RecipeJob, wheel: Path) -> dict[str, object]:
        """Try the wheel in a fresh venv; a trial that cannot begin is a failure of ``install``."""
        if not order.target.smoke:
            return {}
        try:
            report = smoke_wheel(job, wheel)
        except TfwrightError as fault:
            failed = SmokeLine(program="install", status="failed", detail=fault.what)
            return {"smoke": (failed,)}
        files.write(order.work / "smoke.json", report.dump())
        lines = [
            SmokeLine(
                program=one.program, status=one.status, detail=one.reason, seconds=one.seconds
            )
            for one in report.outcomes
        ]
        sweep = {
            device: tuple((float(point.size), point.gflops) for point in points)
            for device, points in report.curves.items()
        }
        return {"smoke": tuple(lines), "sweep": sweep}

    def reproduce(self, target: Target, wheel: Path) -> str:
        """Build a wheel again from nothing, offline; say how it differs."""
        rebuilt = reproduction.rebuild(self.job(target))
        version = wheel.name.split("-")[1]
        # The index holds the wheel under its nightly version; the pipeline builds the plain one.
        if version != rebuilt.name.split("-")[1]:
            rebuilt = versions.with_version(rebuilt, rebuilt.parent, version)
        found = comparison.compare(wheel, rebuilt)
        if found.same:
            return ""
        first = found.differences[0]
        return f"{len(found.differences)} differences, first {first.member}: {first.what}"

    def lost_archives(self, asked: Sequence[Target]) -> Mapping[str, LostArchives]:
        """Ask the servers of all archives, each address once; say what is lost, by target."""
        jobs: dict[str, RecipeJob] = {}
        for target in asked:
            # A recipe that cannot be read is reported by its own verdict.
            with suppress(TfwrightError):
                jobs[target.name] = self.job(target)
        rows = lock_inputs.ask_sources_together([*jobs.values()]) if jobs else []
        return {name: LostArchives.of(own) for name, own in zip(jobs, rows, strict=True)}

    def make_room(self, wanted: int) -> FreeSpace:
        """Remove what can be had again, if a disk is short of room; return what is free.

        First what no recipe needs of the vault, then what the build cache used longest ago.
        """
        settings = self.host_file
        # Workers build in places of their own.
        here = self.nightly.on == "here"
        places = (self.nightly.directory, *((settings.build_out,) if here else ()))

        def lacking_bytes(folder: Path) -> int:
            """Return how many bytes builds lack on the disk that holds a folder."""
            # By their sizes: subvolumes of a disk have device numbers of their own.
            size, _ = _disk_space(folder)
            free = [left for total, left in map(_disk_space, places) if total == size]
            return wanted - min(free, default=wanted)

        if lacking_bytes(settings.build_out / "vault") > 0:
            # Targets with axes have lock files of their own.
            locks = sorted((nightly_document.path().parent / targets.LOCKS).glob("*.lock"))
            # A build by hand may be about to need something, and a recipe may have a fault.
            with suppress(TfwrightError):
                names = [recipe.name for recipe in self.nightly.recipe]
                recipes = usage.known_recipes(names)
                usage.remove_unused(settings.build_out, recipes, locks)
        cached = settings.cache_directory
        if (lacking := lacking_bytes(cached)) > 0:
            store.remove_oldest([cached], max(0, trees.size(cached) - lacking))
        free = [_disk_space(place)[1] for place in places]
        return FreeSpace(site=free[0], work=free[-1])


def _disk_space(path: Path) -> tuple[int, int]:
    """Return size and free bytes of the disk that holds a path, which need not be there yet."""
    usage = shutil.disk_usage(next(each for each in (path, *path.parents) if each.exists()))
    return usage.total, usage.free


def _next_to(wheel: Path, suffix: str) -> Path:
    return wheel.with_name(wheel.name + suffix)


def _differences(before: Path, now: Path) -> Iterator[str]:
    """Say in what a wheel differs from the last good one, if there is one."""
    if not before.is_file():
        return
    try:
        found = comparison.compare(before, now)
    except TfwrightError as fault:
        # The disk damaged the old wheel; the new one is as good as it is.
        yield f"not compared: {fault.what}"
        return
    for difference in found.differences[:MOST_LINES]:
        where = f"{difference.member}: " if difference.member else ""
        yield f"{where}{difference.what}"


def smoke_wheel(job: RecipeJob, wheel: Path) -> SmokeReport:
    """Try the wheel of a job in a fresh venv; raise what `smoking.smoke` raises."""
    stores = job.places.stores if job.offline else ()
    request = smoking.Request.of(job.recipe, job.host_file, wheel, stores)
    return smoking.smoke(request, lambda _: None)


def breakage(fault: TfwrightError) -> Breakage:
    """Return what broke: the line, its cause and what helps."""
    lines = [line for line in fault.evidence.lines if line.strip()]
    log = fault.evidence.log
    # The last line is what a log ends with. Lines without a log are details, such as the hunk of a
    # patch that does not apply.
    broken: dict[str, object] = {
        "stage": fault.stage or "check",
        "line": lines[-1] if lines and log else fault.what.partition("\n")[0],
        "cause": fault.what,
        "remedy": fault.remedy,
    }
    if log and log.is_file():
        from tfwright.diagnosis import reader

        # The catalogue may know better which line broke, why, and what helps.
        found = reader.diagnose(str(log))
        broken["log"] = f"logs/{log.name}"
        if found.first:
            broken |= {"line": found.first.what, "number": found.first.line}
        # A match that explains nothing is a consequence of the first fault.
        if match := next((match for match in found.matches if match.explains), None):
            broken |= {"line": match.text, "number": match.line}
            broken |= {"cause": match.cause, "remedy": match.remedy}
    return Breakage.model_validate(broken)


def _failure(fault: TfwrightError, work: Path) -> dict[str, object]:
    """Return what broke, and whether the recipe did."""
    files.write(work / "failure.txt", f"{fault.what}\n{fault.remedy}\n")
    # A server that does not answer is no fault of the recipe; one that answers without the file, or
    # with other bytes, is.
    unanswered = isinstance(fault, SupplyError) and any(
        UNREACHABLE.search(line) for line in (fault.what, *fault.evidence.lines)
    )
    # A fault of the host says nothing about the recipe, and must not open a thread for it.
    blocked = isinstance(fault, HostError) or unanswered
    return {"result": "blocked" if blocked else "failed", "broken": breakage(fault)}


def _copy_logs(job: RecipeJob, work: Path, until: str) -> dict[str, object]:
    """Copy the logs and Bazel's profile into the build, up to the stage that failed."""
    # Copies: the next build of the recipe overwrites its logs.
    folder = work / "logs"
    folder.mkdir(exist_ok=True)
    # The files of later stages are those of earlier builds.
    later = _later_stages(until)
    kept = []
    for log in sorted(job.places.logs.glob("*.log")):
        # A log is named after its stage: `verify-install.log`.
        if re.split(r"[-.]", log.name)[0] in later:
            continue
        # Long ones are packed.
        long = log.stat().st_size > PLAIN_LOG
        copy = _pack(log, folder) if long else shutil.copyfile(log, folder / log.name)
        kept.append(f"logs/{copy.name}")
    profile = job.places.profile
    if "compile" in later or not profile.is_file():
        return {"logs": tuple(kept)}
    return {"logs": tuple(kept), "profile": f"logs/{_pack(profile, folder).name}"}


def _later_stages(until: str) -> tuple[str, ...]:
    """Return the stages after one of them; none after what is not a stage, such as `smoke`."""
    return STAGES[STAGES.index(until) + 1 :] if until in STAGES else ()


def _stage_times(job: RecipeJob, until: str, begun: float) -> dict[str, float]:
    """Return the seconds of each stage up to the one that failed; `begun` is when the build was."""
    # Those after it, and those that a night does not run, have stamps of earlier builds.
    without, stages = (until, *_later_stages(until)), engine.wanted_stages(job)
    stamped = {
        stage.name: stamps.read(job, stage.name) for stage in stages if stage.name not in without
    }
    found = {name: round(stamp.seconds, 2) for name, stamp in stamped.items() if stamp}
    if until in STAGES:
        # It has no stamp: it began when the stage before it left its own, or with the build.
        before = [stamps.written_at(job, stage) for stage in stages if stage.name in found]
        found[until] = round(max(0.0, time.time() - max([begun, *before])), 2)
    return found


def _pack(source: Path, folder: Path) -> Path:
    """Pack a file with gzip into a folder."""
    target = folder / f"{source.name}.gz"
    with source.open("rb") as plain, gzip.open(target, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed)
    return target
