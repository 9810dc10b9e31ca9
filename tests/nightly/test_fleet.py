"""A night on other machines: what was built there counts as built here, and what was lost waits."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.nightly.fake import FakeBuilder, PlayedHost, a_build, host_with
from tests.workers.conftest import Programs
from tests.workers.test_remote import LOCAL_SSH, a_host

from tfwright.documents.host_file import HostFile, SlurmTable, WorkerTable
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import HostError, SupplyError
from tfwright.lock import inputs as lock_inputs
from tfwright.nightly import fleets, night, targets
from tfwright.nightly import state as states
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import Breakage, BuildOrder, NightlyBuild
from tfwright.nightly.night import Conclude
from tfwright.nightly.pages import views
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import SILENCE
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.workers import hand_out, supply
from tfwright.workers.schedule import Assignment, WorkSchedule


@dataclass
class FakeFleet:
    """Two machines that build with the builder of the host."""

    builder: FakeBuilder
    width: int = 2
    asked: list[str] = field(default_factory=list)

    def adopt(self, settle: Conclude) -> None:
        """Have nothing of a night that was cut off."""

    def build(
        self,
        given: Sequence[BuildOrder],
        seconds: Mapping[str, float],
        settle: Conclude,
        begin: Callable[[str, str], None],
    ) -> None:
        """Build each order, the last one first."""
        assert set(seconds) <= {order.target.name for order in given} | set(seconds)
        for order in reversed(given):
            self.asked.append(order.target.name)
            begin(order.target.name, "one")

            def made(order: BuildOrder = order) -> NightlyBuild:
                return self.builder.build(order).model_copy(update={"worker": "one"})

            settle(order, made)

    def reproduce(self, order: BuildOrder) -> str:
        """Compare as the builder of the host does."""
        assert order.again
        assert order.last_wheel
        self.asked.append(f"{order.target.name} again")
        return self.builder.reproduce(order.target, Path(order.last_wheel))


def fleet_host(tmp_path: Path, *names: str, **keys: Any) -> PlayedHost:  # noqa: ANN401 as `host_with`
    host = host_with(tmp_path, *names, **{"on": "workers", **keys})
    return replace(host, fleet=cast("fleets.NightFleet", FakeFleet(host.fake)))


@pytest.mark.medium
def test_what_workers_build_is_published_with_the_worker_named(tmp_path: Path) -> None:
    host = fleet_host(tmp_path, "a", "b")
    outcome = night.run(host)
    assert outcome.verdicts == {"a": "good", "b": "good"}
    page = host.page()
    assert "on one" in page
    with states.open_state(host.directory) as state:
        rows = views.views(host.nightly, state, {}, host.clock())
    assert {row.worker for row in rows} == {"one"}


@pytest.mark.medium
def test_two_workers_fit_twice_as_much_into_a_night(tmp_path: Path) -> None:
    first = fleet_host(tmp_path, "a", "b", "c")
    first.pass_night()
    # Each build took 10 minutes: alone only one of them would fit into 12 minutes.
    host = replace(first, nightly=first.nightly.model_copy(update={"hours": 0.2}))
    again = night.run(host, now=True)
    assert list(again.verdicts.values()).count("skipped") == 1


def pipeline_builder(
    tmp_path: Path, on: str = "here", *workers: WorkerTable, slurm: SlurmTable | None = None
) -> PipelineBuilder:
    nightly = NightlyFile.model_validate({"directory": tmp_path, "on": on})
    return PipelineBuilder(
        nightly, HostFile(build_out=tmp_path / "out", workers=workers, slurm=slurm)
    )


def slurm_fleet(tmp_path: Path, **keys: object) -> fleets.NightFleet:
    """Return a fleet of one Slurm."""
    table = SlurmTable.model_validate({"directory": tmp_path, **keys})
    return fleets.NightFleet(pipeline_builder(tmp_path, "slurm", slurm=table), print)


@dataclass
class Settled:
    """A night that keeps what it is handed, unless its disk is full."""

    full: bool = False
    builds: list[tuple[BuildOrder, NightlyBuild]] = field(default_factory=list)

    def __call__(self, order: BuildOrder, made: Callable[[], NightlyBuild]) -> NightlyBuild:
        build = made()
        if self.full:
            return order.outcome(result="blocked", seconds=0, broken=night.FULL)
        self.builds.append((order, build))
        return build


def unseen(order: BuildOrder, _: object) -> NightlyBuild:
    """Settle an order whatever came of it."""
    return order.outcome(result="failed", seconds=0)


def order_of(tmp_path: Path, fingerprint: Mapping[str, str]) -> BuildOrder:
    target = Target(name="demo", recipe="demo")
    moment = host_with(tmp_path).clock()
    return BuildOrder(
        id="id", target=target, fingerprint=fingerprint, started=moment, work=tmp_path / "work"
    )


def changed(order: BuildOrder, **values: object) -> BuildOrder:
    return order.model_copy(update=values)


@pytest.fixture
def ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return what writes an order that this machine would build alike; that returns its folder."""
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", "restored by monkeypatch")

    def write(order: BuildOrder, *, offline: bool = False) -> Path:
        builder = pipeline_builder(tmp_path)
        folder = make_folder(tmp_path / "order")
        alike = changed(order, fingerprint=builder.known_fingerprint(order.target))
        fleets.write_order(folder, alike, builder, carry=True, offline=offline)
        return folder

    return write


