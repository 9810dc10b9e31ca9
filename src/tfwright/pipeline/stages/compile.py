"""Runs Bazel on the recipe's target.

Bazel decides what has to be done: it continues after any interruption with the action that was
under way, and a cache shared by all recipes saves most of the work of a fresh build.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.recipe import (
    TENSORFLOW_TARGET,
    WHEEL_TARGET,
    BazelTable,
    CompileTable,
    ConfigureTable,
    NcclTable,
    SourceTable,
)
from tfwright.errors import HostError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import NCCL_LIBRARY, Built, Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Folder, Step
from tfwright.tools import files, trees

if TYPE_CHECKING:
    from tfwright.pipeline.compile.invocation import Invocation
    from tfwright.tools.bazel.client import Client


REVISION = 2
HOST_IS_EXEC = "6"
"""From this Bazel on, --distinct_host_configuration has no effect."""
LINKS = ("bazel-bin", "bazel-genfiles", "bazel-out", "bazel-testlogs")
"""The links to its outputs that Bazel puts into a tree; later stages go through them."""


def run(
    job: Job,
    table: CompileTable,
    pinned: BazelTable,
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
    from tfwright.pipeline import caching
    from tfwright.pipeline.caching import CompilerChoice
    from tfwright.pipeline.compile import attempts
    from tfwright.pipeline.compile.invocation import Invocation
    from tfwright.pipeline.external import record_repositories
    from tfwright.tools.bazel.output import built_files

    bazel = Invocation.of(job, table, inputs, tree, configured)
    client = bazel.client
    _prepare(job, bazel, host)
    compilers = CompilerChoice(table, answering, host, inputs.python, configured)
    if not caching.recover_entries(job):
        _discard_outputs(job, client)
    with caching.open_cache(job, compilers, bazel.options.build, pinned.version) as cache:
        # Here and not at the end, which a build that is killed does not come to.
        if not client.output_base.exists():
            caching.forget_use(job)
        try:
            folder = str(cache.folder) if cache else ""
            outcome = attempts.build(replace(bazel, cache=folder))
        finally:
            # The server outlives its client, and keeps its memory for hours.
            client.stop()
            record_repositories(client.output_base, job.places.external)
            use = caching.record_use(job, cache)
            spoiled = cache is not None and cache.spoiled
            if spoiled:
                _discard_outputs(job, client)
    if spoiled:
        raise HostError(
            "Files of the build cache changed while Bazel read them",
            remedy="Build again; nothing is left of this build's outputs. "
            f"Find out what writes to {job.host_file.cache_directory}.",
        )
    # The outputs reach the disk before the stamp that vouches for them.
    trees.sync_disk(job.places.own)
    outputs = built_files(job.places.events)
    # What the programs among the outputs find when they run. The nccl stage replaces its library
    # later, and answers for it.
    folders = [path.with_name(f"{path.name}.runfiles") for path in outputs]
    without = (NCCL_LIBRARY,) if nccl.rebuild else ()
    return Built(
        target=table.target,
        outputs=tuple(Artefact.of(path) for path in outputs),
        runfiles=tuple(
            Folder.of(folder, follow=True, without=without) for folder in folders if folder.is_dir()
        ),
        actions=outcome.actions,
        cache=use,
    )


def _prepare(job: Job, bazel: "Invocation", host: HostFacts) -> None:
    """Write what Bazel reads, and remove what an earlier run left that would mislead this one."""
    from tfwright.tools.bazel import installation

    bazel.write_settings()
    # The log holds every attempt of one build, and is read from its beginning.
    files.remove(job.log("compile"))
    if bazel.client.alone:
        # A server that a killed build left running still has the network.
        bazel.client.stop()
    # Bazel makes its links again, but leaves a directory in the place of one.
    for name in LINKS:
        files.remove(job.places.tree / name)
    if wrong := installation.remove_damaged(bazel.binary, job.places.install_root):
        job.listener.note(f"Bazel unpacks itself again: {wrong[0]}")
    _remake_changed(job, bazel.client)
    _forget_compiler(job, bazel.client, host)


def _discard_outputs(job: Job, client: "Client") -> None:
    """Remove what Bazel built out of files that changed meanwhile."""
    client.stop()
    files.remove(client.output_base)
    job.listener.note(
        "Files of the build cache changed during a build; all that it built is removed"
    )


def _remake_changed(job: Job, client: "Client") -> None:
    """Let Bazel make each external repository again in which something changed since its last run.

    By itself it looks at archives only when it unpacks them, and compiles what lies there.
    """
    from tfwright.pipeline.external import changed_repositories, discard_repository

    changed = changed_repositories(client.output_base, job.places.external)
    if not changed:
        return
    client.stop()
    for name in changed:
        discard_repository(client.output_base, name)
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    job.listener.note(
        f"External repository {changed[0]}{more} changed on disk; Bazel makes it again"
    )


def _forget_compiler(job: Job, client: "Client", host: HostFacts) -> None:
    """Make Bazel look at the compilers again, and run every action again, if they changed.

    By itself it keeps what it saw first, and then misses the headers of the new ones. Actions have
    the paths of a compiler's programs for inputs, and not the programs.
    """
    kept = job.places.own / "compiler"
    before = kept.read_text("utf-8", "replace").splitlines() if kept.is_file() else []
    now = [host.compiler, str(host.cuda), host.toolkit, *host.named]
    if before and before != now:
        client.stop()
        files.remove(client.output_base / "action_cache")
        # Without the marker a repository is made again. From Bazel 7 on, names of extensions stand
        # before its own.
        for marker in (client.output_base / "external").glob("@*local_config_*.marker"):
            files.remove(marker)
        job.listener.note("The compiler changed; Bazel configures it again")
    files.write(kept, "\n".join(now) + "\n")


def damage(job: Job) -> str | None:
    """Name a link to Bazel's outputs in whose place something else is."""
    base = job.places.bazel.resolve()
    for name in LINKS:
        path = job.places.tree / name
        leads = path.is_symlink() and path.resolve().is_relative_to(base)
        # A recipe may let Bazel name its links otherwise, or make none.
        if os.path.lexists(path) and not leads:
            return f"{name} changed in the tree"
    return None


