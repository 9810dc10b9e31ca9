"""Writes names into facts/gpus.toml from a list of PCI IDs: python benchmarks/gather_gpus.py FILE.

The list (https://pci-ids.ucw.cz, Debian's package pci.ids) gives each name of a card with its chip;
the chip decides the compute capability. Names that are not in it stay as they were written by hand.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array, Table

GPUS = Path(__file__).parents[1] / "src/tfwright/facts/gpus.toml"
NVIDIA = "10de"
_DEVICE = re.compile(r"\t[0-9a-f]{4}  (?P<chip>[A-Z0-9]+)(?: / [\w-]+)? \[(?P<names>[^\]]+)\]")
_NO_CARD = re.compile(
    r"Reserved|Engineering|ES-A|Graphics Device|NVSwitch|FAKE|SKU|PG\d|Skinny|USM|Dev ?ID|iGPU|"
    r"-[Gg]eneric-|^([A-Z]{2}\d{3}[ -]|TS\d|D\d\d|N1\dP|NB1|EXK|GEN3|Initial|GH200|GB300)"
)


def devices(pci_ids: str) -> Iterator[tuple[str, str]]:
    """Yield the chip and the name of each card of NVIDIA."""
    vendor = ""
    for line in pci_ids.splitlines():
        if line[:1] not in {"", "\t", "#"}:
            vendor = line[:4]
        if vendor == NVIDIA and (found := _DEVICE.match(line)):
            for name in _each(found["names"]):
                if not _NO_CARD.search(name):
                    yield found["chip"], name


def _each(names: str) -> Iterator[str]:
    """Take ``RTX 2000 / 2000E Ada Generation`` apart; how a laptop's card is cooled is no name."""
    if "Mobile" in names:
        names = re.sub(r"(Max-Q|Mobile)( / (Max-Q|Mobile))?", "Laptop GPU", names)
    if found := re.fullmatch(r"(GeForce (?:GTX? )?)(\d+M(?:/\d+M)+.*)", names):
        yield from (f"{found[1]}{number}" for number in found[2].split("/"))
        return
    first, *others = names.split(" / ")
    if others and others[-1].endswith("Ada Generation") and "Ada" not in first:
        first += " Ada Generation"
    yield first.strip()
    family = re.match(r"(?:[^\W\d]+ )*", first)
    for other in filter(re.compile(r"(?!\d+ ?GB)").match, others):
        yield (
            other if re.match(r"[A-Z][a-z]|RTX", other) else f"{family[0] if family else ''}{other}"
        )


def chip_named(name: str, chips: Mapping[str, Table]) -> Table | None:
    """Return the table of a chip; suffixes are for laptops (M), workstations (GL) and revisions."""
    chip = name
    while chip not in chips:
        shorter = re.sub(r"(GL|[MABCS])$", "", chip)
        if shorter == chip:
            return None
        chip = shorter
    return chips[chip]


def _listed(names: set[str]) -> Array:
    made = tomlkit.array().multiline(multiline=True)
    made.extend(
        sorted(
            names,
            key=lambda name: [
                int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)
            ],
        )
    )
    return made


def main(file: str) -> None:
    """Add the names of a list of PCI IDs to the chips in gpus.toml."""
    text = Path(file).read_text("utf-8")
    document = tomlkit.parse(GPUS.read_text("utf-8"))
    chips: Any = document["chip"]
    for chip, name in devices(text):
        table = chip_named(chip, chips)
        if table is not None:
            table["names"] = _listed({*table.get("names", []), name})
    document["pci_ids"] = text.partition("Version: ")[2].split()[0]
    GPUS.write_text(tomlkit.dumps(document), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
