"""Hands the builds of a night to other machines: the workers of the host file, or its Slurm.

A build order is a directory. The host that runs the night writes ``order.json``, with what the
build needs and a worker's checkout lacks. The worker fills ``result`` and writes ``built.json``
last. If the order asks for the last good wheel once more, that says in what the two differ.
"""

import datetime as dt
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tfwright.documents import host_file
from tfwright.documents import nightly as nightly_document
from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import HostError, RecipeError, ToolError
from tfwright.lock import inputs
from tfwright.nightly import builds, notices, targets
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import Breakage, BuildOrder, NightlyBuild
from tfwright.nightly.night import FULL, BuildHost, Conclude
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import SILENCE, Listener
from tfwright.tools import disk, files, json_text
from tfwright.tools.remote import slurm, ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.workers import hand_out, supply
from tfwright.workers.schedule import Assignment, WorkSchedule

ORDERS = "orders"
"""The folder of orders, in the night's directory and in a worker's build_out."""
ORDER, RESULT, BUILT = "order.json", "result", "built.json"
LAST = "last"
"""The folder of the last good wheel, for a worker that does not see the build host's files."""
READ = "Look at the log of the worker in build_out/workers/logs."
CAUSES = {
    "refused": "no worker can build it",
    "lost": "every worker was lost, or cannot build it",
    "failed": "the workers died while they built it, or tfwright failed there",
}
"""Why there is no build, by the state of an assignment."""


def build_host(
    listener: Listener = SILENCE, note: Callable[[str], None] = lambda _: None
) -> BuildHost:
    """Return this build host, as its two files describe it."""
    # nightly.toml says what to build, the host file where and with what.
    nightly_file, settings = nightly_document.read(), host_file.read()
    builder = PipelineBuilder(nightly_file, settings, listener)
    channels = notices.channels_of(nightly_file.notices)
    fleet = fleet_of(builder, note)
    return BuildHost(nightly_file, builder, note=note, channels=channels, fleet=fleet)


def fleet_of(builder: PipelineBuilder, note: Callable[[str], None]) -> "NightFleet | None":
    """Return the machines that build, or None for this one.

    Raises HostError if the host file does not name them.
    """
    # As nightly.toml says: a single build never moves to another machine by itself.
    if builder.nightly.on == "here":
        return None
    if builder.nightly.on == "workers":
        hand_out.hosts(builder.host_file)
    else:
        hand_out.slurm_of(builder.host_file)
    return NightFleet(builder, note)


def write_order(
    folder: Path, order: BuildOrder, builder: PipelineBuilder, *, carry: bool, offline: bool = False
) -> None:
    """Write an order of a night's builder into an empty folder of its own.

    With `carry`, the last good wheel goes with it. `offline` says that the worker was given all
    inputs.
    """
    last, lock = Path(order.last_wheel), targets.lock_of(order.target)
    copies = [(last, LAST)] if carry and last.is_file() else []
    # Locks of recipes are in the worker's checkout; those of axes are the build host's own.
    if lock.parent.name == targets.LOCKS and lock.is_file():
        copies.append((lock, targets.LOCKS))
    known = {
        "followed": builder.followed.get(order.target.name),
        "reproduce": builder.nightly.reproduce,
        "offline": offline,
        "last_wheel": str(last.name if carry else last) if last.is_file() else "",
    }
    with disk.as_host_error(folder):
        # A lost worker may have left a part of its result there, or still write to it.
        files.remove(folder)
        files.write(folder / ORDER, order.model_copy(update=known).model_dump_json(indent=1))
        for file, name in copies:
            (folder / name).mkdir()
            shutil.copyfile(file, folder / name / file.name)


def write_recipe_order(folder: Path, recipe: str) -> None:
    """Write the order of a recipe into an empty folder, where this machine is asked to build it."""
    if (folder / ORDER).exists():
        raise RecipeError(
            f"{folder} holds an order already",
            remedy="Leave out --recipe to carry it out, or name another folder.",
        )
    target = Target(name=Path(recipe).stem if recipe.endswith(".toml") else recipe, recipe=recipe)
    builder = PipelineBuilder(NightlyFile(directory=folder), host_file.read())
    started, fingerprint = dt.datetime.now(dt.UTC), builder.known_fingerprint(target)
    name = builds.identifier(started, target.name, fingerprint)
    order = BuildOrder(id=name, target=target, fingerprint=fingerprint, started=started)
    files.write(folder / ORDER, order.model_dump_json(indent=1))


