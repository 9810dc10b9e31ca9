"""Hands the builds of a night to other machines: the workers of the host file, or its Slurm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.errors import HostError, TfwrightError, ToolError
from tfwright.nightly import orders as documents
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import Breakage, NightlyBuild
from tfwright.nightly.night import BuildOrder, Fleet, Settle
from tfwright.tools import files
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.workers import hand_out, schedule, supply
from tfwright.workers.schedule import Assignment, Trouble, WorkSchedule

OPTION = "--order"


def of(
    nightly: NightlyFile, settings: HostFile, builder: PipelineBuilder, hear: Callable[[str], None]
) -> Fleet | None:
    """Return the machines that build, or None for this one.

    Raises HostError if the host file does not name them.
    """
    # As nightly.toml says: a single build never moves to another machine by itself.
    if nightly.on == "workers":
        return SshFleet(nightly.directory, settings, builder, hear, hand_out.hosts(settings))
    if nightly.on == "slurm":
        if settings.slurm is None:
            raise HostError("The host file has no [slurm]", remedy="Add it: docs/cluster.md.")
        return SlurmFleet(nightly.directory, settings, builder, hear)
    return None


@dataclass(frozen=True)
class _Orders:
    """What both kinds of fleet need: a folder for each order, and what they do with a result."""

    directory: Path
    settings: HostFile
    builder: PipelineBuilder
    hear: Callable[[str], None]

    def folder(self, order: BuildOrder) -> Path:
        """Return the folder of an order."""
        return self.directory / documents.ORDERS / order.id

    def tidy(self) -> None:
        """Remove the orders of a night that was cut off; one night runs at a time."""
        files.remove(self.directory / documents.ORDERS)

    def write(self, order: BuildOrder, *, carry: bool, offline: bool) -> Path:
        """Write an order into an empty folder of its own; return the folder."""
        folder = self.folder(order)
        # A lost worker may have left a part of its result there.
        files.remove(folder)
        folder.mkdir(parents=True)
        documents.write(folder, order, self.builder, carry=carry, offline=offline)
        return folder

    def settle(self, order: BuildOrder, given: Assignment, settle: Settle) -> None:
        """Hand a finished order to the night."""
        folder = self.folder(order)

        def made() -> NightlyBuild:
            # A failed build has a document too: it says what broke.
            if given.state == "built" or (folder / documents.BUILT).is_file():
                build = documents.take(folder, order.work)
            else:
                build = _unbuilt(order, given)
            # A worker is not asked for its name: what the build host calls it is the name.
            return build.model_copy(update={"worker": given.worker, "lost": given.lost})

        settle(order, made)
        files.remove(folder)

    def difference(self, order: BuildOrder, done: WorkSchedule) -> str:
        """Return how a wheel differs that was built again. Raises HostError if none was."""
        (given,) = done.assignments.values()
        try:
            if given.state == "built":
                return documents.difference(self.folder(order))
        finally:
            files.remove(self.folder(order))
        raise HostError(given.detail, remedy=given.remedy or documents.READ)

    def report(self, given: Assignment) -> None:
        """Say where a target is built."""
        if given.state == "running":
            self.hear(f"{given.recipe}: started on {given.worker}")
        elif given.state == "waiting":
            self.hear(f"{given.recipe}: given back by {given.worker}: {given.detail}")
        elif given.state == "lost":
            self.hear(f"{given.recipe}: {given.worker}, the last worker, was lost: {given.detail}")


@dataclass(frozen=True)
class SshFleet(_Orders):
    """The workers of the host file."""

    hosts: Mapping[str, RemoteHost]
    lost: set[str] = field(default_factory=set)
    """Workers that did not answer this night: each attempt to reach one takes ten seconds."""

    @property
    def width(self) -> int:
        """How many targets are built at once: one on each worker."""
        return len(self.hosts)

    def build(
        self, orders: Sequence[BuildOrder], seconds: Mapping[str, float], settle: Settle
    ) -> None:
        """Build all orders; the order of a lost worker goes to another one."""
        self.tidy()
        by_target = {order.target.name: order for order in orders}
        begun = schedule.planned(tuple(by_target), self._reached(), seconds)

        def hear(given: Assignment) -> None:
            self.report(given)
            if given.state in {"built", "failed", "refused"}:
                self.settle(by_target[given.recipe], given, settle)

        def build(given: Assignment) -> RemoteBuild:
            order = by_target[given.recipe]
            return self._carried_out(order, self.hosts[given.worker])

        done = hand_out.run(begun, build, hear)
        self.lost.update(done.gone)
        # What still waited at the end had no worker left.
        for given in done.assignments.values():
            if given.state == "lost":
                self.settle(by_target[given.recipe], given, settle)

    def reproduce(self, order: BuildOrder) -> str:
        """Build the last good wheel of an order again from nothing; say how it differs."""
        built_on = order.last_good.worker if order.last_good else ""
        # The same bytes from another machine prove more.
        names = sorted(self._reached(), key=lambda name: name == built_on)

        def build(given: Assignment) -> RemoteBuild:
            return self._carried_out(order, self.hosts[given.worker])

        begun = schedule.planned((order.target.name,), names, {})
        return self.difference(order, hand_out.run(begun, build, self.report))

    def _reached(self) -> tuple[str, ...]:
        """Return the workers that are not lost."""
        return tuple(name for name in self.hosts if name not in self.lost)

    def _carried_out(self, order: BuildOrder, host: RemoteHost) -> RemoteBuild:
        """Run an order on a worker, and bring its result; a fault on the way loses the worker."""
        log = self.settings.build_out / "workers/logs" / f"{order.id}-{host.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        folder = self.write(order, carry=bool(host.build_out), offline=host.supplied)
        try:
            # Without a disk of its own the worker sees this host's directories.
            if not host.build_out:
                return ssh.run(host, ("nightly", OPTION, str(folder)), log)
            return self._carried_over(order, host, folder, log)
        except TfwrightError as fault:
            return ssh.undone(fault)

    def _carried_over(
        self, order: BuildOrder, host: RemoteHost, folder: Path, log: Path
    ) -> RemoteBuild:
        """Run an order on a worker that has a disk of its own."""
        there = f"{host.build_out}/{documents.ORDERS}/{order.id}"
        copied = log.with_suffix(".rsync.log")
        if host.supplied:
            job = self.builder.job(order.target)
            if failed := supply.send(host, job, log):
                return failed
        ssh.send_folder(host, folder, there, copied)
        done = ssh.run(host, ("nightly", OPTION, there), log)
        # A lost worker cannot be asked for its result, nor be tidied up.
        if done.lost:
            return done
        try:
            ssh.fetch_folder(host, there, folder, copied)
        except HostError as fault:
            done = ssh.unkept(done, fault)
        ssh.remove(host, there)
        return done


@dataclass(frozen=True)
class SlurmFleet(_Orders):
    """The Slurm of the host file; all nodes see the night's directory."""

    @property
    def width(self) -> int:
        """How many targets are built at once; without a limit in the host file, very many."""
        table = self.settings.slurm
        return table.most if table and table.most else 10_000

    def build(
        self, orders: Sequence[BuildOrder], seconds: Mapping[str, float], settle: Settle
    ) -> None:
        """Build all orders."""
        self.tidy()
        by_target = {order.target.name: order for order in orders}

        def hear(given: Assignment) -> None:
            self.settle(by_target.pop(given.recipe), given, settle)

        begun = schedule.planned(tuple(by_target), (), seconds)
        try:
            hand_out.by_slurm(
                self.settings, begun, lambda name: self._program(by_target[name]), hear, self.hear
            )
        except (HostError, ToolError) as fault:
            why = Trouble(fault.what, fault.remedy)
            # A Slurm that takes no job blocks targets, and ends no night.
            for name in tuple(by_target):
                hear(Assignment(name, "refused").with_trouble(why))

    def reproduce(self, order: BuildOrder) -> str:
        """Build the last good wheel of an order again from nothing; say how it differs."""
        begun = schedule.planned((order.target.name,), (), {})
        done = hand_out.by_slurm(
            self.settings, begun, lambda _: self._program(order), self.report, self.hear
        )
        return self.difference(order, done)

    def _program(self, order: BuildOrder) -> tuple[str, ...]:
        """Write an order; return the command that carries it out.

        Where nodes have no network, this host fetches the inputs first. Raises TfwrightError.
        """
        supplies = bool(self.settings.slurm and self.settings.slurm.inputs)
        if supplies:
            job = self.builder.job(order.target)
            supply.bring(order.target.name, job, self.hear)
        folder = self.write(order, carry=False, offline=supplies)
        return ("nightly", OPTION, str(folder))


def _unbuilt(order: BuildOrder, given: Assignment) -> NightlyBuild:
    """Return the record of an order that no machine carried out."""
    causes = {
        "refused": "no worker can build it",
        "lost": "every worker was lost, or cannot build it",
        "failed": "the workers died while they built it, or tfwright failed there",
    }
    broken = Breakage(
        stage="check",
        line=given.detail or given.state,
        cause=causes[given.state],
        remedy=given.remedy or "Look at the logs in build_out/workers/logs, and at the workers.",
    )
    return NightlyBuild(
        id=order.id,
        target=order.target.name,
        recipe=order.target.recipe,
        started=order.started,
        seconds=given.seconds,
        # The recipe is not to blame, so nothing about it counts as broken.
        result="blocked",
        fingerprint=dict(order.fingerprint),
        broken=broken,
    )
