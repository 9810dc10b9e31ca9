"""A log as HTML: a line for each line, with its number as an anchor, coloured by what it says.

A log is hostile: its text is escaped, and control characters are shown as blanks. Secrets, tokens
and paths that name a person are taken out of everything that strangers may read.
"""

import gzip
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import filesystem

SHOWN = 200_000
"""Bytes of a log that a page shows; the whole is linked."""
CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
"""Marks that make a line read otherwise than it is."""
KINDS = (
    ("error", re.compile(r"(?i)\b(error|fatal|undefined reference|cannot find|failed)\b")),
    ("warning", re.compile(r"(?i)\bwarning\b")),
    ("note", re.compile(r"^(INFO|DEBUG|\s*note):?", re.IGNORECASE)),
)
BEFORE = 400
"""Lines before the line of interest that are shown."""
LONGEST = 2000
"""Characters of a line that are shown."""
LONGEST_RAW = 8 * LONGEST
"""Characters of a line that are read; control characters may take most of them."""
BEGIN_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
END_KEY = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
HIDDEN = "[removed]"
SHORTEST_NAME = 4
"""Characters of a user's name that is looked for; a shorter one is a part of many words."""
COMMON_NAMES = frozenset({"root", "build", "user", "runner", "nobody"})
# The name of a setting that holds a secret, as part of a longer name too: GITHUB_TOKEN, api-key.
_SENSITIVE = (
    r"[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|auth(?!or))[\w.-]*"
)
RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # A private key in PEM, whole.
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        HIDDEN,
    ),
    # https://user:password@host and https://token@host
    (re.compile(r"(?<=://)[^/\s@'\"]+@"), f"{HIDDEN}@"),
    # Authorization: Bearer ..., also as a curl argument
    (
        re.compile(r"(?i)((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)[^\r\n'\"]+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"(?i)((?:set-)?cookie['\"]?\s*:\s*)[^\r\n]+"), rf"\1{HIDDEN}"),
    # name=value, name: value, --name value, "name": "value"
    (
        re.compile(rf"(?i)(\b{_SENSITIVE}['\"]?\s*(?:=|:(?!//))\s*['\"]?)[^\s'\",;&)]+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"(?i)(--{_SENSITIVE}\s+)[^\s-]\S*"), rf"\1{HIDDEN}"),
    # Query parameters that sign a download: X-Amz-Signature, sig, Signature, key
    (
        re.compile(r"(?i)([?&][\w.-]*(?:sig|signature|key|credential)[\w.-]*=)[^&\s'\"]+"),
        rf"\1{HIDDEN}",
    ),
    # Tokens that tell by their form: GitHub, GitLab, Slack, AWS, Google, npm, the Python index, JWT
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"), HIDDEN),
    (re.compile(r"\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{30,}"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bpypi-[\w-]{40,}"), HIDDEN),
    (re.compile(r"\bhooks\.slack\.com/services/\S+"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), HIDDEN),
)
_HOME = re.compile(r"(/(?:home|Users|var/home)/)([^/\s'\":,;)\]]+)|/root(?![\w-])")


@dataclass(frozen=True)
class LogLine:
    """One line as the page shows it; the template escapes its text."""

    number: int
    text: str
    kind: str


@dataclass(frozen=True)
class ShownLog:
    """The part of a log that a page shows."""

    name: str
    lines: tuple[LogLine, ...]
    left_out: int
    """Lines before the first one that is shown, or after the last."""
    size: int


def read(folder: Path, name: str, around: int = 0) -> ShownLog:
    """Return a log's end, or the part around a line of interest."""
    path = folder / name
    # A long one is kept packed, and is named without that.
    packed = path.with_name(f"{path.name}.gz")
    if packed.is_file() and not path.is_file():
        path = packed
    size = path.stat().st_size if path.is_file() else 0
    kept: deque[tuple[int, str]] = deque()
    total = budget = 0
    for total, text in enumerate(_raw_lines(path), 1):
        # Once the page is full behind the line of interest, the rest is only counted.
        if around and total > around and budget > SHOWN:
            continue
        kept.append((total, text))
        budget += len(text)
        # The first lines make room for later ones.
        while kept and (
            kept[0][0] < around - BEFORE if around and total >= around else budget > SHOWN
        ):
            budget -= len(kept.popleft()[1])
    # Only now: to make a line harmless costs far more than to count it, and a log of a
    # TensorFlow has a million of them.
    lines = []
    inside = False
    for number, text in kept:
        # A private key spans several lines.
        begins = BEGIN_KEY.search(text) is not None
        shown = HIDDEN if inside and not begins else clean(text)
        inside = (inside or begins) and not END_KEY.search(text)
        kind = next((kind for kind, pattern in KINDS if pattern.search(shown)), "")
        lines.append(LogLine(number, shown, kind))
    return ShownLog(str(path.relative_to(folder)), tuple(lines), total - len(kept), size)


def _raw_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log as they are, each up to a length that a page can use."""
    if not path.is_file():
        return
    opened = gzip.open if path.suffix == ".gz" else open
    # A packed log that was cut off is shown as far as it goes.
    with (
        suppress(EOFError, gzip.BadGzipFile, zlib.error),
        opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as stream,
    ):
        for line in stream:
            plain = line.rstrip("\r\n")
            # A progress bar rewrites its line: only what it said last counts.
            yield plain.rpartition("\r")[2][:LONGEST_RAW]


def clean(text: str) -> str:
    """Return one line without control characters, secrets and home paths."""
    last = text.rpartition("\r")[2]
    plain = BIDI.sub("", CONTROL.sub(" ", last))
    shortened = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"
    return redacted(shortened)


def redacted(text: str) -> str:
    """Return text without what identifies a person or opens a door."""
    for pattern, instead in RULES:
        text = pattern.sub(instead, text)
    text = _HOME.sub("~", filesystem.without_home(text))
    user = filesystem.account_name()
    # A name such as root or build says nothing and stays.
    if user.isdecimal() or len(user) < SHORTEST_NAME or user in COMMON_NAMES:
        return text
    return re.sub(rf"\b{re.escape(user)}\b", "user", text)
