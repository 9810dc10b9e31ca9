"""Runs Bazel on the recipe's target.

Bazel decides what has to be done: it continues after any interruption with the action that was
under way, and a cache shared by all recipes saves most of the work of a fresh build.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.recipe import (
    BazelTable,
    CompileTable,
    ConfigureTable,
    NcclTable,
    SourceTable,
)
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import NCCL_LIBRARY, Built, Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Folder, Step
from tfwright.tools import files, trees

if TYPE_CHECKING:
    from tfwright.tools.bazel.client import Client


REVISION = 2


def run(
    job: Job,
    table: CompileTable,
    bazel: BazelTable,
    answering: ConfigureTable,
    nccl: NcclTable,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
) -> Built:
    """Build the target; whatever happens, no Bazel is left running.

    It is built again when the recipe's [nccl] changes: only then Bazel puts its own _nccl_ops.so
    back into the place where an earlier build put another one.
    """
    from tfwright.pipeline import attempts, caching, invocation, remote_execution
    from tfwright.pipeline.caching import CompilerChoice
    from tfwright.pipeline.invocation import Invocation
    from tfwright.tools.bazel import events

    calls = Invocation.of(job, table, bazel.version, inputs, tree, configured)
    calls.write_settings()
    files.remove(job.log("compile"))
    if calls.client.alone:
        # A server that a killed build left running still has the network.
        calls.client.stop()
    _forget_compiler(job, calls.client, host)
    if job.host_file.remote_execution:
        job.listener.note(remote_execution.NOTE)
    resumed = calls.client.output_base.exists()
    compilers = CompilerChoice(table, answering, host, inputs.python, configured)
    with caching.opened(job, compilers) as cache:
        try:
            outcome = attempts.build(calls.with_cache(cache))
        finally:
            calls.client.stop()
            use = caching.recorded(job, cache, resumed=resumed)
    trees.settle(job.places.own)
    outputs = events.outputs(invocation.events(job))
    return Built(
        target=table.target,
        outputs=tuple(Artefact.of(path) for path in outputs),
        runfiles=_runfiles(outputs, nccl),
        actions=outcome.actions,
        cache=use,
        remote=bool(job.host_file.remote_execution),
    )


def steps(
    job: Job,
    source: SourceTable,
    pinned: BazelTable,
    table: CompileTable,
    fetched: Inputs | None,
    tree: Tree | None,
    configured: Configured | None,
) -> Sequence[Step]:
    """Return the rc file and the run of Bazel.

    Of flags that depend on the version it shows those that the stored binary is known to have.
    """
    from tfwright.pipeline import attempts, caching
    from tfwright.pipeline.invocation import Invocation
    from tfwright.tools.bazel import binary as bazels
    from tfwright.tools.bazel import client as bazel_client

    stored = bazels.stored(pinned.version, pinned.sha256, job.places.vault)
    binary = stored.path if stored else Path(f"bazel-{pinned.version}")
    calls = Invocation(
        job=job,
        table=table,
        release=source.release,
        version=pinned.version,
        binary=binary,
        options=bazel_client.known_options(binary),
        python=fetched.python if fetched and fetched.programs else Path("@PYTHON@"),
        epoch=tree.epoch if tree else 0,
        exported=configured.exported if configured else {},
        copies=fetched.clones if fetched else (),
        cache=caching.EXAMPLE if job.host_file.cache.enabled else "",
    )
    return (*calls.settings, calls.build(attempts.actions_at_once(job, table)))


def _runfiles(outputs: Sequence[Path], nccl: NcclTable) -> tuple[Folder, ...]:
    """Return what the programs among the outputs find when they run, where Bazel laid that out."""
    beside = [path.with_name(f"{path.name}.runfiles") for path in outputs]
    without = (NCCL_LIBRARY,) if nccl.rebuild else ()
    return tuple(Folder.of(path, follow=True, without=without) for path in beside if path.is_dir())


def _forget_compiler(job: Job, client: "Client", host: HostFacts) -> None:
    """Make Bazel look at the compilers again, and run every action again, if they changed.

    By itself it keeps what it saw first, and then misses the headers of the new ones. The programs
    of a compiler are no inputs of its actions either, only their paths.
    """
    kept = job.places.own / "compiler"
    before = kept.read_text("utf-8", "replace").splitlines() if kept.is_file() else []
    now = [host.compiler, str(host.cuda), host.toolkit]
    # An earlier tfwright wrote no digest of the toolkit: what it compiled still counts.
    if before != now[: len(before)]:
        client.stop()
        files.remove(client.output_base / "action_cache")
        # Without the marker a repository is made again. From Bazel 7 on, names of extensions stand
        # before its own.
        for marker in (client.output_base / "external").glob("@*local_config_*.marker"):
            files.remove(marker)
        job.listener.note("The compiler changed; Bazel configures it again")
    files.write(kept, "\n".join(now) + "\n")
