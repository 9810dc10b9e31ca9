"""The toolkit tables of a recipe: where CUDA, its libraries and nvcc's compiler come from."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import StringConstraints

from tfwright.documents.names import DebFile, HttpsUrl, Line, Sha256, WheelFile
from tfwright.documents.toml import Table

PartName = Literal["cuda", "cudnn", "nccl", "tensorrt", "compiler"]
Way = Literal["wheels", "debian", "archives"]
"""A way to obtain packages of a part."""
AnyWay = Literal["wheels", "debian", "archives", "directory"]
"""Those, and a directory of this host that holds the part already."""


class DebianTable(Table):
    """Packages of one suite of Debian."""

    suite: Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]
    """The suite's code name: ``bookworm``."""
    files: dict[DebFile, Sha256]
    """File name of a package = its SHA-256 checksum."""


class PartTable(Table):
    """One part of a toolkit, and each of the ways to obtain it."""

    licence: HttpsUrl | None = None
    """Address of the licence that the user has to accept; none for free software."""
    # File names and no urls: mirrors of an index keep the names.
    wheels: dict[WheelFile, Sha256] = {}
    """Packages of the Python index that contain this part: file name = SHA-256 checksum."""
    debian: DebianTable | None = None
    """Packages of Debian that contain this part."""
    archives: dict[HttpsUrl, Sha256] = {}
    """Archives that the vendor publishes without a login: url = SHA-256 checksum. Several are
    merged, as NVIDIA publishes one for each part of CUDA."""
    order: tuple[Way, ...] = ("wheels", "debian", "archives")
    """The order in which the ways are tried. A way that is left out is never tried."""
    tree: Sha256 | None = None
    """One checksum for all files of the part as they are arranged; `invoke toolkit` prints it.
    Every way must give the same files."""
    differs: dict[AnyWay, Line] = {}
    """Way = how its files differ from those of ``tree``. The files of such a way are not compared,
    and the text is shown when it is used."""

    def ways(self) -> Iterator[tuple[Way, Mapping[str, str]]]:
        """Yield each way with the digests of its files, in the order in which they are tried."""
        pinned: Mapping[Way, Mapping[str, str]] = {
            "wheels": self.wheels,
            "debian": self.debian.files if self.debian else {},
            "archives": self.archives,
        }
        for way in dict.fromkeys(self.order):
            if pinned[way]:
                yield way, pinned[way]

    def is_expected(self, way: AnyWay, tree: str) -> bool:
        """Say whether files that came in some way are those of the recipe."""
        return self.tree in (None, tree) or way in self.differs


class ToolkitTable(Table):
    """What `invoke toolkit` downloads for a recipe, so that the host file need not name a CUDA."""

    cuda: PartTable | None = None
    """The CUDA toolkit."""
    cudnn: PartTable | None = None
    """cuDNN."""
    nccl: PartTable | None = None
    """NCCL."""
    tensorrt: PartTable | None = None
    """TensorRT."""
    # A host rarely has a gcc that is old enough for its CUDA, hence this part.
    compiler: PartTable | None = None
    """The host compiler of nvcc; its ``gcc-N`` becomes GCC_HOST_COMPILER_PATH."""

    def parts(self) -> Iterator[tuple[PartName, PartTable]]:
        """Yield the parts that the recipe names."""
        for name in get_args(PartName):
            if part := getattr(self, name):
                yield name, part

    def gcc(self) -> tuple[str, str] | None:
        """Return program and version of the packaged compiler: ``("gcc-11", "11.3.0")``."""
        if not (self.compiler and self.compiler.debian):
            return None
        # Debian names the compiler's package after the program, and libraries otherwise.
        for file in self.compiler.debian.files:
            if found := re.match(r"(gcc-\d+)_([\d.]+)", file):
                return found[1], found[2]
        return None
