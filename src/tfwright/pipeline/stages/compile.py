"""Runs Bazel on the recipe's target.

Bazel decides what has to be done: it continues after any interruption with the action that was
under way, and a cache shared by all recipes spares the rest of a build made anew.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfwright.diagnosis import again
from tfwright.diagnosis.reader import Match
from tfwright.documents.recipe import CompileTable
from tfwright.documents.release import Release
from tfwright.errors import Evidence, HostError, RecipeError, SupplyError, TfwrightError, ToolError
from tfwright.pipeline import attempts, caching, cost, stamps
from tfwright.pipeline.caching import OpenCache
from tfwright.pipeline.results import Built, Configured, HostFacts, Inputs, Tree
from tfwright.pipeline.stage import Artefact, Job, Step, Writes
from tfwright.pipeline.stages import source
from tfwright.rules import resolved
from tfwright.tools import files
from tfwright.tools.bazel import binary as bazel
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel import events
from tfwright.tools.bazel.client import BazelRun, Client, Options
from tfwright.tools.bazel.output import DownloadFault, Fault, download_fault, first_fault
from tfwright.tools.git import clones
from tfwright.tools.process import capacity, environment, isolation
from tfwright.tools.process.runner import Command
from tfwright.tools.python import package_clients

PAUSES = (5.0, 20.0)
"""Seconds before a build is tried again that something passing stopped. Bazel itself has tried a download for 13 seconds by then."""
Arguments = Callable[[Job], Sequence[str]]
"""How Bazel is called for a job; only the number of jobs changes from one attempt to the next."""
THRASHING = 20.0
"""Percent of ten seconds, at worst, that everything waited for memory: from here on fewer actions at once take less time."""
NOWHERE = "http://127.0.0.1:9"
"""The proxy of an offline build. Old Bazels cannot be told to download nothing; there they find nobody, port 9 being out of use."""
FIRST_WITH_TRACKED_RC = Release(1, 13)
"""From here on the tree's own .bazelrc is the whole story: it imports .tf_configure.bazelrc by itself."""


def run(
    job: Job,
    table: CompileTable,
    host: HostFacts,
    inputs: Inputs,
    tree: Tree,
    configured: Configured,
) -> Built:
    """Build the target; whatever happens, no Bazel is left running."""
    job = _with_jobs(job, table)
    options = bazel_client.options(inputs.bazel.path, _install_root(job))
    client = _client(
        job, inputs.bazel.path, options, {**_environment(job, tree.epoch), **configured.exported}
    )
    _write_settings(job, client, inputs)
    files.remove(job.log("compile"))
    _close_off(job, client)
    _forget_compiler(job, client, host)
    resumed = client.output_base.exists()
    with caching.opened(job, host, inputs.python, configured) as cache:
        url = cache.served.url if cache else ""
        client = _with_cache(client, cache)
        try:
            outcome = _build(
                job,
                table,
                client,
                lambda job: _arguments(job, table, options, inputs.python, url),
                pauses=PAUSES,
                before=None,
            )
        finally:
            client.stop()
            use = caching.recorded(job, cache, resumed=resumed)
    outputs = tuple(Artefact.of(path) for path in events.outputs(_events(job)))
    return Built(target=table.target, outputs=outputs, actions=outcome.actions, cache=use)


def _with_cache(client: Client, cache: OpenCache | None) -> Client:
    """Let a Bazel that has no network reach the proxy, which listens outside."""
    if cache is None or not client.alone:
        return client
    door, port = cache.served.adopt(), cache.served.port
    return replace(client, first=isolation.listening(door, port))


def wanted(job: Job, inputs: Inputs, tree: Tree, configured: Configured) -> Mapping[str, str]:
    """Return the external repositories that the recipe's target wants, by name, with digest or commit; nothing is compiled.

    Bazel only tells which ones it makes, so that it is asked where it has none yet. Raises as the
    stage does if the target cannot be analysed.
    """
    options = bazel_client.options(inputs.bazel.path, _install_root(job))
    env = {**_environment(job, tree.epoch), **configured.exported}
    client = replace(
        _client(job, inputs.bazel.path, options, env), output_base=job.places.own / "asked"
    )
    told = job.places.logs / "resolved.bzl"
    named, target = (
        _arguments(job, job.recipe.compile, options, inputs.python)[:-2],
        job.recipe.compile.target,
    )
    command = client.command(
        *named, "--nobuild", f"--experimental_repository_resolved_file={told}", "--", target
    )
    _write_settings(job, client, inputs)
    try:
        outcome = client.run(command, job.log("lock"), job.listener.progress)
    finally:
        client.stop()
        files.remove(client.output_base)
    if outcome.status != 0:
        raise _failure(job, command, outcome, None)
    return resolved.pins(told.read_text("utf-8"))