def test_an_order_whose_inputs_were_sent_is_built_offline(
    tmp_path: Path, ordered: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def build(builder: PipelineBuilder, order: BuildOrder) -> NightlyBuild:
        seen.append(builder.job(order.target).offline)
        return built(tmp_path / "other")

    monkeypatch.setattr(PipelineBuilder, "build", build)
    for offline in (False, True):
        fleets.carry_out(ordered(order_of(tmp_path, {}), offline=offline), SILENCE)
        shutil.rmtree(tmp_path / "other")
    assert seen == [False, True]


@pytest.mark.parametrize(("worker", "named"), [("one", "one"), ("", "n7")])
def test_a_result_says_which_machine_made_it(
    worker: str,
    named: str,
    tmp_path: Path,
    ordered: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PipelineBuilder, "build", lambda *_: built(tmp_path / "other"))
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    folder = ordered(changed(order_of(tmp_path, {}), worker=worker))
    fleets.carry_out(folder, SILENCE)
    # A night that was killed before it heard of it reads this.
    assert fleets.read_result(folder).worker == named


def built(folder: Path, **changes: object) -> NightlyBuild:
    """Leave what a worker leaves."""
    (folder / fleets.RESULT).mkdir(parents=True)
    (folder / fleets.RESULT / "a-1-py3-none-any.whl").write_bytes(b"wheel")
    values: dict[str, object] = {
        "id": "id",
        "result": "built",
        "wheel": "a-1-py3-none-any.whl",
        "sha256": "8bde2e6c5bc9ac14c1d9c3b5d6ed3d1a0e3d6d2c2bb1ad1e4ed8c6f8fb77d2b5",
    }
    build = a_build(**values | changes)
    (folder / fleets.BUILT).write_text(build.model_dump_json(), "utf-8")
    return build


def test_a_result_without_its_wheel_or_its_folder_is_refused(tmp_path: Path) -> None:
    build, order = built(tmp_path / "order"), order_of(tmp_path, {})
    (tmp_path / "order" / fleets.RESULT / build.wheel).unlink()
    with fails(HostError, "none-any.whl"):
        fleets.collect_result(tmp_path / "order", order)
    (tmp_path / "order" / fleets.RESULT).rmdir()
    with fails(HostError, "build_out/workers/logs"):
        fleets.collect_result(tmp_path / "order", order)


def test_the_result_of_an_order_becomes_the_directory_of_the_night(tmp_path: Path) -> None:
    built(tmp_path / "order", wheel="", sha256="")
    order = order_of(tmp_path, {})
    make_file(tmp_path / "secret", "secret")
    (tmp_path / "order" / fleets.RESULT / "compile.log").symlink_to(tmp_path / "secret")
    order.work.mkdir()
    assert fleets.collect_result(tmp_path / "order", order).id == "id"
    # A link of a worker could publish any file of this host.
    assert [path.name for path in order.work.iterdir()] == ["a-1-py3-none-any.whl"]


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../../id"},
        {"wheel": "../a-1-py3-none-any.whl"},
        {"target": "../other"},
        {"fingerprint": {"the commit": "a" * 40}},
        {"started": "2036-01-01T00:00:00Z"},
        {"against": "../../../id"},
    ],
)
def test_the_result_of_another_order_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    built(tmp_path / "order", **changes)
    with fails(HostError, tmp_path / "order"):
        fleets.collect_result(tmp_path / "order", order_of(tmp_path, {}))
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seconds", "1e300"),
        ("seconds", "NaN"),
        ("size", "9" * 30),
        ("logs", '["../../../../private/key"]'),
        ("logs", '["/etc/shadow"]'),
        ("profile", '"logs/../../x"'),
        ("broken", '{"stage": "compile", "line": "", "log": "/etc/shadow"}'),
    ],
)
def test_a_worker_s_document_can_neither_end_a_night_nor_show_other_files(
    key: str, value: str, tmp_path: Path
) -> None:
    text = built(tmp_path / "order", wheel="").model_dump_json(exclude={key})
    hostile = f'{text[:-1]}, "{key}": {value}}}'
    make_file(tmp_path / "order" / fleets.BUILT, hostile)
    with fails(HostError, "build_out/workers/logs"):
        fleets.collect_result(tmp_path / "order", order_of(tmp_path, {}))


