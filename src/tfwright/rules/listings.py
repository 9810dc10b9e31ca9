"""Files that rules take from a dictionary, by version and platform: CUDA, NCCL, hermetic Python.

A dictionary pins either the file itself, or a JSON file of NVIDIA's that lists further files with
their checksums. Which version is taken, variables of the environment say.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import Self

from tfwright.facts.compatibility import Hermetic
from tfwright.rules import modules
from tfwright.rules.configurations import flags_in_force
from tfwright.rules.model import Component, Listed, Repository, Rules, Unreadable
from tfwright.rules.patched_tree import REQUIREMENTS
from tfwright.rules.recognisers import NAME, digest_of, urls_of
from tfwright.rules.starlark.language import UnknownError, parse_python

TABLES = (
    ("CUDA_REDIST_JSON_DICT", "HERMETIC_CUDA_VERSION", "cuda_redist_json"),
    ("CUDNN_REDIST_JSON_DICT", "HERMETIC_CUDNN_VERSION", "cuda_redist_json"),
    ("NVSHMEM_REDIST_JSON_DICT", "HERMETIC_NVSHMEM_VERSION", "nvshmem_redist_json"),
    (r"CUDA_(?P<major>\d+)_NCCL_WHEEL_DICT", "HERMETIC_NCCL_VERSION", "cuda_nccl"),
    ("TOOL_VERSIONS", "HERMETIC_PYTHON_VERSION", "python"),
)
"""The constants of which a file is taken, the variable that names its version, and the repository
that is made of it."""
TARS = {name: f"USE_{name}_TAR_ARCHIVE_FILES" for name in ("CUDA", "NVSHMEM", "LLVM")}
"""What lets rules take archives that are not compressed, where the tree lists any for the version.
Any value but an empty one counts."""
PLATFORMS = {
    ("Linux", "x86_64"): ("linux-x86_64", "x86_64-unknown-linux-gnu"),
    ("Linux", "aarch64"): ("linux-sbsa", "aarch64-unknown-linux-gnu"),
    ("Darwin", "x86_64"): ("x86_64-apple-darwin",),
    ("Darwin", "arm64"): ("aarch64-apple-darwin",),
}
"""A system and its machine, as NVIDIA's lists and as the dictionaries name them."""
PYTHON_URL = "HERMETIC_PYTHON_URL"
"""Names another interpreter; HERMETIC_PYTHON_SHA256 is then its checksum."""
FORMS = {"build": "install_only", "ext": "tar.gz"}
"""What completes an address of python-build-standalone, with version and platform."""
BY_VERSION = "dictionary"
"""Stands for the rule of a file that was chosen by its version. What the repository is called that
downloads it, the trees decide: its name here is ours."""
DEEPEST = 4
"""Levels of dictionaries in one another that are read."""
_VERSION = r"\d+(\.\d+)*"
_PIN = re.compile(
    r"^[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==[\w.!+-]+([ \t]*;((?!\s-)[^\n\\#])*)?"
    r"([\s\\]*--hash=sha256:[0-9a-f]{64})*",
    re.MULTILINE | re.ASCII,
)
"""A package at a version, for which systems, and the checksums of its files; pip reads nothing else
of such a file, neither options nor urls."""


@dataclass(frozen=True)
class Environment:
    """What decides which of the listed files a build takes."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """By name. A dictionary whose variable is not in it is not used."""
    local: frozenset[str] = frozenset()
    """Those whose files this host provides, so that they are not downloaded."""
    platform: tuple[str, str] = ("Linux", "x86_64")
    """The system and the machine, as `PLATFORMS` has them."""
    flags: tuple[str, ...] = ()
    """Of the build: they say whether Bazel reads WORKSPACE or MODULE.bazel."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Those of ./configure about some of the variables."""
    idle: tuple[str, ...] = ()
    """Ends of the files whose rules download nothing, since the build is for other GPUs."""
    tars: frozenset[str] = frozenset()
    """Those of `TARS` that are set."""

    @property
    def cuda(self) -> str:
        """The first number of CUDA's version; empty where there is none."""
        return self.variables.get("HERMETIC_CUDA_VERSION", "").partition(".")[0]

    def of_tree(self, bazelrc: str) -> Self:
        """Return the same with what the configurations of a tree's .bazelrc say as well."""
        # What ./configure writes comes behind the lines of the tree, and before the command line.
        written = [
            f'build:cuda --repo_env={name}="{answer}"' for name, answer in self.answers.items()
        ]
        flags = flags_in_force("\n".join([bazelrc, *written, "build --config=cuda"]), self.flags)
        pairs = (re.fullmatch(r"--repo_env=(\w+)=(.*)", flag) for flag in flags)
        found = {pair[1]: pair[2] for pair in pairs if pair}
        variables = {name: found.get(name) or value for name, value in self.variables.items()}
        tars = (name for name in TARS.values() if found.get(name, name in self.tars))
        return replace(self, variables=variables, tars=frozenset(tars))


