"""`invoke toolkit`: CUDA, its libraries and nvcc's compiler, put where builds find them."""

import datetime as dt
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import account
from tfwright.documents.host_file import compiler_root, toolkit_root
from tfwright.documents.recipe import Recipe
from tfwright.documents.toolkit import AnyWay, PartName, PartTable, Way
from tfwright.errors import Evidence, HostError, RecipeError, SupplyError
from tfwright.host import nvidia, toolchain, versions
from tfwright.host.place import HERE
from tfwright.pipeline.job import RecipeJob
from tfwright.toolkit import directory, layout, nvcc, nvidia_archive, soundness, sources, tree
from tfwright.toolkit.sources import Obtained, Supplier
from tfwright.toolkit.tree import InstalledPart, ToolkitRecord
from tfwright.tools import files, unpacking
from tfwright.tools.process import file_lock
from tfwright.vault import lock, locking


@dataclass(frozen=True)
class Kind:
    """One part of a toolkit."""

    name: PartName
    title: str
    licence: str
    """Where NVIDIA publishes it."""
    roots: tuple[str, ...]
    """Directories by which the root of an archive of it is known."""
    version: Callable[[Path], str]
    """Reads it from a toolkit; empty if the part is not there."""


def _cuda_version(root: Path) -> str:
    return next((seen.value for seen in nvidia.cuda(HERE, root)), "")


def _gcc_version(root: Path) -> str:
    # Debian's package has gcc-11 only; plain gcc is a link from another package.
    programs = sorted(root.glob("usr/bin/gcc-[0-9]*"))
    if not programs:
        return ""
    line = toolchain.version_line(HERE, str(programs[0]))
    compiler = toolchain.parse(line.value)
    return compiler.version if compiler else ""


KINDS: Mapping[str, Kind] = {
    "cuda": Kind(
        "cuda",
        "CUDA",
        "https://docs.nvidia.com/cuda/eula/",
        ("bin", "include", "lib64", "nvvm", "targets"),
        _cuda_version,
    ),
    "cudnn": Kind(
        "cudnn",
        "cuDNN",
        "https://docs.nvidia.com/deeplearning/cudnn/sla/",
        ("include", "lib64", "lib"),
        lambda root: nvidia.cudnn(HERE, [root]).value,
    ),
    "nccl": Kind(
        "nccl",
        "NCCL",
        "https://docs.nvidia.com/deeplearning/nccl/sla/",
        ("include", "lib64", "lib"),
        lambda root: nvidia.nccl(HERE, [root]).value,
    ),
    "tensorrt": Kind(
        "tensorrt",
        "TensorRT",
        "https://docs.nvidia.com/deeplearning/tensorrt/sla/",
        ("include", "lib64", "lib"),
        lambda root: nvidia.tensorrt(HERE, [root]).value,
    ),
    "compiler": Kind("compiler", "gcc", "", ("usr",), _gcc_version),
}


@dataclass(frozen=True)
class Download:
    """A file that the user downloaded."""

    kind: Kind
    path: Path
    sha256: str
    """As the user gave it; empty to leave it to the recipe."""


@dataclass(frozen=True)
class Provided:
    """A part that is in place."""

    title: str
    root: Path
    part: InstalledPart


def downloaded(given: Mapping[str, tuple[str, str]]) -> list[Download]:
    """Return the files that the command line names: path and checksum, by the name of the part."""
    return [
        Download(KINDS[name], Path(path), sha256) for name, (path, sha256) in given.items() if path
    ]


def insist(recipe: Recipe, downloads: Sequence[Download]) -> None:
    """Raise RecipeError if there is nothing to do: no file, and a recipe that pins no packages."""
    if downloads or any(recipe.toolkit.parts()):
        return
    wanted = _wanted(recipe)
    remedy = "Name a recipe that does: --recipe; 'invoke recipes' lists them."
    if wanted:
        remedy = (
            "Give what you downloaded: --cuda FILE, --cudnn FILE, --nccl FILE, --tensorrt FILE."
        )
    raise RecipeError(
        f"Nothing to unpack; {recipe.name} wants {wanted or 'neither CUDA nor cuDNN'}",
        remedy=remedy,
    )


def _wanted(recipe: Recipe) -> str:
    """List the parts whose versions a recipe names."""
    named = [(kind, _pinned(recipe, kind)) for kind in KINDS.values()]
    return ", ".join(f"{kind.title} {version}" for kind, version in named if version)


