"""The platform in a wheel's tag: the manylinux policy that its libraries keep, by auditwheel."""

import zipfile
from pathlib import Path

from packaging.utils import parse_wheel_filename

from tfwright.errors import WheelError
from tfwright.printable import first_few
from tfwright.tools import files
from tfwright.wheel import archive, rewriting

SHOWN = 12
"""Symbols and libraries in the way that an error names."""
_PURELIB, _PLATLIB = ".data/purelib/", ".data/platlib/"


def check_platform(wheel: Path, wanted: str) -> None:
    """Let auditwheel judge a wheel against the platform `wanted`, as ``manylinux_2_31_x86_64``.

    Raises WheelError if it cannot, or with what is in the way if the wheel does not keep it.
    """
    from auditwheel.error import AuditwheelError
    from auditwheel.wheel_abi import analyze_wheel_abi

    try:
        with files.scratch_directory() as scratch:
            found = analyze_wheel_abi(
                # auditwheel finds libc and machine in the libraries by itself.
                None,
                None,
                _with_platlib(wheel, scratch),
                frozenset(),
                disable_isa_ext_check=False,
                allow_graft=False,
            )
        policy = found.policies.get_policy_by_name(wanted)
    except (AuditwheelError, LookupError, ValueError, RuntimeError) as fault:
        raise WheelError(
            f"auditwheel cannot judge {wheel.name} for {wanted}: {fault}",
            remedy="Correct package.platform in the recipe to a platform that auditwheel knows, "
            "such as manylinux_2_31_x86_64, or take it out.",
        ) from fault
    kept = found.overall_policy
    if not kept < policy:
        return
    external = found.external_refs[policy.name].libs
    libraries = [f"{name}, which {wanted} does not have" for name in sorted(external)]
    # Families that the policy does not list are not the platform's.
    known = policy.symbol_versions
    symbols = [
        f"{library} {name}"
        for library, names in sorted(found.versioned_symbols.items())
        for name in sorted(names)
        if (version := name.partition("_"))[0] in known and version[2] not in known[version[0]]
    ]
    # auditwheel also judges what it does not list, as extensions of the instruction set.
    against = [*libraries, *symbols] or [f"it keeps {kept.name} only"]
    raise WheelError(
        f"{wheel.name} does not run on every {wanted}; its libraries prove {kept.name}",
        remedy="Build in an image of an older system ([host] image), or correct "
        "[package] platform in the recipe.",
        where=wheel,
        lines=first_few(against, SHOWN),
    )


def _with_platlib(wheel: Path, scratch: Path) -> Path:
    """Return a wheel that auditwheel judges: the same, or a copy with its libraries in platlib.

    The distutils of an old Python puts a project that lists no C sources into purelib, as in all
    wheels of TensorFlow 1.8, and auditwheel refuses libraries there unseen. Once installed they are
    where the others would be.
    """
    with archive.open_wheel(wheel) as original:
        if not any(_PURELIB in name for name in original.namelist()):
            return wheel
        copy = scratch / wheel.name
        with copy.open("wb") as made:
            rewriting.rewrite(original, made, {}, lambda name: name.replace(_PURELIB, _PLATLIB))
        return copy


def wheel_name(name: str, platform: str) -> str:
    """Return a wheel's file name with another platform."""
    stem, _, _ = name.removesuffix(".whl").rpartition("-")
    changed = f"{stem}-{platform}.whl"
    # Raises for a platform that would make a name which pip does not take.
    parse_wheel_filename(changed)
    return changed


def with_platform_tags(wheel: zipfile.ZipFile, platform: str) -> bytes:
    """Return the file WHEEL with another platform in its tags."""
    text = wheel.read(f"{archive.metadata_directory(wheel)}/WHEEL").decode("utf-8")
    # "Tag: cp311-cp311-linux_x86_64"; a platform holds no hyphen.
    lines = [
        f"{line.rpartition('-')[0]}-{platform}" if line.startswith("Tag: ") else line
        for line in text.splitlines()
    ]
    return ("\n".join(lines).rstrip("\n") + "\n").encode()
