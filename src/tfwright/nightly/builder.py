"""Builds a target with the pipeline: doctor, build, inspect, smoke, compare.

What a page shows of the build is kept next to its wheel.
"""

import gzip
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

from tfwright.build import reproduce as reproduction
from tfwright.doctor import requirements
from tfwright.documents import nightly as nightly_document
from tfwright.documents.host_file import HostFile, Sign
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.documents.stages import NAMES
from tfwright.errors import HostError, SupplyError, TfwrightError
from tfwright.host import probes
from tfwright.index import labels
from tfwright.lock import inputs as lock_inputs
from tfwright.nightly import cache, due, inputs, targets
from tfwright.nightly.builds import Breakage, CommitLine, NightlyBuild, SmokeLine
from tfwright.nightly.inputs import KeptInputs
from tfwright.nightly.night import BuildOrder, FreeSpace
from tfwright.nightly.targets import FollowedCommit
from tfwright.pipeline import cost, engine, stamps
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Built, Published, Tree, Verdict
from tfwright.pipeline.stages import PIPELINE, publish
from tfwright.progress import SILENCE, Listener
from tfwright.smoke import smoking
from tfwright.smoke.run import TrialOutcome
from tfwright.smoke.smoking import SmokeReport
from tfwright.tools import files
from tfwright.tools.git.remote import Remote
from tfwright.vault import usage
from tfwright.wheel import archive
from tfwright.wheel.compare import comparison
from tfwright.wheel.inspect import inspection
from tfwright.wheel.inspect.inspection import Inspection
from tfwright.wheel.seal import envelope, sbom, statement

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
    _followed: dict[str, FollowedCommit | None] = field(default_factory=dict)
    """What each target follows, asked once a night."""

    def fingerprint(self, target: Target) -> Mapping[str, str]:
        """Return what decides the target's wheel now."""
        # Asked here, once: a branch that moves during the
        # night would build what was not judged.
        followed = targets.resolve(target, self.host_file)
        self._followed[target.name] = followed
        return self.decides(target)

    def decides(self, target: Target) -> Mapping[str, str]:
        """Return what decides the target's wheel, with the commit that was found before."""
        parts = targets.fingerprint(self.job(target), self.followed(target))
        # It is part of the wheel's name: whoever corrects it wants a new wheel.
        return {**parts, "the local version": target.local} if target.local else parts

    def followed(self, target: Target) -> FollowedCommit | None:
        """Return what a target follows, as `fingerprint` found it."""
        return self._followed.get(target.name)

    def follow(self, target: Target, commit: FollowedCommit | None) -> None:
        """Take what a target follows from the host that ordered the build."""
        self._followed[target.name] = commit

    def job(self, target: Target) -> BuildRequest:
        """Return the job that builds a target."""
        followed = self._followed.get(target.name)
        job = targets.job_of(target, self.host_file, followed, self.listener)
        job = replace(job, offline=self.offline)
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
        begun = time.monotonic()
        # The same commit as in the fingerprint, even if the branch moved since.
        job = self.job(order.target)
        # First of all: `invoke bisect` needs them most where a build fails.
        inputs.keep(KeptInputs(job.recipe, job.locked), order.work)
        build = NightlyBuild(
            id=order.id,
            target=order.target.name,
            recipe=order.target.recipe,
            started=order.started,
            seconds=0.0,
            result="built",
            commit=job.recipe.source.commit,
            fingerprint=dict(order.fingerprint),
            host=targets.host_lines(),
            **self._since_last_good(order, job),
        )
        # Any expected failure is a result of the night, and the next target is built.
        try:
            update = self._attempt(order, job)
        except TfwrightError as fault:
            update = _failure(fault, order.work)
        broken = update.get("broken")
        until = broken.stage if isinstance(broken, Breakage) else ""
        update |= _kept_logs(job, order.work, until)
        update["stages"] = _stage_times(job, until)
        update["seconds"] = time.monotonic() - begun
        return NightlyBuild.model_validate({**build.model_dump(), **update})

    def _since_last_good(self, order: BuildOrder, job: BuildRequest) -> dict[str, object]:
        """Return what changed since the last good build."""
        last = order.last_good
        if last is None:
            return {}
        changed = due.differing(last.fingerprint, order.fingerprint)
        # A driver or a kernel decides no wheel, and may still be what broke the build.
        of_host = due.differing(last.host, targets.host_lines())
        changed += tuple(f"host: {name}" for name in of_host)
        found: dict[str, object] = {"against": last.id, "changed": changed}
        if last.commit and last.commit != job.recipe.source.commit:
            found["commits"] = lines = self._commits_since(last.commit, job)
            if not lines:
                # The page would list no commit, and a reader would miss the reason.
                rewritten = "the history: no path leads from the last good commit to this one"
                found["changed"] = (*changed, rewritten)
        return found

    def _commits_since(self, before: str, job: BuildRequest) -> tuple[CommitLine, ...]:
        """Return the commits that were added since another one; none if no path leads from it."""
        # The mirror that this host names, as for the build.
        source = job.recipe.source
        address = targets.origin_of(source.url, self.host_file)
        pairs = Remote(job.places.git, address).subjects(before, source.commit)
        return tuple(CommitLine(commit=commit, subject=text) for commit, text in pairs)

    def _attempt(self, order: BuildOrder, job: BuildRequest) -> dict[str, object]:
        """Run doctor and the pipeline, then look at the wheel."""
        # First what costs seconds: a host that lacks something would fail after hours.
        _insist_on_host(job)
        made = engine.build(job)
        # mypy cannot know which result the last stage of PIPELINE gives.
        if not isinstance(made, Published):
            raise TypeError("the last stage makes Published")
        wheel = self._labelled(order, job, made)
        report = inspection.inspect(wheel)
        try:
            inspection.insist(report)
        except TfwrightError as fault:
            # It comes after the pipeline, whose stages name themselves.
            fault.stage = "inspect"
            raise
        _write_bill(wheel)
        return {
            "wheel": wheel.name,
            "version": wheel.name.split("-")[1],
            "sha256": files.sha256(wheel),
            "size": wheel.stat().st_size,
            "needs": _needs(report),
            "sizes": _sizes(wheel),
            "architectures": report.summary.gpu_bytes if report.summary else {},
            "differences": tuple(_differences(order.last_wheel, wheel)),
            **self._smoke(order, job, wheel),
        }

    def _labelled(self, order: BuildOrder, job: BuildRequest, made: Published) -> Path:
        """Put the wheel under its nightly version, with its provenance, into the build."""
        source = made.wheel.path
        version = self._version(order.target, job, source)
        wheel = order.work / source.name
        # The pipeline's signature holds only while the name stays: a new name needs a new one.
        if version == source.name.split("-")[1]:
            shutil.copyfile(source, wheel)
            self._copy_provenance(made, wheel)
            return wheel
        wheel = labels.relabel(source, order.work, version)
        self._write_provenance(job, wheel)
        return wheel

    def _version(self, target: Target, job: BuildRequest, wheel: Path) -> str:
        """Return the version of a target's wheel."""
        followed = self._followed.get(target.name)
        tree = stamps.last(job, "source", Tree)
        commit = followed.commit if followed else ""
        epoch = tree.epoch if tree else 0
        version = wheel.name.split("-")[1]
        return labels.labelled_version(version, target.local, commit=commit, epoch=epoch)

    @staticmethod
    def _copy_provenance(made: Published, wheel: Path) -> None:
        shutil.copyfile(made.statement.path, _next_to(wheel, statement.SUFFIX))
        if made.envelope:
            shutil.copyfile(made.envelope.path, _next_to(wheel, envelope.SUFFIX))

    @staticmethod
    def _write_provenance(job: BuildRequest, wheel: Path) -> None:
        """Write the statement about the wheel as it is named now, signed where there is a key."""
        verdict = stamps.last(job, "verify", Verdict)
        built = stamps.last(job, "compile", Built)
        if verdict is None or built is None:
            return
        text = publish.provenance(wheel, files.sha256(wheel), verdict, built)
        _write_statement(wheel, text, job.host_file.sign)

    def _smoke(self, order: BuildOrder, job: BuildRequest, wheel: Path) -> dict[str, object]:
        """Try the wheel in a fresh venv; a trial that cannot begin is a failure of ``install``."""
        if not order.target.smoke:
            return {}
        stores = job.places.stores if job.offline else ()
        request = smoking.Request.of(job.recipe, job.host_file, wheel, stores)
        try:
            report = smoking.smoke(request, lambda _: None)
        except TfwrightError as fault:
            failed = SmokeLine(program="install", status="failed", detail=fault.what)
            return {"smoke": (failed,)}
        files.write(order.work / "smoke.json", report.dump())
        return _tried(report)

    def reproduce(self, target: Target, wheel: Path) -> str:
        """Build a wheel again from nothing, offline; say how it differs."""
        rebuilt = reproduction.rebuild(self.job(target))
        version = wheel.name.split("-")[1]
        # The index holds the wheel under its nightly version; the pipeline builds the plain one.
        if version != rebuilt.name.split("-")[1]:
            rebuilt = labels.relabel(rebuilt, rebuilt.parent, version)
        found = comparison.compare(wheel, rebuilt)
        if found.same:
            return ""
        first = found.differences[0]
        return f"{len(found.differences)} differences, first {first.member}: {first.what}"

    def links(self, target: Target) -> str:
        """Ask the servers of a target's archives; name what no server has any more."""
        rows = lock_inputs.check(self.job(target), deep=False)
        lost = [row.name for row in rows if not row.left and not row.kept]
        kept = [row.name for row in rows if not row.left and row.kept]
        said = []
        if lost:
            said.append(f"no server has {', '.join(lost)}")
        if kept:
            said.append(f"only this host's vault has {', '.join(kept)}")
        return "; ".join(said)

    def make_room(self, wanted: int) -> FreeSpace:
        """Remove what can be had again, if a disk is short of room; return what is free.

        First what no recipe needs of the vault, then what the build cache used longest ago.
        """
        build_out = self.host_file.build_out
        cached = self.host_file.cache_directory
        if self._missing(build_out / "vault", wanted) > 0:
            self._collect(build_out)
        missing = self._missing(cached, wanted)
        if missing > 0:
            cache.trim(cached, max(0, cache.size(cached) - missing))
        free = [_disk(place)[1] for place in self._places]
        return FreeSpace(site=free[0], work=free[-1])

    @property
    def _places(self) -> tuple[Path, ...]:
        """Where a build needs room, the directory of the site first."""
        # Workers build in places of their own.
        here = self.nightly.on == "here"
        own = (self.host_file.build_out,) if here else ()
        return (self.nightly.directory, *own)

    def _missing(self, folder: Path, wanted: int) -> int:
        """Return how many bytes builds lack on the disk that holds a folder."""
        # By their sizes: subvolumes of a disk have device numbers of their own.
        disks = [_disk(place) for place in self._places]
        size, _ = _disk(folder)
        return wanted - min((free for total, free in disks if total == size), default=wanted)

    def _collect(self, build_out: Path) -> None:
        """Remove what no recipe needs of the vault."""
        # Targets with axes have lock files of their own.
        locks = sorted((nightly_document.path().parent / targets.LOCKS).glob("*.lock"))
        # A build by hand may be about to need something, and a recipe may have a fault.
        with suppress(TfwrightError):
            names = [wanted.name for wanted in self.nightly.recipe]
            usage.collect(build_out, usage.known_recipes(names), lambda _: None, locks)


