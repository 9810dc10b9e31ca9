"""How Bazel is called for a recipe: its environment, its rc file, and the arguments of a build."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tfwright.documents.recipe import CompileTable
from tfwright.documents.release import NO_RELEASE, Release
from tfwright.pipeline import caching
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, Copied, Inputs, Tree, Unpinned
from tfwright.pipeline.stage import Writes
from tfwright.tools import files
from tfwright.tools.bazel import client as bazel_client
from tfwright.tools.bazel.client import Client, Options
from tfwright.tools.git import clones
from tfwright.tools.process import capacity, isolation
from tfwright.tools.process import command as programs
from tfwright.tools.process.command import Command, clean_environment, open_container
from tfwright.tools.python import package_clients, packages
from tfwright.vault.store import Store

# One flag under two names: 0.17 has the experimental one, 0.24 the other.
STRICT = ("incompatible_strict_action_env", "experimental_strict_action_env")
"""What keeps the caller's environment out of the actions."""
NO_DOWNLOAD = ("repository_disable_download", "experimental_repository_disable_download")
"""What forbids Bazel to download."""
DEAD_PROXY = "http://127.0.0.1:9"
"""The proxy of an offline build. Old Bazels have no flag against downloads; with this proxy they
reach no server, since nothing listens on port 9 (discard)."""
BY_CHECKSUM = {"BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID": "0"}
"""Lets the archives of Bazel 7 and later be found by their checksums alone: by default Bazel takes
a file of the repository cache only if it was downloaded there from the same urls."""
FIRST_WITH_TRACKED_RC = Release(1, 13)
"""From here on the tree's own .bazelrc is the whole story: it imports .tf_configure.bazelrc."""


