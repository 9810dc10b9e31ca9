"""`invoke toolkit`: CUDA, its libraries and nvcc's compiler, put where builds find them."""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import filesystem
from tfwright.documents.host_file import HostFile, compiler_root, toolkit_root
from tfwright.documents.recipe import Recipe
from tfwright.documents.toolkit import AnyWay, PartName, PartTable, Way
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.facts.compatibility import is_of_line
from tfwright.host import cuda, hermetic, nvidia
from tfwright.host.place import HERE
from tfwright.toolkit import layout, nvcc, sources, tree, ways
from tfwright.toolkit.sources import Supplier
from tfwright.toolkit.tree import InstalledPart
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

    def pinned_version(self, recipe: Recipe) -> str:
        """Return the version that a recipe names; empty if it names none."""
        if self.name == "compiler":
            gcc = recipe.toolkit.gcc()
            return gcc[1] if gcc else ""
        return getattr(recipe.host, self.name) or ""


_DEEP_LEARNING = "https://docs.nvidia.com/deeplearning/"
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "cuda",
            "CUDA",
            "https://docs.nvidia.com/cuda/eula/",
            ("bin", "include", "lib64", "nvvm", "targets"),
        ),
        *(
            Kind(name, library.title, f"{_DEEP_LEARNING}{name}/sla/", ("include", "lib64", "lib"))
            for name, library in nvidia.LIBRARIES.items()
        ),
        Kind("compiler", "gcc", "", ("usr",)),
    )
}


@dataclass(frozen=True)
class Download:
    """A file or directory that the user names."""

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


def named_downloads(options: Mapping[str, tuple[str, str]]) -> list[Download]:
    """Return the files that the command line names: path and checksum, by the name of the part."""
    return [
        Download(KINDS[name], Path(path), sha256)
        for name, (path, sha256) in options.items()
        if path
    ]


def check_wanted(recipe: Recipe, downloads: Sequence[Download], host_file: HostFile) -> None:
    """Raise RecipeError if there is nothing to do: no file, and a recipe that pins no packages."""
    if downloads or any(recipe.toolkit.parts()):
        return
    in_force = cuda.in_force(recipe, hermetic.downloads(recipe, host_file))
    if in_force and not cuda.needs_toolkit(recipe):
        raise RecipeError(
            f"{recipe.name} needs no toolkit of this host: from TensorFlow {cuda.HERMETIC_SINCE} "
            f"on Bazel downloads CUDA, here {in_force.version}",
            remedy=f"Nothing is to be done: 'invoke build --recipe {recipe.name}' builds it.",
        )
    named = [(kind.title, kind.pinned_version(recipe)) for kind in KINDS.values()]
    wanted = ", ".join(f"{title} {version}" for title, version in named if version)
    remedy = "Name a recipe that does: --recipe; 'invoke recipes' lists them."
    if wanted:
        remedy = (
            "Give what you downloaded: --cuda FILE, --cudnn FILE, --nccl FILE, --tensorrt FILE."
        )
    raise RecipeError(
        f"Nothing to unpack; {recipe.name} wants {wanted or 'neither CUDA nor cuDNN'}",
        remedy=remedy,
    )


