"""What is here: read off a host when it is first asked for, whatever the recipe."""

import functools
import tomllib
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tfwright.host import machine, toolchain
from tfwright.host.machine import Disk
from tfwright.host.place import HERE, Place, Seen
from tfwright.tools.process.command import container_name

if TYPE_CHECKING:
    from tfwright.host.nvidia import Gpu


class Host:
    """A host, as far as recipes care."""

    # Each probe runs when its value is first read, and once: every build makes a Host.

    def __init__(self, place: Place = HERE) -> None:
        """Look at nothing yet."""
        self.place = place

    @cached_property
    # Asked and not read from `platform`: a container or
    # a played host is another machine.
    def _uname(self) -> Seen:
        return self.place.ask("uname", "-sm")

    @property
    def system(self) -> str:
        """As ``uname -s`` says it: Linux, Darwin."""
        return self._uname.value.partition(" ")[0]

    @property
    def machine(self) -> str:
        """As ``uname -m`` says it: x86_64, aarch64, arm64."""
        return self._uname.value.partition(" ")[2]

    @cached_property
    def glibc(self) -> Seen:
        """The version of glibc."""
        return machine.glibc(self.place)

    @cached_property
    def processor(self) -> Seen:
        """The processor's instruction sets."""
        return machine.processor(self.place)

    @cached_property
    def release(self) -> Seen:
        """The name and version of the distribution, or of macOS."""
        return machine.release(self.place)

    @cached_property
    def wsl(self) -> bool:
        """Whether the system runs in WSL, Windows' own virtual machine."""
        return "microsoft" in self.place.read("/proc/version").value.lower()

    @cached_property
    def memory(self) -> Seen:
        """Bytes that a build can be given."""
        return machine.memory(self.place)

    @cached_property
    def compiler(self) -> Seen:
        """The first line that the C++ compiler says for its version."""
        return toolchain.compiler(self.place)

    @cached_property
    def git(self) -> Seen:
        """What git says for its version."""
        return self.place.ask("git", "--version")

    @cached_property
    def xcode(self) -> Seen:
        """The selected Xcode."""
        return toolchain.xcode(self.place)

    @cached_property
    def installer(self) -> toolchain.Installer:
        """The program that installs what is missing."""
        return toolchain.installer(self.place)

    @cached_property
    def driver(self) -> Seen:
        """The version of NVIDIA's driver."""
        from tfwright.host import nvidia

        return nvidia.driver(self.place)

    @cached_property
    def gpus(self) -> "list[Gpu]":
        """NVIDIA's GPUs."""
        from tfwright.host import nvidia

        return nvidia.gpus(self.place)

    # By the system's PATH, which builds have; a venv's programs are not there.
    def has(self, program: str) -> bool:
        """Say whether the host itself, not only the caller's PATH, has a program."""
        return self.place.which(program) is not None

    def remedy(self, trouble: str, **fields: str) -> str:
        """Return what to do about a trouble, with the commands of this system."""
        ways = ("wsl",) if self.wsl else ()
        text = remedy_of(trouble, (*ways, self.installer), **fields)
        # root in a container has no sudo, and needs none.
        return text if self.has("sudo") else text.replace("sudo ", "")

    def disk(self, path: Path) -> Disk:
        """Look at the disk that holds a path."""
        return machine.disk(self.place, path)

    def __str__(self) -> str:
        return f"{self.system}-{self.machine}"


def here() -> Host:
    """Return this host, with the programs of the image where a container is open.

    What was seen of each is kept while the process runs.
    """
    return _host(container_name())


@cache
def _host(_image: str) -> Host:
    return Host()


REMEDIES = Path(__file__).with_name("remedies.toml")


def remedy_of(trouble: str, systems: Sequence[str], **fields: str) -> str:
    """Return the remedy for a trouble, with its fields filled in, by the first way that it has."""
    # Every trouble has "other": the words for a system whose installer is unknown.
    known = _remedies()[trouble]
    way = next((way for way in systems if way in known), "other")
    return known[way].strip().format(**fields)


@functools.cache
def _remedies() -> dict[str, dict[str, str]]:
    return tomllib.loads(REMEDIES.read_text("utf-8"))