def steps(job: Job) -> Sequence[Step]:
    """Return the rc file and the run of Bazel; of flags that must be probed, those that the stored binary is known to have."""
    pinned = job.recipe.bazel
    stored = bazel.stored(pinned.version, pinned.sha256, job.places.vault)
    binary = stored.path if stored else Path(f"bazel-{pinned.version}")
    options = bazel_client.known_options(binary)
    configured = stamps.last(job, "configure", Configured)
    exported = configured.exported if configured else {}
    client = _client(job, binary, options, {**_environment(job, source.epoch(job)), **exported})
    fetched = stamps.last(job, "fetch", Inputs)
    python = fetched.python if fetched and fetched.programs else Path("@PYTHON@")
    cache = caching.EXAMPLE if job.host_file.cache.enabled else ""
    return (
        *_settings(job, client, fetched),
        client.command(*_arguments(job, job.recipe.compile, options, python, cache)),
    )


def _write_settings(job: Job, client: Client, inputs: Inputs) -> None:
    files.remove(_gitconfig(job))
    for one in _settings(job, client, inputs):
        files.write(one.path, one.content)


def _settings(job: Job, client: Client, inputs: Inputs | None) -> Iterator[Writes]:
    """Yield what Bazel reads, and what leads its git to the clones on this host, if there are any."""
    yield Writes(client.rc, _rc(job))
    if inputs and inputs.clones:
        yield Writes(
            _gitconfig(job),
            clones.configuration({one.remote: one.repository for one in inputs.clones}),
        )


def _gitconfig(job: Job) -> Path:
    return job.places.home / ".gitconfig"


def _install_root(job: Job) -> Path:
    return job.places.build_out / "bazel_install"


def _events(job: Job) -> Path:
    return job.places.logs / "compile.events.json"


def _client(job: Job, binary: Path, options: Options, env: dict[str, str]) -> Client:
    """Return the Bazel of this recipe."""
    places = job.places
    alone = job.offline and isolation.obstacle() is None
    return Client(
        binary,
        places.tree,
        places.bazel,
        _install_root(job),
        places.own / "bazelrc",
        env,
        options,
        alone,
    )


def _close_off(job: Job, client: Client) -> None:
    """Prove an offline build by taking its network away; where that cannot be done, say so."""
    if client.alone:
        # One that a killed build left behind still has the network.
        client.stop()
    elif job.offline:
        job.listener.note(
            f"That nothing is downloaded is not proved: {isolation.obstacle()}. Bazel is told not to, and finds no proxy"
        )


def _forget_compiler(job: Job, client: Client, host: HostFacts) -> None:
    """Make Bazel look at the compilers anew if they changed: by itself it keeps what it saw first, and then misses their headers."""
    kept, now = job.places.own / "compiler", f"{host.compiler}\n{host.cuda}\n"
    if kept.is_file() and kept.read_text("utf-8") != now:
        client.stop()
        # Without the marker a repository is made again. From Bazel 7 on, names of extensions stand before its own.
        for marker in (client.output_base / "external").glob("@*local_config_*.marker"):
            files.remove(marker)
        job.listener.note("The compiler changed; Bazel configures it anew")
    files.write(kept, now)


def _environment(job: Job, epoch: int) -> dict[str, str]:
    """Return what Bazel's client and server see; the programs first on PATH are the ones that configure had."""
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    network = dict.fromkeys(names, NOWHERE) if job.offline else package_clients.proxies()
    return environment.clean(
        job.places.home, (job.places.programs,), epoch, {**network, **job.recipe.compile.env}
    )