def _write_statement(wheel: Path, text: bytes, sign: Sign | None) -> None:
    """Write a statement next to its wheel, and its signature where there is a key."""
    files.write(_next_to(wheel, statement.SUFFIX), text)
    if sign:
        signed = envelope.write(text, sign.key)
        files.write(_next_to(wheel, envelope.SUFFIX), signed)


def _tried(report: SmokeReport) -> dict[str, object]:
    """Return the lines and curves of a trial, as a build's page shows them."""
    sweep = {}
    for device, points in report.curves.items():
        sweep[device] = tuple((float(point.size), point.gflops) for point in points)
    return {"smoke": tuple(map(_smoke_line, report.outcomes)), "sweep": sweep}


def _smoke_line(outcome: TrialOutcome) -> SmokeLine:
    return SmokeLine(
        program=outcome.program,
        status=outcome.status,
        detail=outcome.reason,
        seconds=outcome.seconds,
    )


def _insist_on_host(job: BuildRequest) -> None:
    """Raise HostError for the first thing that this host lacks."""
    findings = requirements.examine(job.recipe, job.host_file, probes.here())
    for finding in findings:
        if finding.blocks:
            raise HostError(str(finding), remedy=finding.remedy)


def _disk(path: Path) -> tuple[int, int]:
    """Return size and free bytes of the disk that holds a path, which need not be there yet."""
    usage = shutil.disk_usage(_existing(path))
    return usage.total, usage.free


