"""The build cache of a job: laid out for compile, sent to the server after a good build."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from tfwright.documents.recipe import CompileTable, ConfigureTable
from tfwright.documents.release import Release
from tfwright.host.toolchain import compilers_in, is_native
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built, Configured, HostFacts
from tfwright.tools import files, json_text
from tfwright.tools.cache import private, toolchain, usage
from tfwright.tools.cache.private import PrivateCache
from tfwright.tools.cache.remote import RemoteCache
from tfwright.tools.cache.store import GIB, CacheStore, Seal, read_secret
from tfwright.tools.cache.toolchain import Toolchain
from tfwright.tools.cache.usage import CachedBuild, CacheUse
from tfwright.tools.process.command import container_name

FIRST, FIRST_WITH_FOLDERS = Release(0, 17), Release(2, 2)
"""The first Bazel that gets a directory, and the first that has folders in it."""


class CacheRecord(BaseModel):
    """What the cache did for the runs of a build so far, and what the server is to get of it."""

    toolchain: str
    actions: tuple[str, ...] = ()
    """Those whose entries were taken or added."""
    damaged: tuple[str, ...] = ()
    """Files that the server has with other content."""
    use: CacheUse | None = None

    @classmethod
    def of(cls, job: Job, toolchain: str) -> "CacheRecord":
        """Return that of a toolchain; an empty one where that of another was written down."""
        found = json_text.load_or_none(job.places.cache_entries, cls)
        return found if found and found.toolchain == toolchain else cls(toolchain=toolchain)

    def save(self, job: Job, **changes: object) -> None:
        """Write it to the job's file, with some changes."""
        files.write(job.places.cache_entries, self.model_copy(update=changes).model_dump_json())


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
        flags = "\n".join((*self.compiling.flags, written))
        # With -march=native the same flags compile other code on another processor, so
        # the cache must keep such hosts apart.
        native = is_native(flags)
        image = container_name()
        if image:
            return toolchain.image_toolchain(image, self.python, native=native)
        # The host file can name one too: configure has written it down, or it is exported.
        places = (self.compiling.env, self.answering.answers, self.configured.exported)
        # Bazel finds gcc and cc by itself.
        compilers = (*compilers_in(places, flags), "gcc", "cc")
        # The memo saves hashing compilers and CUDA again while their files are unchanged.
        memo = root / "fingerprints.json"
        return toolchain.host_toolchain(compilers, self.python, self.host.cuda, memo, native=native)


def recover_entries(job: Job) -> bool:
    """Take in what a killed build left in its cache; say whether what it built is to be believed.

    Raises HostError if the secret that the host file names cannot be used.
    """
    if not job.private_cache.is_dir():
        return True
    secret = read_secret(job.host_file.cache_secret)
    return private.recover_left(_store(job), secret, job.private_cache, job.places.tree)


@contextmanager
def open_cache(
    job: Job, compilers: CompilerChoice, known: Mapping[str, str], version: str
) -> Iterator[PrivateCache | None]:
    """Lay the cache out while the block runs, for a Bazel of a version with these flags.

    None where it is off or cannot be used: a cache only saves time, and a full or read-only disk
    must not fail the build. Raises HostError if the secret that the host file names cannot be used.
    """
    cache = None
    obstacle = _obstacle(known, version)
    if job.host_file.cache.enabled:
        secret = read_secret(job.host_file.cache_secret)
        try:
            if not obstacle:
                cache = _lay_out(job, compilers, secret, version)
        except OSError as fault:
            obstacle = f"{job.host_file.cache_directory} cannot be used ({fault.strerror})"
        if obstacle:
            job.listener.note(f"Building without a cache: {obstacle}")
    yield cache


def _lay_out(job: Job, compilers: CompilerChoice, secret: bytes, version: str) -> PrivateCache:
    """Lay out the entries of this toolchain, with those of the server. Raises OSError."""
    root = job.host_file.cache_directory
    store = _store(job)
    # Bazel's keys do not cover the compiler: replaced in place, it still gets hits of
    # the old one. So each toolchain has entries of its own.
    digest = toolchain.save(compilers.toolchain(root), root)
    sealing = Seal(secret, digest)
    flat = Release.parse(version) < FIRST_WITH_FOLDERS
    cache = PrivateCache(store, sealing, job.private_cache, job.places.tree, flat=flat)
    remote = _remote(job, store, sealing, cache.use)
    try:
        cache.lay_out(remote)
    except OSError:
        files.remove(job.private_cache)
        raise
    if remote:
        remote.close()
        _note_transfer(job, "Took", cache.fetched, remote, "from")
        written = CacheRecord.of(job, digest)
        written.save(job, damaged=tuple(sorted(remote.damaged | {*written.damaged})))
    return cache


