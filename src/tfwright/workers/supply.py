"""What a worker with a disk of its own lacks of a build's inputs, and how it gets them.

They are the members of a bundle, in a folder instead of a file. The worker is sent the list, says
what it lacks, and is sent that; so nothing goes twice over the line, and a transfer that was cut
goes on. The recipe itself, its lock file and its patches are those of the worker's checkout.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from tfwright.bundle import packing as bundles
from tfwright.bundle.unpacking import Arrival
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT, Recipe
from tfwright.errors import HostError, SupplyError, TfwrightError
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
from tfwright.tools.python import packages
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild, RemoteHost
from tfwright.vault import bundle
from tfwright.vault.bundle import MANIFEST, BundleMember, Content, Manifest
from tfwright.vault.store import Store
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import RecipeContent

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


def send(host: RemoteHost, job: RecipeJob, log: Path) -> RemoteBuild | None:
    """Give a worker what it lacks, so that it can build offline; return what failed there, if any.

    Logs get names like that of `log`. Raises ToolError if rsync cannot reach the worker.
    """
    place = job.places.build_out / "workers" / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    # On the disk of the vault: a commit of TensorFlow may be larger than /tmp.
    with tempfile.TemporaryDirectory(dir=place, prefix=f"{job.name}-") as name:
        room = Path(name)
        try:
            with _GATHERING:
                # Stages that print would mix with what the caller says of the workers.
                quiet = replace(job, listener=SILENCE)
                manifest = gather(quiet, room, with_toolkit=host.toolkit)
                own = _own_packages(host, job, room)
        except TfwrightError as fault:
            return ssh.refused(fault)
        return _Transfer(host, job, room, log).done(manifest, own)


def bring(recipe: str, job: RecipeJob, note: Callable[[str], None]) -> None:
    """Bring the inputs of a build into this host's vault, which the machines that build share.

    `note` receives a line, since they may take an hour. Raises what `fetch` raises.
    """
    note(f"{recipe}: bringing its inputs to this host")
    bundles.fetched(replace(job, listener=SILENCE))


def gather(job: RecipeJob, folder: Path, *, with_toolkit: bool) -> Manifest:
    """Bring a build's inputs to this host, and lay them out in a folder like a bundle's.

    Raises SupplyError for what cannot be obtained.
    """
    inputs = bundles.fetched(job)
    made = folder / "made"
    made.mkdir()
    recipe = made / RECIPE
    files.write(recipe, build_record.recipe_content(job.recipe).model_dump_json())
    found = {
        content.member: content.source
        for content in (
            Content.of("recipe", recipe),
            *bundles.contents(job, inputs, made, with_toolkit=with_toolkit),
        )
    }
    manifest = bundles.manifest_of(job, inputs, tuple(found))
    bundle.lay_out(folder, manifest, found)
    return manifest


def _own_packages(host: RemoteHost, job: RecipeJob, room: Path) -> list[Path]:
    """Bring tfwright's own packages for a worker whose checkout has none installed yet."""
    digest = files.sha256(ROOT / "requirements.txt")
    if not ssh.lacks_packages(host, digest):
        return []
    return bundles.own(job, room / "tool")


@dataclass(frozen=True)
class _Transfer:
    """The way of a build's inputs to a worker."""

    host: RemoteHost
    job: RecipeJob
    room: Path
    log: Path

    @property
    def there(self) -> str:
        """The folder on the worker."""
        return f"{self.host.build_out}/{FOLDER}/{self.job.name}"

    def done(self, manifest: Manifest, own: list[Path]) -> RemoteBuild | None:
        """Give the worker what it lacks; return what failed there.

        What it could not take is removed there: it fills the disk, and a later rsync would take a
        spoilt file of the same size and time for the right one.
        """
        try:
            failed = self._taken(manifest, own)
        except HostError:
            ssh.remove(self.host, self.there)
            raise
        if failed and not failed.lost:
            ssh.remove(self.host, self.there)
        return failed

    def _taken(self, manifest: Manifest, own: list[Path]) -> RemoteBuild | None:
        """Send the list, then what the worker lacks of it; return what failed there."""
        named = [f"recipe/{RECIPE}", *(f"tool/{path.name}" for path in own)]
        self._send([MANIFEST, *named], "list")
        asked = self._ask(LACKING)
        if asked.failure:
            return asked
        lacking = lacking_of(asked, manifest)
        # Packages of a toolkit may be there, and their unpacking was cut.
        toolkit_sent = any(each.kind == "toolkit" for each in manifest.members)
        if not (lacking or toolkit_sent):
            ssh.remove(self.host, self.there)
            return None
        self._send(lacking, "files")
        taken = self._ask(UNPACK)
        return taken if taken.failure else None

    def _send(self, names: list[str], what: str) -> None:
        log = self.log.with_suffix(f".{what}.log")
        ssh.send_files(self.host, self.room, names, self.there, log)

    def _ask(self, option: str) -> RemoteBuild:
        log = self.log.with_suffix(f".{option.strip('-')}.log")
        return ssh.run(self.host, ("bundle", option, self.there), log)


def lacking_of(asked: RemoteBuild, manifest: Manifest) -> list[str]:
    """Return the paths of the members that a worker says it lacks. Raises HostError."""
    known = {member.path for member in manifest.members}
    try:
        said = {str(path) for path in json_text.parsed(asked.printed)}
    except (ValueError, TypeError) as fault:
        raise HostError(
            "The worker did not say which inputs it lacks",
            remedy=f"Read what it printed: {asked.log}; its tfwright may be older than this one.",
        ) from fault
    # Paths from another machine choose only among what was offered.
    return sorted(said & known)