def _next_to(wheel: Path, suffix: str) -> Path:
    return wheel.with_name(wheel.name + suffix)


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _write_bill(wheel: Path) -> None:
    """Put the bill of materials next to the wheel, where programs find it without unpacking."""
    # A wheel of a recipe with an interface of its own may have no bill.
    with archive.opened(wheel) as content, suppress(KeyError):
        member = f"{archive.metadata_directory(content)}/{sbom.NAME}"
        files.write(_next_to(wheel, ".cdx.json"), content.read(member))


def _needs(report: Inspection) -> dict[str, str]:
    """Return what a machine must have for a wheel, as inspect read it off the libraries."""
    summary = report.summary
    if summary is None:
        return {}
    # Only what a reader compares with a machine; the page has the rest behind a link.
    found = {name.lower(): need.version for name, need in summary.needs.items()}
    shown = ("glibc", "glibcxx", "cpu", "macos")
    wanted: dict[str, str] = {name: found[name] for name in shown if name in found}
    if summary.architectures:
        wanted["gpu"] = ",".join(summary.architectures)
    cuda = dict(report.stated).get("cuda_version", "")
    if cuda:
        wanted["cuda"] = cuda
    return wanted


def _sizes(wheel: Path) -> dict[str, int]:
    """Return the unpacked bytes of the largest files of a wheel."""
    with archive.opened(wheel) as content:
        # The largest first: a page shows what makes a wheel grow.
        largest = nlargest(LARGEST_FILES, archive.files(content), key=attrgetter("file_size"))
    return {member.filename: member.file_size for member in largest}


