"""METADATA and WHEEL: files of headers as in a mail, read only where they are of a usual size."""

import email.parser
import email.policy
import zipfile
from email.message import Message

from tfwright.errors import WheelError
from tfwright.wheel import archive

LARGEST = 4 * 1024**2
"""Bytes of such a file; the README in METADATA is most of it."""
MOST_LINES = 5_000
"""Lines before the first empty one; the METADATA of a TensorFlow has a hundred."""


def read(wheel: zipfile.ZipFile, name: str) -> "Message[str, str]":
    """Return the headers of a file in the wheel's ``.dist-info``; none where it is missing.

    Raises WheelError where there are so many that they are meant to keep their reader busy.
    """
    place = f"{archive.metadata_directory(wheel)}/{name}"
    content = archive.text(wheel, place, LARGEST)
    # The body is the README: a megabyte of it would be parsed for nothing.
    head = content.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    _insist_on_few(head, place)
    text = head.decode("utf-8", "replace")
    # compat32 hands values out as they stand; newer policies parse and fold them.
    return email.parser.Parser(policy=email.policy.compat32).parsestr(text, headersonly=True)


def _insist_on_few(head: bytes, place: str) -> None:
    # A bare carriage return ends a line for the mail parser too.
    lines = max(head.count(b"\n"), head.count(b"\r"))
    if lines > MOST_LINES:
        raise WheelError(
            f"{place} has {lines:,} lines of headers, more than the {MOST_LINES:,} that are read",
            remedy="Do not trust this wheel: no tool that builds wheels writes so many.",
        )
