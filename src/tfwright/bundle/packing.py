"""`invoke bundle`: what of a recipe's inputs goes into one file, and where it goes from there."""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tfwright import __version__
from tfwright.bundle import admission
from tfwright.documents.recipe import PATCHES, RECIPES, ROOT, Recipe
from tfwright.documents.toml import load
from tfwright.documents.toolkit import PartTable
from tfwright.errors import Evidence, HostError, RecipeError, SupplyError, ToolError
from tfwright.host import cuda
from tfwright.lock import reached
from tfwright.pipeline import containers
from tfwright.pipeline.job import BuildRequest, Places
from tfwright.pipeline.results import Inputs
from tfwright.printable import first_of
from tfwright.progress import Listener
from tfwright.toolkit import sources
from tfwright.tools import files
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import clones, demo, git_bundle, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin, Pin
from tfwright.tools.python import packages
from tfwright.vault import bundle, lock, locking
from tfwright.vault.bundle import Absent, BundleMember, Carried, Content, Manifest, Unpacked
from tfwright.vault.lock import Lock
from tfwright.vault.store import Store

TELLING = {
    "CUDA": ("version.txt", "version.json", "lib64/libcudart.so", "lib/libcudart.dylib"),
    "cuDNN": (
        "include/cudnn.h",
        "include/cudnn_version.h",
        "lib64/libcudnn.so",
        "lib/libcudnn.dylib",
    ),
}
"""Files that differ between versions, by their path below the directory of the installation."""


def pack(
    job: BuildRequest,
    document: Path,
    to: Path,
    added: Sequence[Path],
    *,
    with_toolkit: bool = False,
) -> Manifest:
    """Write the bundle of the recipe in the file `document`.

    What is not on this host yet is fetched first. `added` are files of the user's own choice.
    `with_toolkit` says that the user may pass on the packages that the recipe pins for its
    toolkit: licences forbid it in general.
    Returns what is in the bundle. Raises SupplyError for what cannot be obtained, RecipeError for
    what cannot be the bundle or a part of it.
    """
    # Before anything is fetched, which may take hours.
    _insist_on_files(to, added)
    inputs = fetched(job)
    # On the disk of the build: the packages of TensorFlow can be larger than /tmp.
    with tempfile.TemporaryDirectory(dir=job.places.own, prefix="bundle-") as room:
        found = [
            *_documents(job, document),
            *contents(job, inputs, Path(room), with_toolkit=with_toolkit),
            *(Content.of("tool", path) for path in own(job, Path(room, "tool"))),
            *(Content.of("added", path) for path in added),
        ]
        # What both the build and the test of the wheel need was brought twice.
        # Sorted, so that the same inputs give the same bundle.
        found.sort(key=lambda content: content.member.path)
        sources = {content.member: content.source for content in found}
        members = tuple(sources)
        # Packages of the toolkit are in it only when the user asked for them.
        absent = () if _has_toolkit(members) else tuple(_absent(job))
        manifest = manifest_of(job, inputs, members, absent)
        bundle.write(to, manifest, sources, job.listener.progress)
    return manifest


def _insist_on_files(to: Path, added: Sequence[Path]) -> None:
    if to.is_dir():
        raise RecipeError(
            f"--output {to} is a directory",
            remedy=f"Name the file to write: --output {to / 'NAME'}.",
        )
    for path in added:
        _insist_on_readable(path)
    _insist_on_names(added)


def _insist_on_readable(path: Path) -> None:
    if not (path.is_file() and os.access(path, os.R_OK)):
        raise RecipeError(
            f"--add {path} is not a file that can be read",
            remedy="Name a file; a directory goes in as an archive.",
        )


def _insist_on_names(added: Sequence[Path]) -> None:
    names = Counter(path.name for path in added)
    for name, count in names.items():
        # They lie side by side where the bundle is unpacked.
        if count > 1:
            raise RecipeError(
                f"--add names {count} files called {name}", remedy="Rename all but one of them."
            )


def fetched(job: BuildRequest) -> Inputs:
    """Bring to this host what is not here yet of a recipe's inputs; return them.

    Raises SupplyError for what cannot be obtained.
    """
    # The pipeline has one command for a recipe at a time.
    return reached.inputs(job, wait=True)


