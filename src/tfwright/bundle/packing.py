"""`invoke bundle`: what of a recipe's inputs goes into one file."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfwright import __version__
from tfwright.documents import recipe as recipes
from tfwright.documents.filesystem import SHIPPED
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.host import cuda
from tfwright.lock import inputs as lock_inputs
from tfwright.pipeline import containers
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Inputs
from tfwright.printable import listed
from tfwright.toolkit import sources
from tfwright.tools import files
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import demo, mirror
from tfwright.tools.python import packages
from tfwright.vault import bundle, lock, locking
from tfwright.vault.bundle import Absent, BundledClone, BundleMember, Content, Manifest
from tfwright.vault.origins import SHOWN

VERSION_FILES = {
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
    job: RecipeJob, document: Path, to: Path, added: Sequence[Path], *, with_toolkit: bool = False
) -> Manifest:
    """Write the bundle of the recipe in the file `document`.

    What is not on this host yet is fetched first. `added` are files of the user's own choice.
    `with_toolkit` says that the user may pass on the packages that the recipe pins for its
    toolkit: licences forbid it in general.
    Returns what is in the bundle. Raises SupplyError for what cannot be obtained, RecipeError for
    what cannot be the bundle or a part of it.
    """
    # Before anything is fetched, which may take hours.
    job.check_pinned_bazel("The bundle")
    if to.is_dir():
        raise RecipeError(
            f"--output {to} is a directory",
            remedy=f"Name the file to write: --output {to / 'NAME'}.",
        )
    files.check_writable(f"--output {to}", to.parent)
    for path in added:
        if not (path.is_file() and os.access(path, os.R_OK)):
            raise RecipeError(
                f"--add {path} is not a file that can be read",
                remedy="Name a file; a directory goes in as an archive.",
            )
    for name, count in Counter(path.name for path in added).items():
        # They lie side by side where the bundle is unpacked.
        if count > 1:
            raise RecipeError(
                f"--add names {count} files called {name}", remedy="Rename all but one of them."
            )
    inputs = lock_inputs.fetch_inputs(job, wait=True)
    if inputs.absent:
        job.listener.note(
            f"Not in the bundle, since fetch did not find them: {listed(inputs.absent, SHOWN)}. "
            f"Whether the build needs them, 'invoke lock --recipe {job.argument}' finds out"
        )
    # On the disk of the build: the packages of TensorFlow can be larger than /tmp.
    with files.scratch_directory(job.places.own, "bundle-") as scratch:
        found = [
            *_document_members(job, document, scratch),
            *input_members(job, inputs, scratch, with_toolkit=with_toolkit),
            *(bundle.member_of("tool", path) for path in tool_packages(job, scratch / "tool")),
            *(bundle.member_of("added", path) for path in added),
        ]
        # Sorted, so that the same inputs give the same bundle.
        # What both the build and the test of the wheel need was brought twice.
        members = dict(sorted(found, key=lambda content: content[0].path))
        # Packages of the toolkit are in it only when the user asked for them.
        with_toolkit = any(member.kind == "toolkit" for member in members)
        absent = () if with_toolkit else tuple(_absent_inputs(job))
        manifest = manifest_of(job, inputs, tuple(members), absent)
        bundle.write(to, manifest, members, job.listener.progress)
    return manifest


def manifest_of(
    job: RecipeJob,
    inputs: Inputs,
    members: tuple[BundleMember, ...],
    absent: tuple[Absent, ...] = (),
) -> Manifest:
    """Return the manifest that describes members of a recipe's bundle."""
    return Manifest(
        tfwright=__version__,
        recipe=job.recipe.name,
        # Bazel's binary and tfwright's own packages run on this platform only.
        platform=binary.platform_name(),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        bazel=job.recipe.bazel.version,
        members=members,
        clones=tuple(BundledClone(remote=one.remote, commit=one.commit) for one in inputs.clones),
        absent=absent,
    )


def _document_members(job: RecipeJob, document: Path, scratch: Path) -> Iterator[Content]:
    """Yield what is text: the recipe, its lock, patches and assets."""
    source = job.recipe.source
    if job.recipe.documents:
        # In one file: toolkits and archives of the checkout that it goes to may differ.
        document = scratch / document.name
        files.write(document, recipes.whole_text(recipes.find(job.argument)))
    yield bundle.member_of("recipe", document)
    if job.locked:
        yield bundle.member_of("lock", job.locked)
    # A set: recipes may name one file twice.
    for file in sorted(set(source.named_files)):
        yield bundle.member_of("patch", source.file(file), file)


