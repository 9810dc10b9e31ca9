"""Facts of a build that rule a cause out, or prove it: its Bazel, its release, its system.

They are read off what its tools write.
"""

import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from packaging.version import Version

from tfwright.diagnosis.families import Family, rule

_NEED = re.compile(r"(?P<fact>\w+)(?:(?P<how>>=|<=|<|>|==)(?P<value>[\d.]+))?")
_MOST = 1500
"""Lines that are looked at for facts, at each end."""
_MOST_PLACES = 50
"""Folders of a log that are looked for on this host."""
FLAGS = ("arm", "gpu_skipped", "musl", "narrow", "rocm", "wsl", "modules", "training")
"""Facts that only a log shows."""
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}


@dataclass(frozen=True)
class Facts:
    """What is known of a build; empty or None where it is not known."""

    bazel: str = ""
    release: str = ""
    python: str = ""
    system: str = ""
    """As ``uname -s`` says it: Linux, Darwin; or Windows."""
    cuda: bool | None = None
    """Whether the build is for CUDA."""
    gpu: bool | None = None
    """Whether a driver shows a GPU."""
    gpu_skipped: bool = False
    """Whether TensorFlow says that it leaves out a GPU, for want of a library."""
    arm: bool = False
    """Whether the log is of Linux on an ARM processor."""
    musl: bool = False
    """Whether the log is of a system with another C library than glibc."""
    narrow: bool = False
    """Whether Python has 32 bits."""
    rocm: bool = False
    """Whether a TensorFlow for GPUs of AMD runs."""
    wsl: bool = False
    """Whether the log is of Linux in Windows."""
    modules: bool = False
    """Whether what runs is of a stack of environment modules."""
    elsewhere: str = ""
    """A folder of the log that this host does not have, if it has none of those."""
    training: bool = False
    """Whether the log is of a program that trains a model, and not of a build."""

    def allows(self, family: Family) -> bool:
        """Say whether no fact rules the family out."""
        return all(self._holds(need) is not False for need in family.needs)

    def proves(self, family: Family) -> bool:
        """Say whether every fact that the family depends on is known to hold."""
        return all(self._holds(need) for need in family.needs)

    def excuses(self, family: Family) -> bool:
        """Say whether a harmless line of the family is harmless in this build."""
        return not (family.unless and self._holds(family.unless))

    def _holds(self, need: str) -> bool | None:
        """Say whether one fact holds; None if that is not known."""
        parts = _NEED.fullmatch(need)
        if parts is None:
            return None
        if parts["how"]:
            known = str(getattr(self, parts["fact"]))
            try:
                # An unknown version is the empty text, which does not parse either.
                return _COMPARE[parts["how"]](Version(known), Version(parts["value"]))
            # InvalidVersion is one; numbers of more than 4,300 digits are another.
            except ValueError:
                return None
        # Without a comparison it is a yes or no, or the name of a system.
        if need in vars(self):
            known_or_not: bool | None = vars(self)[need]
            return known_or_not
        return self.system == need if self.system else None


def read_facts(texts: Sequence[str]) -> Facts:
    """Return the facts that some lines show."""
    text = "\n".join((*texts[:_MOST], *texts[_MOST:][-_MOST:]))
    read: dict[str, Any] = {name: bool(rule(name).search(text)) for name in FLAGS}
    for name in ("bazel", "release", "python"):
        shown = rule(name).search(text)
        read[name] = shown["value"] if shown else ""
    # A folder of Windows has no dot: Python313.
    read["python"] = re.sub(r"^([23])(\d+)$", r"\1.\2", read["python"])
    systems = ("Darwin", "Windows", "Linux")
    read["system"] = next((name for name in systems if rule(name.lower()).search(text)), "")
    gpu_rules = {"gpu": True, "no_gpu": False, "gpu_skipped": True}
    read["gpu"] = next(
        (there for name, there in gpu_rules.items() if rule(name).search(text)), None
    )
    # Only ever True: a log that does not name CUDA may be cut off before it does.
    read["cuda"] = True if rule("cuda").search(text) else None
    places = [place["value"] for place in islice(rule("place").finditer(text), _MOST_PLACES)]
    if places and not any(map(os.path.exists, places)):
        read["elsewhere"] = places[0]
    return Facts(**read)