def manifest_of(
    job: BuildRequest,
    inputs: Inputs,
    members: tuple[BundleMember, ...],
    absent: tuple[Absent, ...] = (),
) -> Manifest:
    """Return the manifest that describes members of a recipe's bundle."""
    carried = [Carried(remote=cloned.remote, commit=cloned.commit) for cloned in inputs.clones]
    return Manifest(
        tfwright=__version__,
        recipe=job.recipe.name,
        # Bazel's binary and tfwright's own packages run on this platform only.
        platform=binary.here(),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        bazel=job.recipe.bazel.version,
        members=members,
        clones=tuple(carried),
        absent=absent,
    )


def _has_toolkit(members: tuple[BundleMember, ...]) -> bool:
    return any(member.kind == "toolkit" for member in members)


def _documents(job: BuildRequest, document: Path) -> Iterator[Content]:
    """Yield what is text: the recipe, its lock, patches and assets."""
    source = job.recipe.source
    yield Content.of("recipe", document)
    if job.locked:
        yield Content.of("lock", job.locked)
    # A set: recipes may name one file twice.
    for file in sorted(set(source.named_files)):
        yield Content.of("patch", source.file(file), file)


def contents(
    job: BuildRequest, inputs: Inputs, room: Path, *, with_toolkit: bool
) -> Iterator[Content]:
    """Yield what was fetched, except a tree that tfwright ships: every tfwright has it.

    Files that have to be made for it are put into `room`. Raises HostError if Bazel and packages
    are those of another system.
    """
    if inputs.programs is None:
        system = job.recipe.host.system
        raise HostError(
            f"Only a host with {system} has the Bazel and the packages of {job.name}",
            remedy=f"Run the command on {system}.",
        )
    if job.recipe.source.url not in demo.trees():
        source = room / bundle.SOURCE
        git_bundle.pack(inputs.mirror, inputs.commit, source)
        yield Content.of("source", source)
    yield Content.of("bazel", inputs.bazel.path, sha256=inputs.bazel.sha256)
    # Their digest is known from fetch, so gigabytes are not read a second time.
    for archive in inputs.archives:
        yield Content.of("archive", archive.path, archive.sha256, archive.sha256)
    yield from _clones(inputs, room)
    for path in _packages(job, inputs.python):
        yield Content.of("package", path)
    if job.recipe.host.image:
        for blob in image.kept(job.places.vault, job.recipe.host.image.digest).blobs():
            yield Content.of("image", blob, blob.name, blob.name)
    if with_toolkit:
        yield from _toolkit(job)


def _clones(inputs: Inputs, room: Path) -> Iterator[Content]:
    """Yield the commits that rules clone, each packed into a file of git's own form."""
    for copied in inputs.clones:
        packed = room / copied.commit
        git_bundle.pack(copied.repository, copied.commit, packed, history=True)
        yield Content.of("clone", packed)


def _packages(job: BuildRequest, python: Path) -> list[Path]:
    """Bring what the build and the trial of the wheel install into the target Python."""
    locked = lock.read(job.locked) if job.locked else None
    verify = job.recipe.verify
    built = locking.pinned(job.recipe.host.requirements, locked)
    # The test's packages as well, or an offline build could not verify its wheel.
    tried = [*verify.requirements, *verify.plugins]
    # The target Python may be that of an image, and then runs only there.
    with containers.around(job, "fetch"):
        found = _pinned(job, python, built, "build")
        return [*found, *_pinned(job, python, tried, "verify")]


def _pinned(job: BuildRequest, python: Path, pins: Sequence[str], what: str) -> list[Path]:
    """Return the files of packages of the target Python, which are in the vault from then on."""
    if not pins:
        return []
    found = packages.supply(
        python, pins, job.places.stores, job.log(f"bundle-{what}"), offline_only=job.offline
    )
    _note_sources(job.listener, found)
    return found


def _note_sources(listener: Listener, files: Sequence[Path]) -> None:
    """Say which packages are not built yet."""
    for path in files:
        # Old packages are on the index as sources only, so this cannot be an error.
        if path.suffix != ".whl":
            listener.note(
                f"{path.name} is not a wheel: pip builds it where it installs it, with what the "
                "recipe pins"
            )