def carry_out(folder: Path, listener: Listener) -> NightlyBuild:
    """Build an order on this machine.

    Raises RecipeError if the folder holds no order, HostError if this machine would build another
    wheel than the host that ordered it, or lacks something.
    """
    folder = folder.absolute()
    # Only data: a worker builds with the recipes and the code of its own checkout.
    order = json_text.load_or_none(folder / ORDER, BuildOrder)
    if order is None:
        raise RecipeError(
            f"{folder} holds no build order that this tfwright can read",
            remedy="Let 'invoke nightly' write it, on a build host with this version of tfwright, "
            "or add --recipe to build a recipe there.",
        )
    # Carried out once before, it has a document of that time.
    files.remove(folder / BUILT)
    # No command reached a lost worker, so it still has its old order.
    if folder.parent.name == ORDERS:
        files.remove_old(folder.parent, supply.LEFT_DAYS)
    # Locks of targets with axes are looked for next to nightly.toml; the order has them.
    os.environ["TFWRIGHT_NIGHTLY_FILE"] = str(folder / "nightly.toml")
    nightly = NightlyFile(directory=folder, reproduce=order.reproduce)
    builder = PipelineBuilder(nightly, host_file.read(), listener, offline=order.offline)
    target = order.target
    builder.followed[target.name] = order.followed
    differing = builds.differing_parts(order.fingerprint, builder.known_fingerprint(target))
    if differing:
        raise HostError(
            f"This machine would build another wheel: it differs in {', '.join(differing)}",
            remedy="Update its checkout of tfwright; build in a container if systems differ.",
        )
    # A path from the build host is absolute, and joining it leaves it as it is.
    last = folder / LAST / order.last_wheel
    if order.again:
        begun = time.monotonic()
        # Offline it is built from this machine's vault, which may have none of its inputs yet.
        inputs.fetch_inputs(builder.job(target), wait=True)
        difference = builder.reproduce(target, last)
        found = (difference,) if difference else ()
        seconds = time.monotonic() - begun
        build = order.outcome(result="built", seconds=seconds, differences=found)
    else:
        result = folder / RESULT
        # A lost worker may have left a part of it in a shared directory.
        files.remove(result)
        result.mkdir(parents=True)
        build = builder.build(order.model_copy(update={"work": result, "last_wheel": str(last)}))
    # For a night that is killed before it hears which machine this was.
    worker = order.worker or os.environ.get("SLURMD_NODENAME", "")
    build = build.model_copy(update={"worker": worker})
    files.write(folder / BUILT, build.model_dump_json(indent=1))
    if build.result == "blocked" and build.broken:
        raise HostError(build.broken.cause or build.broken.line, remedy=build.broken.remedy)
    return build


def read_result(folder: Path) -> NightlyBuild:
    """Return what a worker says of an order. Raises HostError."""
    found = json_text.load_or_none(folder / BUILT, NightlyBuild)
    if found is None:
        raise HostError("The worker left no result", remedy=READ)
    return found


def collect_result(folder: Path, order: BuildOrder) -> NightlyBuild:
    """Put the result of an order into the night's own directory; return the build.

    Raises HostError if the worker left no result, or one of another order.
    """
    result, build = folder / RESULT, read_result(folder)
    # Identifier, target and wheel become paths of the site, and the rest says what is due.
    same = build.model_copy(update=order.known) == build
    if not same or build.wheel != Path(build.wheel).name:
        raise HostError(
            f"The worker left the result of another order: {build.id}",
            remedy=f"Keep whatever else writes to {folder} away from it, and build again.",
        )
    if not result.is_dir():
        raise HostError("The worker left no result", remedy=READ)
    wheel = result / build.wheel
    if build.wheel and not (wheel.is_file() and files.sha256(wheel) == build.sha256):
        raise HostError(
            f"{build.wheel} did not come as it was built",
            remedy="Build it again; look at the disks of both machines.",
        )
    files.remove(order.work)

    def links(place: str, names: list[str]) -> list[str]:
        """Name the links, which could lead to any file of this host."""
        return [name for name in names if Path(place, name).is_symlink()]

    # Not moved: if the night is killed now, the next start takes it again.
    shutil.copytree(result, order.work, copy_function=files.link, ignore=links)
    return build


