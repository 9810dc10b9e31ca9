"""Calls that declare a download, recognised by their arguments, and what those say.

No rule is known by its name, so that one of a later release needs no change here.
"""

import ast
import base64
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise

from tfwright.documents.names import LONGEST_URL, URL
from tfwright.rules.starlark.language import UnknownError

DOWNLOADS = {"download", "download_and_extract"}
"""Methods through which a rule's own code downloads: url, output and sha256 come in this order."""
BY_DIGEST = "sha256_urls"
"""Arguments whose names start so hold a dictionary: digest = urls (rules_closure's ``*_external``
rules)."""
OVERLAID = "remote_file_"
"""Arguments whose names start so hold dictionaries by the path of a further file: its urls, and its
integrity."""
REMOTE_PATCHES = "remote_patches"
"""The argument that holds a dictionary: url = integrity."""
ORIGINS = {"url", "urls", "sha256", "integrity", "remote", "registry", "artifact", REMOTE_PATCHES}
"""Arguments that say where a repository comes from, or what it is; so do those that end as these
do."""
TELLING = {"name", "commit", "tag", "digest", "repository"}
"""Further arguments that are read."""
FILE_PROGRAMS = {
    *("awk", "cat", "cd", "chmod", "cp", "echo", "find", "grep", "ln", "ls", "mkdir", "mv"),
    *("printf", "rm", "sed", "tail", "tar", "test", "touch", "true", "unzip"),
}
"""Programs that work on the files of an archive."""
NAME = r"[A-Za-z0-9_][\w+-]*(\.[\w+-]+)*"
"""What a repository can be called."""


def declares_download(named: Mapping[str, object]) -> bool:
    """Say whether a call with these arguments declares a download."""
    return "name" in named and any(map(tells_origin, named))


def tells_origin(argument: str) -> bool:
    """Say whether an argument says where a file comes from, or what it is."""
    return (
        argument in ORIGINS
        or argument.endswith(("_urls", "_url", "_sha256", "_integrity"))
        or argument.startswith(BY_DIGEST)
    )


def names_dictionary(argument: str) -> bool:
    """Say whether an argument holds a dictionary of files, as those that `listings` reads."""
    return argument.endswith(("url_dict", "json_dict"))


def changes_only_files(command: object) -> bool:
    """Say whether a command of `patch_cmds` works on an archive's files, and on none with rules."""
    if not isinstance(command, str) or re.search(r"://|\.bzl\b|`|\$\(", command):
        return False
    words = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        parts = pairwise([";", *words])
    except ValueError:
        return False
    return {word for before, word in parts if {*before} <= {*";&|()"}} <= FILE_PROGRAMS


def names_url(known: Mapping[str, object]) -> bool:
    """Say whether a rule names one file by its url, next to which a sha256 belongs."""
    # The others look at these first, and have no argument `sha256`.
    return not {"artifact", "registry", "remote"} & known.keys() and (
        not {"url", "urls"}.isdisjoint(known)
    )


def files_of(known: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield addresses and digest of each file: ``jar_urls`` belong to ``jar_sha256``."""
    if "artifact" in known:
        # maven_jar and jvm_maven_import_external name no address: servers and path make it up, as
        # in the layout of every Maven repository. The artifact is ``group:name:version``.
        group, _, rest = line_of(known["artifact"]).partition(":")
        name, _, version = rest.partition(":")
        path = f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"
        servers = urls_of(known.get("server_urls"))
        urls = tuple(f"{server.rstrip('/')}/{path}" for server in servers)
        yield urls, digest_of(known.get("artifact_sha256"))
    elif "registry" in known:
        yield ((f"{line_of(known['registry'])}/{line_of(known.get('repository') or '')}",), "")
    elif "remote" in known:
        yield (line_of(known["remote"]),), ""
    else:
        yield from _files_with_urls(known)


def _files_with_urls(known: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield urls and digest of each file of a rule that downloads by url."""
    for name, value in known.items():
        if name.startswith(BY_DIGEST) and isinstance(value, dict):
            yield from ((urls_of(urls), digest_of(sha256)) for sha256, urls in value.items())
    integrity = _as_dictionary(known.get(f"{OVERLAID}integrity"))
    for path, urls in _as_dictionary(known.get(f"{OVERLAID}urls")).items():
        yield urls_of(urls), digest_of(integrity.get(path))
    for url, digest in _as_dictionary(known.get(REMOTE_PATCHES)).items():
        yield urls_of(url), digest_of(digest)
    # A rule may name several files, such as jar_urls with jar_sha256 next to srcjar_urls.
    plain = {
        name: value for name, value in known.items() if not name.startswith((BY_DIGEST, OVERLAID))
    }
    matches = (re.fullmatch(r"(|\w+_)(urls?|sha256|integrity)", name) for name in plain)
    for prefix in dict.fromkeys(found[1] for found in matches if found):
        urls = (*urls_of(plain.get(f"{prefix}urls")), *urls_of(plain.get(f"{prefix}url")))
        digest = plain.get(f"{prefix}sha256") or plain.get(f"{prefix}integrity")
        # A digest alone belongs to a further file only if this is named as well.
        if urls or (digest and not prefix):
            yield urls, digest_of(digest)


def _as_dictionary(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def urls_of(value: object) -> tuple[str, ...]:
    """Return one url, or a list of them, each once."""
    # http_archive takes `urls` or `url`; TensorFlow lists its own mirror first.
    values = filter(None, as_list(value))
    urls = tuple(dict.fromkeys(map(line_of, values)))
    good = tuple(url for url in urls if len(url) <= LONGEST_URL and re.fullmatch(URL, url))
    # One that is not an address leaves the others as they are.
    if urls and not good:
        raise UnknownError(f"{urls[0][:80]!r} is not an address that Bazel could download from")
    return good


def as_list(value: object) -> list[object]:
    """Return a list as it is, and anything else as the only one of a list."""
    return value if isinstance(value, list) else [value]


def digest_of(value: object) -> str:
    """Return a SHA-256, or an empty text where there is none.

    An integrity is ``sha256-`` and the digest in base 64; those of other algorithms are none.
    """
    text = line_of(value or "")
    algorithm, dash, code = text.partition("-")
    if dash:
        text = algorithm
        with suppress(ValueError):
            text = base64.b64decode(code, validate=True).hex()
        if algorithm in {"sha1", "sha384", "sha512"}:
            return ""
    # Bazel compares digests without regard to case.
    text = text.lower()
    if text and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UnknownError(f"sha256 {text[:80]!r} is not a SHA-256")
    return text


def name_of(value: object) -> str:
    """Insist on what Bazel takes for the name of a repository."""
    text = line_of(value)
    # The name becomes a directory of the output base, and part of labels.
    if not re.fullmatch(NAME, text):
        raise UnknownError(f"{text[:80]!r} is not the name of a repository")
    return text


def line_of(value: object) -> str:
    """Insist on a text without control characters."""
    if not (isinstance(value, str) and value.isprintable()):
        raise UnknownError("a name or address is not a line of text")
    return value


def callee_name(node: ast.expr) -> str:
    """Return the name of what is called, without what it is an attribute of."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