def own(job: BuildRequest, folder: Path) -> list[Path]:
    """Bring the packages that tfwright needs itself, for the Python that runs it."""
    folder.mkdir()
    return packages.bring(
        Path(sys.executable),
        # No source distributions: an offline host could not build them.
        ("--require-hashes", "--only-binary=:all:", "-r", str(ROOT / "requirements.txt")),
        folder,
        job.log("bundle-tool"),
    )


def _toolkit(job: BuildRequest) -> Iterator[Content]:
    """Yield the packages of the toolkit, as `invoke toolkit` keeps them.

    Raises SupplyError if they are not on this host yet.
    """
    store = sources.store(job.places.vault)
    for part, table in job.recipe.toolkit.parts():
        pins = _complete(table, store)
        if pins is None:
            raise SupplyError(
                f"The packages of {part} are not on this host",
                remedy=f"Run 'invoke toolkit --recipe {job.recipe.argument}' first.",
            )
        for pin in pins.values():
            yield Content.of("toolkit", store.path(pin), pin, pin)


def _complete(table: PartTable, store: Store) -> Mapping[str, str] | None:
    """Return the packages of the first way that a store has all of; one way is enough."""
    for _, pins in table.ways():
        if all(map(store.holds, pins.values())):
            return pins
    return None


def _absent(job: BuildRequest) -> Iterator[Absent]:
    """Yield what the user has to install where the bundle goes, by the digests that it has here."""
    if not cuda.needed(job.recipe):
        return
    for part, table in job.recipe.toolkit.parts():
        for way, pins in table.ways():
            names = {name.rpartition("/")[2]: pin for name, pin in pins.items()}
            yield Absent(name=f"{part}: {way}", files=names)
    # A recipe without packages uses what is installed,
    # which only its files can identify.
    if not any(job.recipe.toolkit.parts()):
        yield from _absent_installations(job)


def _absent_installations(job: BuildRequest) -> Iterator[Absent]:
    host = job.recipe.host
    roots = {
        "CUDA": (host.cuda, cuda.toolkit(job.recipe, job.host_file)),
        "cuDNN": (host.cudnn, cuda.cudnn(job.recipe, job.host_file)),
    }
    for name, (version, root) in roots.items():
        there = [path for path in TELLING[name] if (root / path).is_file()]
        present = {path: files.sha256(root / path) for path in there}
        yield Absent(name=f"{name} {version}" if version else name, files=present)


def unpack(file: Path, build_out: Path, listener: Listener) -> Manifest:
    """Verify a bundle and put everything in it where an offline build finds it.

    Returns what was in the bundle. Nothing is put anywhere before all of it is verified. Raises
    SupplyError naming the member that is at fault, RecipeError if a document of the bundle would
    replace a different one.
    """
    manifest = bundle.read(file)
    build_out.mkdir(parents=True, exist_ok=True)
    # Next to its destination, so that files are renamed and not copied.
    with bundle.unpacking_room(build_out, file.name) as room:
        placed = bundle.unpack(file, manifest, room, listener.progress)
        _place(manifest, placed, build_out, listener)
    return manifest


def _place(manifest: Manifest, unpacked: Unpacked, build_out: Path, listener: Listener) -> None:
    """Put verified files where they belong; the documents, which make a recipe of it, come last."""
    recipe = _recipe(manifest, unpacked)
    locked = _lock(manifest, unpacked)
    believed = admission.insist(recipe, locked, manifest)
    places = Places(build_out, recipe.name)
    documents = _places_of_documents(manifest, unpacked)
    added = _places_of_added(unpacked, places)
    _refuse_to_replace(documents | added)
    place_inputs(manifest, recipe, unpacked, places, listener, store=places.bundled)
    for source, target in added.items():
        # Not executable, whatever the bundle says: nothing starts these files unasked.
        files.move(source, target, 0o644)
    # Before the documents: with them the recipe can be built, so they come last.
    files.write(places.own / "bundle.json", manifest.encoded())
    for source, target in documents.items():
        files.write(target, source.read_bytes())
    _report_believed(believed, recipe, listener)


