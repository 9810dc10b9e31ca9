"""GPUs by the names that people and drivers give them, from gpus.toml."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from tfwright import facts

TABLE = Path(__file__).with_suffix(".toml")
JETPACK = "https://docs.nvidia.com/deeplearning/frameworks/install-tf-jetson-platform/"
"""NVIDIA's own page about TensorFlow on a Jetson, with its wheels for each JetPack."""
_LINES = {"geforce", "quadro", "tesla", "nvidia", "jetson", "rtx", "gtx", "gt"}
"""Words that people leave out in front of a number."""
_SAID_TWICE = re.compile(
    r"\b(\d+ ?x|(?<!tegra )x\d|mig( \dg\.\d+gb)?|nvidia|gpu|graphics|generation|with|design|max-?q|"
    r"\d+ ?gb(-\w{1,2})?|sxm\d?|pcie|hbm\d\w?|nvl|"
    r"dgxs|fhhl|rev\.? \w|oem|gddr\d\w?|lite hash rate|refresh|(workstation|server|mac) edition)\b"
)
"""What tells cards of one name apart whose chip is the same."""


@dataclass(frozen=True)
class GpuModel:
    """What a name of a GPU says."""

    name: str
    """As NVIDIA writes it."""
    chip: str
    """``GA102``."""
    capability: str
    """``8.6``."""
    machine: str = ""
    """The only kind of machine that it is built into; empty for a card."""


class AmbiguousGpu(LookupError):  # noqa: N818 an answer, rather than a fault
    """Cards of this name were sold with different chips."""

    def __init__(self, found: list[GpuModel]) -> None:
        """Keep what the name may mean."""
        super().__init__(", ".join(sorted({gpu.capability for gpu in found})))
        self.found = found


def by_name(name: str) -> GpuModel | None:
    """Return the GPU of a name; None for one that the table does not have.

    ``RTX 3090``, ``rtx3090``, ``3090`` and ``NVIDIA GeForce RTX 3090`` are one name; ``GTX 960M``
    is another than ``GTX 960``. Raises AmbiguousGpu where a name stands for several chips.
    """
    words, laptop = _words(name)
    found = [gpu for gpu, mobile in _by_words().get(words, ()) if mobile == laptop]
    # A laptop's card often has no name of its own, and a list may have only the laptop's.
    found = found or [gpu for gpu, _ in _by_words().get(words, ())]
    # The whole name wins: Quadro 4000 is a name, and the end of Quadro RTX 4000 as well.
    found = [gpu for gpu in found if _words(gpu.name)[0] == words] or found
    found = [gpu for gpu in found if gpu.chip == facts.read(TABLE)["usual"].get(gpu.name)] or found
    if len({gpu.capability for gpu in found}) > 1:
        raise AmbiguousGpu(found)
    return min(found, key=lambda gpu: len(gpu.name), default=None)


def names() -> list[str]:
    """Return all names in the table as people write them, the newest chips last."""
    return [gpu.name.removeprefix("GeForce ") for gpu in _all_gpus()]


def by_capability(capability: str) -> list[GpuModel]:
    """Return the GPUs in the table of a compute capability."""
    return [gpu for gpu in _all_gpus() if gpu.capability == capability]


def capabilities_of(name: str) -> list[str]:
    """Return the compute capabilities of a generation, such as Ampere; none for another word."""
    begins = {each.lower(): chip for each, chip in facts.read(TABLE)["generation"].items()}
    start = begins.get(name.lower())
    if start is None:
        return []
    found = {gpu.capability for gpu in _all_gpus() if gpu.chip.startswith(start)}
    return sorted(found, key=float)


def machine_of(capability: str) -> str:
    """Return the only machine that has GPUs of a compute capability; empty where cards do."""
    machines = {gpu.machine for gpu in by_capability(capability)}
    return machines.pop() if len(machines) == 1 else ""


def is_jetson_only(capability: str) -> bool:
    """Say whether only Jetsons have a compute capability: JetPack brings their driver and CUDA."""
    return any(gpu.name.startswith("Jetson") for gpu in by_capability(capability))


def other_maker(name: str) -> tuple[str, str]:
    """Return who makes a GPU that is not NVIDIA's, and what to install for it.

    Both are empty where the name does not tell.
    """
    for row in facts.read(TABLE)["other"]:
        if re.search(row["name"], name, re.IGNORECASE):
            return row["maker"], row["remedy"]
    return "", ""


def source() -> str:
    """Say where the table is from."""
    return str(facts.read(TABLE)["source"])


def list_date() -> str:
    """Return the day of the list that the names are from, ``2026.10.24``."""
    return str(facts.read(TABLE)["pci_ids"])


def _words(name: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of a name that count, and whether it says that it is a laptop's card."""
    # lspci writes the chip first: AD102 [GeForce RTX 4090] (rev a1).
    text = re.sub(r".*\[(.+)\].*", r"\1", name.lower())
    text = re.sub(r"[()/_]|\(r\)|\(tm\)", " ", text)
    # The part of a card that a virtual machine has, as in GRID T4-8Q; letters tell the boards of
    # some cards apart, as in V100DX-32Q: https://docs.nvidia.com/vgpu
    text = re.sub(
        r"^(?:nvidia )?(?:grid )?(.*?\w)(?:(?<=\d00)[cdlmx]{1,2}|(?<=000)p)?-\d+[abcq]$",
        r"\1",
        text.strip(),
    )
    laptop = bool(re.search(r"\b(laptop|mobile|notebook)\b", text))
    text = re.sub(r"\b(laptop|mobile|notebook|embedded)\b", " ", text)
    text = _SAID_TWICE.sub(" ", re.sub(r"(?<=\d)-", " ", text))
    # RTX3090 and GTX1080Ti are written by people.
    text = re.sub(r"\b(rtx|gtx|gt|mx|titan)(?=a?\d)", r"\1 ", text)
    text = re.sub(r"(?<=\d)(ti|super)\b", r" \1", text)
    return tuple(text.replace("-", " ").split()), laptop


@functools.cache
def _all_gpus() -> tuple[GpuModel, ...]:
    machines = facts.read(TABLE)["machine"]
    return tuple(
        GpuModel(name, chip, row["capability"], machines.get(name, row.get("machine", "")))
        for chip, row in facts.read(TABLE)["chip"].items()
        for name in row.get("names", ())
    )


@functools.cache
def _by_words() -> dict[tuple[str, ...], list[tuple[GpuModel, bool]]]:
    """Return the cards by their words, with and without the line that they belong to."""
    index: dict[tuple[str, ...], list[tuple[GpuModel, bool]]] = {}
    for gpu in _all_gpus():
        words, laptop = _words(gpu.name)
        index.setdefault(words, []).append((gpu, laptop))
        while len(words) > 1 and words[0] in _LINES:
            words = words[1:]
            index.setdefault(words, []).append((gpu, laptop))
    return index
