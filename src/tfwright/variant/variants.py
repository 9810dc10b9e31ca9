"""`invoke variant`: a wheel as a variant of PEP 825, each property proved by its code."""

from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import WheelError
from tfwright.index import labels
from tfwright.wheel import archive, variant
from tfwright.wheel.inspect import inspection
from tfwright.wheel.variant import Properties


@dataclass(frozen=True)
class WheelVariant:
    """What a wheel could state, and what it states."""

    proved: Properties
    """What its code proves."""
    claimed: Properties | None
    """What its ``variant.json`` says; None for a normal wheel."""
    label: str
    written: Path | None = None
    """The variant wheel."""


def variant_of(wheel: Path, *, write: Path | None = None, label: str = "") -> WheelVariant:
    """Read off a wheel's code what it needs; with `write`, write the variant wheel into a folder.

    Raises WheelError if the wheel already claims something that is not in its code, or is to be
    written although it is a variant.
    """
    report = inspection.inspect(wheel)
    with archive.opened(wheel) as content:
        claims = variant.claimed(content)
    code = variant.proved(report.libraries)
    if claims is not None:
        variant.insist(wheel.name, claims, code)
    if write and claims is not None:
        raise WheelError(
            f"{wheel.name} is a variant wheel already",
            remedy="Name the normal wheel that it was made from.",
        )
    chosen = label or variant.label_of(code)
    if write is None:
        return WheelVariant(code, claims, chosen)
    inspection.insist(report)
    written = labels.with_variant(wheel, write, chosen, variant.document(code, chosen))
    return WheelVariant(code, claims, chosen, written)
