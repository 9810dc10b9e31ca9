"""`invoke bundle --unpack`: what of a bundle is believed, and where its files go.

A bundle may come from a stranger. Archives, commits, layers and parts of toolkits are named by
their content. Bazel and the packages of Python are named by a version, and run during builds: the
checksums of the recipe and its lock decide about them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version

from tfwright.documents import recipe as recipes
from tfwright.documents.names import EXACT_PIN
from tfwright.documents.recipe import PATCHES, RECIPES, Recipe
from tfwright.documents.toml import load
from tfwright.errors import RecipeError, SupplyError, ToolError
from tfwright.pipeline.job import Places
from tfwright.printable import first_of
from tfwright.progress import Listener
from tfwright.toolkit import sources
from tfwright.tools import files
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import clones, demo, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.python import packages
from tfwright.vault import bundle, lock, locking
from tfwright.vault.bundle import SOURCE, BundleMember, Kind, Manifest, Unpacked, remaking_remedy
from tfwright.vault.lock import Lock
from tfwright.vault.store import Store


def unpack(file: Path, build_out: Path, listener: Listener) -> Manifest:
    """Verify a bundle and put everything in it where an offline build finds it.

    Returns what was in the bundle. Nothing is put anywhere before all of it is verified. Raises
    SupplyError naming the member that is at fault, RecipeError if a document of the bundle would
    replace a different one.
    """
    manifest = bundle.read(file)
    # Next to its destination, so that files are renamed and not copied.
    with bundle.unpacking_folder(build_out, file.name) as scratch:
        placed = bundle.unpack(file, manifest, scratch, listener.progress)
        _install(manifest, placed, build_out, listener)
    return manifest


def _install(manifest: Manifest, unpacked: Unpacked, build_out: Path, listener: Listener) -> None:
    """Put verified files where they belong; the documents, which make a recipe of it, come last."""
    name = manifest.recipe
    recipes_in_it, locks_in_it = (
        [path for member, path in unpacked.items() if member.kind == kind]
        for kind in ("recipe", "lock")
    )
    if len(recipes_in_it) != 1 or len(locks_in_it) > 1:
        raise SupplyError(
            f"The bundle has {len(recipes_in_it)} recipes and {len(locks_in_it)} lock files; it "
            "must have one recipe, and may have one lock file",
            remedy=remaking_remedy(name),
        )
    (path,) = recipes_in_it
    # As critically as any other: the manifest only names the recipe, and what is built follows from
    # the document.
    with _naming_member("recipe", unpacked):
        recipe = load(path, Recipe, extra={"name": name})
    # Without one in the bundle that of the checkout, which builds would obey.
    lock_file = next(iter(locks_in_it), RECIPES / f"{name}.lock")
    with _naming_member("lock", unpacked):
        locked = lock.read(lock_file) if lock_file.is_file() else None
    believed = check_members(recipe, locked, manifest)
    arrival = Arrival(manifest, recipe, unpacked, Places(build_out, name), listener)
    place = RECIPES / f"{name}.toml"
    documents = {} if _is_same_recipe(place, recipe) else {path: place}
    documents |= dict.fromkeys(locks_in_it, RECIPES / f"{name}.lock")
    documents |= {path: PATCHES / member.name for member, path in arrival.files_of("patch").items()}
    added = {
        path: build_out / "added" / member.name
        for member, path in arrival.files_of("added").items()
    }
    # Insist that nothing else is in the place of a document: another text, or a directory.
    others = []
    for source, target in (documents | added).items():
        there = target.is_symlink() or target.exists()
        if there and not (target.is_file() and files.sha256(target) == files.sha256(source)):
            others.append(str(target))
    if others:
        # A checkout may hold edits that no commit has, so nothing of it is overwritten.
        raise RecipeError(
            f"The bundle has another {first_of(others)} than this host",
            remedy="Use the checkout that the bundle was made with, or move these files away.",
            lines=others,
        )
    arrival.place_inputs(arrival.places.bundled)
    for source, target in added.items():
        # Not executable, whatever the bundle says: nothing starts these files unasked.
        files.move(source, target, 0o644)
    # Before the documents: with them the recipe can be built, so they come last.
    files.write(arrival.places.own / "bundle.json", manifest.encode())
    for source, target in documents.items():
        files.write(target, source.read_bytes())
    if believed:
        listener.note(
            f"Only builds of {recipe.name} use what neither it nor a lock pins by checksum: "
            f"{', '.join(member.name for member in believed)}. Compare the manifest's sha256 with "
            "the one that 'invoke bundle' printed"
        )


def _is_same_recipe(path: Path, recipe: Recipe) -> bool:
    """Say whether a recipe in its place is that of the bundle, which is in one file."""
    try:
        return path.is_file() and recipes.read(str(path)).model_dump() == recipe.model_dump()
    except RecipeError:
        return False


@contextmanager
def _naming_member(kind: Kind, unpacked: Unpacked) -> Iterator[None]:
    """Name a document by its member, since its file in the scratch directory does not last."""
    try:
        yield
    except RecipeError as fault:
        # Of each kind there is one. Without a lock in the bundle, the one of the checkout is read.
        for member, path in unpacked.items():
            if member.kind == kind:
                raise RecipeError(
                    f"In the bundle, {fault.what.replace(str(path), member.path)}",
                    remedy="Correct it where the bundle was made, and make the bundle again.",
                ) from fault
        raise


@dataclass(frozen=True)
class Arrival:
    """The verified files of a recipe's bundle, on their way to their places."""

    manifest: Manifest
    recipe: Recipe
    members: Unpacked
    places: Places
    listener: Listener

    def files_of(self, kind: Kind) -> dict[BundleMember, Path]:
        """Return the files of one kind."""
        return {member: path for member, path in self.members.items() if member.kind == kind}

    def place_inputs(self, store: Path) -> None:
        """Put inputs where an offline build looks for them; what is not there is left out.

        Bazel and the packages of Python go to `store`. tfwright's own packages stay in the bundle:
        the first command takes them from there. Raises SupplyError for half a commit.
        """
        self._verify_commits()
        # What has a digest for a name.
        vault, pinned = self.places.vault, self.recipe.host.image
        archives, toolkits = Store(self.places.archives), sources.store(vault)
        for kind, kept in (("archive", archives), ("toolkit", toolkits)):
            for member, path in self.members.items():
                if member.kind == kind:
                    files.move(path, kept.path(member.sha256))
        blobs = {member.sha256: path for member, path in self.files_of("image").items()}
        if pinned and blobs:
            # Layers of another image are left out.
            image.import_blobs(blobs, pinned.digest, vault)
        manifest = self.manifest
        for path in self.files_of("bazel").values():
            binary.add_to_store(path, manifest.bazel, manifest.platform, store, "a bundle")
        package_files = self.files_of("package").items()
        packages.store_files(
            {path: (member.name, member.sha256) for member, path in package_files}, store
        )
        # Where a build makes Bazel's git look for the commits that rules clone.
        packed = {member.name: path for member, path in self.files_of("clone").items()}
        for carried in manifest.clones:
            if commit := packed.get(carried.commit):
                clones.read_bundle(Clone(carried.remote, carried.commit), commit, self.places.git)
        source = self.recipe.source
        # By its url: a build looks for the mirror of the repository that the recipe names.
        repository = mirror.path_of(self.places.git, source.url)
        for path in self.files_of("source").values():
            mirror.read_bundle(path, repository, source.commit)
        # Offline, and past the host file's mirrors: a bundle must hold all that a build needs.
        origin = Origin.of(source.url)
        mirror.fetch(Pin.of(source), self.places.git, origin, self.listener, offline=True)

    def _verify_commits(self) -> None:
        """Insist that git can read each member which holds a commit, and finds all of it.

        Mirrors are shared by all recipes, so half a commit must not get into one.
        """
        # git reads its bundles in a repository of the scratch directory before anything has its
        # place.
        scratch = self.places.build_out / bundle.UNPACKING / "verified.git"
        for member, path in (self.files_of("clone") | self.files_of("source")).items():
            cloned = member.kind == "clone"
            commit = member.name if cloned else self.recipe.source.commit
            pin = None if cloned else Pin.of(self.recipe.source)
            try:
                mirror.verify_bundle(path, commit, scratch, pin)
            except ToolError as fault:
                raise SupplyError(
                    f"{member.path} of the bundle does not hold all of the commit that it is for",
                    remedy=f"Copy the bundle again. {remaking_remedy(self.recipe.name)}",
                    evidence=fault.evidence,
                ) from fault
            # One after the other, so that none completes another, or takes its space.
            finally:
                files.remove(scratch)