@dataclass(frozen=True)
class Installer:
    """Puts the parts of one recipe's toolkit into place. Nothing of them is run.

    Each method raises SupplyError if a part cannot be obtained or is another version than the
    recipe names, RecipeError if the recipe wants none, HostError while the user has not accepted
    its licence.
    """

    recipe: Recipe
    supplier: Supplier
    locked: Path | None = None
    """The recipe's lock file."""
    licence_accepted: bool = False

    def obtain(self) -> Iterator[Provided]:
        """Bring every part that the recipe pins into place; yield each of them.

        A part that is there already, made from the same packages, is left alone.
        """
        # Before any download: the lock decides which packages a build may use.
        locked = lock.read(self.locked).toolkit if self.locked else ()
        pinned = locking.toolkit(self.recipe.toolkit)
        changed = sorted({package.name for package in set(pinned) ^ set(locked)})
        if locked and changed:
            raise SupplyError(
                f"The recipe pins other packages for its toolkit than its lock file: {changed[0]}",
                remedy="If the change is meant, run "
                f"'invoke lock --recipe {self.recipe.argument}'.",
                where=self.locked,
                lines=changed,
            )
        command = f"invoke toolkit --recipe {self.recipe.argument}"
        for name, table in self.recipe.toolkit.parts():
            kind = KINDS[name]
            root = self._root(kind)
            # Recipes share toolkits: a second build waits, and then finds the part in place.
            with file_lock.locked(root.with_name(f"{root.name}.lock"), command, wait=True):
                part = _installed_part(kind, table, root) or self._install_pinned(kind, table, root)
            yield Provided(kind.title, root, part)

    def install(self, download: Download) -> Provided:
        """Put what the user downloaded, or has installed, into the toolkit that the recipe uses."""
        kind, archive = download.kind, download.path
        # A recipe without this part is refused before gigabytes are hashed.
        root = self._root(kind)
        directory = archive.is_dir()
        digest = "" if directory else self._verified_digest(download)
        with files.scratch_directory(root.parent, ".unpacking-") as scratch:
            made = scratch / "made"
            if directory:
                made.mkdir()
                layout.copy_part(archive, kind.name, made)
                layout.normalize(made)
                way, origin = "directory", {str(archive): tree.digest(tree.content(made))}
            else:
                # By the person and for each toolkit: NVIDIA's licences bind whoever installs.
                if not self.licence_accepted:
                    raise _licence_refusal(archive.name, archive, [kind.licence], scratch, root)
                # A .deb holds Debian's layout, an archive of NVIDIA's its own.
                packed: Way = "debian" if archive.suffix == ".deb" else "archives"
                made = _unpack_part(kind, packed, [archive], scratch)
                way, origin = "by hand", {archive.name: digest}
            # Whoever installed a directory accepted its licence.
            part = self._add_part(kind, way, origin, made, accepted=not directory)
        return Provided(kind.title, root, part)

    def _root(self, kind: Kind) -> Path:
        # The compiler has a root of its own: several toolkits may use the same one.
        place = compiler_root if kind.name == "compiler" else toolkit_root
        root = place(self.supplier.host_file.build_out, self.recipe)
        if root is None or not kind.pinned_version(self.recipe):
            raise RecipeError(
                f"{self.recipe.name} names no {kind.title}",
                remedy=f'Name the version in the recipe: [host] {kind.name} = "VERSION".',
            )
        return root

    def _install_pinned(self, kind: Kind, table: PartTable, root: Path) -> InstalledPart:
        """Obtain and unpack the packages that the recipe pins for a part."""
        title = f"{kind.title} {kind.pinned_version(self.recipe)}"
        obtained = self.supplier.obtain(title, table)
        with files.scratch_directory(root.parent, ".unpacking-") as scratch:
            # The packages are needed for this refusal, too: the licence's text is in them.
            if table.licence and not self.licence_accepted:
                # All packages of a part hold the same text; the largest takes minutes to read.
                package = min(obtained.files, key=lambda path: path.stat().st_size)
                licences = [part.licence for _, part in self.recipe.toolkit.parts() if part.licence]
                raise _licence_refusal(kind.title, package, licences, scratch, root)
            # The longest step: without a note it would look like the download.
            self.supplier.listener.note(f"Unpacking {title}")
            made = _unpack_part(kind, obtained.way, obtained.files, scratch)
            # The record names what was really used: a recipe may pin several ways.
            accepted = bool(table.licence)
            return self._add_part(kind, obtained.way, obtained.sources, made, accepted=accepted)

    def _add_part(
        self, kind: Kind, way: str, origin: Mapping[str, str], made: Path, *, accepted: bool
    ) -> InstalledPart:
        """Put what was unpacked into the toolkit, once it is what the recipe wants."""
        # Read from the unpacked files: names of archives promise versions that they do not hold.
        version, wanted = (
            ways.installed_version(HERE, kind.name, made),
            kind.pinned_version(self.recipe),
        )
        source = next(iter(origin))
        if not version:
            raise SupplyError(
                f"{source} does not contain {kind.title}",
                remedy="Name the archive of the whole library; 'invoke toolkit --help' says which.",
            )
        if not is_of_line(version, wanted):
            raise SupplyError(
                f"{source} is {kind.title} {version}; {self.recipe.name} wants {wanted}",
                remedy=f"Download {kind.title} {wanted}.",
            )
        part = InstalledPart(
            version=version,
            way=way,
            sources=dict(origin),
            licence_accepted_by=filesystem.account_name() if accepted else "",
            on=dt.datetime.now(dt.UTC).date().isoformat(),
            files=tree.content(made),
        )
        self._check_tree(kind, part)
        tree.add_part(self._root(kind), kind.name, part, made)
        return part

    def _check_tree(self, kind: Kind, part: InstalledPart) -> None:
        """Refuse files that are not those that the recipe pins; show a stated difference."""
        table = dict(self.recipe.toolkit.parts()).get(kind.name)
        if table is None or part.tree == table.tree:
            return
        # What a user downloads from the vendor is what the vendor's address gives.
        way: AnyWay = "directory" if part.way == "directory" else "archives"
        way = next((pinned for pinned, _ in table.ways() if pinned == part.way), way)
        if way in table.differs:
            self.supplier.listener.note(f"{kind.title} from {way}: {table.differs[way]}")
        elif not table.is_expected(way, part.tree):
            raise RecipeError(
                f"{kind.title} from {way} has other files than {self.recipe.name} pins: "
                f"{part.tree}",
                remedy="Take another way. If the difference is known and does no harm, state it "
                f'in the recipe: [toolkit.{kind.name}.differs] {way} = "…".',
                lines=[f"toolkit.{kind.name}.tree = {table.tree}"],
            )

    def _verified_digest(self, download: Download) -> str:
        """Return the digest of an archive, which the user or the recipe must name."""
        name, archive = download.kind.name, download.path
        if not archive.is_file():
            raise SupplyError(
                f"{archive} is not there",
                remedy="Download it from https://developer.nvidia.com; some files need a login "
                "there.",
            )
        # Hashed before it is opened: an archive is untrusted until its checksum fits.
        digest = files.sha256(archive)
        table = dict(self.recipe.toolkit.parts()).get(name)
        named = sources.pins_by_file_name(table.archives) if table else {}
        pins = {str(part): sha256 for part, sha256 in self.recipe.host.sha256.items()}
        wanted = download.sha256.lower() or pins.get(name) or named.get(archive.name)
        if not wanted:
            raise SupplyError(
                f"No checksum is known for {archive.name}; its sha256 is {digest}",
                remedy=f"Compare it with another source, then give it: --{name}-sha256 {digest}, "
                f'or pin it in the recipe: [host.sha256] {name} = "{digest}".',
            )
        if digest != wanted:
            raise SupplyError(
                f"{archive.name} has the sha256 {digest}; wanted: {wanted}",
                remedy="Download it again.",
            )
        return digest


