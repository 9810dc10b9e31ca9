"""Compilers and the other programs that a build starts."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host.place import NOTHING, Place, Seen

Family = Literal["gcc", "clang", "Apple clang"]
Installer = Literal["apt-get", "dnf", "xcode-select", ""]
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
AUTHORITIES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)
LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
COMPILERS = ("CC", "GCC_HOST_COMPILER_PATH", "CLANG_CUDA_COMPILER_PATH", "CLANG_COMPILER_PATH")
"""Variables that name a compiler."""
_NAMED = re.compile(rf"\b(?:{'|'.join(COMPILERS)})=[\"']?([^\s\"']+)")
"""One of them in a flag of Bazel."""
_NATIVE = re.compile(r"-[a-z-]*(?:arch|architecture|cpu|tune)=native\b")
"""A flag of a compiler, such as -march=native or nvcc's -arch=native, that compiles other code on
another machine. Flags of Bazel have the word in other places."""


class Compiler(NamedTuple):
    """A C++ compiler, by what it says itself."""

    family: Family
    version: str
    build: str = ""
    """Apple's own number, ``800.0.42.1``, which differs from Xcode to Xcode."""

    def __str__(self) -> str:
        return f"{self.family} {self.version}" + (f" ({self.build})" if self.build else "")


def compiler(place: Place) -> Seen:
    """Return the first line that the C++ compiler, which Bazel will find, says for its version."""
    for name in ("c++", "g++", "clang++"):
        if place.which(name):
            return version_line(place, name)
    return NOTHING


def named_compilers(recipe: Recipe, host_file: HostFile) -> tuple[str, ...]:
    """Return the compilers that a recipe and the host file name, as commands or paths."""
    places = (recipe.compile.env, recipe.configure.answers, {"CC": host_file.compiler})
    return compilers_in(places, "\n".join(recipe.compile.flags))


def compilers_in(places: Iterable[Mapping[str, object]], text: str) -> tuple[str, ...]:
    """Return the compilers that variables name, and flags of Bazel in a text, each once."""
    values = [place.get(name) for place in places for name in COMPILERS]
    known = (*values, *_NAMED.findall(text))
    return tuple(dict.fromkeys(str(name) for name in known if name))


def is_native(text: str) -> bool:
    """Say whether compiler flags in a text compile for the processor of the building machine."""
    return _NATIVE.search(text) is not None


def version_line(place: Place, program: str) -> Seen:
    """Return the first line that a compiler says for its version."""
    answer = place.ask(program, "--version")
    return Seen(answer.value.partition("\n")[0], answer.by)


def parse_version(line: str) -> Compiler | None:
    """Read the first line of a compiler's ``--version``; None for one of another family."""
    # Apple's before LLVM's: both say "clang version", with numbers that mean other things.
    apple = re.match(r"Apple (?:LLVM|clang) version ([\d.]+).*\(clang-([\d.]+)\)", line)
    if apple:
        return Compiler("Apple clang", apple[1], apple[2])
    clang = re.search(r"\bclang version ([\d.]+)", line)
    if clang:
        return Compiler("clang", clang[1])
    # After the bracket, which holds the distribution's own version: (Debian 12.2.0-14) 12.2.0.
    gnu = re.search(r"\) (\d[\d.]*)", line)
    return Compiler("gcc", gnu[1]) if gnu else None


def xcode(place: Place) -> Seen:
    """Return the version of the selected Xcode, or else the directory of the command line tools."""
    version = place.ask("xcodebuild", "-version").find(r"\AXcode ([\d.]+)")
    return version or place.ask("xcode-select", "-p")


def bazel(place: Place) -> Seen:
    """Say where a Bazel is on the system's PATH; builds use their own."""
    # It is not run: even for its version, Bazel would unpack itself into the user's home.
    for name in ("bazel", "bazelisk"):
        found = place.which(name)
        if found:
            return Seen(place.shown_path(found), "PATH")
    return NOTHING


def installer(place: Place) -> Installer:
    """Return the program that installs what is missing; empty for one that we do not know."""
    known: tuple[Installer, ...] = ("apt-get", "dnf", "xcode-select")
    return next((program for program in known if place.which(program)), "")


def variables(place: Place, names: tuple[str, ...]) -> Seen:
    """Return which of some environment variables the caller has set."""
    shown = list[str]()
    for name in names:
        value = place.env.get(name) or place.env.get(name.upper())
        if value:
            # The address of a proxy may hold a user name and a password.
            hidden = re.sub(r"//[^/@]*@", "//…@", value)
            shown.append(f"{name}={hidden}")
    return Seen(" ".join(shown), "environment")
