"""Text made fit for strangers: without secrets, tokens, and paths that name a person."""

import re
from collections.abc import Callable

from tfwright.documents import account

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


def redacted(text: str) -> str:
    """Return text without what identifies a person or opens a door."""
    for pattern, instead in RULES:
        text = pattern.sub(instead, text)
    text = _HOME.sub("~", account.without_home(text))
    return _without_user(text)


def _without_user(text: str) -> str:
    """Take the user's name out; a name such as root or build says nothing and stays."""
    user = account.name()
    if user.isdecimal() or len(user) < SHORTEST_NAME or user in COMMON_NAMES:
        return text
    return re.sub(rf"\b{re.escape(user)}\b", "user", text)
