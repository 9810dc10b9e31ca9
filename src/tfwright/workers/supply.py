"""What a worker with a disk of its own lacks of a build's inputs, and how it gets them.

They are the members of a bundle, in a folder instead of a file. The worker is sent the list, says
what it lacks, and is sent that; so nothing goes twice over the line, and a transfer that was cut
goes on. The recipe itself, its lock file and its patches are those of the worker's checkout.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tfwright.bundle import packing as bundles
from tfwright.bundle.unpacking import Arrival
from tfwright.documents.filesystem import SHIPPED
from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError, SupplyError, TfwrightError
from tfwright.lock import inputs as lock_inputs
from tfwright.pipeline.job import Places, RecipeJob
from tfwright.progress import SILENCE, Listener
from tfwright.toolkit import providing as toolkit
from tfwright.toolkit import sources
from tfwright.tools import files, json_text
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Pin
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.python import packages
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.vault import bundle
from tfwright.vault.bundle import MANIFEST, BundleMember, Manifest
from tfwright.vault.store import Store
from tfwright.wheel.seal import build_record

FOLDER = "inputs"
"""The folder in a worker's build_out that takes what is sent."""
RECIPE = "recipe.json"
"""The recipe as it is built, which for a night's target is that of no file."""
LACKING, UNPACK = "--lacking", "--unpack"
"""Options of `bundle` on the worker."""
LEFT_DAYS = 7
"""Days after which a worker removes what a lost connection left in its folders: no transfer and no
build takes so long."""
_GATHERING = threading.Lock()
"""Held while inputs are brought together: a stage's container would take in another one's
programs."""


def send(host: WorkerTable, job: RecipeJob, log: Path) -> RemoteBuild | None:
    """Give a worker what it lacks, so that it can build offline; return what failed there, if any.

    Logs get names like that of `log`. Raises ToolError if rsync cannot reach the worker.
    """
    place = job.places.build_out / "workers" / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    # On the disk of the vault: a commit of TensorFlow may be larger than /tmp.
    with files.scratch_directory(place, f"{job.name}-") as folder:
        try:
            with _GATHERING:
                # Stages that print would mix with what the caller says of the workers.
                quiet = replace(job, listener=SILENCE)
                manifest = gather(quiet, folder, with_toolkit=host.toolkit)
                tool_packages: list[Path] = []
                # tfwright's own packages, for a worker whose checkout has none installed yet.
                if ssh.lacks_packages(host, files.sha256(SHIPPED / "requirements.txt")):
                    tool_packages = bundles.tool_packages(job, folder / "tool")
        except TfwrightError as fault:
            return without_inputs(fault)
        target = f"{host.build_out}/{FOLDER}/{job.name}"
        # What the worker could not take is removed there: it fills the disk, and a later rsync
        # would take a spoilt file of the same size and time for the right one.
        try:
            failed = _send_missing(host, manifest, tool_packages, folder, target, log)
        except HostError:
            ssh.remove(host, target)
            raise
        if failed and not failed.lost:
            ssh.remove(host, target)
        return failed


def without_inputs(fault: TfwrightError) -> RemoteBuild:
    """Return the result of a build whose inputs this host does not have for a worker."""
    what = f"this host has not all its inputs: {fault.what}"
    return RemoteBuild(0.0, HostError.exit_status, what, remedy=fault.remedy)


def _send_missing(  # noqa: PLR0913, PLR0917 both ends of a transfer
    host: WorkerTable,
    manifest: Manifest,
    tool_packages: list[Path],
    folder: Path,
    target: str,
    log: Path,
) -> RemoteBuild | None:
    """Send the list, then what the worker lacks of it; return what failed there."""
    names = [MANIFEST, f"recipe/{RECIPE}", *(f"tool/{path.name}" for path in tool_packages)]
    ssh.send_files(host, folder, names, target, log.with_suffix(".list.log"))
    asked = ssh.run(host, ("bundle", LACKING, target), log.with_suffix(".lacking.log"))
    if asked.failure:
        return asked
    lacking = lacking_of(asked, manifest)
    # Packages of a toolkit may be there, and their unpacking was cut.
    toolkit_sent = any(each.kind == "toolkit" for each in manifest.members)
    if not (lacking or toolkit_sent):
        ssh.remove(host, target)
        return None
    ssh.send_files(host, folder, lacking, target, log.with_suffix(".files.log"))
    unpacked = ssh.run(host, ("bundle", UNPACK, target), log.with_suffix(".unpack.log"))
    return unpacked if unpacked.failure else None


def fetch_inputs(recipe: str, job: RecipeJob, note: Callable[[str], None]) -> None:
    """Bring the inputs of a build into this host's vault, which the machines that build share.

    `note` receives a line, since they may take an hour. Raises what `fetch` raises.
    """
    note(f"{recipe}: bringing its inputs to this host")
    lock_inputs.fetch_inputs(replace(job, listener=SILENCE), wait=True)


