"""The patches in a file as people have it: a mail, a series, the output of git, hg, svn or diff."""

import re
from contextlib import suppress
from dataclasses import dataclass
from email import policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import NoReturn

from tfwright.documents import filesystem
from tfwright.errors import RecipeError
from tfwright.printable import printable
from tfwright.tools.git import patching
from tfwright.tools.git.patching import PatchHeader

_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
"""How compressed files begin, with the program that unpacks them."""
_CHANGE = re.compile(r"(?m)^(diff --git |--- \S.*\n\+\+\+ \S|Index: .*\n=|diff .*\n--- \S)")
_MAIL = re.compile(r"(?m)^(?=From \S+ .*\d\r?\n[A-Za-z-]+: )")
"""Where a mail of a series begins."""
_COMMIT = re.compile(r"(?m)^(?=commit [0-9a-f]{7,64}\b.*\n(?:[A-Z]\w+: ))")
"""Where a commit of `git log -p` or `git show` begins."""
_PAGE = "is a web page, and no patch"
_NO_PAGE = (
    "Download the patch itself: on GitHub, add .patch to the address of the commit or the pull "
    "request."
)
BARE = (
    "has no lines of context, so that only line numbers say where it belongs",
    "Make it again by 'git diff' or 'diff -u', without -U0.",
)
"""What is wrong with a patch of ``git diff -U0``, and the remedy."""
_OTHER_FORMS = (
    (r"\*\*\* .*\n--- ", "is a context diff, which git does not apply", "Make it with 'diff -u'."),
    (
        r"diff --(cc|combined) ",
        "is the difference of a merge from both of its parents",
        "Take the one from the parent that you have: 'git diff COMMIT^1 COMMIT'.",
    ),
    (r"\d+(,\d+)?[acd]\d+(,\d+)?\n[<>] ", "names no file", "Make it with 'diff -u'."),
    (
        r"Only in \S+: \S+$",
        "does not hold the files that only one of the two directories has",
        "Make it with 'diff -ruN', or remove its lines 'Only in' if the files do not matter.",
    ),
    (r"\x1b\[", "holds a terminal's colours", "Make it with 'git diff --no-color'."),
    (
        r"> ?(diff --git|--- )",
        "is quoted, as in the answer to a mail",
        "Remove the marks before its lines, or download the patch itself.",
    ),
    # git would put the lines at the end of the file.
    (r"@@ -[1-9]\d*,0 ", *BARE),
)
"""How lines of other forms begin, what the file is then, and the remedy."""
_TRAILER = re.compile(r"(?m)^(?:[A-Z][\w-]+-by|Change-Id|PiperOrigin-RevId|git-svn-id): .*$")


@dataclass(frozen=True)
class ForeignPatch:
    """One patch of a file, with what is said about it."""

    said: PatchHeader
    """Fields that are not said are empty."""
    subject: str
    text: str


def read(file: Path) -> list[ForeignPatch]:
    """Return the patches of a file. Raises RecipeError saying what it is instead."""
    text = _read_text(file)
    commits = _COMMIT.split(text)
    # git shows the last one first.
    parts = commits[::-1] if len(commits) > 1 else _MAIL.split(text)
    found = [_parse_part(file, part) for part in parts if part.strip()]
    patches = [each for each in found if _CHANGE.search(each.text)]
    for each in patches or found:
        for pattern, what, remedy in _OTHER_FORMS:
            if re.search(f"(?m)^{pattern}", each.text):
                _refuse(file, what, remedy)
        path = ""
        for number, line in enumerate(each.text.splitlines(), 1):
            if line.startswith("diff --git "):
                path = line.rpartition(" ")[2]
            patching.check_is_text(file, number, f"{line.rstrip()}\n", path)
    if not patches:
        _refuse(
            file, "changes no file", "Make it with 'git diff', 'git format-patch' or 'diff -u'."
        )
    return patches