def _store(job: Job) -> CacheStore:
    return CacheStore(job.host_file.cache_directory, int(job.host_file.cache.size * GIB))


def _remote(job: Job, store: CacheStore, sealing: Seal, use: CacheUse) -> RemoteCache | None:
    """Return the host file's server, unless there is none, or the job is offline."""
    url = job.host_file.cache.server
    return RemoteCache(url, job.name, store, sealing, use) if url and not job.offline else None


def _note_transfer(job: Job, did: str, actions: int, remote: RemoteCache, to: str) -> None:
    if actions:
        size = f"{remote.moved / (1 << 20):,.0f} MiB"
        job.listener.note(f"{did} {actions:,} results ({size}) {to} the cache server")


def planned_path(job: Job, known: Mapping[str, str], version: str) -> str:
    """Return where a Bazel of a version, with these flags, would find the cache; empty for none."""
    if not job.host_file.cache.enabled or _obstacle(known, version):
        return ""
    return str(job.private_cache / "TOOLCHAIN")


def _obstacle(known: Mapping[str, str], version: str) -> str:
    """Say why a Bazel of a version, with these flags, gets no cache."""
    usable = "disk_cache" in known and Release.parse(version) >= FIRST
    return "" if usable else f"Bazel {version} takes none in a directory"


def flags(known: Mapping[str, str], address: str) -> Iterator[str]:
    """Yield what leads a Bazel with these flags to the cache."""
    if "disk_cache" in known:
        yield f"--disk_cache={address}"
        if "remote_download_outputs" in known:
            # From 7.0 on, files in the cache would stay there, and later stages need them.
            yield "--remote_download_outputs=all"


def forget_use(job: Job) -> None:
    """Forget what the cache did for earlier runs of Bazel: nothing of what they made is left."""
    if written := json_text.load_or_none(job.places.cache_entries, CacheRecord):
        written.save(job, actions=(), use=None)


def record_use(job: Job, cache: PrivateCache | None) -> CacheUse | None:
    """Take in what Bazel left, and write down what the cache did for it.

    Returns what it did for all runs of the build: an interrupted one took its hits in several.
    """
    if cache is None:
        forget_use(job)
        return None
    cache.take_in()
    use = cache.use
    # The history serves `invoke cache`; the build does not depend on it.
    with suppress(OSError):
        build = CachedBuild(recipe=job.name, finished=time.time(), use=use)
        usage.add(job.host_file.cache_directory, build)
    written = CacheRecord.of(job, use.toolchain)
    total = written.use.plus(use) if written.use else use
    written.save(job, use=total, actions=tuple(dict.fromkeys((*written.actions, *cache.actions))))
    if use.faults:
        listed = ", ".join(f"{what} ({count}x)" for what, count in sorted(use.faults.items()))
        job.listener.note(f"What the cache could not answer was built: {listed}")
    return total


def push_entries(job: Job, built: Built) -> None:
    """Send what a good build took from the cache and added to the host file's server.

    Whatever goes wrong makes a note: other hosts then have to compile for themselves.
    """
    use = built.cache
    if use is None or not job.host_file.cache.writes:
        return
    sending = CacheUse(toolchain=use.toolchain)
    secret = read_secret(job.host_file.cache_secret)
    sealing = Seal(secret, use.toolchain)
    remote = _remote(job, _store(job), sealing, sending)
    if remote is None:
        return
    # The compiler may have changed since: its actions have entries of another toolchain.
    written = CacheRecord.of(job, use.toolchain)
    remote.damaged |= set(written.damaged)
    sent = remote.push(written.actions)
    remote.close()
    _note_transfer(job, "Gave", len(sent), remote, "to")
    if sent:
        written.save(job, damaged=())
    for fault, count in sending.faults.items():
        job.listener.note(f"The cache server did not get everything: {fault} ({count}x)")


def summary(built: Built) -> str:
    """Say in a few words how the cache took part in a build."""
    use = built.cache
    if use is None:
        return "cache off"
    return f"cache {use.toolchain[:12]}, {use.hits} of {use.lookups} hits"