def lacking(folder: Path, settings: HostFile) -> list[str]:
    """Return the paths of the members of a folder's manifest that this host does not have.

    Raises SupplyError if the folder holds no inputs, HostError if they are for another platform.
    """
    manifest = bundle.read_folder(folder)
    _insist_on_platform(manifest)
    here = _Here(manifest, _recipe(folder), settings)
    return [member.path for member in manifest.members if here.lacks(member)]


def _insist_on_platform(manifest: Manifest) -> None:
    # Bazel and tfwright's own packages are programs.
    if manifest.platform != binary.here():
        raise HostError(
            f"This worker is {binary.here()}, and its inputs are for {manifest.platform}",
            remedy="Take 'inputs = true' away from this worker in the host file.",
        )


@dataclass(frozen=True)
class _Here:
    """What this host has of a build's inputs."""

    manifest: Manifest
    recipe: Recipe
    settings: HostFile

    @property
    def places(self) -> Places:
        """Where the recipe's inputs are."""
        return Places(self.settings.build_out, self.recipe.name)

    def lacks(self, member: BundleMember) -> bool:
        """Say whether this host does not have a member yet."""
        asked = {
            "archive": self._has_archive,
            "bazel": self._has_bazel,
            "clone": self._has_clone,
            "image": self._has_image,
            "package": self._has_package,
            "source": self._has_source,
            "toolkit": self._has_toolkit,
        }
        return member.kind in asked and not asked[member.kind](member)

    def _has_archive(self, member: BundleMember) -> bool:
        return Store(self.places.vault / "repository_cache").holds(member.sha256)

    def _has_bazel(self, member: BundleMember) -> bool:
        digests = {self.manifest.platform: member.sha256}
        stores = self.places.stores
        return bool(binary.stored(self.manifest.bazel, digests, stores))

    def _has_clone(self, member: BundleMember) -> bool:
        return all(
            clones.holds(Clone(carried.remote, carried.commit), self.places.git)
            for carried in self.manifest.clones
            if carried.commit == member.name
        )

    def _has_image(self, _: BundleMember) -> bool:
        pinned = self.recipe.host.image
        # An image gets its place when all of it is there.
        return pinned is None or image.place(self.places.vault, pinned.digest).is_dir()

    def _has_package(self, member: BundleMember) -> bool:
        kept = Path(member.sha256, member.name)
        shelves = map(packages.shelf, self.places.stores)
        return any((shelf / kept).is_file() for shelf in shelves)

    def _has_source(self, _: BundleMember) -> bool:
        source = self.recipe.source
        repository = mirror.place(self.places.git, source.url)
        return repository.is_dir() and mirror.is_complete(repository, Pin.of(source))

    def _has_toolkit(self, member: BundleMember) -> bool:
        unpacked = bool(self.settings.of(self.recipe).cuda)
        return unpacked or sources.store(self.places.vault).holds(member.sha256)


def take(folder: Path, settings: HostFile, listener: Listener) -> Manifest:
    """Put the inputs that another host left in a folder where an offline build finds them.

    The other host may run any command here, so that Bazel and packages serve all recipes. Raises
    SupplyError for a file that is not what the manifest says; nothing is put anywhere before.
    """
    manifest = bundle.read_folder(folder)
    recipe = _recipe(folder)
    places = Places(settings.build_out, recipe.name)
    with _emptied(folder, places.build_out):
        placed = bundle.verified_folder(folder, manifest)
        Arrival(manifest, recipe, placed, places, listener).place_inputs(places.vault)
        # `invoke vault --gc` keeps what this names.
        files.write(places.own / "bundle.json", manifest.encoded())
    _make_toolkit(manifest, recipe, settings, listener)
    return manifest


@contextmanager
def _emptied(folder: Path, build_out: Path) -> Iterator[None]:
    """Keep other unpackings away; remove the folder once all in it has its place."""
    with bundle.unpacking_room(build_out, folder.name):
        yield
    files.remove(folder)
    # Other recipes' inputs, whose transfer was cut and never went on.
    files.remove_old(folder.parent, LEFT_DAYS)


def _make_toolkit(
    manifest: Manifest, recipe: Recipe, settings: HostFile, listener: Listener
) -> None:
    """Unpack the toolkit whose packages came; its user has stated that licences are accepted."""
    sent = any(member.kind == "toolkit" for member in manifest.members)
    host_file = settings.of(recipe)
    if not sent or host_file.cuda:
        return
    places = Places(host_file.build_out, recipe.name)
    store, log = sources.store(places.vault), places.logs / "toolkit.log"
    supplier = sources.Supplier(store, host_file, listener, log, offline=True)
    for made in toolkit.Installer(recipe, supplier, licence_accepted=True).obtain():
        listener.note(f"{made.title} is in {made.root}")


def _recipe(folder: Path) -> Recipe:
    """Read the recipe as the other host builds it. Raises SupplyError."""
    try:
        text = files.content(folder / "recipe" / RECIPE)
        sent = RecipeContent.model_validate_json(text)
        return build_record.recipe_of(sent)
    except (OSError, ValidationError) as fault:
        raise SupplyError(
            f"{folder} holds no recipe that this tfwright can read",
            remedy="Update the checkout of tfwright on this worker.",
        ) from fault