def test_an_order_that_no_worker_carried_out_blocks_its_target(tmp_path: Path) -> None:
    fleet = ssh_fleet(tmp_path, "two")
    settled = Settled()
    order = order_of(tmp_path, {})
    given = Assignment("demo", "refused", "two", ("one",), ("two",), detail="no CUDA 11.8")
    fleet.hand_over(order, given, settled)
    ((_, build),) = settled.builds
    assert build.result == "blocked"
    assert build.broken
    assert build.broken.line == "no CUDA 11.8"
    assert (build.worker, build.lost) == ("two", ("one",))


def test_a_night_on_workers_needs_workers(tmp_path: Path) -> None:
    for place, table in (("workers", "[[workers]]"), ("slurm", "[slurm]")):
        with fails(HostError, table):
            fleets.fleet_of(pipeline_builder(tmp_path, place), print)


def test_an_order_is_plain_json_that_a_person_can_read(tmp_path: Path) -> None:
    order = order_of(tmp_path, {"the commit": "a" * 40})
    fleets.write_order(tmp_path, order, pipeline_builder(tmp_path), carry=True)
    document = json.loads((tmp_path / fleets.ORDER).read_text("utf-8"))
    assert document["target"]["name"] == "demo"
    assert document["fingerprint"] == {"the commit": "a" * 40}


def test_without_reproduction_nothing_is_taken_from_the_cache(tmp_path: Path) -> None:
    target = Target(name="demo", recipe="demo")
    for reproduce in (True, False):
        nightly = NightlyFile(directory=tmp_path, reproduce=reproduce)
        builder = PipelineBuilder(nightly, HostFile())
        assert builder.job(target).host_file.cache.enabled == reproduce


@pytest.mark.medium
def test_a_wheel_is_built_again_where_wheels_are_built(tmp_path: Path) -> None:
    host = fleet_host(tmp_path, "a", reproduce=True)
    fleet: object = host.fleet
    assert isinstance(fleet, FakeFleet)
    host.pass_night()
    outcome = night.run(host)
    assert (outcome.reproduced, outcome.difference) == ("a", "")
    assert fleet.asked == ["a", "a again"]
    host.fake.rotten.add("a")
    host.fake.clock.next_night()
    assert night.run(host).difference == "1 file differs"