def warnings(
    job: Job, source: SourceTable, pinned: BazelTable, table: CompileTable
) -> Iterator[tuple[str, str]]:
    """Yield what makes Bazel compile the same sources twice, as far as the tree on disk shows it.

    Nothing is known before the source stage has made the tree.
    """
    from tfwright.facts.compatibility import is_older
    from tfwright.rules import configurations

    tree = job.places.tree
    # A bundled tree has little to compile.
    large = not source.bundled and table.target in {TENSORFLOW_TARGET, WHEEL_TARGET}
    if not large or not tree.is_dir() or not is_older(pinned.version, HOST_IS_EXEC):
        return
    joined = "--distinct_host_configuration=false"
    if joined not in configurations.flags_in_force(configurations.read_bazelrc(tree), table.flags):
        text = (
            "The programs that run during the build have a configuration of their own, and "
            f"share most of their C++ code with the wheel. Add to [compile] flags: {joined}"
        )
        yield "Compiled twice", text


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
    from tfwright.pipeline import caching
    from tfwright.pipeline.compile import attempts
    from tfwright.pipeline.compile.invocation import Invocation
    from tfwright.tools.bazel import binary as bazels
    from tfwright.tools.bazel import client as bazel_client

    stored = bazels.find_stored(pinned.version, pinned.sha256, job.places.stores)
    binary = stored.path if stored else Path(f"bazel-{pinned.version}")
    has_programs = fetched is not None and fetched.programs is not None
    # Kept from the last build: a plan starts no Bazel, which would unpack itself first.
    known = bazel_client.known_options(binary)
    bazel = Invocation(
        job=job,
        table=table,
        release=source.release,
        binary=binary,
        options=known,
        python=fetched.python if fetched and has_programs else Path("@PYTHON@"),
        epoch=tree.epoch if tree else 0,
        exported=configured.exported if configured else {},
        copies=fetched.clones if fetched else (),
        cache=caching.planned_path(job, known.build, pinned.version),
    )
    return (*bazel.settings, bazel.build(attempts.actions_at_once(job, table)))
