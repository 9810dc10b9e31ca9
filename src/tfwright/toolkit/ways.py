"""Which ways to a part of the toolkit are open on a host, and what to type for them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tfwright.documents.recipe import Recipe
from tfwright.documents.toolkit import PartName, PartTable
from tfwright.facts.compatibility import is_of_line
from tfwright.host import nvidia, toolchain
from tfwright.host.place import Place
from tfwright.host.probes import Host


def installed_version(place: Place, part: PartName, root: Path) -> str:
    """Return the version of a part; empty if it is not in that directory."""
    if part == "cuda":
        return next((seen.value for seen in nvidia.cuda(place, root)), "")
    if part != "compiler":
        return nvidia.library(place, part, [root]).value
    # Debian's package has gcc-11 only; plain gcc is a link from another package.
    programs = sorted(root.glob("usr/bin/gcc-[0-9]*"))
    line = toolchain.version_line(place, str(programs[0])).value if programs else ""
    compiler = toolchain.parse_version(line)
    return compiler.version if compiler else ""


_PREFIXES: Mapping[PartName, tuple[str, ...]] = {
    "cuda": ("/usr/local/cuda-{version}", "/usr/local/cuda", "/opt/cuda"),
    "cudnn": ("/usr/local/cuda-{cuda}", "/usr/local/cuda", "/opt/cuda", "/usr"),
    "nccl": ("/usr/local/cuda-{cuda}", "/usr/local/cuda", "/opt/cuda", "/usr"),
    "tensorrt": ("/usr/local/cuda-{cuda}", "/usr/local/cuda", "/opt/tensorrt", "/usr"),
}
"""Where NVIDIA's installers and the distributions put each part."""


def remedy(recipe: Recipe, part: PartName, host: Host) -> str:
    """Say how to obtain a part that a recipe pins: what is open, and what is not and why.

    Empty if the recipe pins no packages of that part.
    """
    table = dict(recipe.toolkit.parts()).get(part)
    if table is None:
        return ""
    ways = dict(_why_closed(table, host))
    is_open = [name for name, reason in ways.items() if not reason]
    # Closed ways are named, too: the reader may prefer to open one of them.
    closed = [f"{name} ({reason})" for name, reason in ways.items() if reason]
    key = "toolkit" if is_open else "toolkit-by-hand"
    text = host.remedy(key, recipe=recipe.argument, ways=", or ".join(is_open))
    lines = [text, *_copy_command(recipe, part, host)]
    if is_open and closed:
        lines.append(f"# not possible here: {', '.join(closed)}")
    return "\n".join(lines)


def _why_closed(table: PartTable, host: Host) -> Iterator[tuple[str, str]]:
    """Yield each way that the recipe pins, and why it is closed; empty if it is open."""
    for way, pins in table.ways():
        # pip needs no tool of the system, so this way is open on every host.
        if way == "wheels":
            yield "from the Python index by pip", ""
        elif way == "debian" and table.debian:
            closed = "" if host.has("apt-get") else "this host has no apt-get"
            yield f"from Debian {table.debian.suite} by apt", closed
        else:
            servers = dict.fromkeys(urlsplit(url).hostname or "" for url in pins)
            yield f"from {' and '.join(servers)}", ""


def _copy_command(recipe: Recipe, part: PartName, host: Host) -> Iterator[str]:
    """Yield the command that copies an installed part, if this host has the wanted version."""
    wanted = getattr(recipe.host, part, None) or ""
    for pattern in _PREFIXES.get(part, ()):
        prefix = Path(pattern.format(version=wanted, cuda=recipe.host.cuda or ""))
        # The name of a directory says little about what is in it.
        found = installed_version(host.place, part, prefix)
        if found and is_of_line(found, wanted):
            command = f"invoke toolkit --recipe {recipe.argument} --{part} {prefix}"
            yield f"{command}   # copies {found}, which is installed there"
            return