def _installed_part(kind: Kind, table: PartTable, root: Path) -> InstalledPart | None:
    """Return a part that is there already, as it was unpacked."""
    part = tree.read(root).parts.get(kind.name)
    # By checksum: packages of the same version may have been repacked.
    if part is None or not any(
        part.sources == sources.pins_by_file_name(pins) and table.is_expected(way, part.tree)
        for way, pins in table.ways()
    ):
        return None
    # What was changed meanwhile, or is of another tfwright, is unpacked again. Asked last, since
    # files that were touched are read for it.
    changed = nvcc.has_outdated_script(part.files) or tree.changed_files(root, part.files)
    return None if changed else part


def _unpack_part(kind: Kind, way: Way, packages: Collection[Path], scratch: Path) -> Path:
    """Unpack the packages of a part; return a directory that is laid out as a toolkit."""
    if way == "archives":
        return layout.merge(packages, scratch, kind.roots)
    raw, made = scratch / "raw", scratch / "made"
    for folder in (raw, made):
        folder.mkdir()
    for package in packages:
        unpacking.unpack(package, raw)
    layout.arrange(raw, kind.name, way, made)
    return made


def _licence_refusal(
    named: str, archive: Path, licences: Sequence[str], scratch: Path, root: Path
) -> HostError:
    """Return the refusal that names the licence's text in an archive, and what else to accept."""
    found = layout.copy_licences(archive, scratch, root.with_name(f"{root.name}-licences"))
    where = found[0] if found else licences[0]
    return HostError(
        f"{named} is NVIDIA's, under a licence that you have to accept yourself: {where}",
        remedy=f"Read it, and all of {', '.join(licences)}; if you accept them, add "
        "--licence-accepted.",
    )