def provide(
    job: RecipeJob, downloads: Sequence[Download], *, licence_accepted: bool
) -> Iterator[Provided]:
    """Put what was downloaded into place, or else what the recipe pins; yield each part."""
    for file in downloads:
        root, part = install(
            job, file.kind, file.path, file.sha256, licence_accepted=licence_accepted
        )
        yield Provided(file.kind.title, root, part)
    if not downloads:
        yield from obtain(job, licence_accepted=licence_accepted)


def _pinned(recipe: Recipe, kind: Kind) -> str:
    """Return the version of a part that a recipe names."""
    if kind.name == "compiler":
        gcc = recipe.toolkit.gcc()
        return gcc[1] if gcc else ""
    return getattr(recipe.host, kind.name) or ""


def _root(job: RecipeJob, kind: Kind) -> Path:
    # The compiler has a root of its own: several toolkits may use the same one.
    place = compiler_root if kind.name == "compiler" else toolkit_root
    root = place(job.host_file.build_out, job.recipe)
    if root is None or not _pinned(job.recipe, kind):
        raise RecipeError(
            f"{job.recipe.name} names no {kind.title}",
            remedy=f'Name the version in the recipe: [host] {kind.name} = "VERSION".',
        )
    return root


def obtain(job: RecipeJob, *, licence_accepted: bool) -> Iterator[Provided]:
    """Bring every part that the recipe pins into place; yield each of them.

    A part that is there already, made from the same packages, is left alone. Raises SupplyError
    if a part cannot be obtained or is another version than the recipe names, HostError while the
    user has not accepted its licence.
    """
    # Before any download: the lock decides which packages a build may use.
    _insist_on_lock(job)
    for name, table in job.recipe.toolkit.parts():
        kind = KINDS[name]
        root = _root(job, kind)
        with _alone(job, root):
            part = _provided(job, kind, table, root, licence_accepted=licence_accepted)
        yield Provided(kind.title, root, part)


@contextmanager
def _alone(job: RecipeJob, root: Path) -> Iterator[None]:
    """Keep other builds away from a toolkit, which recipes share.

    A second build waits, and then finds the part in place.
    """
    root.parent.mkdir(parents=True, exist_ok=True)
    command = f"invoke toolkit --recipe {job.recipe.argument}"
    with file_lock.held(root.parent / f"{root.name}.lock", command, wait=True):
        yield


@contextmanager
def _room(root: Path) -> Iterator[Path]:
    """Give an empty directory on the toolkit's own disk, from which files are renamed."""
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".unpacking-") as folder:
        yield Path(folder)


def _insist_on_lock(job: RecipeJob) -> None:
    """Refuse packages that are not the locked ones."""
    locked = lock.read(job.locked).toolkit if job.locked else ()
    pinned = locking.toolkit(job.recipe.toolkit)
    changed = sorted({package.name for package in set(pinned) ^ set(locked)})
    if locked and changed:
        raise SupplyError(
            f"The recipe pins other packages for its toolkit than its lock file: {changed[0]}",
            remedy=f"If the change is meant, run 'invoke lock --recipe {job.recipe.argument}'.",
            evidence=Evidence(where=str(job.locked), lines=changed),
        )


def _provided(
    job: RecipeJob, kind: Kind, table: PartTable, root: Path, *, licence_accepted: bool
) -> InstalledPart:
    if installed := _installed(kind, table, root):
        return installed
    obtained = sources.obtain(f"{kind.title} {_pinned(job.recipe, kind)}", table, _supplier(job))
    with _room(root) as room:
        # The packages are needed for this refusal, too: the licence's text is in them.
        if table.licence and not licence_accepted:
            raise _unaccepted_packages(kind, table, obtained, room, root)
        # The longest step: without a note it would look like the download.
        job.listener.note(f"Unpacking {kind.title} {_pinned(job.recipe, kind)}")
        made = _arranged(kind, obtained, room)
        accepted = bool(table.licence)
        return _put(job, kind, _Origin(obtained.way, _digests(table, obtained), accepted), made)


def _installed(kind: Kind, table: PartTable, root: Path) -> InstalledPart | None:
    """Return a part that is there already, as it was unpacked."""
    record = tree.read(root)
    for way, pins in table.ways():
        # By checksum: packages of the same version may have been repacked.
        if record.has(kind.name, _by_file(pins)):
            part = record.parts[kind.name]
            if table.takes(way, part.tree) and _is_sound(root, part):
                return part
    return None