@dataclass(frozen=True)
class Invocation:
    """Everything that decides how Bazel is called for a recipe."""

    job: Job
    table: CompileTable
    release: Release
    binary: Path
    options: Options
    """What this Bazel understands."""
    python: Path
    """The target Python."""
    epoch: int = 0
    """SOURCE_DATE_EPOCH, in seconds."""
    exported: Mapping[str, str] = field(default_factory=dict)
    """Answers to ./configure that no file carries."""
    copies: tuple[Copied, ...] = ()
    """The commits that Bazel's git finds on this host."""
    unpinned: tuple[Unpinned, ...] = ()
    """What only Bazel can download."""
    packages: tuple[str, ...] = ()
    """What rules let pip install: it finds them in the vault, and asks no index."""
    registry: Mapping[str, str] = field(default_factory=dict)
    """The files of registries of modules: checksums by path."""
    cache: str = ""
    """The directory of the build cache; empty for none."""
    output_base: Path | None = None
    """None for the recipe's own."""

    @classmethod
    def of(
        cls, job: Job, table: CompileTable, inputs: Inputs, tree: Tree, configured: Configured
    ) -> "Invocation":
        """Return how a stage calls Bazel once everything before it has been made."""
        return cls(
            job=job,
            table=table,
            release=tree.release,
            binary=inputs.bazel.path,
            # Asked of the binary itself: which flags a version has changed from release to release.
            options=bazel_client.options(inputs.bazel.path, job.places.install_root),
            python=inputs.python,
            epoch=tree.epoch,
            exported=configured.exported,
            copies=inputs.clones,
            unpinned=inputs.unpinned,
            packages=inputs.packages,
            registry=inputs.registry,
        )

    @cached_property
    def client(self) -> Client:
        """The Bazel of this recipe, with an output base of its own."""
        places = self.job.places
        return Client(
            self.binary,
            places.tree,
            self.output_base or places.bazel,
            places.install_root,
            places.own / "bazelrc",
            # The recipe's answers come last: a variable of ./configure must win.
            {**self.environment, **self.exported},
            self.options,
            # An enclosure of its own; a container has no network anyway.
            self.job.offline and not open_container() and isolation.isolation_obstacle() is None,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What Bazel's client and server see, less the answers to ./configure."""
        proxies = package_clients.proxy_variables()
        if self.job.offline:
            # Programs differ in which of the spellings they read.
            names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
            proxies = dict.fromkeys(names, DEAD_PROXY)
        # The programs first on PATH are the ones that configure had.
        programs = (self.job.places.programs,)
        pip = packages.offline_environment(self.job.places.stores) if self.packages else {}
        # The rules of 1.15 and 2.0 patch archives by `git apply`. Where git finds the repository
        # of a checkout further up, that changes nothing and succeeds.
        ceiling = {"GIT_CEILING_DIRECTORIES": str(self.output_base or self.job.places.bazel)}
        extra = {**proxies, **BY_CHECKSUM, **pip, **ceiling, **_tmpdir(), **self.table.env}
        return clean_environment(self.job.places.home, programs, self.epoch, extra)

    @property
    def settings(self) -> Iterator[Writes]:
        """The files that Bazel reads, and what leads its git to the clones, if there are any."""
        yield Writes(self.client.rc, self._rc_text())
        if self.copies:
            remotes = {copied.remote: copied.repository for copied in self.copies}
            yield Writes(self.job.places.git_settings, clones.clone_configuration(remotes))

    def write_settings(self) -> None:
        """Write those files; a git configuration of an earlier build is removed."""
        # It names repositories of an earlier build, which may be gone.
        places = self.job.places
        files.remove(places.git_settings)
        files.remove(places.registry)
        cached = Store(places.archives)
        for path, sha256 in self.registry.items():
            files.write(places.registry / path, files.content(cached.path(sha256)))
        for written in self.settings:
            files.write(written.path, written.content)

    def build(self, jobs: int) -> Command:
        """Return the run of Bazel that builds the target, with so many actions at once."""
        return self.client.command(*self.arguments(jobs))

    def analysis(self, jobs: int, *flags: str) -> Command:
        """Return the run of Bazel that analyses the target as for a build, and builds nothing."""
        # All downloads that fail are to be named at once, and not only the first.
        return self.client.command(*self.arguments(jobs, "--nobuild", "--keep_going", *flags))

    def arguments(self, jobs: int, *flags: str) -> tuple[str, ...]:
        """Return the arguments of a build; the recipe's flags, and then `flags`, win."""
        return (
            "build",
            # With curses off, Bazel prints the action counter about once a minute.
            "--curses=yes",
            # The log is searched and shown, where colour codes would only be in the way.
            "--color=no",
            # The log then names the rc file that each flag came from.
            "--announce_rc",
            "--verbose_failures",
            f"--build_event_json_file={self.job.places.events}",
            *self._profile_flags(),
            *self._cache_flags(),
            *self._resource_flags(jobs),
            *self._hermetic_flags(),
            *self.table.flags,
            *flags,
            "--",
            self.table.target,
        )

    def _rc_text(self) -> str:
        """Return the rc file: it imports TensorFlow's own, by name.

        Which ones Bazel finds by itself changed with 0.18. Up to 1.1 ./configure writes
        tools/bazel.rc; up to 1.12 that is part of the source, and what configure writes is a
        second file (Bazel from 0.19 on would no longer read it unasked). A repository with an
        interface of its own has one .bazelrc, or one that imports what its program writes.
        """
        if self.release == NO_RELEASE:
            names: tuple[str, ...] = (".bazelrc",)
        elif self.release < Release(1, 2):
            names = ("tools/bazel.rc",)
        elif self.release < FIRST_WITH_TRACKED_RC:
            names = ("tools/bazel.rc", ".tf_configure.bazelrc")
        else:
            names = (".bazelrc",)
        lines = [f"import {self.job.places.tree / name}\n" for name in names]
        # The lock led to these files, by their checksums; Bazel would look for them at a server.
        if self.registry:
            registry = self.job.places.registry.as_uri()
            lines.append(f"common --registry={registry} --lockfile_mode=off\n")
        return "".join(lines)

    def _profile_flags(self) -> Iterator[str]:
        """Yield what makes Bazel write down how long each action takes."""
        # Without this flag, an old Bazel writes its profile in a binary format.
        names = ("generate_json_trace_profile", "experimental_generate_json_trace_profile")
        # The name of the flag was changed in the course of time.
        spelling = next((name for name in names if name in self.options.build), None)
        if spelling and "profile" in self.options.build:
            yield from (f"--{spelling}", f"--profile={self.job.places.profile}")

    def _cache_flags(self) -> Iterator[str]:
        """Yield the flags for what recipes and hosts share."""
        if self.cache:
            yield from caching.flags(self.options.build, self.cache)
        # Not --distdir, which goes by the last part of a url:
        # 1.22.0.tar.gz exists several times.
        if "repository_cache" in self.options.build:
            yield f"--repository_cache={self.job.places.archives}"

    def _resource_flags(self, jobs: int) -> Iterator[str]:
        """Yield how much may run at once.

        In a container Bazel counts the whole machine, so that it is given the container's share.
        """
        free = capacity.available_memory()
        known = self.options.build
        yield f"--jobs={jobs}"
        # 0.17 has --local_resources only; 0.24 and later have the two others.
        if "local_cpu_resources" in known:
            yield f"--local_cpu_resources={jobs}"
            yield f"--local_ram_resources={free >> 20}"
        elif known.get("local_resources", "").startswith("comma-separated"):
            yield f"--local_resources={free >> 20},{jobs},1.0"

    def _hermetic_flags(self) -> Iterator[str]:
        """Yield what keeps the host out of the actions, and an offline build off the network."""
        # Scripts of TensorFlow ask env for `python`, which a host may lack, or have as another one.
        path = (self.python.parent, *programs.SYSTEM_PATH)
        yield f"--action_env=PATH={':'.join(map(str, path))}"
        # In Bazel's sandbox only /tmp can be written to by itself.
        if "sandbox_writable_path" in self.options.build:
            yield from (f"--sandbox_writable_path={path}" for path in _tmpdir().values())
        # Only new Bazels can be forbidden to download; the proxy above serves the old ones.
        names = STRICT + NO_DOWNLOAD if self.job.offline else STRICT
        yield from (f"--{name}" for name in names if name in self.options.build)


def _tmpdir() -> dict[str, str]:
    """Return the caller's TMPDIR: Bazel hands it on to its actions."""
    folder = os.environ.get("TMPDIR", "")
    return {"TMPDIR": folder} if folder and Path(folder).is_dir() else {}
