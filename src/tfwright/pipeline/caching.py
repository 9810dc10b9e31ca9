"""The build cache of a job: opened for compile, signed for other hosts after a good build."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.recipe import CompileTable, ConfigureTable
from tfwright.documents.release import Release
from tfwright.host.toolchain import named_in
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built, Configured, HostFacts
from tfwright.tools import files, json_text, signing
from tfwright.tools.cache import (
    execution_log,
    history,
    manifest,
    private_cache,
    proxy,
    seal,
    toolchain,
)
from tfwright.tools.cache.build_cache import BuildCache, Trust
from tfwright.tools.cache.history import CachedBuild
from tfwright.tools.cache.private_cache import PrivateCache
from tfwright.tools.cache.proxy import CacheProxy
from tfwright.tools.cache.server import CacheServer, ServerFaultError
from tfwright.tools.cache.store import CacheDirectory
from tfwright.tools.cache.tally import CacheUse
from tfwright.tools.cache.toolchain import Toolchain
from tfwright.tools.process import inside

GIB = 1 << 30
EXAMPLE = "http://127.0.0.1:PORT"
"""What a plan shows of the proxy: the port is chosen when the build starts."""
SPELLINGS = ("remote_http_cache", "remote_cache")
"""Names of one flag. Bazel from 0.17 to 0.25 has both, and takes http:// by the first only.

Bazel before 0.10 has neither name for a cache over HTTP, and goes without.
"""

LAID_OUT = (Release(0, 17), Release(2, 2))
"""The first Bazel that gets a disk cache laid out, and the first that does not: what lies between
was tried. Later ones lay out their disk caches in another way."""
SPAWN_CACHE = Release(0, 15)
"""From here on Bazel asks a cache for every action, before that only if a flag says so."""


@dataclass(frozen=True)
class CompilerChoice:
    """What decides which compilers a build runs, and with which options."""

    compiling: CompileTable
    answering: ConfigureTable
    host: HostFacts
    python: Path
    """The target Python."""
    configured: Configured

    def toolchain(self, root: Path) -> Toolchain:
        """Return what compiles on this host; digests of its files are remembered under `root`."""
        written = files.text(self.configured.bazelrc.path)
        said = "\n".join((*self.compiling.flags, written))
        # With -march=native the same flags compile other code on another processor, so
        # the cache must keep such hosts apart.
        native = "=native" in said
        image = inside.name()
        if image:
            return toolchain.of_image(image, self.python, native=native)
        # The memo saves hashing compilers and CUDA again
        # while their files are unchanged.
        memo = root / "fingerprints.json"
        return toolchain.of_host(
            self._named(said), self.python, self.host.cuda, memo, native=native
        )

    def _named(self, said: str) -> Sequence[str]:
        """Return the compilers that a build names, and those that Bazel finds by itself."""
        # The host file can name one too: configure has written it down, or it is exported.
        places = (self.compiling.env, self.answering.answers, self.configured.exported)
        return (*named_in(places, said), "gcc", "cc")


@dataclass(frozen=True)
class OpenCache:
    """The cache while a job compiles: laid out as a directory for Bazel, or served."""

    cache: BuildCache
    front: PrivateCache | CacheProxy
    toolchain: str
    spoiled_before: bool
    """Whether a build that was killed may have read a file of the cache that had changed."""

    @property
    def address(self) -> str:
        """Where Bazel finds it: a directory, or a url."""
        if isinstance(self.front, CacheProxy):
            return self.front.url
        return str(self.front.folder)

    @property
    def spoiled(self) -> bool:
        """Whether Bazel may have read a file of the cache that had changed."""
        return isinstance(self.front, PrivateCache) and self.front.spoiled

    def finish(self) -> CacheUse:
        """Take in what Bazel left, once it has ended; return what the cache did."""
        if isinstance(self.front, PrivateCache):
            self.front.take_in()
        return self.cache.tally.use(self.toolchain)


@contextmanager
def opened(
    job: Job, compilers: CompilerChoice, known: Mapping[str, str], version: str
) -> Iterator[OpenCache | None]:
    """Open the cache while the block runs, for a Bazel of a version with these flags.

    None where it is off or cannot be opened. Raises HostError if a key or secret that the host
    file names cannot be used.
    """
    directory = _directory(job)
    if directory is None:
        yield None
        return
    root = job.host_file.cache_directory
    # Bazel's keys do not cover the compiler: replaced in place, it still gets hits of
    # the old one. So each toolchain has entries of its own.
    tools = compilers.toolchain(root)
    toolchain.keep(tools, root)
    cache = _cache(job, directory, tools)
    folder = _private_folder(job)
    tree = job.places.tree
    spoiled = not private_cache.take_left(cache, folder, tree)
    with ExitStack() as stack:
        front: PrivateCache | CacheProxy | None = None
        if _takes_directory(job, known, version):
            laying = private_cache.laid_out(cache, folder, tree)
            front = stack.enter_context(laying)
        front = front or stack.enter_context(proxy.serving(cache))
        yield OpenCache(cache, front, tools.digest, spoiled)


def _cache(job: Job, directory: CacheDirectory, tools: Toolchain) -> BuildCache:
    """Return a toolchain's cache; the host file's server takes part unless the job is offline."""
    table = job.host_file.cache
    address = "" if job.offline else table.server
    server = CacheServer(address) if address else None
    trust = _trust(job, tools, server)
    return BuildCache(directory, trust, server, writes=table.writes)


def planned(job: Job, known: Mapping[str, str], version: str) -> str:
    """Return where a Bazel of a version, with these flags, would find the cache; empty for none."""
    if not job.host_file.cache.enabled:
        return ""
    if _takes_directory(job, known, version):
        return str(_private_folder(job) / "TOOLCHAIN")
    return EXAMPLE


def _directory(job: Job) -> CacheDirectory | None:
    """Return this host's cache; None where it is off or cannot be used."""
    table = job.host_file.cache
    # Other machines have a cache of their own, whose entries nothing here can verify.
    if not table.enabled or job.host_file.remote_execution:
        return None
    root = job.host_file.cache_directory
    try:
        return CacheDirectory(root, int(table.size * GIB))
    # A cache saves time only: a full or read-only disk must not fail the build.
    except OSError as fault:
        job.listener.note(f"Building without a cache: {root} cannot be used ({fault.strerror})")
        return None


