"""Bazel's modules: which of its two files of dependencies a build reads, and what a lock pins.

MODULE.bazel names modules; which versions of them a build takes, only Bazel works out. It writes
the files of the registry that it read, with their checksums, into MODULE.bazel.lock, and those lead
to the archives.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tfwright.rules.configurations import flags_in_force
from tfwright.rules.model import Repository, Rules, Unreadable
from tfwright.rules.patched_tree import LOCK, MODULES, WORKSPACE
from tfwright.rules.recognisers import (
    declares_download,
    digest_of,
    files_of,
    line_of,
    names_url,
    urls_of,
)
from tfwright.rules.starlark.language import UnknownError
from tfwright.tools import json_text

REGISTRY = "registry"
"""Stands for the rule of a file that a registry of modules has."""
PATCH = "registry patch"
"""The same for what a registry adds to the archive of a module, which only that module needs."""
OVERRIDES = {"archive_override", "git_override", "local_path_override", "single_version_override"}
"""What says, in MODULE.bazel, where a module comes from, or how that of a registry is patched."""
ALWAYS = {REGISTRY, *OVERRIDES}
"""Rules of files that Bazel reads before it knows which modules there are."""
DEEPEST = 12
"""Objects in one another in which a lock is searched."""
_PLACE = re.compile(
    r"https?://.+?/(bazel_registry\.json|modules/(?P<module>[a-z][\w.-]*)/[\w.+-]+/"
    r"(MODULE\.bazel|source\.json|(patches|overlay)/[\w+-][\w.+-]*(/[\w+-][\w.+-]*)*))",
    re.ASCII,
)
"""The address of a file of a registry; the first group is its path there, which cannot lead out."""
_SWITCH = re.compile(r"--(no)?enable_(bzlmod|workspace)(=(true|yes|1|false|no|0))?")


def starting_files(bazelrc: str, flags: Sequence[str], bazel: str) -> tuple[str, ...]:
    """Return the files from which a Bazel, with flags of its own, reads dependencies."""
    major = int(bazel.partition(".")[0])
    uses = {"bzlmod": major >= 7, "workspace": major <= 7}  # noqa: PLR2004 the defaults of Bazel
    for flag in flags_in_force(bazelrc, flags):
        if found := _SWITCH.fullmatch(flag):
            uses[found[2]] = (found[1] is None) == (found[4] in {None, "true", "yes", "1"})
    # Before the two were flags, WORKSPACE was all there was.
    files = [(MODULES, uses["bzlmod"]), (WORKSPACE, uses["workspace"] or not uses["bzlmod"])]
    return tuple(name for name, used in files if used)


def apparent_name(name: str) -> str:
    """Return the name of a repository, given Bazel's own: ``rules_cc~``, ``a~~extension~name``."""
    parts = re.split("[~+]+", name.rstrip("~+"))
    # Up to Bazel 7.1 the version of a module follows its name.
    return parts[0] if parts[-1][:1].isdigit() else parts[-1]


def registry_path(url: str) -> str:
    """Return the path of a file in its registry, by its address; empty if it is none of one."""
    found = _PLACE.fullmatch(url)
    return found[1] if found else ""


def read_lock(text: str) -> Rules:
    """Read what a MODULE.bazel.lock pins: files of registries, and repositories of extensions."""
    read = json_object(text)
    known = read.get("registryFileHashes")
    pinned = known.items() if isinstance(known, dict) else ()
    found: list[Repository] = []
    unreadable: list[Unreadable] = []
    for url, sha256 in pinned:
        # Bazel notes, without a checksum, which files a registry does not have.
        if sha256 is not None:
            found += _registry_file(url, sha256)
    for attributes in _attributes(read, DEEPEST):
        # Up to Bazel 7.1 a lock has the archives themselves; for extensions it has them since.
        try:
            found += _declared_files(attributes)
        except UnknownError as fault:
            unreadable.append(Unreadable(LOCK, 1, str(fault)))
    if not found:
        why = "pins no file of a registry, so that the modules of MODULE.bazel are not known"
        unreadable.append(Unreadable(LOCK, 1, why))
    return Rules(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(unreadable)))


def registry_archives(found: Rules, text_of: Callable[[str], bytes | None]) -> Iterator[Repository]:
    """Yield the archives and patches of the modules whose source.json is here.

    `text_of` returns the content of a file by its sha256, None if it is not here.
    """
    for file in found.repositories:
        if file.rule != REGISTRY or not file.urls[0].endswith("/source.json"):
            continue
        source = json_object(text_of(file.sha256) or b"")
        folder = file.urls[0].removesuffix("source.json")
        for kind in ("patches", "overlay"):
            named = source.get(kind)
            for name, integrity in named.items() if isinstance(named, dict) else ():
                for patch in _registry_file(f"{folder}{kind}/{name}", integrity):
                    yield replace(patch, rule=PATCH)
        with suppress(UnknownError):
            prefix = line_of(source.get("strip_prefix") or "")
            for archive in _declared_files({**source, "name": file.name}):
                yield replace(archive, rule="bazel_dep", strip_prefix=prefix)


def _registry_file(url: str, digest: object) -> Iterator[Repository]:
    """Yield a file of a registry, named like its module; nothing if that is no address of one."""
    match = _PLACE.fullmatch(url)
    with suppress(UnknownError):
        if match and (sha256 := digest_of(digest)):
            name = match["module"] or REGISTRY
            yield Repository(name, REGISTRY, LOCK, 1, urls_of(url), sha256, by_url=True)


def _declared_files(attributes: Mapping[str, object]) -> Iterator[Repository]:
    if declares_download(attributes):
        name = line_of(attributes["name"])
        commit = line_of(attributes.get("commit") or "")
        for urls, sha256 in files_of(attributes):
            by_url = names_url(attributes)
            yield Repository(name, "module", LOCK, 1, urls, sha256, commit=commit, by_url=by_url)


def _attributes(value: object, depth: int) -> Iterator[Mapping[str, object]]:
    """Yield the attributes of each repository in a lock, with its name."""
    if not isinstance(value, dict) or not depth:
        return
    for key, inner in value.items():
        if isinstance(inner, dict) and isinstance(inner.get("attributes"), dict):
            yield {"name": key, **inner["attributes"]}
        else:
            yield from _attributes(inner, depth - 1)


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return what an object in JSON holds; nothing where it cannot be read."""
    read: object = None
    with suppress(ValueError):
        read = json_text.parse(text)
    return read if isinstance(read, dict) else {}