def ssh_fleet(tmp_path: Path, *names: str) -> fleets.NightFleet:
    """Return a fleet of workers that see this host's directories."""
    hosts = [a_host(name, f"{name}.example", "/srv/tfwright") for name in names]
    return fleets.NightFleet(pipeline_builder(tmp_path, "workers", *hosts), print)


def order_again(tmp_path: Path, worker: str) -> BuildOrder:
    """Return the order to build again what a worker built."""
    last = built(tmp_path / "last", worker=worker)
    wheel = tmp_path / "last" / fleets.RESULT / last.wheel
    order = order_of(tmp_path, {})
    return changed(order, again=True, last_good=last, last_wheel=str(wheel))


def rebuilding(
    found: Mapping[str, str], asked: list[str]
) -> Callable[[WorkerTable, Sequence[str], Path], RemoteBuild]:
    """Return workers, by name, that find such differences; all others are lost."""

    def run(host: WorkerTable, program: Sequence[str], _: Path) -> RemoteBuild:
        asked.append(host.name)
        if host.name not in found:
            return RemoteBuild(1.0, ssh.LOST, "no answer")
        differences = (found[host.name],) if found[host.name] else ()
        rebuilt = a_build(result="built", differences=differences)
        Path(program[-1], fleets.BUILT).write_text(rebuilt.model_dump_json(), "utf-8")
        return RemoteBuild(1.0)

    return run


@pytest.mark.parametrize("difference", ["", "1 differences"])
def test_a_wheel_is_built_again_on_another_worker_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ssh, "run", rebuilding({"two": difference}, asked))
    fleet = ssh_fleet(tmp_path, "one", "two")
    assert fleet.reproduce(order_again(tmp_path, "one")) == difference
    assert asked == ["two"]
    assert list((tmp_path / "orders").iterdir()) == []


def test_a_worker_that_was_lost_is_not_tried_again_in_the_same_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ssh, "run", rebuilding({}, asked))
    fleet = ssh_fleet(tmp_path, "one", "two")
    fleet.build([order_of(tmp_path, {})], {}, unseen, lambda *_: None)
    assert sorted(asked) == ["one", "two"]
    again = order_again(tmp_path, "two")
    with fails(HostError):
        fleet.reproduce(again)
    assert len(asked) == len(fleet.hosts)
    monkeypatch.setattr(ssh, "run", rebuilding({"two": ""}, asked))
    fleet.lost.remove("two")
    assert fleet.reproduce(again) == ""
    assert asked[2:] == ["two"]