def gather(job: RecipeJob, folder: Path, *, with_toolkit: bool) -> Manifest:
    """Bring a build's inputs to this host, and lay them out in a folder like a bundle's.

    Raises SupplyError for what cannot be obtained.
    """
    inputs = lock_inputs.fetch_inputs(job, wait=True)
    generated = folder / "made"
    generated.mkdir()
    recipe = generated / RECIPE
    files.write(recipe, build_record.recipe_content(job.recipe).model_dump_json())
    contents = bundles.input_members(job, inputs, generated, with_toolkit=with_toolkit)
    found = dict([bundle.member_of("recipe", recipe), *contents])
    manifest = bundles.manifest_of(job, inputs, tuple(found))
    bundle.write_folder(folder, manifest, found)
    return manifest


def lacking_of(asked: RemoteBuild, manifest: Manifest) -> list[str]:
    """Return the paths of the members that a worker says it lacks. Raises HostError."""
    known = {member.path for member in manifest.members}
    try:
        lacking = {str(path) for path in json_text.parse(asked.printed)}
    except (ValueError, TypeError) as fault:
        raise HostError(
            "The worker did not say which inputs it lacks",
            remedy=f"Read what it printed: {asked.log}; its tfwright may be older than this one.",
        ) from fault
    # Paths from another machine choose only among what was offered.
    return sorted(lacking & known)


def missing_members(folder: Path, settings: HostFile) -> list[str]:
    """Return the paths of the members of a folder's manifest that this host does not have.

    Raises SupplyError if the folder holds no inputs, HostError if they are for another platform.
    """
    manifest, recipe = bundle.read_folder(folder), _read_recipe(folder)
    # Bazel and tfwright's own packages are programs.
    if manifest.platform != binary.platform_name():
        raise HostError(
            f"This worker is {binary.platform_name()}, and its inputs are for {manifest.platform}",
            remedy="Take 'inputs = true' away from this worker in the host file.",
        )
    places = Places(settings.build_out, recipe.name)

    def is_held(member: BundleMember) -> bool:  # noqa: PLR0911 one for each kind
        """Say whether this host has a member; of other kinds nothing is sent."""
        match member.kind:
            case "archive":
                return Store(places.archives).holds(member.sha256)
            case "bazel":
                digests = {manifest.platform: member.sha256}
                return bool(binary.find_stored(manifest.bazel, digests, places.stores))
            case "clone":
                return all(
                    clones.has_commit(Clone(carried.remote, carried.commit), places.git)
                    for carried in manifest.clones
                    if carried.commit == member.name
                )
            case "image":
                pinned = recipe.host.image
                # An image gets its place when all of it is there.
                return pinned is None or image.path_of(places.vault, pinned.digest).is_dir()
            case "package":
                file = Path(member.sha256, member.name)
                shelves = map(packages.package_folder, places.stores)
                return any((shelf / file).is_file() for shelf in shelves)
            case "source":
                pin, repository = (
                    Pin.of(recipe.source),
                    mirror.path_of(places.git, recipe.source.url),
                )
                return (
                    repository.is_dir()
                    and mirror.missing_files(GitRepository(repository), pin) == []
                )
            case "toolkit":
                unpacked = bool(settings.of(recipe).cuda)
                return unpacked or sources.store(places.vault).holds(member.sha256)
        return True

    return [member.path for member in manifest.members if not is_held(member)]


def unpack_inputs(folder: Path, settings: HostFile, listener: Listener) -> Manifest:
    """Put the inputs that another host left in a folder where an offline build finds them.

    The other host may run any command here, so that Bazel and packages serve all recipes. Raises
    SupplyError for a file that is not what the manifest says; nothing is put anywhere before.
    """
    manifest = bundle.read_folder(folder)
    recipe = _read_recipe(folder)
    places = Places(settings.build_out, recipe.name)
    # Other unpackings are kept away.
    with bundle.unpacking_folder(places.build_out, folder.name):
        placed = bundle.verified_folder(folder, manifest)
        Arrival(manifest, recipe, placed, places, listener).place_inputs(places.vault)
        # `invoke vault --gc` keeps what this names.
        files.write(places.own / "bundle.json", manifest.encode())
    files.remove(folder)
    # Other recipes' inputs, whose transfer was cut and never went on.
    files.remove_old(folder.parent, LEFT_DAYS)
    sent = any(member.kind == "toolkit" for member in manifest.members)
    host_file = settings.of(recipe)
    if sent and not host_file.cuda:
        store, log = sources.store(places.vault), places.logs / "toolkit.log"
        supplier = sources.Supplier(store, host_file, listener, log, offline=True)
        # Its user has stated that licences are accepted.
        for made in toolkit.Installer(recipe, supplier, licence_accepted=True).obtain():
            listener.note(f"{made.title} is in {made.root}")
    return manifest


def _read_recipe(folder: Path) -> Recipe:
    """Read the recipe as the other host builds it. Raises SupplyError."""
    recipe = build_record.read_recipe(folder / "recipe" / RECIPE)
    if recipe is None:
        raise SupplyError(
            f"{folder} holds no recipe that this tfwright can read",
            remedy="Update the checkout of tfwright on this worker.",
        )
    return recipe
