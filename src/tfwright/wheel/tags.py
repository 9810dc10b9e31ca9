"""Which wheels fit which Python on this kind of machine."""

import email.parser
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags, parse_tag, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tfwright.wheel import archive

LIBRARIES = (".so", ".dylib")


def faults(path: Path, wheel: zipfile.ZipFile, python: str) -> list[str]:
    """Say in what the tags of a wheel differ from its content, and from CPython `python` on this machine."""
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
    machine_code = any(member.filename.endswith(LIBRARIES) for member in archive.files(wheel))
    if machine_code and any(tag.platform == "any" for tag in named):
        yield f"it holds machine code and says {said(named)}, which is any machine"
    if not named & supported_tags(python):
        yield f"{said(named)} is not for CPython {python} on this machine"


def stated_tags(wheel: zipfile.ZipFile) -> frozenset[Tag]:
    """Return the tags that the file WHEEL inside states; none if there is no such file, or a line in it is no tag."""
    try:
        text = wheel.read(f"{archive.metadata_directory(wheel)}/WHEEL").decode("utf-8", "replace")
    except KeyError:
        return frozenset()
    tags = email.parser.Parser().parsestr(text).get_all("Tag") or []
    try:
        return frozenset(tag for line in tags for tag in parse_tag(line))
    except ValueError:
        return frozenset()


def supported_tags(python: str) -> frozenset[Tag]:
    """Return the tags that CPython `python` (as ``3.6.15``) installs on this machine."""
    major, minor = map(int, python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    # Up to 3.7 the ABI also says how Python's allocator was built, in 2.7 how wide a character is.
    suffixes = ("mu", "m") if major == 2 else ("m", "") if (major, minor) < (3, 8) else ("",)  # noqa: PLR2004 Python's own version numbers
    platforms = list(platform_tags())
    exact = cpython_tags((major, minor), [interpreter + suffix for suffix in suffixes], platforms)
    return frozenset(exact) | frozenset(compatible_tags((major, minor), interpreter, platforms))


def said(tags: frozenset[Tag]) -> str:
    """Return tags as a reader knows them."""
    return ", ".join(sorted(map(str, tags))) or "nothing"