def listed_files(path: str, body: Sequence[ast.stmt]) -> Iterator[Listed | Component]:
    """Yield the files that the constants of a module list, and the repositories of components."""
    base = ""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                # What is not written out as a whole is no such dictionary.
                with suppress(ValueError, TypeError, RecursionError, MemoryError):
                    match ast.literal_eval(value):
                        case str(text) if name.endswith("_BASE_URL"):
                            base = f"{text}/"
                        case dict(entries):
                            place = Listed(name, path, statement.lineno)
                            yield from _entries_in(place, entries, base, DEEPEST)


def hermetic_of_commit(
    known: Hermetic, bazelrc: str, texts: Mapping[str, str], source: str
) -> Hermetic:
    """Return what is known of a release with the versions that a commit itself chooses and lists.

    `texts` are the files of `tree_files.CUDA_LISTS`, as far as they could be read, of `source`.
    """
    cuda, cudnn, nvshmem, _ = Environment(known.variables).of_tree(bazelrc).variables.values()
    known = replace(known, cuda=cuda, cudnn=cudnn, nvshmem=nvshmem)
    tree = parse_python("\n".join(texts.values()))
    entries = (
        [one for one in listed_files("", tree.body) if isinstance(one, Listed)] if tree else []
    )
    cudas, cudnns, nvshmems = (
        tuple(
            dict.fromkeys(one.version for one in entries if one.table == f"{name}_REDIST_JSON_DICT")
        )
        for name in ("CUDA", "CUDNN", "NVSHMEM")
    )
    if not (cudas and cudnns):
        return known
    return replace(known, cudas=cudas, cudnns=cudnns, nvshmems=nvshmems, source=source)


def pip_packages(texts: Mapping[str, str]) -> Iterator[Listed]:
    """Yield the packages that pip is to install for a build, for each Python.

    The url of each is the pin as pip reads it: with its marker and its checksums, on one line.
    """
    for path in sorted(texts):
        if found := REQUIREMENTS.fullmatch(path):
            number, before = 1, 0
            for pin in _PIN.finditer(texts[path]):
                number += texts[path].count("\n", before, pin.start())
                before = pin.start()
                whole = " ".join(pin[0].replace("\\", " ").split())
                version = f"{found[1]}.{found[2]}"
                yield Listed(REQUIREMENTS.pattern, path, number, version, url=whole)


def pip_pins(found: Rules, environment: Environment) -> list[str]:
    """Return the packages that pip installs for the Python in force, as pip reads them."""
    python = environment.variables.get("HERMETIC_PYTHON_VERSION")
    listed = (entry for entry in found.listed if entry.table == REQUIREMENTS.pattern)
    return [entry.url for entry in listed if entry.version == python]


def _entries_in(
    place: Listed, value: object, base: str, depth: int
) -> Iterator[Listed | Component]:
    match value:
        case [str(url), str(sha256)] if "://" in url:
            yield replace(place, url=url, sha256=sha256)
        case {"url": str(url), "sha256": str(sha256)}:
            yield replace(place, url=url, sha256=sha256)
        case {"url": str(url), "sha256": dict(digests)}:
            for platform, sha256 in digests.items():
                keys = {"python_version": place.version, "platform": str(platform), **FORMS}
                whole = re.sub(r"\{(\w+)\}", lambda key: keys.get(key[1], ""), url)  # noqa: B023
                whole = whole if "://" in whole else base + whole
                yield replace(place, platform=str(platform), url=whole, sha256=str(sha256))
        case {"repo_name": str(repository)} if re.fullmatch(NAME, repository):
            yield Component(place.version, repository)
        case dict() if depth:
            for key, inner in value.items():
                if any(key in names for names in PLATFORMS.values()):
                    inner_place = replace(place, platform=key)
                else:
                    inner_place = replace(place, version=place.version or str(key))
                yield from _entries_in(inner_place, inner, base, depth - 1)