def input_members(
    job: RecipeJob, inputs: Inputs, scratch: Path, *, with_toolkit: bool
) -> Iterator[Content]:
    """Yield what was fetched, except a tree that tfwright ships: every tfwright has it.

    Files that have to be made for it are put into `scratch`. Raises HostError if Bazel and packages
    are those of another system, SupplyError if packages of the toolkit are not on this host.
    """
    if inputs.programs is None:
        system = job.recipe.host.system
        raise HostError(
            f"Only a host with {system} has the Bazel and the packages of {job.name}",
            remedy=f"Run the command on {system}.",
        )
    if job.recipe.source.url not in demo.bundled_trees():
        source = scratch / bundle.SOURCE
        mirror.write_bundle(inputs.mirror, inputs.commit, source)
        yield bundle.member_of("source", source)
    yield bundle.member_of("bazel", inputs.bazel.path, sha256=inputs.bazel.sha256)
    # Their digest is known from fetch, so gigabytes are not read a second time.
    for archive in inputs.archives:
        yield bundle.member_of("archive", archive.path, archive.sha256, archive.sha256)
    for copied in inputs.clones:
        packed = scratch / copied.commit
        mirror.write_bundle(copied.repository, copied.commit, packed, history=True)
        yield bundle.member_of("clone", packed)
    for path in _target_packages(job, inputs):
        yield bundle.member_of("package", path)
    if job.recipe.host.image:
        for blob in image.find_image(job.places.vault, job.recipe.host.image.digest).blobs():
            yield bundle.member_of("image", blob, blob.name, blob.name)
    if with_toolkit:
        yield from toolkit_members(job)


def _target_packages(job: RecipeJob, inputs: Inputs) -> Iterator[Path]:
    """Bring what the build and the trial of the wheel install into the target Python."""
    locked = lock.read(job.locked) if job.locked else None
    verify = job.recipe.verify
    wanted = {
        "build": locking.with_hashes(job.recipe.host.requirements, locked),
        # The test's packages as well, or an offline build could not verify its wheel.
        "verify": [*verify.requirements, *verify.plugins],
        # Only a lock file tells the other host that these are the ones.
        "rules": inputs.packages if locked and locked.packages else (),
    }
    if inputs.packages and not wanted["rules"]:
        job.listener.note(
            f"The {len(inputs.packages)} packages that rules let pip install are left out: "
            f"run 'invoke lock --recipe {job.argument}' first"
        )
    # The target Python may be that of an image, and then runs only there.
    with containers.stage_container(job, "fetch"):
        for use, pins in wanted.items():
            if not pins:
                continue
            log = job.log(f"bundle-{use}")
            for path in packages.supply(
                inputs.python, pins, job.places.stores, log, offline_only=job.offline
            ):
                # Old packages are on the index as sources only, so this cannot be an error.
                if path.suffix != ".whl":
                    job.listener.note(
                        f"{path.name} is not a wheel: pip builds it where it installs it, with "
                        "what the recipe pins"
                    )
                yield path


def tool_packages(job: RecipeJob, folder: Path) -> list[Path]:
    """Bring the packages that tfwright needs itself, for the Python that runs it."""
    folder.mkdir()
    # No source distributions: an offline host could not build them.
    options = ("--require-hashes", "--only-binary=:all:", "-r", str(SHIPPED / "requirements.txt"))
    return packages.download(Path(sys.executable), options, folder, job.log("bundle-tool"))


def toolkit_members(job: RecipeJob) -> Iterator[Content]:
    """Yield the packages of the toolkit, as `invoke toolkit` keeps them.

    Raises SupplyError if they are not on this host yet.
    """
    store = sources.store(job.places.vault)
    for part, table in job.recipe.toolkit.parts():
        # One way is enough.
        complete = (pins for _, pins in table.ways() if all(map(store.holds, pins.values())))
        pins = next(complete, None)
        if pins is None:
            raise SupplyError(
                f"The packages of {part} are not on this host",
                remedy=f"Run 'invoke toolkit --recipe {job.recipe.argument}' first.",
            )
        for pin in pins.values():
            yield bundle.member_of("toolkit", store.path(pin), pin, pin)


def _absent_inputs(job: RecipeJob) -> Iterator[Absent]:
    """Yield what the user has to install where the bundle goes, by the digests that it has here."""
    recipe, host = job.recipe, job.recipe.host
    if not cuda.needs_toolkit(recipe):
        return
    for part, table in recipe.toolkit.parts():
        for way, pins in table.ways():
            yield Absent(name=f"{part}: {way}", files=sources.pins_by_file_name(pins))
    # A recipe without packages uses what is installed, which only its files can identify.
    if not any(recipe.toolkit.parts()):
        places = cuda.CudaPlaces(recipe, job.host_file)
        roots = {"CUDA": (host.cuda, places.toolkit), "cuDNN": (host.cudnn, places.cudnn)}
        for name, (version, root) in roots.items():
            there = [path for path in VERSION_FILES[name] if (root / path).is_file()]
            present = {path: files.sha256(root / path) for path in there}
            yield Absent(name=f"{name} {version}" if version else name, files=present)