def place_inputs(  # noqa: PLR0913 each is a fact of its own
    manifest: Manifest,
    recipe: Recipe,
    unpacked: Unpacked,
    places: Places,
    listener: Listener,
    *,
    store: Path,
) -> None:
    """Put verified inputs where an offline build looks for them; what is not there is left out.

    Bazel and the packages of Python go to `store`. Raises SupplyError for half a commit.
    """
    # git reads its bundles in a repository of the scratch directory before anything has its place.
    scratch = places.build_out / bundle.UNPACKING / "verified.git"
    _verify_commits(recipe, unpacked, scratch)
    _place_shared(recipe, unpacked, places)
    _place_programs(manifest, unpacked, store)
    _place_clones(manifest, unpacked, places)
    _place_source(recipe, unpacked, places, listener)


def _report_believed(believed: Sequence[BundleMember], recipe: Recipe, listener: Listener) -> None:
    """Name the programs whose bytes only the bundle decided."""
    if believed:
        listener.note(
            f"Only builds of {recipe.name} use what neither it nor a lock pins by checksum: "
            f"{', '.join(member.name for member in believed)}. Compare the manifest's sha256 with "
            "the one that 'invoke bundle' printed"
        )


def _verify_commits(recipe: Recipe, unpacked: Unpacked, scratch: Path) -> None:
    """Insist that git can read each member which holds a commit, and finds all of it.

    Mirrors are shared by all recipes, so half a commit must not get into one.
    """
    for member, path in unpacked.items():
        # Other members are verified by their checksums alone.
        if member.kind not in {"clone", "source"}:
            continue
        try:
            complete = _has_its_commit(recipe, member, path, scratch)
        except ToolError as fault:
            raise _incomplete(recipe, member, fault.evidence) from fault
        # One after the other, so that none completes another, or takes its room.
        finally:
            files.remove(scratch)
        if not complete:
            raise _incomplete(recipe, member)


def _incomplete(
    recipe: Recipe, member: BundleMember, evidence: Evidence | None = None
) -> SupplyError:
    return SupplyError(
        f"{member.path} of the bundle does not hold all of the commit that it is for",
        remedy=f"Copy the bundle again. {bundle.remaking_remedy(recipe.name)}",
        evidence=evidence,
    )


def _has_its_commit(recipe: Recipe, member: BundleMember, path: Path, scratch: Path) -> bool:
    """Raise ToolError where git cannot read the member."""
    cloned = member.kind == "clone"
    commit = member.name if cloned else recipe.source.commit
    if not git_bundle.begins_with(path, commit):
        return False
    git_bundle.verify(path, commit, scratch, history=cloned)
    return cloned or mirror.is_complete(scratch, Pin.of(recipe.source))


def _of(kind: str, unpacked: Unpacked) -> dict[BundleMember, Path]:
    return {member: path for member, path in unpacked.items() if member.kind == kind}


def _recipe(manifest: Manifest, unpacked: Unpacked) -> Recipe:
    """Read the recipe as critically as any other."""
    # The manifest only names the recipe; what is built follows from the document.
    documents = list(_of("recipe", unpacked).values())
    if len(documents) != 1:
        raise SupplyError(
            f"The bundle has {len(documents)} recipes; it must have one",
            remedy=bundle.remaking_remedy(manifest.recipe),
        )
    with _naming_member("recipe", unpacked):
        return load(documents[0], Recipe, extra={"name": manifest.recipe})


@contextmanager
def _naming_member(kind: str, unpacked: Unpacked) -> Iterator[None]:
    """Name a document by its member, since its file in the scratch directory does not last."""
    try:
        yield
    except RecipeError as fault:
        # Of each kind there is one. Without a lock in the bundle, the one of the checkout is read.
        for member, path in _of(kind, unpacked).items():
            shown = fault.what.replace(str(path), member.path)
            raise RecipeError(
                f"In the bundle, {shown}",
                remedy="Correct it where the bundle was made, and make the bundle again.",
            ) from fault
        raise


