"""Runs Bazel on the recipe's target.

Bazel decides what has to be done: it continues after any interruption with the action that was
under way, and a cache shared by all recipes saves most of the work of a fresh build.
"""

from collections.abc import Sequence
from pathlib import Path

from tfwright.documents.recipe import BazelTable, CompileTable, ConfigureTable, SourceTable
from tfwright.pipeline import attempts, caching, invocation
from tfwright.pipeline.caching import CompilerChoice
from tfwright.pipeline.invocation import Invocation
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built, Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Step
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel import events
from tfwright.tools.bazel.client import Client


def run(
    job: Job,
    table: CompileTable,
    bazel: BazelTable,
    answering: ConfigureTable,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
) -> Built:
    """Build the target; whatever happens, no Bazel is left running."""
    calls = Invocation.of(job, table, bazel.version, inputs, tree, configured)
    calls.write_settings()
    files.remove(job.log("compile"))
    if calls.client.alone:
        # A server that a killed build left running still has the network.
        calls.client.stop()
    _forget_compiler(job, calls.client, host)
    resumed = calls.client.output_base.exists()
    compilers = CompilerChoice(table, answering, host, inputs.python, configured)
    with caching.opened(job, compilers) as cache:
        try:
            outcome = attempts.build(calls.with_cache(cache))
        finally:
            calls.client.stop()
            use = caching.recorded(job, cache, resumed=resumed)
    outputs = tuple(Artefact.of(path) for path in events.outputs(invocation.events(job)))
    return Built(target=table.target, outputs=outputs, actions=outcome.actions, cache=use)


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


def _forget_compiler(job: Job, client: Client, host: HostFacts) -> None:
    """Make Bazel look at the compilers again if they changed.

    By itself it keeps what it saw first, and then misses the headers of the new ones.
    """
    kept, now = job.places.own / "compiler", f"{host.compiler}\n{host.cuda}\n"
    if kept.is_file() and kept.read_text("utf-8", "replace") != now:
        client.stop()
        # Without the marker a repository is made again. From Bazel 7 on, names of extensions stand before its own.
        for marker in (client.output_base / "external").glob("@*local_config_*.marker"):
            files.remove(marker)
        job.listener.note("The compiler changed; Bazel configures it again")
    files.write(kept, now)