def test_a_worker_fetches_what_it_lacks_before_it_builds_again_offline(
    tmp_path: Path, ordered: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def fetch(job: RecipeJob, **_: object) -> None:
        done.append(f"{job.name} fetched")

    def rebuild(_: PipelineBuilder, target: Target, wheel: Path) -> str:
        done.append(f"{target.name} against {wheel.name}")
        return "2 differences"

    monkeypatch.setattr(lock_inputs, "fetch_inputs", fetch)
    monkeypatch.setattr(PipelineBuilder, "reproduce", rebuild)
    folder = ordered(order_again(tmp_path, "one"))
    fleets.carry_out(folder, SILENCE)
    assert done == ["demo fetched", "demo against a-1-py3-none-any.whl"]
    assert fleets.read_result(folder).differences == ("2 differences",)


def test_what_a_cut_off_night_left_is_adopted_once_if_it_is_complete(tmp_path: Path) -> None:
    fleet = ssh_fleet(tmp_path, "one")
    order = order_of(tmp_path, {"the recipe": "1"})
    for name in ("2026-01-01-again", "2026-01-01-cut", "2026-01-01-placed", "2026-01-01-done"):
        folder = tmp_path / "orders" / name
        folder.mkdir(parents=True)
        given = changed(order, id=name, again=name == "2026-01-01-again")
        fleets.write_order(folder, given, fleet.builder, carry=False)
        if name != "2026-01-01-cut":
            built(folder, id=name, wheel="", sha256="", fingerprint=order.fingerprint)
    (tmp_path / "site/builds/2026-01-01-placed").mkdir(parents=True)
    # Without room for it, what is done stays for the next start.
    fleet.adopt(Settled(full=True))
    assert [path.name for path in (tmp_path / "orders").iterdir()] == ["2026-01-01-done"]
    fleet.adopt(settled := Settled())
    ((adopted, build),) = settled.builds
    assert (adopted.id, build.id) == ("2026-01-01-done", "2026-01-01-done")
    assert adopted.fingerprint == order.fingerprint
    assert (adopted.work / "a-1-py3-none-any.whl").is_file()
    assert not [*(tmp_path / "orders").iterdir()]


def test_a_worker_removes_orders_whose_night_lost_it_a_week_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", "restored by monkeypatch")
    old, new = tmp_path / "orders/old", tmp_path / "orders/new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    eight_days_ago = time.time() - 8 * 24 * 60 * 60
    os.utime(old, (eight_days_ago, eight_days_ago))
    order = order_of(tmp_path, {"the recipe's [source]": "0"})
    fleets.write_order(new, order, pipeline_builder(tmp_path), carry=False)
    make_file(new / fleets.BUILT, "of an earlier time")
    with pytest.raises(HostError):
        fleets.carry_out(new, SILENCE)
    assert (old.exists(), new.exists()) == (False, True)
    # It would say that the order was carried out.
    assert not (new / fleets.BUILT).exists()


def test_an_order_that_cannot_be_written_blocks_its_target_and_ends_no_night(
    tmp_path: Path, programs: Programs
) -> None:
    programs(ssh="exit 0")
    fleet = ssh_fleet(tmp_path, "one")
    make_file(tmp_path / "orders", "in the place of a folder")
    assert str(tmp_path / "orders") in blocked_by(fleet, order_of(tmp_path, {})).line


def test_orders_for_nodes_without_a_network_are_built_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def submit(
        _: HostFile,
        schedule: WorkSchedule,
        __: object,
        program_of: Callable[[str], Sequence[str]],
        *___: object,
    ) -> None:
        for program in map(program_of, schedule.assignments):
            written = Path(program[-1], fleets.ORDER).read_text("utf-8")
            document = json.loads(written)
            seen.append(document["offline"])

    monkeypatch.setattr(lock_inputs, "fetch_inputs", lambda *_, **__: None)
    monkeypatch.setattr(hand_out, "run_by_slurm", submit)
    for inputs in (False, True):
        fleet = slurm_fleet(tmp_path, inputs=inputs)
        fleet.build([order_of(tmp_path, {})], {}, unseen, lambda *_: None)
    assert seen == [False, True]


def test_a_target_whose_inputs_are_gone_is_blocked_before_slurm_is_asked(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object, **__: object) -> None:
        raise SupplyError("Eigen could not be found", remedy="Copy it.")

    programs(sbatch="touch $0.ran")
    monkeypatch.setattr(lock_inputs, "fetch_inputs", fetch)
    broken = blocked_by(slurm_fleet(tmp_path, inputs=True), order_of(tmp_path, {}))
    assert "Eigen could not be found" in broken.line
    assert not (tmp_path / "sbatch.ran").exists()


def test_a_slurm_that_takes_no_job_blocks_targets_and_ends_no_night(
    tmp_path: Path, programs: Programs
) -> None:
    said = "sbatch: error: invalid partition specified: night"
    programs(sbatch=f"echo '{said}' >&2; exit 1")
    assert said in blocked_by(slurm_fleet(tmp_path), order_of(tmp_path, {})).line


# What a worker's `nightly --order` leaves, without a build: its wheel is made of the order.
ORDERED = """\
import hashlib, json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
order = json.loads((folder / "order.json").read_text())
if order["again"]:
    found = {
        "id": order["id"], "target": "demo", "recipe": "demo", "seconds": 1.0, "result": "built",
        "started": order["started"], "differences": ["1 difference"],
    }
    (folder / "built.json").write_text(json.dumps(found))
    sys.exit()
(folder / "result").mkdir()
(folder / "result/a-1-py3-none-any.whl").write_bytes(b"wheel")
build = {
    "id": order["id"], "target": "demo", "recipe": "demo", "seconds": 1.0, "result": "built",
    "started": order["started"], "wheel": "a-1-py3-none-any.whl",
    "sha256": hashlib.sha256(b"wheel").hexdigest(),
}
(folder / "built.json").write_text(json.dumps(build))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose only command carries out an order."""
    folder = make_folder(tmp_path / "checkout")
    (folder / "tasks.py").write_text(ORDERED, "utf-8")
    return folder


def with_own_disk(tmp_path: Path, heard: list[str], *hosts: WorkerTable) -> fleets.NightFleet:
    """Return a fleet of workers that share no directory with this host."""
    return fleets.NightFleet(pipeline_builder(tmp_path, "workers", *hosts), heard.append)


def a_worker(checkout: Path, name: str = "one") -> WorkerTable:
    return a_host(name, name, str(checkout), python=sys.executable, build_out="~/o")


def settled_by(fleet: fleets.NightFleet, order: BuildOrder) -> NightlyBuild:
    """Let a fleet build an order; return the build."""
    settled = Settled()
    fleet.build([order], {}, settled, lambda *_: None)
    ((_, build),) = settled.builds
    return build


def blocked_by(fleet: fleets.NightFleet, order: BuildOrder) -> Breakage:
    """Let a fleet build an order, which is blocked; return by what."""
    build = settled_by(fleet, order)
    assert build.result == "blocked"
    assert build.broken
    return build.broken


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
def test_an_order_goes_to_a_worker_with_a_disk_of_its_own_and_its_wheel_comes_back(
    tmp_path: Path, checkout: Path, programs: Programs
) -> None:
    programs(ssh=LOCAL_SSH.format(home=tmp_path))
    heard: list[str] = []
    fleet = with_own_disk(tmp_path, heard, a_worker(checkout))
    order = changed(order_of(tmp_path, {}), work=tmp_path / "id")
    build = settled_by(fleet, order)
    assert (build.result, build.worker) == ("built", "one")
    assert (order.work / build.wheel).read_bytes() == b"wheel"
    assert heard == ["demo: started on one"]
    # Neither machine keeps the order.
    assert list((tmp_path / "o/orders").iterdir()) == []
    assert list((tmp_path / "orders").iterdir()) == []


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
def test_the_order_of_a_lost_worker_goes_to_the_next_and_blocks_behind_the_last(
    tmp_path: Path, checkout: Path, programs: Programs
) -> None:
    programs(ssh="echo 'No route to host' >&2; exit 255")
    heard: list[str] = []
    hosts = [a_worker(checkout, name) for name in ("one", "two")]
    fleet = with_own_disk(tmp_path, heard, *hosts)
    assert fleet.width == 2
    build = settled_by(fleet, order_of(tmp_path, {}))
    assert build.result == "blocked"
    assert build.broken
    assert build.broken.cause == "every worker was lost, or cannot build it"
    assert set(build.lost) == {"one", "two"}
    given_back = [line for line in heard if "another worker takes it" in line]
    assert len(given_back) == 1
    assert re.search(r": lost on (one|two) in \d+ s: No route to host", heard[-1])


def test_a_target_whose_inputs_cannot_be_sent_is_sent_nowhere(
    tmp_path: Path, checkout: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = SupplyError("Eigen could not be found", remedy="Copy it.")
    monkeypatch.setattr(supply, "send", lambda *_: supply.without_inputs(fault))
    programs(ssh=f"touch {tmp_path}/asked")
    host = a_worker(checkout).changed(inputs=True)
    broken = blocked_by(with_own_disk(tmp_path, [], host), order_of(tmp_path, {}))
    assert broken.cause == "no worker can build it"
    assert "Eigen could not be found" in broken.line
    assert not (tmp_path / "asked").exists()


def test_a_result_for_which_this_host_has_no_room_blocks_its_target(
    tmp_path: Path, checkout: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object) -> None:
        raise HostError("The disk of this host is full", remedy="Free some.")

    programs(ssh="exit 0")
    monkeypatch.setattr(ssh, "send_folder", lambda *_: None)
    monkeypatch.setattr(ssh, "fetch", fetch)
    fleet = with_own_disk(tmp_path, [], a_worker(checkout))
    broken = blocked_by(fleet, order_of(tmp_path, {}))
    assert broken.line == "The disk of this host is full"


@pytest.mark.medium
@pytest.mark.parametrize("again", [False, True])
def test_slurm_carries_out_the_orders_of_a_night(
    tmp_path: Path, checkout: Path, programs: Programs, *, again: bool
) -> None:
    task = "SLURM_ARRAY_TASK_ID=0 SLURMD_NODENAME=n1"
    script = f'for script; do :; done; {task} sh "$script"; echo 17'
    programs(sbatch=script, squeue="true")
    fleet = slurm_fleet(tmp_path, directory=checkout, python=sys.executable, most=3)
    assert fleet.width == 3
    if again:
        order = order_again(tmp_path, "n1")
        assert fleet.reproduce(order) == "1 difference"
        return
    build = settled_by(fleet, changed(order_of(tmp_path, {}), work=tmp_path / "id"))
    assert (build.result, build.worker) == ("built", "n1")


def test_a_night_on_this_host_has_no_fleet(tmp_path: Path) -> None:
    assert fleets.fleet_of(pipeline_builder(tmp_path), print) is None


def test_the_lock_file_of_an_axis_goes_with_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(tmp_path / "nightly.toml"))
    target = Target(name="demo-py3.12", recipe="demo", python="3.12")
    make_file(targets.lock_of(target), "pins")
    order = changed(order_of(tmp_path, {}), target=target)
    folder = make_folder(tmp_path / "order")
    fleets.write_order(folder, order, pipeline_builder(tmp_path), carry=True)
    # The worker looks for it next to a nightly.toml of the order's folder.
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(folder / "nightly.toml"))
    assert targets.lock_of(target).read_text("utf-8") == "pins"


def test_a_worker_that_lacks_something_says_so_and_leaves_the_result(
    tmp_path: Path, ordered: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Breakage(stage="check", line="no gcc", remedy="Install gcc.")
    folder = ordered(order_of(tmp_path, {}))
    order = BuildOrder.model_validate_json((folder / fleets.ORDER).read_bytes())
    order = changed(order, work=tmp_path / "work")
    blocked = order.outcome(result="blocked", seconds=0, broken=broken)
    monkeypatch.setattr(PipelineBuilder, "build", lambda *_: blocked)
    with fails(HostError, "no gcc", "Install gcc."):
        fleets.carry_out(folder, SILENCE)
    assert fleets.collect_result(folder, order).result == "blocked"


@pytest.mark.parametrize("left", ["", "{", '{"id": "id"}'])
def test_a_worker_that_left_no_result_points_to_its_log(tmp_path: Path, left: str) -> None:
    if left:
        (tmp_path / fleets.BUILT).write_text(left, "utf-8")
    with fails(HostError, "build_out/workers/logs"):
        fleets.collect_result(tmp_path, order_of(tmp_path, {}))
    with fails(HostError, "build_out/workers/logs"):
        fleets.read_result(tmp_path)
