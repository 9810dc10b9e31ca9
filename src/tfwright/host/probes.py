"""What is here: read off a host when it is first asked for, whatever the recipe."""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from tfwright import facts
from tfwright.host import machine, nvidia, toolchain
from tfwright.host.machine import Disk
from tfwright.host.place import HERE, Place
from tfwright.tools.process.command import container_name

REMEDIES = Path(__file__).with_name("remedies.toml")
Found = TypeVar("Found")


def _probed(probe: Callable[[Place], Found]) -> "cached_property[Found]":
    """Return what a probe of a host's place finds, looked for when it is first read."""
    return cached_property(lambda host: probe(host.place))


class Host:
    """A host, as far as recipes care."""

    # Each probe runs when its value is first read, and once: every build makes a Host.

    glibc = _probed(machine.glibc)
    processor = _probed(machine.processor)
    release = _probed(machine.release)
    memory = _probed(machine.memory)
    compiler = _probed(toolchain.compiler)
    git = _probed(lambda place: place.ask("git", "--version"))
    # Asked and not read from `platform`: a container or a played host is another machine.
    _uname = _probed(lambda place: place.ask("uname", "-sm"))
    xcode = _probed(toolchain.xcode)
    installer = _probed(toolchain.installer)
    driver = _probed(nvidia.driver)
    gpus = _probed(nvidia.gpus)

    def __init__(self, place: Place = HERE) -> None:
        """Look at nothing yet."""
        self.place = place

    @property
    def system(self) -> str:
        """As ``uname -s`` says it: Linux, Darwin."""
        return self._uname.value.partition(" ")[0]

    @property
    def machine(self) -> str:
        """As ``uname -m`` says it: x86_64, aarch64, arm64."""
        return self._uname.value.partition(" ")[2]

    @cached_property
    def wsl(self) -> str:
        """``wsl`` or, for its first version, ``wsl1``, if Windows runs the system; else empty."""
        # WSL 1 is no virtual machine: it translates the calls of a Linux 4.4.
        kernel = self.place.read("/proc/version").value
        first = re.search(r"\b4\.4\.\d+-\d+-Microsoft\b", kernel)
        return "wsl1" if first else "wsl" if "microsoft" in kernel.lower() else ""

    # By the system's PATH, which builds have; a venv's programs are not there.
    def has(self, program: str) -> bool:
        """Say whether the host itself, not only the caller's PATH, has a program."""
        return self.place.which(program) is not None

    def remedy(self, trouble: str, **fields: str) -> str:
        """Return what to do about a trouble, with the commands of this system."""
        known: dict[str, str] = facts.read(REMEDIES)[trouble]
        # Every trouble has "other": the words for a system whose installer is unknown.
        ways = (self.wsl, self.wsl[:3], self.installer, "other")
        text = next(known[way] for way in ways if way in known).strip().format(**fields)
        # root in a container has no sudo, and needs none.
        return text if self.has("sudo") else text.replace("sudo ", "")

    def disk(self, path: Path) -> Disk:
        """Look at the disk that holds a path."""
        return machine.disk(self.place, path)

    def __str__(self) -> str:
        return f"{self.system}-{self.machine}"


def this_host() -> Host:
    """Return this host, with the programs of the image where a container is open.

    What was seen of each is kept while the process runs.
    """
    return _host(container_name())


@cache
def _host(_image: str) -> Host:
    return Host()
