"""The directories of this host that a build uses, whose paths no wheel should hold."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.documents.host_file import HostFile
from tfwright.wheel.inspect.leaks import HostDirectory

if TYPE_CHECKING:
    # Needed by builds only, and `inspect` would wait for them.
    from tfwright.documents.recipe import HostTable
    from tfwright.pipeline.job import Job
    from tfwright.pipeline.results import HostFacts

PUBLIC = ("/usr", "/opt/cuda", "/Applications", "/Library", "/System")
"""Where systems and NVIDIA's installers put programs and toolkits on every host."""
HOW = "docs/lab-notes/wheels.md says how to find it."
WRITTEN = f"Patch the rule or template that writes it. {HOW}"
COMPILED = (
    "Patch the rule or template that writes it; if a compiler does, let a patch add "
    f"-ffile-prefix-map to the script that calls it. {HOW}"
)
TOOLKIT = (
    "Patch the rule or template that writes it, so that it writes /usr/local/cuda, as official "
    f"wheels have. {HOW}"
)


def host_directories(host_file: HostFile) -> Iterator[HostDirectory]:
    """Yield the directories that all builds on this host use."""
    for toolkit, what in ((host_file.cuda, "the CUDA toolkit"), (host_file.cudnn, "cuDNN")):
        if toolkit:
            yield from _outside_public(toolkit, what, TOOLKIT)
    if host_file.compiler:
        yield from _outside_public(host_file.compiler.parent.parent, "the compiler", COMPILED)
    out = host_file.build_out
    yield from _with_real_path(out / "toolkits", "the directory of the toolkits", TOOLKIT)
    yield from _with_real_path(host_file.cache_directory, "the build cache", COMPILED)
    # Also by its parts: a build_out such as /b is too short to be looked for.
    for part in ("vault", "git", "bazel_install"):
        yield from _with_real_path(out / part, "a part of the build_out", WRITTEN)
    yield from _with_real_path(out, "the build_out", COMPILED)


def build_directories(
    job: "Job", wanted: "HostTable", host: "HostFacts"
) -> Iterator[HostDirectory]:
    """Yield the directories that one build uses."""
    places = job.places
    yield from _with_real_path(places.tree, "the source tree", COMPILED)
    yield from _with_real_path(places.bazel, "Bazel's output base", COMPILED)
    yield from _with_real_path(places.home, "the home directory of the build", WRITTEN)
    yield from _with_real_path(places.own, "the directory of this recipe", WRITTEN)
    # The Python of a container image is in the same place on every host.
    if not wanted.image:
        # In a venv it is a link, and its headers lie where that leads to.
        for program in (host.interpreter, Path(os.path.realpath(host.interpreter))):
            yield from _outside_public(program.parent.parent, "Python", WRITTEN)
    yield from host_directories(job.host_file)


def _outside_public(path: Path, what: str, remedy: str) -> Iterator[HostDirectory]:
    """Yield a directory of programs, unless it is the same on other hosts."""
    for found in _with_real_path(path, what, remedy):
        if not any(Path(found.path).is_relative_to(place) for place in PUBLIC):
            yield found


def _with_real_path(path: Path, what: str, remedy: str) -> Iterator[HostDirectory]:
    """Yield a directory by its path, and by that which it has without links."""
    for way in dict.fromkeys((str(path), os.path.realpath(path))):
        yield HostDirectory(way, what, remedy)