@dataclass(frozen=True)
class NightFleet:
    """The workers of the host file, or its Slurm, whose nodes all see the night's directory."""

    builder: PipelineBuilder
    note: Callable[[str], None]
    lost: set[str] = field(default_factory=set)
    """Workers that did not answer this night: each attempt to reach one takes ten seconds."""

    @property
    def settings(self) -> HostFile:
        """The host file."""
        return self.builder.host_file

    @property
    def hosts(self) -> Mapping[str, WorkerTable]:
        """The workers; none where Slurm builds."""
        return {} if self._slurm else hand_out.hosts(self.settings)

    @property
    def _slurm(self) -> bool:
        return self.builder.nightly.on == "slurm"

    @property
    def width(self) -> int:
        """How many targets are built at once; by Slurm without a limit, very many."""
        if self._slurm:
            return hand_out.slurm_of(self.settings).most or 10_000
        return len(self.hosts)

    def folder(self, order: BuildOrder) -> Path:
        """Return the folder of an order."""
        return self.builder.nightly.directory / ORDERS / order.id

    def build(
        self,
        orders: Sequence[BuildOrder],
        seconds: Mapping[str, float],
        conclude: Conclude,
        begin: Callable[[str, str], None],
    ) -> None:
        """Build all orders; the order of a lost worker goes to another one.

        `seconds` are what their targets took last time. `begin` receives the target and the machine
        whenever a build begins.
        """
        pending = {order.target.name: order for order in orders}
        schedule = WorkSchedule(tuple(pending), self._reachable_workers(), seconds)

        def on_assignment(assignment: Assignment) -> None:
            self.report(assignment)
            if assignment.state == "running":
                begin(assignment.recipe, assignment.worker)
            # By Slurm, a lost task has been tried again.
            if assignment.state in {"built", "failed", "refused"} or self._slurm:
                self.hand_over(pending.pop(assignment.recipe), assignment, conclude)

        try:
            self._hand_out(schedule, pending, on_assignment)
        except (HostError, ToolError) as fault:
            # A Slurm that takes no job blocks targets, and ends no night.
            why = RemoteBuild(0.0, failure=fault.what, remedy=fault.remedy)
            schedule.assignments |= {
                name: Assignment(name).after("refused", why) for name in pending
            }
        self.lost.update(schedule.gone)
        # What still waited at the end had no worker left.
        for name, order in pending.items():
            self.hand_over(order, schedule.assignments[name], conclude)

    def adopt(self, conclude: Conclude) -> None:
        """Hand over what machines finished for a night that was cut off; cancel what they do."""
        if self._slurm:
            # Nothing runs in it: only what an earlier run left is looked at.
            with slurm.run_folder(self.settings.build_out / "workers" / "slurm", self.note):
                pass
        nightly = self.builder.nightly
        # One night runs at a time: what is there is of an earlier one.
        for folder in sorted((nightly.directory / ORDERS).glob("*")):
            full, order = False, json_text.load_or_none(folder / ORDER, BuildOrder)
            # What is in its place already was cut off after it.
            placed = (nightly.builds / folder.name).exists()
            done = order and not order.again and (folder / BUILT).is_file()
            if order and done and not placed:
                work = nightly.directory / builds.WORK / order.id
                order = order.model_copy(update={"work": work})
                full = conclude(order, partial(collect_result, folder, order)).broken == FULL
            if not full:
                files.remove(folder)

    def reproduce(self, order: BuildOrder) -> str:
        """Build the last good wheel of an order again from nothing; say how it differs.

        Raises HostError if no machine could build it.
        """
        built_on = order.last_good.worker if order.last_good else ""
        # The same bytes from another machine prove more.
        names = sorted(self._reachable_workers(), key=lambda name: name == built_on)
        name = order.target.name
        schedule = WorkSchedule((name,), names, {})
        self._hand_out(schedule, {name: order}, self.report)
        assignment = schedule.assignments[name]
        try:
            if assignment.state == "built":
                return "; ".join(read_result(self.folder(order)).differences)
        finally:
            files.remove(self.folder(order))
        raise HostError(assignment.detail, remedy=assignment.remedy or READ)

    def _reachable_workers(self) -> tuple[str, ...]:
        """Return the workers that are not lost."""
        return tuple(name for name in self.hosts if name not in self.lost)

    def hand_over(self, order: BuildOrder, assignment: Assignment, conclude: Conclude) -> None:
        """Hand a finished order to the night."""
        folder = self.folder(order)

        def read_build() -> NightlyBuild:
            # A failed build has a document too: it says what broke.
            if assignment.state == "built" or (folder / BUILT).is_file():
                build = collect_result(folder, order)
            else:
                remedy = "Look at the logs in build_out/workers/logs, and at the workers."
                broken = Breakage(
                    stage="check",
                    line=assignment.detail or assignment.state,
                    cause=CAUSES[assignment.state],
                    remedy=assignment.remedy or remedy,
                )
                # The recipe is not to blame, so nothing about it counts as broken.
                build = order.outcome(result="blocked", seconds=assignment.seconds, broken=broken)
            # A worker is not asked for its name: what the build host calls it is the name.
            return build.model_copy(update={"worker": assignment.worker, "lost": assignment.lost})

        # A result for which this host has no room is taken by the next start.
        if conclude(order, read_build).broken != FULL:
            files.remove(folder)

    def report(self, assignment: Assignment) -> None:
        """Say where a target is built."""
        # Of what came of it the night itself has more to say.
        if assignment.state == "running":
            self.note(assignment.sentence)
        elif assignment.state in {"waiting", "lost"} and assignment.worker:
            self.note(f"{assignment.sentence}: {assignment.detail}")

    def _hand_out(
        self,
        schedule: WorkSchedule,
        orders: Mapping[str, BuildOrder],
        on_assignment: Callable[[Assignment], None],
    ) -> None:
        """Let the machines carry out orders, each of which is written when its turn has come."""
        settings = self.settings
        if not self._slurm:
            hosts = self.hosts
            hand_out.run(
                schedule,
                lambda assignment: self._on_worker(
                    orders[assignment.recipe], hosts[assignment.worker]
                ),
                on_assignment,
            )
            return
        offline = hand_out.slurm_of(settings).inputs

        def job_of(name: str) -> RecipeJob:
            return self.builder.job(orders[name].target)

        def program_of(name: str) -> Sequence[str]:
            folder = self.folder(orders[name])
            write_order(folder, orders[name], self.builder, carry=False, offline=offline)
            return ("nightly", "--order", str(folder))

        hand_out.run_by_slurm(settings, schedule, job_of, program_of, on_assignment, self.note)

    def _on_worker(self, order: BuildOrder, host: WorkerTable) -> RemoteBuild:
        """Run an order on a worker, and bring its result."""
        log = self.settings.build_out / "workers/logs" / f"{order.id}-{host.name}.log"
        copied = log.with_suffix(".rsync.log")
        folder = self.folder(order)
        own = bool(host.build_out)
        # Without a disk of its own the worker sees this host's directories.
        target = f"{host.build_out}/{ORDERS}/{order.id}" if own else str(folder)

        def send() -> None:
            sent = order.model_copy(update={"worker": host.name})
            write_order(folder, sent, self.builder, carry=own, offline=host.supplied)
            if own:
                ssh.send_folder(host, folder, target, copied)

        def collect(_: RemoteBuild) -> None:
            if own:
                try:
                    # The order itself stays as it was written here.
                    ssh.fetch(host, target, folder, copied, (BUILT, f"{RESULT}/***"))
                finally:
                    ssh.remove(host, target)

        return hand_out.run_on_worker(
            host,
            ("nightly", "--order", target),
            log,
            job=lambda: self.builder.job(order.target),
            send=send,
            collect=collect,
        )
