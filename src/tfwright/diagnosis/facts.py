"""Facts of a build that rule a cause out, or prove it: its Bazel, its release, its system.

A recipe states them. A log shows some of them: they are read off what its tools write.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from tfwright.diagnosis.families import Family

_SHOWN: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "bazel",
        re.compile(
            r"(?:\[bazel release |[Bb]azel version:? |Build label: |bazel-)"
            r"(?P<value>\d+\.\d+(?:\.\d+)?)(?![\d.]*-dist)"
        ),
    ),
    ("release", re.compile(r"tensorflow(?:_gpu|_cpu|-gpu|-cpu)?-(?P<value>\d+\.\d+(?:\.\d+)?)")),
    (
        "python",
        re.compile(r"(?:/python|site-packages/python|lib/python|Python )(?P<value>[23]\.\d{1,2})"),
    ),
)
_SYSTEM = (
    ("Darwin", re.compile(r"/Users/|darwin|\.dylib|/Library/Developer|/private/var|xcrun|macosx")),
    ("Windows", re.compile(r"[A-Z]:[\\/]|\.dll|msys|\bcl\.exe|DLL load")),
    (
        "Linux",
        re.compile(
            r"/home/|\.so\b|/usr/lib/x86_64|/usr/lib/gcc|/usr/include/c\+\+/\d|k8-opt|linux"
        ),
    ),
)
_GPU = re.compile(
    r"Successfully opened dynamic library libcuda\.|Found device \d+ with prop|pciBusID: "
    r"|Created (?:TensorFlow )?device .{0,80}GPU:\d.{0,80}name: "
)
"""What TensorFlow logs only where a driver shows a GPU."""
_NO_GPU = re.compile(
    r"kernel driver does not appear to be running|No GPU devices available on machine"
    r"|libcuda\.so\.1: cannot open|Couldn't open CUDA library libcuda|nvidia/version does not exist"
    r"|failed call to cuInit: UNKNOWN ERROR \(303\)|Could not find cuda drivers on your machine"
)
"""What TensorFlow logs without a driver."""
_GPU_SKIPPED = re.compile(r"Cannot dlopen some GPU libraries|Skipping registering GPU devices")
"""What TensorFlow logs when a driver shows a GPU, and a library that it needs is not found."""
_CUDA = re.compile(r"--config=cuda|nvcc|local_config_cuda|libcu\w+\.so|CUDA_|cuda")
_NEED = re.compile(r"(?P<fact>\w+)(?:(?P<how>>=|<=|<|>|==)(?P<value>[\d.]+))?")
_MOST = 1500
"""Lines that are looked at for facts, at each end."""
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": Version.__ge__,
    "<=": Version.__le__,
    "<": Version.__lt__,
    ">": Version.__gt__,
    "==": Version.__eq__,
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

    def allow(self, family: Family) -> bool:
        """Say whether no fact rules the family out."""
        return all(self._holds(need) is not False for need in family.needs)

    def prove(self, family: Family) -> bool:
        """Say whether every fact that the family depends on is known to hold."""
        return all(self._holds(need) for need in family.needs)

    def excuse(self, family: Family) -> bool:
        """Say whether a harmless line of the family is harmless in this build."""
        return not (family.unless and self._holds(family.unless))

    def _holds(self, need: str) -> bool | None:
        """Say whether one fact holds; None if that is not known."""
        parts = _NEED.fullmatch(need)
        if parts is None:
            return None
        if parts["how"]:
            return _compared(str(getattr(self, parts["fact"])), parts["how"], parts["value"])
        # Without a comparison it is a yes or no, or the name of a system.
        if need == "cuda":
            return self.cuda
        if need == "gpu":
            return self.gpu
        return self.system == need if self.system else None


def _compared(known: str, how: str, limit: str) -> bool | None:
    """Compare two versions; None if one is not known."""
    try:
        # An unknown version is the empty text, which does not parse either.
        return _COMPARE[how](Version(known), Version(limit))
    # InvalidVersion is one; numbers of more than 4,300 digits are another.
    except ValueError:
        return None


def of(texts: Sequence[str], known: Facts | None = None) -> Facts:
    """Return the facts that some lines show; what is `known` otherwise counts for more."""
    found = known or Facts()
    text = "\n".join((*texts[:_MOST], *texts[_MOST:][-_MOST:]))
    for name, pattern in _SHOWN:
        value = None if getattr(found, name) else pattern.search(text)
        if value:
            found = _stated(found, name, value["value"])
    if not found.system:
        system = next((name for name, pattern in _SYSTEM if pattern.search(text)), "")
        found = replace(found, system=system)
    # Only ever True: a log that does not name CUDA may be cut off before it does.
    if found.cuda is None and _CUDA.search(text):
        found = replace(found, cuda=True)
    if found.gpu is None:
        found = replace(found, gpu=_gpu(text))
    return found


def _stated(found: Facts, name: str, value: str) -> Facts:
    """Return the facts with one version added."""
    if name == "bazel":
        return replace(found, bazel=value)
    return replace(found, release=value) if name == "release" else replace(found, python=value)


def _gpu(text: str) -> bool | None:
    """Say whether a log shows a GPU, or that it has no driver."""
    if _GPU.search(text):
        return True
    if _NO_GPU.search(text):
        return False
    return True if _GPU_SKIPPED.search(text) else None