def check_members(
    recipe: Recipe, locked: Lock | None, manifest: Manifest
) -> tuple[BundleMember, ...]:
    """Return the members that run during builds, and whose bytes neither recipe nor lock decides.

    Raises SupplyError for a file that the recipe does not ask for, and for other bytes than the
    recipe or the lock pins.
    """
    wanted = {f"patch/{name}" for name in recipe.source.named_files}
    wanted |= {f"clone/{clone.commit}" for clone in manifest.clones}
    # Every tfwright has the trees that it ships.
    if recipe.source.url not in demo.bundled_trees():
        wanted.add(f"source/{SOURCE}")
    kinds = {"patch", "clone", "source"}
    carried = {member.path for member in manifest.members if member.kind in kinds}
    # An unknown file would lie under patches/ until some other recipe applies it.
    if unknown := sorted(carried - wanted):
        raise _unknown_member(unknown[0], unknown)
    if lacking := sorted(wanted - carried):
        raise SupplyError(
            f"The bundle lacks {lacking[0]}, which its recipe names",
            remedy=remaking_remedy(manifest.recipe),
            lines=lacking,
        )
    return (
        *_unpinned_bazels(recipe, locked, manifest),
        *_unpinned_packages(recipe, locked, manifest),
    )


def _unpinned_bazels(
    recipe: Recipe, locked: Lock | None, manifest: Manifest
) -> Iterator[BundleMember]:
    """Yield a Bazel that no checksum holds."""
    members = manifest.members_of("bazel")
    # One, and of the version that the recipe asks for: the manifest is only a claim.
    if len(members) > 1 or manifest.bazel != recipe.bazel.version:
        found = f"{len(members)} times Bazel {manifest.bazel}"
        raise SupplyError(
            f"The bundle has {found}; its recipe wants one {recipe.bazel.version}",
            remedy=remaking_remedy(manifest.recipe),
        )
    pins = locking.bazel_checksums(recipe.bazel, locked)
    pin = pins.get(manifest.platform)
    for member in members:
        if pin is None:
            yield member
        elif member.sha256 != pin:
            raise _wrong_checksum(member, [pin])