def _rc(job: Job) -> str:
    """Return the rc file: it imports TensorFlow's own, by name, since which ones Bazel finds by itself changed with 0.18.

    Up to 1.1 ./configure writes tools/bazel.rc; up to 1.12 that is part of the source, and what
    configure writes stands beside it (Bazel from 0.19 on would no longer read it unasked).
    """
    release = job.recipe.source.release
    if job.recipe.source.interface == "own":
        return f"import {job.places.tree / (job.recipe.configure.writes or '.bazelrc')}\n"
    if release < Release(1, 2):
        names: tuple[str, ...] = ("tools/bazel.rc",)
    elif release < FIRST_WITH_TRACKED_RC:
        names = ("tools/bazel.rc", ".tf_configure.bazelrc")
    else:
        names = (".bazelrc",)
    return "".join(f"import {job.places.tree / name}\n" for name in names)


def _arguments(
    job: Job, table: CompileTable, options: Options, python: Path, cache: str = ""
) -> tuple[str, ...]:
    """Return the build command; the recipe's flags come last, and so win."""
    return (
        "build",
        "--curses=yes",
        "--color=no",
        "--announce_rc",
        "--verbose_failures",
        f"--build_event_json_file={_events(job)}",
        *_profile(job, options),
        *_caches(job, options, cache),
        *_resources(job, table, options),
        *_hermetic(job, options, python),
        *table.flags,
        "--",
        table.target,
    )


def _caches(job: Job, options: Options, cache: str) -> Iterator[str]:
    """Yield the flags for what recipes and hosts share; `cache` is the url of the proxy."""
    if cache:
        yield from caching.log_flags(job, options.build)
        yield from caching.flags(options.build, job.recipe.bazel.version, cache)
    if "repository_cache" in options.build:
        yield f"--repository_cache={job.places.vault / 'repository_cache'}"


def _profile(job: Job, options: Options) -> Iterator[str]:
    """Yield what makes Bazel write down how long each action takes."""
    spelling = next(
        (
            name
            for name in ("generate_json_trace_profile", "experimental_generate_json_trace_profile")
            if name in options.build
        ),
        None,
    )
    if spelling and "profile" in options.build:
        yield from (f"--{spelling}", f"--profile={cost.profile(job)}")


def _resources(job: Job, table: CompileTable, options: Options) -> Iterator[str]:
    """Yield how much may run at once. Bazel counts the whole machine where it is only lent a part, so it is told."""
    free, jobs = capacity.memory(), attempts.jobs(job, table)
    yield f"--jobs={jobs}"
    if "local_cpu_resources" in options.build:
        yield f"--local_cpu_resources={jobs}"
        yield f"--local_ram_resources={free >> 20}"
    elif options.build.get("local_resources", "").startswith("comma-separated"):
        yield f"--local_resources={free >> 20},{jobs},1.0"


def _hermetic(job: Job, options: Options, python: Path) -> Iterator[str]:
    """Yield what keeps the host out of the actions, and an offline build off the network.

    Scripts of TensorFlow ask env for `python`, which a host may not have, or as another one: the
    target Python comes first on the actions' PATH.
    """
    yield f"--action_env=PATH={':'.join(map(str, (python.parent, *environment.SYSTEM_PATH)))}"
    yield from (
        f"--{name}"
        for name in ("incompatible_strict_action_env", "experimental_strict_action_env")
        if name in options.build
    )
    if job.offline:
        disabling = ("repository_disable_download", "experimental_repository_disable_download")
        yield from (f"--{name}" for name in disabling if name in options.build)


def _build(
    job: Job,
    table: CompileTable,
    client: Client,
    arguments: Arguments,
    *,
    pauses: Sequence[float],
    before: Match | None,
) -> BazelRun:
    """Run Bazel until it succeeds, or until the catalogue says of its first error that trying again does not help."""
    command = client.command(*arguments(job))
    outcome = client.run(
        command, job.log("compile"), job.listener.progress, partial(cost.note, job)
    )
    _learn(job, table, outcome)
    if outcome.status == 0:
        return outcome
    known = again.cause(
        job.log("compile"),
        outcome.start,
        killed=outcome.killed > 0,
        died=outcome.status == bazel_client.SERVER_DIED,
    )
    jobs = attempts.jobs(job, table)
    if known and known.entry.retry == "fewer" and jobs > 1:
        return _build(_with_fewer(job, jobs), table, client, arguments, pauses=pauses, before=known)
    if known is None or not pauses or not _may_pass(job, known, before):
        raise _failure(job, command, outcome, known)
    job.listener.note(f"{_said(outcome, known)}; trying again in {pauses[0]:g} s")
    time.sleep(pauses[0])
    return _build(job, table, client, arguments, pauses=pauses[1:], before=known)