def with_chosen_files(
    found: Rules, environment: Environment, text_of: Callable[[str], bytes | None]
) -> Rules:
    """Add the files that an environment chooses of those that are listed, and what they list.

    `text_of` returns the content of a file by its sha256, None if it is not here.
    """
    added = Rules(tuple(modules.registry_archives(found, text_of)), ())
    lists = dict.fromkeys((entry.table, entry.version) for entry in found.listed)
    for table in dict.fromkeys(table for table, _ in lists):
        for pattern, variable, name in TABLES:
            match = re.fullmatch(pattern, table)
            if not match or variable not in environment.variables.keys() - environment.local:
                continue
            if match.groupdict().get("major", environment.cuda) != environment.cuda:
                continue
            tars = f"MIRRORED_TARS_{table}"
            wanted = TARS.get(table.partition("_")[0], TARS["CUDA"]) in environment.tars
            listed = wanted and (tars, environment.variables[variable]) in lists
            chosen = tars if listed else table
            added += _chosen_file(name, chosen, variable, environment, found, text_of)
    if url := environment.variables.get(PYTHON_URL):
        with suppress(UnknownError):
            sha256 = digest_of(environment.variables.get("HERMETIC_PYTHON_SHA256"))
            own = Repository("python", PYTHON_URL, "WORKSPACE", 1, urls_of(url), sha256)
            added += Rules((own,), ())
    return found + added


def _chosen_file(  # noqa: PLR0913, PLR0917 each is a fact of its own
    name: str,
    table: str,
    variable: str,
    environment: Environment,
    found: Rules,
    text_of: Callable[[str], bytes | None],
) -> Rules:
    """Return the file of one dictionary that a version names, and what it lists."""
    version = environment.variables[variable]
    platforms = PLATFORMS.get(environment.platform, ())
    entries = [entry for entry in found.listed if entry.table == table]
    here = [entry for entry in entries if not entry.platform or entry.platform in platforms]
    entry = next((entry for entry in here if entry.version in {"", version}), None)
    if entry is None:
        # Of Python two numbers are named, and the newest patch level is taken.
        patches = [one for one in here if one.version.startswith(f"{version}.")] if version else []
        numbers = [one for one in patches if re.fullmatch(_VERSION, one.version)]
        newest = max(numbers, key=lambda one: [*map(int, one.version.split("."))], default=None)
        entry = newest if variable == "HERMETIC_PYTHON_VERSION" else None
    if entry is None:
        why = f"{table} lists no {version or 'version'} for {'-'.join(environment.platform)}"
        return Rules((), (Unreadable(entries[0].file, entries[0].line, f"{why} ({variable})"),))
    try:
        urls, sha256 = urls_of(entry.url), digest_of(entry.sha256)
    except UnknownError as fault:
        return Rules((), (Unreadable(entry.file, entry.line, str(fault)),))
    if entry.platform and name == "python":
        name = f"python_{entry.platform}"
    file = Repository(name, BY_VERSION, entry.file, entry.line, urls, sha256, by_url=True)
    if not table.endswith("_JSON_DICT"):
        return Rules((file,), ())
    text = text_of(sha256)
    if text is None:
        why = f"is to list the files of {variable} {version}, and {urls[0]} is not here"
        return Rules((file,), (Unreadable(entry.file, entry.line, why),))
    names = {component.name: component.repository for component in found.components}
    keys = (*platforms, f"cuda{environment.cuda}")
    return Rules((file, *_listed_archives(file, text, names, keys)), ())


def _listed_archives(
    file: Repository, text: bytes, names: Mapping[str, str], keys: Sequence[str]
) -> Iterator[Repository]:
    """Yield the archives that a JSON file of NVIDIA's lists for a platform."""
    base = file.urls[0].rpartition("/")[0]
    for part, component in modules.json_object(text).items():
        # cuDNN has an archive for each CUDA: {"linux-x86_64": {"cuda12": {…}}}.
        entry = _platform_entry(_platform_entry(component, keys), keys)
        match entry:
            case {"relative_path": str(path), "sha256": str(sha256)} if part in names:
                # A path that leads out of the folder is not one of NVIDIA's.
                if normpath(path) == path and not path.startswith(("/", "..")):
                    with suppress(UnknownError):
                        urls, digest = urls_of(f"{base}/{path}"), digest_of(sha256)
                        yield replace(file, name=names[part], rule="list", urls=urls, sha256=digest)


def _platform_entry(entry: object, keys: Sequence[str]) -> object:
    """Return the part of an entry that is for a platform, or for a CUDA."""
    if isinstance(entry, dict) and "relative_path" not in entry:
        return next((entry[key] for key in keys if key in entry), None)
    return entry