def _read_text(file: Path) -> str:
    try:
        with filesystem.open_file(file) as stream:
            content = stream.read(patching.LARGEST + 1)
    except OSError as fault:
        remedy = "Give the path of a file that you may read; of a series, one after the other."
        if re.match(r"https?:/", str(file)):
            remedy = "Download it, and give the path of the file."
        raise RecipeError(f"{file} cannot be read: {fault.strerror}", remedy=remedy) from fault
    if len(content) > patching.LARGEST:
        _refuse(file, f"is larger than {patching.LARGEST:,} bytes", "Check that this is the file.")
    for start, program in _PACKED.items():
        if content.startswith(start):
            _refuse(file, f"is compressed by {program}", "Unpack it, and add the file in it.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        _refuse(file, "is not text in UTF-8", "Save it as UTF-8, or download it again.")
    # Bytes that are no UTF-8 are kept: a patch may change a file in another encoding.
    text = content.decode("utf-8-sig", "surrogateescape")
    if text.lstrip().startswith("<"):
        _refuse(file, _PAGE, _NO_PAGE)
    return text


def _parse_part(file: Path, text: str) -> ForeignPatch:
    first, _, rest = text.partition("\n")
    mail = rest if first.startswith("From ") else text
    subject, body, upstream = "", "", ""
    if re.match(r"[A-Za-z-]+: ", mail):
        content = mail.encode("utf-8", "surrogateescape")
        parsed = BytesParser(policy=policy.compat32).parsebytes(content)
        # As they are: a mail may have other bytes than ASCII in them.
        mail_fields = {name.lower(): str(value) for name, value in parsed.raw_items()}
        # DEP-3, the header of Debian's patches, has a mail's form.
        subject = _decode_field(mail_fields.get("subject") or mail_fields.get("description", ""))
        upstream = _decode_field(mail_fields.get("bug") or mail_fields.get("origin", ""))
        if subject or "content-type" in mail_fields:
            text = _mail_text(file, parsed)
            body = _text_above(text)
    elif text.startswith("# HG changeset patch"):
        body = re.sub(r"(?m)^#.*\n", "", _text_above(text))
    elif _COMMIT.match(text):
        body = "\n".join(re.findall(r"(?m)^    (.*)$", _text_above(text)))
    head, body = (re.split(r"(?m)^---\s*$", each)[0] for each in (_text_above(text), body))
    fields = dict(patching.header_fields(head))
    body = _TRAILER.sub("", body)
    if not subject:
        subject, _, body = body.strip().partition("\n")
    # [PATCH v2 1/3] and the names of lists
    subject = _one_line(re.sub(r"^(?:\s*(?:\[[^\]]*\]|Re:))+\s*", "", subject)).rstrip(".")
    why = ". ".join(filter(None, [subject, _one_line(body)]))
    header = PatchHeader(
        fields.get("Why", why),
        fields.get("Upstream", _one_line(upstream)),
        fields.get("Drop when", ""),
    )
    return ForeignPatch(header, subject, text if text.endswith("\n") else f"{text}\n")


def _text_above(text: str) -> str:
    """Return what is above the first change of a patch, with plain line ends."""
    change = _CHANGE.search(text)
    return text[: change.start() if change else 0].replace("\r\n", "\n")


def _mail_text(file: Path, mail: Message) -> str:
    """Return the text of a mail, in whatever way it was packed to be sent."""
    parts = [part for part in mail.walk() if not part.is_multipart()]
    if any(part.get_content_type() == "text/html" for part in parts):
        _refuse(file, _PAGE, _NO_PAGE)
    content = [part.get_payload(decode=True) for part in parts]
    return b"\n".join(each for each in content if isinstance(each, bytes)).decode(
        "utf-8", "surrogateescape"
    )


def _decode_field(field: str) -> str:
    """Return a field of a mail, which may be encoded in ASCII: ``=?UTF-8?q?=C3=A4?=``."""
    if "=?" in field:
        # LookupError: an encoding that Python does not have.
        with suppress(MessageError, LookupError, ValueError):
            return str(make_header(decode_header(field)))
    return field


def _one_line(text: str) -> str:
    """Return what strangers wrote as one line that a header may hold."""
    content = " ".join(text.split()).encode("utf-8", "surrogateescape")
    try:
        return printable(content.decode("utf-8"))
    except UnicodeDecodeError:
        return printable(content.decode("latin-1"))


def _refuse(file: Path, what: str, remedy: str) -> NoReturn:
    raise RecipeError(f"{file} {what}", remedy=remedy, where=file)