def _with_jobs(job: Job, table: CompileTable) -> Job:
    """Return the job with a fixed number of actions at once: how much memory is free changes while it is built."""
    jobs = attempts.jobs(job, table)
    if job.jobs is None and jobs == attempts.read(job).jobs:
        job.listener.note(
            f"{jobs} at once, since more actions did not fit into the memory before ({job.places.memory})"
        )
    return replace(job, jobs=jobs)


def _learn(job: Job, table: CompileTable, outcome: BazelRun) -> None:
    """Remember for later builds what this run did to the memory."""
    peak, jobs = outcome.peak / capacity.GIB, attempts.jobs(job, table)
    if peak > max(table.peak, attempts.read(job).peak):
        job.listener.note(
            f"One action took {peak:.1f} GiB of memory, more than the recipe's peak of {table.peak:g}; later builds reckon with it"
        )
    attempts.learn_peak(job, peak)
    if outcome.status == 0 and outcome.pressure >= THRASHING and jobs > 1:
        attempts.learn_jobs(job, jobs - 1)
        job.listener.note(
            f"With {jobs} actions at once everything waited for memory {outcome.pressure:.0f} % of the time; later builds run {jobs - 1}"
        )


def _with_fewer(job: Job, jobs: int) -> Job:
    """Return the job with half as many actions at once, and remember that for the next build."""
    fewer = jobs // 2
    attempts.learn_jobs(job, fewer)
    job.listener.note(
        f"The memory did not hold {jobs} actions at once; going on with {fewer}, now and in later builds ({job.places.memory} keeps it)"
    )
    return replace(job, jobs=fewer)


def _may_pass(job: Job, known: Match, before: Match | None) -> bool:
    """Say whether the next attempt may go better without any change. An offline build downloads nothing, however often it is tried."""
    if job.offline and known.entry.stage == "fetch":
        return False
    same = before is not None and before.text == known.text
    return known.entry.retry == "pass" or (known.entry.retry == "once" and not same)


def _said(outcome: BazelRun, known: Match) -> str:
    """Say in one line what stopped Bazel."""
    fault = download_fault(outcome.errors)
    return (
        f"{fault.url} could not be downloaded ({fault.why})"
        if fault
        else known.entry.cause.rstrip(".")
    )


def _failure(job: Job, command: Command, outcome: BazelRun, known: Match | None) -> TfwrightError:
    """Return the error for a build that failed, sorted by who must act."""
    fault = first_fault(outcome.errors) or Fault(
        f"Bazel {_ending(outcome.status)}", "", outcome.errors
    )
    evidence = Evidence(
        where=fault.where,
        command=command.argv,
        status=outcome.status,
        log=job.log("compile"),
        lines=fault.lines,
    )
    if download := download_fault(outcome.errors):
        return _no_download(job, download, evidence)
    if outcome.status == bazel_client.REFUSED:
        return _refused(job, fault, evidence)
    if known and known.entry.retry == "fewer":
        return HostError(
            f"The memory ran out, with one action at a time: {fault.what}",
            remedy="Close other programs, raise the container's limit, or add swap.",
            evidence=evidence,
        )
    if known and "disk" in known.entry.evidence:
        return HostError(
            f"The disk is full: {fault.what}", remedy=known.entry.remedy, evidence=evidence
        )
    return ToolError(
        fault.what,
        remedy="Look at the lines above; the log holds the whole command. What was built is kept.",
        evidence=evidence,
    )


def _ending(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"


def _no_download(job: Job, fault: DownloadFault, evidence: Evidence) -> SupplyError:
    """Return the error for an archive that Bazel could not get."""
    if job.offline:
        what, remedy = (
            f"This build is offline, and Bazel wanted to download {fault.url}",
            "Run 'invoke fetch' first, with a network.",
        )
    else:
        what, remedy = (
            f"Bazel could not download {fault.url}: {fault.why}",
            "Check the network, or get the archive into the vault from a mirror.",
        )
    return SupplyError(what, remedy=remedy, evidence=evidence)


def _refused(job: Job, fault: Fault, evidence: Evidence) -> RecipeError:
    """Return the error for a command line that Bazel does not understand."""
    version = job.recipe.bazel.version
    remedy = f"Correct flags in the recipe's [compile], or pin a Bazel other than {version}; the log says from which rc file a flag came."
    return RecipeError(
        f"Bazel {version} refuses the build: {fault.what}", remedy=remedy, evidence=evidence
    )
