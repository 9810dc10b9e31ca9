"""What a recipe wants of a host: each requirement compares one thing and reports what is amiss."""

from collections.abc import Callable, Iterator

from tfwright.host import cuda, pythons
from tfwright.host.findings import Finding
from tfwright.host.probes import Host
from tfwright.recipe import Recipe
from tfwright.settings import Settings

Requirement = Callable[[Recipe, Settings, Host], Iterator[Finding]]

GIB = 2**30
ROOM = 16 * GIB
"""For a build of TensorFlow: what Gentoo's package asks, 10 and 6 more for each Python."""
SMALL_ROOM = 1 * GIB
"""For a source tree that tfwright brings itself."""

GIT = {"apt-get": "sudo apt-get install git", "dnf": "sudo dnf install git", "xcode-select": "xcode-select --install"}
COMPILER = {"apt-get": "sudo apt-get install g++", "dnf": "sudo dnf install gcc-c++", "xcode-select": "xcode-select --install"}


def compare(recipe: Recipe, settings: Settings, host: Host) -> list[Finding]:
    """Return everything that is not as the recipe wants it, in the order of REQUIREMENTS."""
    return [finding for requirement in REQUIREMENTS for finding in requirement(recipe, settings, host)]


def _platform(recipe: Recipe, _settings: Settings, host: Host) -> Iterator[Finding]:
    wanted = recipe.host
    if wanted.system not in {"any", host.system} or wanted.machine not in {"any", host.machine}:
        remedy = "Build on such a machine; the stages up to 'source' run here: add --until source."
        yield Finding(f"this host is {host}", f"{wanted.system}-{wanted.machine}", remedy, blocks="configure")


def _python(recipe: Recipe, settings: Settings, _host: Host) -> Iterator[Finding]:
    version = recipe.host.python
    if pythons.find(version, settings):
        return
    named = settings.pythons.get(version)
    if named:
        seen = pythons.version_of(named)
        found = f"{named} is Python {seen}" if seen else f"{named} does not run"
        yield Finding(found, f"Python {version}, as the host file says", f"Correct pythons.{version!r} in the host file.", blocks="check")
    else:
        remedy = f"Install it (pyenv install {version}), or name one in the host file: [pythons] {version!r} = '/path/to/python'."
        yield Finding(f"no Python {version}", "an interpreter on PATH, in pyenv, in conda or in the host file", remedy, blocks="check")


def _git(_recipe: Recipe, _settings: Settings, host: Host) -> Iterator[Finding]:
    if not host.git:
        yield Finding("no git", "git on the system's PATH", GIT.get(host.installer, "Install git."), blocks="fetch")


def _compiler(_recipe: Recipe, _settings: Settings, host: Host) -> Iterator[Finding]:
    if not host.compiler:
        yield Finding("no C++ compiler", "c++, g++ or clang++ on the system's PATH", COMPILER.get(host.installer, "Install g++."), blocks="compile")


def _cuda(recipe: Recipe, settings: Settings, _host: Host) -> Iterator[Finding]:
    if not cuda.needed(recipe):
        return
    places = {"CUDA": cuda.toolkit(recipe, settings), "cuDNN": cuda.cudnn(recipe, settings)}
    for name, place in places.items():
        if not place.is_dir():
            version = recipe.host.cuda if name == "CUDA" else recipe.host.cudnn
            remedy = f"Install it there, or say where it is in the host file: {name.lower()} = '/path'."
            yield Finding(f"no {name} at {place}", f"{name} {version or ''}".rstrip(), remedy, blocks="configure")


def _bazel(recipe: Recipe, settings: Settings, host: Host) -> Iterator[Finding]:
    version = recipe.bazel.version
    if version not in settings.bazels and not host.npm:
        remedy = f"Nothing, if that can be downloaded; else name a binary in the host file: [bazels] {version!r} = '/path/to/bazel'."
        yield Finding(f"only the official release of Bazel {version} can be had", "npm as a second source", remedy)


def _room(recipe: Recipe, settings: Settings, host: Host) -> Iterator[Finding]:
    wanted = SMALL_ROOM if recipe.source.url.startswith("bundled:") else ROOM
    if host.free < wanted:
        remedy = "Free some space, or set build_out in the host file to a larger disk."
        yield Finding(f"{host.free / GIB:.1f} GiB free at {settings.build_out}", f"{wanted // GIB} GiB", remedy)


REQUIREMENTS: tuple[Requirement, ...] = (_platform, _python, _git, _compiler, _cuda, _bazel, _room)