def _is_sound(root: Path, part: InstalledPart) -> bool:
    """Say whether a part has the files that were unpacked, and this tfwright's own programs."""
    # What was changed meanwhile, or is of another tfwright, is unpacked again.
    return not (nvcc.outdated(part.files) or soundness.changed(root, part.files))


def _supplier(job: RecipeJob) -> Supplier:
    store = sources.store(job.places.vault)
    store.root.mkdir(parents=True, exist_ok=True)
    return Supplier(store, job.host_file, job.listener, job.log("toolkit"), job.offline)


def _digests(table: PartTable, obtained: Obtained) -> dict[str, str]:
    # The record names what was really used: a recipe may pin several ways.
    pins = next(pins for way, pins in table.ways() if way == obtained.way)
    return _by_file(pins)


def _by_file(pins: Mapping[str, str]) -> dict[str, str]:
    """Return pins by the names of their files, without the directories on the server."""
    return {name.rpartition("/")[2]: digest for name, digest in pins.items()}


def _arranged(kind: Kind, obtained: Obtained, room: Path) -> Path:
    """Unpack the packages of a part; return a directory that is laid out as a toolkit."""
    if obtained.way == "archives":
        return nvidia_archive.merge(obtained.files.values(), room, kind.roots)
    raw, made = room / "raw", room / "made"
    for folder in (raw, made):
        folder.mkdir()
    for package in obtained.files.values():
        unpacking.unpack(package, raw)
    layout.arrange(raw, layout.moves(kind.name, obtained.way), made)
    return made


def _unaccepted_packages(
    kind: Kind, table: PartTable, obtained: Obtained, room: Path, root: Path
) -> HostError:
    """Show the licence text of a package, or where it is published."""
    shown = root.with_name(f"{root.name}-licences")
    # All packages of a part hold the same text; the largest would take minutes to read.
    package = min(obtained.files.values(), key=lambda path: path.stat().st_size)
    found = nvidia_archive.licences(package, room, shown)
    where = found[0] if found else table.licence
    what = f"{kind.title} is NVIDIA's, under a licence that you have to accept yourself: {where}"
    return HostError(
        what, remedy=f"Read it (also at {table.licence}); if you accept it, add --licence-accepted."
    )


@dataclass(frozen=True)
class _Origin:
    """Where a part is from."""

    way: Way | str
    sources: Mapping[str, str]
    accepted: bool


def _put(job: RecipeJob, kind: Kind, origin: _Origin, made: Path) -> InstalledPart:
    """Put what was unpacked into the toolkit, once it is what the recipe wants."""
    # Read from the unpacked files: names of archives
    # promise versions that they do not hold.
    version = kind.version(made)
    wanted = _pinned(job.recipe, kind)
    source = next(iter(origin.sources))
    if not version:
        raise SupplyError(
            f"{source} does not contain {kind.title}",
            remedy="Name the archive of the whole library; 'invoke toolkit --help' says which.",
        )
    if not versions.is_of(version, wanted):
        raise SupplyError(
            f"{source} is {kind.title} {version}; {job.recipe.name} wants {wanted}",
            remedy=f"Download {kind.title} {wanted}.",
        )
    part = InstalledPart(
        version=version,
        way=origin.way,
        sources=dict(origin.sources),
        licence_accepted_by=account.name() if origin.accepted else "",
        on=dt.datetime.now(dt.UTC).date().isoformat(),
        files=tree.content(made),
    )
    _insist_on_tree(job, kind, part)
    tree.add(_root(job, kind), kind.name, part, made)
    return part


def _insist_on_tree(job: RecipeJob, kind: Kind, part: InstalledPart) -> None:
    """Refuse files that are not those that the recipe pins; show a stated difference."""
    table = dict(job.recipe.toolkit.parts()).get(kind.name)
    if table is None or part.tree == table.tree:
        return
    # What a user downloads from the vendor is what the vendor's address gives.
    way: AnyWay = "directory" if part.way == "directory" else "archives"
    way = next((pinned for pinned, _ in table.ways() if pinned == part.way), way)
    if way in table.differs:
        job.listener.note(f"{kind.title} from {way}: {table.differs[way]}")
    elif not table.takes(way, part.tree):
        raise RecipeError(
            f"{kind.title} from {way} has other files than {job.recipe.name} pins: {part.tree}",
            remedy="Take another way. If the difference is known "
            f'and does no harm, state it in the recipe: [toolkit.{kind.name}.differs] {way} = "…".',
            evidence=Evidence(lines=[f"toolkit.{kind.name}.tree = {table.tree}"]),
        )


