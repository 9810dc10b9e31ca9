"""Which wheels fit which Python on this kind of machine."""

import zipfile
from collections.abc import Iterator
from math import prod
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags, parse_tag, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.wheel import archive, headers

LIBRARIES = (".so", ".dylib")
MOST = 1_000
"""Tags that the lines of WHEEL may stand for: ``a.b-c.d-e.f`` are eight."""


def faults(path: Path, wheel: zipfile.ZipFile, python: str) -> list[str]:
    """Say in what the tags of a wheel differ from its content, and from CPython `python` here.

    Raises WheelError where its file WHEEL cannot be read.
    """
    try:
        named = parse_wheel_filename(path.name)[-1]
    except InvalidWheelFilename as fault:
        return [str(fault)]
    return list(_differences(named, wheel, python))


def _differences(named: frozenset[Tag], wheel: zipfile.ZipFile, python: str) -> Iterator[str]:
    """Compare the tags of the file's name with the three things that they have to agree with."""
    stated = stated_tags(wheel)
    if stated != named:
        yield f"the file WHEEL says {said(stated)}, the name says {said(named)}"
    # A wheel for any platform with a shared library in it installs everywhere, and
    # fails there.
    names = [member.filename for member in archive.files(wheel)]
    machine_code = any(name.endswith(LIBRARIES) for name in names)
    anywhere = any(tag.platform == "any" for tag in named)
    if machine_code and anywhere:
        yield f"it holds machine code and says {said(named)}, which is any machine"
    # The target Python is another one than the Python that runs tfwright.
    if not named & supported_tags(python):
        yield f"{said(named)} is not for CPython {python} on this machine"


def stated_tags(wheel: zipfile.ZipFile) -> frozenset[Tag]:
    """Return the tags that the file WHEEL states.

    Empty if the wheel has no such file, or a line in it is not a tag. Raises WheelError if the file
    is too long to be read.
    """
    lines = headers.read(wheel, "WHEEL").get_all("Tag") or []
    # A line of a few kilobytes can stand for millions of tags: count before expanding.
    if sum(_count(line) for line in lines) > MOST:
        return frozenset()
    try:
        return frozenset(tag for line in lines for tag in parse_tag(line))
    except ValueError:
        return frozenset()


def _count(line: str) -> int:
    """Return how many tags a line stands for: ``cp36.cp37-none-any`` are two."""
    return prod(part.count(".") + 1 for part in line.split("-"))


def supported_tags(python: str) -> frozenset[Tag]:
    """Return the tags that CPython `python` (as ``3.6.15``) installs on this machine."""
    major, minor = map(int, python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    # platform_tags() describes this machine, whatever Python the wheel is for.
    platforms = list(platform_tags())
    abis = [interpreter + suffix for suffix in _abi_suffixes(major, minor)]
    exact = cpython_tags((major, minor), abis, platforms)
    compatible = compatible_tags((major, minor), interpreter, platforms)
    return frozenset([*exact, *compatible])


def _abi_suffixes(major: int, minor: int) -> tuple[str, ...]:
    """Return what may follow the version in the ABI's name.

    Up to 3.7 it says how Python's allocator was built, in 2.7 also how wide a character is.
    """
    if major == 2:  # noqa: PLR2004 Python's own version numbers
        return "mu", "m"
    # PEP 3149 gave the ABI its letters; Python 3.8 dropped "m".
    return ("m", "") if (major, minor) < (3, 8) else ("",)


def said(tags: frozenset[Tag]) -> str:
    """Return tags as a reader knows them."""
    return ", ".join(sorted(map(str, tags))) or "nothing"