def _lock(manifest: Manifest, unpacked: Unpacked) -> Lock | None:
    """Read the bundle's lock, or that of the checkout, which builds would obey."""
    documents = list(_of("lock", unpacked).values())
    if len(documents) > 1:
        raise SupplyError(
            f"The bundle has {len(documents)} locks; it may have one",
            remedy=bundle.remaking_remedy(manifest.recipe),
        )
    documents.append(RECIPES / f"{manifest.recipe}.lock")
    with _naming_member("lock", unpacked):
        return lock.read(documents[0]) if documents[0].is_file() else None


def _places_of_documents(manifest: Manifest, unpacked: Unpacked) -> dict[Path, Path]:
    """Return where each document belongs in the checkout."""
    places: dict[Path, Path] = {}
    for path in _of("recipe", unpacked).values():
        places[path] = RECIPES / f"{manifest.recipe}.toml"
    for path in _of("lock", unpacked).values():
        places[path] = RECIPES / f"{manifest.recipe}.lock"
    for member, path in _of("patch", unpacked).items():
        places[path] = PATCHES / member.name
    return places


def _places_of_added(unpacked: Unpacked, places: Places) -> dict[Path, Path]:
    """Return where each file that the user added goes."""
    return {
        path: places.build_out / "added" / member.name
        for member, path in _of("added", unpacked).items()
    }


def _refuse_to_replace(documents: Mapping[Path, Path]) -> None:
    others = [str(target) for source, target in documents.items() if _differs(target, source)]
    if others:
        # A checkout may hold edits that no commit has, so nothing of it is overwritten.
        raise RecipeError(
            f"The bundle has another {first_of(others)} than this host",
            remedy="Use the checkout that the bundle was made with, or move these files away.",
            evidence=Evidence(lines=others),
        )


def _differs(target: Path, source: Path) -> bool:
    """Tell whether something else is in the place of a document: another text, or a directory."""
    if target.is_file():
        return files.sha256(target) != files.sha256(source)
    return target.is_symlink() or target.exists()


def _place_shared(recipe: Recipe, unpacked: Unpacked, places: Places) -> None:
    """Put what has a digest for a name into the vault."""
    stores = {
        "archive": Store(places.vault / "repository_cache"),
        "toolkit": sources.store(places.vault),
    }
    for kind, store in stores.items():
        for member, path in _of(kind, unpacked).items():
            files.move(path, store.path(member.sha256))
    _place_image(recipe, unpacked, places)


def _place_programs(manifest: Manifest, unpacked: Unpacked, store: Path) -> None:
    """Put Bazel and the Python packages into a store.

    tfwright's own packages stay in the bundle: the first command takes them from there.
    """
    for path in _of("bazel", unpacked).values():
        binary.put(path, manifest.bazel, manifest.platform, store, "a bundle")
    _place_packages(unpacked, store)


def _place_packages(unpacked: Unpacked, store: Path) -> None:
    """Put the packages that pip installs into a store."""
    named = {
        path: (member.name, member.sha256) for member, path in _of("package", unpacked).items()
    }
    packages.keep(named, store)


def _place_image(recipe: Recipe, unpacked: Unpacked, places: Places) -> None:
    """Put the recipe's container image into the vault; layers of another one are left out."""
    blobs = {member.sha256: path for member, path in _of("image", unpacked).items()}
    if recipe.host.image and blobs:
        image.put(blobs, recipe.host.image.digest, places.vault)


def _place_clones(manifest: Manifest, unpacked: Unpacked, places: Places) -> None:
    """Put the commits that rules clone where a build makes Bazel's git look for them."""
    packed = {member.name: path for member, path in _of("clone", unpacked).items()}
    for carried in manifest.clones:
        if path := packed.get(carried.commit):
            clone = Clone(carried.remote, carried.commit)
            clones.unpack(clone, path, places.git)


def _place_source(recipe: Recipe, unpacked: Unpacked, places: Places, listener: Listener) -> None:
    """Bring the pinned commit into the mirror of its url, and see that all of it is there."""
    source = recipe.source
    # By its url: a build looks for the mirror of the repository that the recipe names.
    repository = mirror.place(places.git, source.url)
    for path in _of("source", unpacked).values():
        git_bundle.unpack(path, repository, source.commit)
    # Offline, and past the host file's mirrors: a bundle must hold all that a build needs.
    mirror.bring(Pin.of(source), places.git, Origin.of(source.url), listener, offline=True)
