"""What may be a name, a path or an argument, in every document that people write.

This is the one place that decides it. Recipes, locks and bundles may come from strangers. A value
that passes here cannot be taken for an option by a program, leave its directory, end a line of
another format, or change what a terminal shows.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Strict, StringConstraints, WithJsonSchema

LONGEST_COMPONENT = 200
"""Bytes of one component of a path; file systems take 255, and temporary names are longer than the
final ones."""
LONGEST_PATH = 1000
"""Bytes of a relative path; Linux and macOS take 4,096 and 1,024 for all of an absolute one."""
SHARED = frozenset(
    {
        "added",
        "bazel_install",
        "cache",
        "cache-secret",
        "disk_cache",
        "git",
        "nightly",
        "orders",
        "reports",
        "reproduction",
        "smoke",
        "tmp",
        "toolkits",
        "unbundling",
        "vault",
        "wheelhouse",
        "wheels",
        "workers",
    }
)
"""Directories of build_out that belong to all recipes: `invoke clean` removes the one named like
its recipe."""
STATE_ENDINGS = (".json", ".lock")
"""How files of build_out end; a recipe of such a name would have its directory there."""
EXACT_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(?P<extras>\[[A-Za-z0-9,._-]+\])?"
    r"==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
    r"(?P<hashes>( --hash=sha256:[0-9a-f]{64})*)"
)
"""``name==version`` with pip's hashes behind it: the only form of a requirement that reaches
pip."""
PACKAGE_URL = re.compile(
    r"pkg:(?P<kind>npm|pypi|deb)/((?P<space>@[a-z0-9._-]+|debian|ubuntu)/)?"
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._+-]*)(@(?P<version>[A-Za-z0-9][A-Za-z0-9.+~:_-]*))?"
)
LONGEST_URL = 2000
"""Characters of an address; what looks for known forms in one may take quadratic time."""
URL = r"((https?|ftp)://[^/\s]+|file://)/\S*"
CHECKSUM = r"^[0-9a-f]{64}$"
COMMIT = r"^[0-9a-f]{40}$"
VERSION = r"^[0-9]+(\.[0-9]+)*[A-Za-z0-9_.+-]*$"
PYTHON = r"^([0-9]{1,3}\.[0-9]{1,3}|any)$"
VARIABLE = r"^[A-Z][A-Z0-9_]*$"
WEB = r"^https?://"
FORMS = {
    CHECKSUM: "the 64 hexadecimal digits of a SHA-256 checksum, in lower case",
    COMMIT: "the 40 hexadecimal digits of a commit, in lower case",
    VERSION: "a version such as 0.26.1",
    PYTHON: "two numbers such as 3.6, or any",
    VARIABLE: "the name of a variable, in capital letters",
    WEB: "an address that begins with http:// or https://",
}
"""What the patterns mean, for messages."""
_GIT_URL = r"(https://|ssh://|file:///|bundled:)(?!-)\S+"
_GIT_DIRECTORY = re.compile(r"\.git|git~[0-9]+", re.IGNORECASE)
"""Names under which some file system opens ``.git``: Windows shortens it to ``git~1``."""


def one_line(text: str) -> str:
    """Accept text without control characters. Raises ValueError."""
    if not text.isprintable():
        raise ValueError("must be one line of printable text")
    return text


def pattern_validator(
    pattern: str | re.Pattern[str], message: str, most: int = 0
) -> Callable[[str], str]:
    """Return what accepts a text of a form, on one line. It raises ValueError with the message."""

    def accept(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(message)
        if most and len(text) > most:
            raise ValueError(f"must not be longer than {most:,} characters")
        return one_line(text)

    return accept


statement = pattern_validator(r"(?s).*\S.*", "must say something")
"""Accepts one line that says something."""
# git reads a..b as a range of commits.
_PLAIN_NAME = r"(?!-)(?!.*\.\.)[\w./+-]+"
no_option = pattern_validator(
    _PLAIN_NAME,
    "must be a plain name: letters, digits and ./+_- , not starting with '-', without '..'",
)
"""Accepts a name that no program takes for an option or a range of commits."""


def inner_path(text: str) -> str:
    """Accept a relative path that stays below its root and out of git's own directory.

    Raises ValueError.
    """
    path = PurePosixPath(text)
    # A leading "-" would be an option of git, a leading "~" a home directory of a shell.
    leaves = path.is_absolute() or ".." in path.parts or text.startswith(("-", "~"))
    # Windows, and archives made there, take a backslash for a slash.
    if leaves or "\\" in text or not path.parts:
        raise ValueError(
            "must be a relative path that stays inside: no leading '/', '~' or '-', no '..', no "
            "'\\'"
        )
    for component in path.parts:
        # Some file systems ignore upper and lower case, or dots and blanks at the end; NTFS opens a
        # stream of the same file by what follows a colon.
        if _GIT_DIRECTORY.fullmatch(component.partition(":")[0].rstrip(" .")):
            raise ValueError(f"must not contain {component}, which some file systems take for .git")
        if len(component.encode("utf-8", "replace")) > LONGEST_COMPONENT:
            raise ValueError(f"must not have a component of more than {LONGEST_COMPONENT} bytes")
    if len(text.encode("utf-8", "replace")) > LONGEST_PATH:
        raise ValueError(f"must not be longer than {LONGEST_PATH:,} bytes")
    return one_line(text)


file_name = pattern_validator(
    rf"[A-Za-z0-9_][A-Za-z0-9_.+!-]{{0,{LONGEST_COMPONENT - 1}}}",
    "must be a file's name: letters, digits and _.+!- , not starting with '.' or '-', "
    f"of {LONGEST_COMPONENT} characters at most",
)
"""Accepts the name of a file, without a directory."""


def recipe_name(text: str) -> str:
    """Accept the name of a recipe, which becomes a directory of build_out. Raises ValueError."""
    # macOS ignores case in names of directories, hence casefold.
    if text.casefold() in SHARED:
        raise ValueError(
            f"{text} is a directory of build_out that all recipes share; rename the file"
        )
    if text.casefold().endswith(STATE_ENDINGS):
        endings = " or ".join(STATE_ENDINGS)
        raise ValueError(
            f"{text} must not end in {endings}, as files of build_out do; rename the file"
        )
    return file_name(text)


# ext:: runs any command, and a host that begins with "-" becomes an option of ssh.
git_url = pattern_validator(
    _GIT_URL,
    "must start with https://, ssh://, file:/// or bundled:, and have no blank or leading '-' "
    "(git's other transports can run commands)",
    LONGEST_URL,
)
"""Accepts a url whose transport runs no command."""
download_url = pattern_validator(
    URL, "must be one http, https, ftp or file url without blanks", LONGEST_URL
)
"""Accepts a url that a file can be downloaded from."""


replaced = pattern_validator(
    f"{CHECKSUM}|{URL}",
    "must be the checksum that the tree pins (64 digits and letters a to f), or the url that it "
    "names where it pins none",
    LONGEST_URL,
)
"""Accepts a checksum, or a url for an archive that has none."""

# pip obeys an option on a line of a requirements file: --index-url, -e, -r.
exact_pin = pattern_validator(
    EXACT_PIN,
    'must be an exact pin: "name==version", with --hash=sha256:… behind it where you like',
)
"""Accepts a requirement that pins one version."""
package_url = pattern_validator(
    PACKAGE_URL,
    'must be a package URL: "pkg:npm/NAME@VERSION", "pkg:pypi/NAME@VERSION" or '
    '"pkg:deb/debian/NAME@VERSION" (the version of a deb may be left out)',
)
"""Accepts a package URL (ECMA-427) of npm, the Python index, Debian or Ubuntu."""


def _schema_pattern(pattern: str) -> WithJsonSchema:
    """Return what the JSON Schema says of a text: it never refuses what tfwright takes."""
    # JavaScript, Rust and Python name a group in different ways; all have plain ones.
    plain = re.sub(r"\(\?P<\w+>", "(", pattern)
    return WithJsonSchema({"type": "string", "pattern": plain})


Flag = Annotated[bool, Strict()]
"""``true`` or ``false``; without Strict, pydantic takes 1 and "yes" for true."""
Line = Annotated[str, AfterValidator(one_line), _schema_pattern(r"^[^\x00-\x1f\x7f]*$")]
"""Text on one line, without control characters."""
Statement = Annotated[
    str, AfterValidator(statement), _schema_pattern(r"^(?=.*\S)[^\x00-\x1f\x7f]*$")
]
"""Prose on one line for people, who would learn nothing from blanks."""
Name = Annotated[str, AfterValidator(no_option), _schema_pattern(f"^{_PLAIN_NAME}$")]
"""A branch, tag or the like that no program can take for an option."""
WebAddress = Annotated[str, StringConstraints(pattern=WEB), AfterValidator(one_line)]
"""What begins as an address that HTTP can ask, on one line."""
InnerPath = Annotated[
    str,
    AfterValidator(inner_path),
    _schema_pattern(r"^(?![/~-])(?!(.*/)?\.\.(/|$))[^\\\x00-\x1f\x7f]+$"),
]
"""A relative path with forward slashes that cannot leave its root."""
RecipeName = Annotated[str, AfterValidator(recipe_name)]
"""The name of a recipe, and of its directory in build_out."""
GitUrl = Annotated[str, AfterValidator(git_url), _schema_pattern(f"^{_GIT_URL}$")]
DownloadUrl = Annotated[str, AfterValidator(download_url), _schema_pattern(f"^{URL}$")]
PackageUrl = Annotated[
    str, AfterValidator(package_url), _schema_pattern(f"^{PACKAGE_URL.pattern}$")
]
HERMETIC_PYTHON_NAMES = ("HERMETIC_PYTHON_VERSION", "TF_PYTHON_VERSION")
"""What Bazel reads the version of its Python from. 2.14 to 2.17 know the second one only, 2.18 and
later both."""
PythonVersion = Annotated[str, StringConstraints(pattern=r"^[0-9]\.[0-9]{1,2}$")]
PackagePin = Annotated[str, AfterValidator(exact_pin), _schema_pattern(f"^{EXACT_PIN.pattern}$")]
"""A package of the Python index at one version: ``numpy==1.14.5``."""
# Lower case only: a digest is compared as text, and names a file.
Sha256 = Annotated[str, StringConstraints(pattern=CHECKSUM)]
Replaced = Annotated[str, AfterValidator(replaced), _schema_pattern(f"{CHECKSUM}|^{URL}$")]
"""The checksum of an archive, or the url of one that has none."""
Commit = Annotated[str, StringConstraints(pattern=COMMIT)]
# Python reads no number of more than 4,300 digits.
Version = Annotated[str, StringConstraints(pattern=VERSION, max_length=100)]
DebFile = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]*_[A-Za-z0-9_.+~%-]+_(amd64|arm64|all)\.deb$"),
]
"""A Debian package as apt names its file: ``libcudart11.0_11.8.89~11.8.0-5_amd64.deb``."""
WheelFile = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.]*-[A-Za-z0-9_.!+]+(-[A-Za-z0-9_.]+){3,4}\.whl$"
    ),
]
"""A wheel as the package index names it."""
# Without query and fragment: the last part of the path is the file's name.
HttpsUrl = Annotated[str, StringConstraints(pattern=r"^https://[A-Za-z0-9_.-]+/[^\s?#]+$")]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[A-Za-z0-9_.:-]+(/[^\s?#]*)?$")]
"""The address of a package archive, which apt gets on a line of its own."""
CpuLevel = Literal["x86-64", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "avx512"]
"""What a wheel may need of an x86-64 CPU, least first."""
