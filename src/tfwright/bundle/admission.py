"""What of a bundle is believed: what its recipe asks for, by the checksums of recipe and lock.

A bundle may come from a stranger. Archives, commits, layers and parts of toolkits are named by
their content. Bazel and the packages of Python are named by a version, and run during builds.
"""

from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name, canonicalize_version

from tfwright.documents.names import EXACT_PIN
from tfwright.documents.recipe import Recipe
from tfwright.errors import Evidence, SupplyError
from tfwright.tools.git import demo
from tfwright.tools.python import packages
from tfwright.vault import locking
from tfwright.vault.bundle import SOURCE, BundleMember, Manifest, remaking_remedy
from tfwright.vault.lock import Lock


def insist(recipe: Recipe, locked: Lock | None, manifest: Manifest) -> tuple[BundleMember, ...]:
    """Return the members that run during builds, and whose bytes neither recipe nor lock decides.

    Raises SupplyError for a file that the recipe does not ask for, and for other bytes than the
    recipe or the lock pins.
    """
    _insist_on_patches(recipe, manifest)
    _insist_on_commits(recipe, manifest)
    return (
        *_believed_bazels(recipe, locked, manifest),
        *_believed_packages(recipe, locked, manifest),
    )


def _of(kind: str, manifest: Manifest) -> list[BundleMember]:
    return [member for member in manifest.members if member.kind == kind]


def _insist_on_patches(recipe: Recipe, manifest: Manifest) -> None:
    """Refuse a bundle whose patches and assets are not exactly those that its recipe names."""
    named = set(recipe.source.named_files)
    carried = {member.name for member in _of("patch", manifest)}
    # An unknown file would lie under patches/ until some other recipe applies it.
    if unknown := sorted(carried - named):
        raise _stranger(f"patch/{unknown[0]}", unknown)
    if lacking := sorted(named - carried):
        raise SupplyError(
            f"The bundle lacks patch/{lacking[0]}, which its recipe names",
            remedy=remaking_remedy(manifest.recipe),
            evidence=Evidence(lines=lacking),
        )


def _insist_on_commits(recipe: Recipe, manifest: Manifest) -> None:
    """Refuse a bundle whose commits are not exactly those of its recipe and its manifest."""
    # Every tfwright has the trees that it ships.
    bundled = recipe.source.url in demo.trees()
    wanted = {} if bundled else {f"source/{SOURCE}": recipe.source.url}
    wanted |= {f"clone/{clone.commit}": clone.remote for clone in manifest.clones}
    members = (*_of("clone", manifest), *_of("source", manifest))
    carried = {member.path for member in members}
    for path in sorted(wanted.keys() - carried):
        raise SupplyError(
            f"The bundle has no member {path}, of {wanted[path]}",
            remedy=remaking_remedy(manifest.recipe),
        )
    if unknown := sorted(carried - wanted.keys()):
        raise _stranger(unknown[0], unknown)


def _believed_bazels(
    recipe: Recipe, locked: Lock | None, manifest: Manifest
) -> Iterator[BundleMember]:
    """Yield a Bazel that no checksum holds."""
    members = _of("bazel", manifest)
    # One, and of the version that the recipe asks for: the manifest is only a claim.
    if len(members) > 1 or manifest.bazel != recipe.bazel.version:
        found = f"{len(members)} times Bazel {manifest.bazel}"
        raise SupplyError(
            f"The bundle has {found}; its recipe wants one {recipe.bazel.version}",
            remedy=remaking_remedy(manifest.recipe),
        )
    pins = locking.pinned_bazel(recipe.bazel, locked)
    pin = pins.get(manifest.platform)
    for member in members:
        if pin is None:
            yield member
        elif member.sha256 != pin:
            raise _other_bytes(member, [pin])


def _believed_packages(
    recipe: Recipe, locked: Lock | None, manifest: Manifest
) -> Iterator[BundleMember]:
    """Yield the packages that no checksum holds."""
    verify = recipe.verify
    building = locking.pinned(recipe.host.requirements, locked)
    pins = _pins((*building, *verify.requirements, *verify.plugins))
    for member in _of("package", manifest):
        digests = pins.get(packages.release(member.name))
        if digests is None:
            raise _stranger(member.path, [member.path])
        if not digests:
            yield member
        elif member.sha256 not in digests:
            raise _other_bytes(member, digests)


def _pins(requirements: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return the checksums of each project and version; none where any file will do."""
    pins: dict[tuple[str, str], list[str]] = {}
    # The recipe lets nothing but exact pins pass.
    for found in filter(None, map(EXACT_PIN.fullmatch, requirements)):
        release = (canonicalize_name(found["name"]), canonicalize_version(found["version"]))
        digests = found["hashes"].replace("--hash=sha256:", "").split()
        # The trial may install without a checksum what the build pins by one.
        known = pins.get(release)
        pins[release] = [] if known == [] or not digests else [*(known or ()), *digests]
    return pins


def _stranger(path: str, lines: Sequence[str]) -> SupplyError:
    return SupplyError(
        f"The bundle has {path}, which its recipe does not name",
        remedy="Do not use this bundle: tfwright puts no such file into one.",
        evidence=Evidence(lines=lines),
    )


def _other_bytes(member: BundleMember, pins: Sequence[str]) -> SupplyError:
    return SupplyError(
        f"{member.path} of the bundle is not the file that its recipe or lock pins: sha256 "
        f"{member.sha256}, wanted {' or '.join(pins)}",
        remedy="Do not use this bundle: tfwright puts only what is pinned into one.",
    )