def _takes_directory(job: Job, known: Mapping[str, str], version: str) -> bool:
    """Say whether a Bazel gets the cache as a directory: one with a server needs the proxy."""
    served = job.host_file.cache.server and not job.offline
    first, end = LAID_OUT
    tried = first <= Release.parse(version) < end
    return tried and "disk_cache" in known and not served


def _private_folder(job: Job) -> Path:
    return job.places.own / "disk-cache"


def flags(known: Mapping[str, str], version: str, address: str) -> Iterator[str]:
    """Yield what leads a Bazel of a version, with these flags, to the cache."""
    names = SPELLINGS if "://" in address else ("disk_cache",)
    spelling = next((name for name in names if name in known), None)
    if spelling is None:
        return
    yield f"--{spelling}={address}"
    # Later Bazels may still know the flag, and need it no longer.
    if Release.parse(version) < SPAWN_CACHE and "experimental_remote_spawn_cache" in known:
        yield "--experimental_remote_spawn_cache"
    # Without it, a source that changes during an action is cached under its old digest. It also
    # refuses whatever needs a generated file that two actions write, a quarter of TensorFlow 1.15.
    # So it is left out for a directory, which compares the tree before it takes anything in.
    if "://" in address and "experimental_guard_against_concurrent_changes" in known:
        yield "--experimental_guard_against_concurrent_changes"
    if "remote_download_outputs" in known:
        # From 7.0 on, files in the cache would stay there, and later stages need them.
        yield "--remote_download_outputs=all"


def log_flags(job: Job, known: Mapping[str, str]) -> Iterator[str]:
    """Yield what makes Bazel write an execution log, if the host file asks for one."""
    spelling = next((name for name in execution_log.FLAGS if name in known), None)
    if job.host_file.cache.logs and spelling:
        yield f"--{spelling}={_log_file(job)}"


def forget(job: Job) -> None:
    """Forget what the cache did for earlier runs of Bazel: nothing of what they made is left."""
    files.remove(_use_file(job))


