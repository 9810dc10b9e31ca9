"""What strangers may read: text without secrets, tokens, and paths that name a person or a host.

Every text that leaves the build host goes through `redact_text`: pages, feed, JSON, notices,
reports, raw logs. A token is known by its form or by the name in front of it. No rule can know a
secret that has neither.
"""

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from tfwright.documents import filesystem
from tfwright.documents.filesystem import ROOT
from tfwright.tools import files

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
"""Codes of a terminal: one in the middle of a token would hide it from every rule."""
BEGIN_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
END_KEY = re.compile(r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
HIDDEN = "[removed]"
SHORTEST_NAME = 4
"""Characters of a user's name that is looked for; a shorter one is a part of many words."""
COMMON_NAMES = frozenset({"root", "build", "user", "runner", "nobody"})
# The name of a setting that holds a secret, as part of a longer name too: GITHUB_TOKEN, api-key.
# Nothing of it has more than 64 characters: a line of a log may be one word of a megabyte.
_SENSITIVE = (
    r"(?:passw(?:or)?d|_pwd|passphrase|secret|token|credential|auth(?!or)"
    r"|(?:api|access|account|private|signing)[ _-]?key)[\w.-]{0,64}"
)
_ASSIGNED = rf"{_SENSITIVE}\\?['\"]?\s{{0,9}}(?:[:?+=!]?=>?|:(?!:|//))\s{{0,9}}"
# In quotes, also within a text of JSON; or up to a blank, without what ends a list or a call.
_VALUE = r"(?:(\\?(['\"]))(?:\\.|(?!\3)[^\\\r\n])+|(?![\[{\\])[^\s'\"]*[^\s'\",;&)}\]])"
# As words of a command, and as a list of words.
_GAP = r"(?:\\?['\"],)?[\s=]"
_OPTION = re.compile(
    rf"((?<![\w-])(?:-[apw]{_GAP}*|-\w{{0,9}}[uU]{_GAP}*(?=\S{{1,64}}[:%,]))){_VALUE}"
)
RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # A private key in PEM, whole.
    (re.compile(rf"{BEGIN_KEY.pattern}.*?(?:{END_KEY.pattern}|\Z)", re.DOTALL), HIDDEN),
    # https://user:password@host and https://token@host
    (re.compile(r"(?<=://)[^/\s'\"]+@"), f"{HIDDEN}@"),
    # Authorization: Bearer ..., also as a curl argument
    (
        re.compile(r"(?i)((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)[^\r\n'\"]+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer[\s:]+|basic\s+)[\w.~+/=-]{8,}"), rf"\1{HIDDEN}"),
    # <password>value</password>
    (re.compile(rf"(?i)(<{_SENSITIVE}>)[^<]+(?=</)"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)((?:set-)?cookie['\"]?\s*:\s*)[^\r\n]+"), rf"\1{HIDDEN}"),
    # name="value", "name": "value", name=value, name: value; --name value; --user name:value;
    # the words of .netrc; openssl's -passin pass:value; PASS=value; config set, ENV name value
    (
        re.compile(
            rf"(?i)({_ASSIGNED}|(?<![\w.-])--[\w.-]{{0,64}}?{_SENSITIVE}{_GAP}+(?=[^\s-])"
            rf"|--(?:proxy-)?user{_GAP}+(?=\S{{1,64}}:)|\blogin\s+\S+\s+password\s+"
            rf"|-pass(?:in|out)?{_GAP}+(?=['\"]?pass:)|(?:\b|_|ssh)pass="
            rf"|\b(?:config(?:ure)?\s+(?:--)?set|(?:set)?env)\s+[\w./:@-]{{0,64}}?{_SENSITIVE}\s+)"
            rf"{_VALUE}"
        ),
        rf"\1\2{HIDDEN}",
    ),
    # -p value and -u name:value of programs that take a secret so
    (
        re.compile(
            r"(?i)\b(?:curl|sshpass|login|mysql|mariadb|mongo|redis|ldap|twine|7z|lftp|smbclient)"
            r"[\w-]{0,64}[\s'\",\\].*"
        ),
        lambda found: _OPTION.sub(rf"\1\2{HIDDEN}", found[0]),
    ),
    # Query parameters that sign a download: X-Amz-Signature, sig, Signature, key
    (
        re.compile(r"(?i)([?&][\w.-]{0,64}?(?:sig|key|credential)[\w.-]{0,64}=)[^&\s'\"]+"),
        rf"\1{HIDDEN}",
    ),
    # Tokens that tell by their form: GitHub, GitLab, Slack, AWS, Google, npm, the Python index,
    # Hugging Face, Docker, OpenAI, Anthropic, Stripe, SendGrid, JWT; and addresses of chats that
    # anybody may post to
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
            r"|gl(?:pat|rt|dt|ptt|cbt|ft|imt|soat|agent)-[\w-]{16,}|(?:xox[a-z]|xapp)-[\w-]{10,}"
            r"|(?:npm|hf)_[A-Za-z0-9]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{30,}"
            r"|sk-[\w-]{20,}|[rs]k_live_\w{10,}|SG\.[\w-]{16,}\.[\w-]{16,}"
            r"|pypi-[\w-]{40,}|(?:ya29\.|GOCSPX-|dckr_pat_)[\w-]{20,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
            r"|hooks\.slack\.com/services/\S+|webhook\.office\.com/\S+"
            r"|discord(?:app)?\.com/api/webhooks/\S+)"
        ),
        HIDDEN,
    ),
)
_HOME = re.compile(r"(/(?:home|Users|var/home)/)([^/\s'\":,;)\]]+)|/root(?![\w-])")
_LOGIN = re.compile(r"://[^/\s]*@")
_CLUES = str.split(
    "/home/ /users/ /root passw _pwd passphrase secret token key credential auth cookie bearer"
    " basic sig ghp_ gho_ ghu_ ghs_ ghr_ github_pat glpat- glrt- gldt- glptt- glcbt- glft- glimt-"
    " glsoat- glagent- --user pass: pass= curl sshpass login mysql mariadb mongo redis ldap twine"
    " 7z lftp smbclient xox xapp- npm_ hf_ akia asia aiza ya29. gocspx- dckr_ pypi-"
    " hooks.slack webhook eyj sk- k_live_ sg."
)
"""What each rule needs. Most lines of a log have none of it, and a log has a million lines."""


def redact_text(text: str) -> str:
    """Return text without what identifies a person or opens a door."""
    # A recipe's and a patch's path says which one it is; where the checkout lies says nothing.
    text = filesystem.without_home(text.replace(f"{ROOT}/", ""))
    plain = text.lower()
    if any(clue in plain for clue in _CLUES) or _LOGIN.search(text):
        for pattern, instead in RULES:
            text = pattern.sub(instead, text)
        text = _HOME.sub("~", text)
    user = filesystem.account_name()
    # A name such as root or build says nothing and stays.
    if user.isdecimal() or len(user) < SHORTEST_NAME or user in COMMON_NAMES or user not in text:
        return text
    return re.sub(rf"\b{re.escape(user)}\b", "user", text)


def redact_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of one text without secrets; each line of a private key is hidden."""
    inside = False
    for line in lines:
        begins = BEGIN_KEY.search(line) is not None
        end = line[len(line.rstrip("\r\n")) :]
        plain = ANSI.sub("", line)
        shown = HIDDEN + end if inside and not begins else redact_text(plain)
        yield line if shown == plain else shown
        inside = (inside or begins) and not END_KEY.search(line)


def redact_file(path: Path) -> None:
    """Take secrets out of a file of text, packed or not; one that holds none keeps its bytes."""
    if not has_secrets(path):
        return
    packed = path.suffix == ".gz"
    with files.replacing(path) as temporary, _open_text(temporary, "wt", packed=packed) as stream:
        stream.writelines(new for _, new in _redacted_pairs(path))


def has_secrets(path: Path) -> bool:
    """Say whether a file of text, packed or not, holds what strangers may not read."""
    return any(old != new for old, new in _redacted_pairs(path))


def _redacted_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of a file, and what may be read of it."""
    packed = path.suffix == ".gz"
    with (
        suppress(EOFError, gzip.BadGzipFile, zlib.error),
        _open_text(path, "rt", packed=packed) as one,
        _open_text(path, "rt", packed=packed) as two,
    ):
        yield from zip(one, redact_lines(two), strict=False)


def _open_text(path: Path, mode: str, *, packed: bool) -> IO[str]:
    opened = gzip.open if packed else open
    # Whatever is not UTF-8 is written as it was read.
    stream = opened(path, mode, encoding="utf-8", errors="surrogateescape", newline="\n")
    return cast("IO[str]", stream)
