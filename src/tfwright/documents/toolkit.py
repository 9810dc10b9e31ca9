"""The toolkit tables of a recipe: where CUDA, its libraries and nvcc's compiler come from."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import StringConstraints

from tfwright.documents.names import DebFile, HttpsUrl, WheelFile
from tfwright.documents.toml import Table

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PartName = Literal["cuda", "cudnn", "nccl", "tensorrt", "compiler"]
Way = Literal["wheels", "debian", "archives"]


class DebianTable(Table):
    """Packages of one suite of Debian."""

    suite: Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]
    """The suite's code name: ``bookworm``."""
    files: dict[DebFile, Digest]
    """File name of a package = its SHA-256 checksum."""


class PartTable(Table):
    """One part of a toolkit, and each of the ways to obtain it."""

    licence: HttpsUrl | None = None
    """Address of the licence that the user has to accept; none for free software."""
    # File names and no urls: mirrors of an index keep the names.
    wheels: dict[WheelFile, Digest] = {}
    """Packages of the Python index that contain this part: file name = SHA-256 checksum."""
    debian: DebianTable | None = None
    """Packages of Debian that contain this part."""
    archives: dict[HttpsUrl, Digest] = {}
    """Archives that the vendor publishes without a login: url = SHA-256 checksum."""

    def ways(self) -> Iterator[tuple[Way, Mapping[str, str]]]:
        """Yield each way with the digests of its files, in the order in which they are tried."""
        # Wheels first: pip's index is within reach of most hosts, apt only of Debian's.
        if self.wheels:
            yield "wheels", self.wheels
        if self.debian:
            yield "debian", self.debian.files
        if self.archives:
            yield "archives", self.archives


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
        named: tuple[PartName, ...] = ("cuda", "cudnn", "nccl", "tensorrt", "compiler")
        for name in named:
            part = getattr(self, name)
            if part is not None:
                yield name, part

    def gcc(self) -> tuple[str, str] | None:
        """Return program and version of the packaged compiler: ``("gcc-11", "11.3.0")``."""
        files = self.compiler.debian.files if self.compiler and self.compiler.debian else {}
        # Debian names the compiler's package after the
        # program, and libraries otherwise.
        for file in files:
            found = re.match(r"(gcc-\d+)_([\d.]+)", file)
            if found:
                return found[1], found[2]
        return None