def recorded(job: Job, cache: OpenCache | None) -> CacheUse | None:
    """Write down what the cache did for a run of Bazel; return it for all runs of the build."""
    if cache is None:
        forget(job)
        return None
    use = cache.finish()
    build = CachedBuild(recipe=job.name, finished=time.time(), use=use)
    # The history serves `invoke cache`; the build does not depend on it.
    with suppress(OSError):
        history.add(job.host_file.cache_directory, build)
    _keep_log(job)
    # An interrupted build took its hits in several runs of Bazel.
    total = _earlier(job, use).plus(use)
    files.write(_use_file(job), total.model_dump_json())
    _keep_entries(job, cache)
    if use.faults:
        job.listener.note(f"What the cache could not answer was built: {_listed(use.faults)}")
    return total


def _keep_entries(job: Job, cache: OpenCache) -> None:
    """Write down what was added to the cache; publish signs it if the wheel is good."""
    entries = {"toolchain": cache.toolchain, "entries": dict(cache.cache.written)}
    files.write(_entries_file(job), json.dumps(entries))


def publish(job: Job, built: Built) -> None:
    """Sign what a good build took from the cache and added, where the host file names a key.

    Raises HostError if the key cannot sign. A server that does not take the list makes a note.
    """
    sign = job.host_file.sign
    table = job.host_file.cache
    use = built.cache
    written = _written(job, built)
    if sign is None or use is None or not written:
        return
    # Signed only by publish: by then verify has run a wheel made from these entries.
    listed = manifest.write(job.host_file.cache_directory, use.toolchain, written, sign.key)
    if table.server and table.writes and not job.offline:
        server = CacheServer(table.server)
        try:
            keyid = signing.signer(sign.key).public_key.keyid
            manifest.send(listed, server, use.toolchain, keyid)
        # The wheel is good; only other hosts have to compile for themselves.
        except (ServerFaultError, OSError) as fault:
            job.listener.note(f"The cache server did not take the signed list of entries: {fault}")
        finally:
            server.close()


def summary(built: Built) -> str:
    """Say in a few words how the cache, or other machines, took part in a build."""
    use = built.cache
    if use is None:
        return "cache off, remote execution" if built.remote else "cache off"
    return f"cache {use.toolchain[:12]}, {use.hits} of {use.lookups} hits"


def _trust(job: Job, tools: Toolchain, server: CacheServer | None) -> Trust:
    """Return whose entries are believed: our own, and what trusted builders list."""
    table = job.host_file.cache
    root = job.host_file.cache_directory
    secret = seal.secret(job.host_file.cache_secret)
    listed: dict[str, str] = {}
    for key in table.trust:
        listed |= manifest.read(root, server, tools.digest, key)
    return Trust(tools.digest, secret, listed)


def _log_file(job: Job) -> Path:
    return job.places.logs / "compile.execution.log"


def _keep_log(job: Job) -> None:
    """Put the execution log where the next build does not overwrite it."""
    written = _log_file(job)
    if written.is_file():
        name = f"{job.name}-{time.strftime('%Y%m%d-%H%M%S')}.log"
        # Bazel has ended well or badly by now, and a log
        # that stays behind harms nothing.
        with suppress(OSError):
            kept = job.host_file.cache_directory / "logs" / name
            kept.parent.mkdir(exist_ok=True)
            shutil.move(written, kept)


def _use_file(job: Job) -> Path:
    return job.places.own / "cache-use.json"


def _entries_file(job: Job) -> Path:
    return job.places.own / "cache-entries.json"


def _earlier(job: Job, use: CacheUse) -> CacheUse:
    """Return what earlier runs of this build took from the cache."""
    try:
        return CacheUse.model_validate_json(files.content(_use_file(job)))
    except (OSError, ValueError):
        return CacheUse(toolchain=use.toolchain)


def _written(job: Job, built: Built) -> dict[str, str]:
    """Return the entries that compile left, if they are of this build's toolchain."""
    left = json_text.record(_entries_file(job))
    # The compiler may have changed since: the list would then vouch for other entries.
    if built.cache is None or left.get("toolchain") != built.cache.toolchain:
        return {}
    return manifest.valid(left.get("entries"))


def _listed(faults: Mapping[str, int]) -> str:
    return ", ".join(f"{what} ({count}x)" for what, count in faults.items())
