"""Experimental: what a wheel needs of a GPU and a CPU, as a variant of PEP 825 (a draft).

Every property is proved: it is read off the machine code of the wheel's libraries. A variant wheel
states its properties in ``variant.json`` in its dist-info, and its label in its file name. Today's
pip and uv ignore such files, so they may lie next to other wheels.

The names follow the providers that exist: ``nvidia :: sm_arch :: 86_real`` is machine code for
sm_86, ``86_virtual`` is PTX, and ``x86_64 :: level :: v3`` is a level of the x86-64 psABI. The
schema is the one of variantlib 0.2.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from tfwright.errors import Evidence, WheelError
from tfwright.wheel import archive
from tfwright.wheel.inspect.library import Library

FILE = "variant.json"
SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
LABEL = re.compile(r"[0-9a-z._]{1,16}")
LARGEST = 1024 * 1024
"""Bytes of a ``variant.json`` that are read: it comes out of a wheel."""
PROVIDERS = {"nvidia": "nvidia-variant-provider", "x86_64": "provider-variant-x86-64"}
"""The package that tells an installer what a machine has, by namespace, most important first."""

Properties = Mapping[str, Mapping[str, Sequence[str]]]
"""Namespace to feature to values."""


class _Document(BaseModel):
    """As much of ``variant.json`` as makes a claim; a wheel states exactly one variant."""

    variants: Annotated[
        dict[str, dict[str, dict[str, list[str]]]], Field(min_length=1, max_length=1)
    ]


def proved(libraries: Iterable[Library]) -> dict[str, dict[str, list[str]]]:
    """Return the properties that the code of a wheel's libraries proves."""
    parts = [part for library in libraries for part in library.parts]
    found: dict[str, dict[str, list[str]]] = {}
    coded = [set(part.architectures) for part in parts if part.architectures]
    # An architecture that one library lacks is not one that the wheel runs on.
    shared = set[str].intersection(*coded) if coded else set()
    architectures = [_architecture(name) for name in sorted(shared, key=_age)]
    if any(architectures):
        found["nvidia"] = {"sm_arch": [name for name in architectures if name]}
    levels = [part.cpu.level for part in parts if part.cpu]
    if levels:
        # Levels sort by their number; the name of the first lacks it.
        highest = max(_level(level) for level in levels)
        found["x86_64"] = {"level": [f"v{highest}"]}
    return found


def _architecture(name: str) -> str:
    """Return a GPU architecture as NVIDIA's provider names it; nothing for code that cannot run."""
    kind, _, number = name.partition("_")
    # LTO code runs only after a linker has seen it.
    suffix = {"sm": "real", "compute": "virtual"}.get(kind)
    return f"{number}_{suffix}" if suffix else ""


def _age(name: str) -> tuple[int, str]:
    """Sort by number, so that sm_120 comes after sm_86."""
    digits = re.search(r"\d+", name)
    return int(digits[0]) if digits else 0, name


def _level(name: str) -> int:
    found = re.fullmatch(r"x86-64(?:-v(\d))?", name)
    return int(found[1] or 1) if found else 1


def label_of(properties: Properties) -> str:
    """Return a label for a file name, of at most 16 characters: ``sm70_sm86_v1``.

    What does not fit is left out: the label is for people, the file holds the properties.
    """
    words = []
    for value in properties.get("nvidia", {}).get("sm_arch", ()):
        number, _, kind = value.partition("_")
        words.append(f"{'sm' if kind == 'real' else 'ptx'}{number}")
    words += properties.get("x86_64", {}).get("level", ())
    label = words[0] if words else "null"
    for word in words[1:]:
        if LABEL.fullmatch(f"{label}_{word}"):
            label = f"{label}_{word}"
    return label


def document(properties: Properties, label: str) -> bytes:
    """Return ``variant.json`` for one variant: the same bytes for the same properties.

    Raises WheelError if there is nothing to state, or the label is not one.
    """
    if not properties:
        raise WheelError(
            "The wheel has no machine code whose needs a variant could state",
            remedy="Publish it as a normal wheel.",
        )
    if not LABEL.fullmatch(label):
        raise WheelError(
            f"{label!r} is not a variant label",
            remedy="Use 1 to 16 of: digits, small letters, dot, underscore.",
        )
    return documents({label: properties})


def documents(variants: Mapping[str, Properties]) -> bytes:
    """Return what several labels mean, as an index tells it of all wheels of one version."""
    used = {name for properties in variants.values() for name in properties}
    namespaces = [name for name in PROVIDERS if name in used]
    content = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": namespaces},
        "providers": {name: {"requires": [PROVIDERS[name]]} for name in namespaces},
        "variants": variants,
    }
    return (json.dumps(content, indent=2) + "\n").encode()


def claimed(wheel: zipfile.ZipFile) -> Properties | None:
    """Return the properties that an open wheel claims; None if it is not a variant.

    Raises WheelError for a ``variant.json`` that is damaged.
    """
    place = f"{archive.metadata_directory(wheel)}/{FILE}"
    if place not in wheel.namelist():
        return None
    if wheel.getinfo(place).file_size > LARGEST:
        raise _unreadable(place, f"it has more than {LARGEST:,} bytes")
    try:
        document = _Document.model_validate_json(wheel.read(place))
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        raise _unreadable(place, first["msg"]) from fault
    (properties,) = document.variants.values()
    return properties


def _unreadable(place: str, why: str) -> WheelError:
    return WheelError(
        f"{place} cannot be read: {why}",
        remedy="Make it again from the normal wheel: invoke variant WHEEL --write FOLDER",
    )


def lies(claims: Properties, code: Properties) -> list[str]:
    """Return each claim that the code does not prove, as ``nvidia :: sm_arch :: 90_real``."""
    found = []
    for namespace, features in claims.items():
        for feature, values in features.items():
            known = code.get(namespace, {}).get(feature, ())
            unproved = [value for value in values if value not in known]
            found += [f"{namespace} :: {feature} :: {value}" for value in unproved]
    return found


def insist(wheel: str, claims: Properties, code: Properties) -> None:
    """Raise WheelError for a claim that the code of a wheel does not prove."""
    unproved = lies(claims, code)
    if not unproved:
        return
    has = [f"{name} :: {feature}" for name, features in code.items() for feature in features]
    said = [f"not in its code: {claim}" for claim in unproved]
    raise WheelError(
        f"{wheel} claims {unproved[0]}, and its code does not show that",
        remedy="Do not publish it; make it again from the normal wheel: "
        "invoke variant WHEEL --write FOLDER",
        evidence=Evidence(lines=[*said, *has]),
    )