def _differences(before: Path | None, now: Path) -> Iterator[str]:
    """Say in what a wheel differs from the last good one."""
    if before is None or not before.is_file():
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


def _failure(fault: TfwrightError, work: Path) -> dict[str, object]:
    """Return what broke: the line, its cause and what helps."""
    # A fault of the host says nothing about the recipe, and must not open a thread for it.
    blocked = isinstance(fault, HostError) or _unanswered(fault)
    stage = fault.stage or "check"
    lines = [line for line in fault.evidence.lines if line.strip()]
    # The last line is what a log ends with; the catalogue may find a better one below. Lines
    # without a log are details, such as the hunk of a patch that does not apply.
    logged = bool(lines and fault.evidence.log)
    broken = Breakage(
        stage=stage,
        line=lines[-1] if logged else fault.what.partition("\n")[0],
        cause=fault.what,
        remedy=fault.remedy,
    )
    log = fault.evidence.log
    if log and log.is_file():
        broken = _diagnosed(broken, log)
    files.write(work / "failure.txt", f"{fault.what}\n{fault.remedy}\n")
    return {"result": "blocked" if blocked else "failed", "broken": broken}


def _unanswered(fault: TfwrightError) -> bool:
    """Say whether a server did not answer, which no change of the recipe would mend.

    A server that answers without the file, or with other bytes, is a failure of the recipe.
    """
    if not isinstance(fault, SupplyError):
        return False
    said = [fault.what, *fault.evidence.lines]
    return any(UNREACHABLE.search(line) for line in said)


def _diagnosed(broken: Breakage, log: Path) -> Breakage:
    """Let the catalogue say which line broke, why, and what helps."""
    from tfwright.diagnosis import reader

    found = reader.diagnose(str(log))
    update: dict[str, object] = {"log": f"logs/{log.name}"}
    if found.first:
        update |= {"line": found.first.what, "number": found.first.line}
    # A match that explains nothing is a consequence of the first fault.
    match = next((match for match in found.matches if match.explains), None)
    if match:
        update |= {"line": match.text, "number": match.line}
        update |= {"cause": match.cause, "remedy": match.remedy}
    return broken.model_copy(update=update)


def _kept_logs(job: BuildRequest, work: Path, until: str) -> dict[str, object]:
    """Copy the logs and Bazel's profile into the build, up to the stage that failed."""
    # Copies: the next build of the recipe overwrites its logs.
    folder = work / "logs"
    folder.mkdir(exist_ok=True)
    # The files of later stages are those of earlier builds.
    later = _later_stages(until)
    found = sorted(job.places.logs.glob("*.log"))
    # A log is named after its stage: `verify-install.log`.
    own = [log for log in found if re.split(r"[-.]", log.name)[0] not in later]
    kept = [f"logs/{_copied(log, folder).name}" for log in own]
    profile = cost.profile(job)
    if "compile" in later or not profile.is_file():
        return {"logs": tuple(kept)}
    _packed(profile, folder / f"{profile.name}.gz")
    return {"logs": tuple(kept), "profile": f"logs/{profile.name}.gz"}


def _later_stages(until: str) -> tuple[str, ...]:
    """Return the stages after one of them; none after what is not a stage, such as `smoke`."""
    return NAMES[NAMES.index(until) + 1 :] if until in NAMES else ()


def _copied(log: Path, folder: Path) -> Path:
    """Copy a log, packed if it is long; the page reads plain ones."""
    target = folder / log.name
    if log.stat().st_size <= PLAIN_LOG:
        return Path(shutil.copyfile(log, target))
    return _packed(log, target.with_name(f"{log.name}.gz"))


def _packed(source: Path, target: Path) -> Path:
    with source.open("rb") as plain, gzip.open(target, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed)
    return target


def _stage_times(job: BuildRequest, until: str) -> dict[str, float]:
    """Return the seconds of each stage before the one that failed."""
    without = (until, *_later_stages(until))
    times = {}
    for stage in PIPELINE:
        stamp = stamps.read(job, stage) if stage.name not in without else None
        if stamp:
            times[stage.name] = round(stamp.seconds, 2)
    return times