def install(
    job: RecipeJob, kind: Kind, archive: Path, sha256: str, *, licence_accepted: bool
) -> tuple[Path, InstalledPart]:
    """Put what the user downloaded, or has installed, into the toolkit that the recipe uses.

    Nothing of it is run as an installer. Raises RecipeError if the recipe wants none, SupplyError
    if the archive has another checksum or is another version than the recipe names, HostError while
    the user has not accepted its licence.
    """
    # A recipe without this part is refused before gigabytes are hashed.
    root = _root(job, kind)
    root.parent.mkdir(parents=True, exist_ok=True)
    if archive.is_dir():
        return root, _adopt(job, kind, archive, root)
    digest = _verified(job.recipe, kind, archive, sha256)
    with _room(root) as room:
        # By the person and for each toolkit: NVIDIA's licences bind whoever installs.
        if not licence_accepted:
            shown = root.with_name(f"{root.name}-licences")
            raise _unaccepted(kind, archive, nvidia_archive.licences(archive, room, shown))
        made = _unpacked(kind, archive, room)
        origin = _Origin("by hand", {archive.name: digest}, accepted=True)
        return root, _put(job, kind, origin, made)


def _adopt(job: RecipeJob, kind: Kind, installed: Path, root: Path) -> InstalledPart:
    """Copy a part that is installed on this host; whoever installed it accepted its licence."""
    with _room(root) as room:
        made = room / "made"
        made.mkdir()
        directory.copy(installed, kind.name, made)
        nvidia_archive.settle(made)
        copied = {str(installed): tree.digest(tree.content(made))}
        origin = _Origin("directory", copied, accepted=False)
        return _put(job, kind, origin, made)


def _unpacked(kind: Kind, archive: Path, room: Path) -> Path:
    """Unpack an archive of NVIDIA's, or a Debian package of one of its libraries."""
    # A .deb holds Debian's layout, an archive of NVIDIA's its own.
    if archive.suffix == ".deb":
        obtained = Obtained("debian", {archive.name: archive})
        return _arranged(kind, obtained, room)
    return nvidia_archive.merge([archive], room, kind.roots)


def _verified(recipe: Recipe, kind: Kind, archive: Path, given: str) -> str:
    """Return the digest of an archive, which the user or the recipe must name."""
    if not archive.is_file():
        raise SupplyError(
            f"{archive} is not there",
            remedy="Download it from https://developer.nvidia.com; some files need a login there.",
        )
    # Hashed before it is opened: an archive is untrusted until its checksum fits.
    digest = files.sha256(archive)
    wanted = given.lower() or _pinned_digest(recipe, kind, archive)
    if not wanted:
        raise SupplyError(
            f"No checksum is known for {archive.name}; its sha256 is {digest}",
            remedy=f"Compare it with another source, then give it: --{kind.name}-sha256 {digest}, "
            f'or pin it in the recipe: [host.sha256] {kind.name} = "{digest}".',
        )
    if digest != wanted:
        raise SupplyError(
            f"{archive.name} has the sha256 {digest}; wanted: {wanted}", remedy="Download it again."
        )
    return digest


def _pinned_digest(recipe: Recipe, kind: Kind, archive: Path) -> str:
    pins = {str(name): sha256 for name, sha256 in recipe.host.sha256.items()}
    table = dict(recipe.toolkit.parts()).get(kind.name)
    named = _by_file(table.archives) if table else {}
    return pins.get(kind.name) or named.get(archive.name, "")


def _unaccepted(kind: Kind, archive: Path, licences: list[Path]) -> HostError:
    where = str(licences[0]) if licences else kind.licence
    what = f"{archive.name} is NVIDIA's, under a licence that you have to accept yourself: {where}"
    return HostError(
        what, remedy=f"Read it (also at {kind.licence}); if you accept it, add --licence-accepted."
    )


def record(job: RecipeJob) -> ToolkitRecord:
    """Return what the toolkit of a recipe consists of; an empty record if there is none."""
    root = toolkit_root(job.host_file.build_out, job.recipe)
    return tree.read(root) if root else ToolkitRecord()