def _unpinned_packages(
    recipe: Recipe, locked: Lock | None, manifest: Manifest
) -> Iterator[BundleMember]:
    """Yield the packages that no checksum holds."""
    verify = recipe.verify
    building = locking.with_hashes(recipe.host.requirements, locked)
    pins = _package_checksums((*building, *verify.requirements, *verify.plugins))
    for entry in locked.packages if locked else ():
        release = canonicalize_name(entry.name), canonicalize_version(entry.version)
        pins.setdefault(release, [*entry.hashes])
    for member in manifest.members_of("package"):
        digests = pins.get(packages.release_of_file(member.name))
        if digests is None:
            raise _unknown_member(member.path, [member.path])
        if not digests:
            yield member
        elif member.sha256 not in digests:
            raise _wrong_checksum(member, digests)


def _package_checksums(requirements: Sequence[str]) -> dict[tuple[str, str], list[str]]:
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


def _unknown_member(path: str, lines: Sequence[str]) -> SupplyError:
    return SupplyError(
        f"The bundle has {path}, which its recipe does not name",
        remedy="Do not use this bundle: tfwright puts no such file into one.",
        lines=lines,
    )


def _wrong_checksum(member: BundleMember, pins: Sequence[str]) -> SupplyError:
    return SupplyError(
        f"{member.path} of the bundle is not the file that its recipe or lock pins: sha256 "
        f"{member.sha256}, wanted {' or '.join(pins)}",
        remedy="Do not use this bundle: tfwright puts only what is pinned into one.",
    )
