"""The recipe: one flat TOML file that pins everything a wheel is made from."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tfwright.documents import filesystem
from tfwright.documents.composing import Composing, file_of, names_on_axes
from tfwright.documents.filesystem import HOST_FILE, INSTALLED, SHIPPED
from tfwright.documents.names import (
    HERMETIC_PYTHON_NAMES,
    LONGEST_PATH,
    PYTHON,
    VARIABLE,
    Commit,
    CpuLevel,
    DownloadUrl,
    Flag,
    GitUrl,
    InnerPath,
    Line,
    Name,
    PackagePin,
    PackageUrl,
    PythonVersion,
    RecipeName,
    Replaced,
    Sha256,
    Statement,
    Version,
    one_line,
)
from tfwright.documents.release import (
    NO_RELEASE,
    ExactRelease,
    Release,
    StatedRelease,
    StatedVersion,
)
from tfwright.documents.toml import DocumentError, Table, load, values_of
from tfwright.documents.toolkit import ToolkitTable
from tfwright.errors import RecipeError, invoke, with_recipe
from tfwright.printable import did_you_mean, shell_word
from tfwright.progress import Stage

TENSORFLOW_TARGET = "//tensorflow/tools/pip_package:build_pip_package"
"""The program that makes the wheel, up to 2.16."""
WHEEL_TARGET = "//tensorflow/tools/pip_package:wheel"
"""From 2.17 on (there also in 2.16) Bazel itself makes the wheel."""
DESTINATION = "@DESTINATION@"
"""Stands for a directory in the arguments of the program that makes the wheel."""
# A question becomes a regular expression that is searched in all that ./configure prints.
SHORTEST_QUESTION = 3
"""Characters of a question without its asterisks; a shorter text would match anything."""
MOST_WILDCARDS = 4
"""Asterisks in one question; more of them could make the search slow."""
SEPARATE_NCCL = Release(1, 0), Release(1, 12)
"""The first and the last release with a separate _nccl_ops.so."""
NAMED_SINCE = Release(1, 9)
"""The first release whose build_pip_package takes --project_name."""
ROOT = filesystem.ROOT
RECIPES = ROOT / "recipes"
PATCHES = ROOT / "patches"
# Quick ones first: a wheel that does not even list its devices fails within seconds.
SMOKE = (
    "library_path",
    "devices",
    "matmul",
    "placement",
    "soft_placement",
    "powers",
    "two_gpus",
    "memory",
    "cnn",
    "sweep",
)
"""The smoke programs, the quick ones first; all make sense for any TensorFlow."""


def _check_question(text: str) -> str:
    # Questions may span lines; isprintable takes a line break for a control character.
    if not text.replace("\n", " ").isprintable():
        raise ValueError("must be printable text; only line breaks may stand in a question")
    if text.count("*") > MOST_WILDCARDS:
        raise ValueError(f"has more than {MOST_WILDCARDS} asterisks; one matches a whole default")
    if len(text.replace("*", "").strip()) < SHORTEST_QUESTION:
        raise ValueError("must hold some words of the question; an asterisk matches anything")
    return text


# TensorFlow takes both spellings, 7.5 and sm_75; NVIDIA marks variants by a letter, as in sm_90a.
_CAPABILITY = r"(sm_|compute_)?[0-9]+(\.[0-9]+)?[af]?"
Capabilities = Annotated[str, StringConstraints(pattern=rf"^{_CAPABILITY}(,{_CAPABILITY})*$")]
# sm_90a and sm_100f: code for one GPU, or for one family of GPUs.
Architecture = Annotated[str, StringConstraints(pattern=r"^(sm|compute)_[0-9]{1,4}[af]?$")]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]
# Both limits come from macOS, whose PATH_MAX is 1,024 bytes with the final zero.
LibraryName = Annotated[
    str, StringConstraints(min_length=1, max_length=1023), AfterValidator(one_line)
]
"""The name of a shared library of a Mac, as the linker writes it."""
LibraryFolder = Annotated[
    str, StringConstraints(pattern=r"^/[^:]*$", max_length=1023), AfterValidator(one_line)
]
"""An absolute directory of a Mac."""


class AxesTable(Table):
    """Values that make several recipes of one file, each with a name of its own."""

    python: tuple[PythonVersion, ...] = ()
    """Pythons in addition to that of ``[host]``: with ``3.13`` the recipe ``r`` has another one,
    ``r-py313``, with packages and a lock file of its own."""


class SourceTable(Table):
    """The TensorFlow to build, and the changes that the recipe makes to it."""

    url: GitUrl
    """Upstream's public repository; ``bundled:demo`` is the tree that tfwright ships."""
    branch: Name
    """The branch that the commit is expected on. tfwright never follows it: the commit decides."""
    commit: Commit
    """All 40 digits of the commit to build."""
    interface: Literal["tensorflow", "own"] = "tensorflow"
    """``tensorflow`` if the tree is configured and packaged as this release of TensorFlow is;
    ``own`` if ``[configure]`` and ``[package]`` describe it."""
    release: StatedRelease
    """The release whose rules apply, as ``1.8``; by default the one in the name of the branch."""
    version: StatedVersion | None = None
    """The version with patch level and fork, as ``2.4.4`` or ``1.15.5+nv22.12``; needed where
    ./configure differs by them. By default the one in `release` or in the name of the branch."""
    patches: tuple[InnerPath, ...] = ()
    """Files under patches/, applied in this order."""
    assets: dict[InnerPath, InnerPath] = {}
    """Files put into the tree before the patches: path in the tree = file under patches/."""
    exclude: tuple[InnerPath, ...] = ()
    """Paths of the tree that are neither transferred nor checked out (test data, other
    languages)."""
    REMEDIES: ClassVar = {
        "release": 'Add release = "1.8", the TensorFlow whose rules apply; of a repository that is '
        'not TensorFlow, interface = "own".'
    }
    # Where the recipe's own patches/ would be. Private: the path must not enter stamps or locks.
    _patches_of_recipe: Path = PrivateAttr(default=PATCHES)

    @property
    def bundled(self) -> bool:
        """Whether the tree comes with tfwright."""
        return self.url.startswith("bundled:")

    @property
    def own_interface(self) -> bool:
        """Whether the recipe itself says how the tree is configured and packaged."""
        return self.interface == "own"

    @property
    def of_tensorflow(self) -> bool:
        """Whether it is a TensorFlow, and neither another repository nor the bundled tree."""
        return not (self.own_interface or self.bundled)

    @property
    def named_files(self) -> tuple[str, ...]:
        """The patches and assets, as the recipe names them."""
        return (*self.patches, *self.assets.values())

    def file(self, name: str) -> Path:
        """Return the path of a patch or an asset.

        patches/ in the recipe's own directory comes before patches/ of the checkout.
        """
        own = self._patches_of_recipe / name
        shipped = SHIPPED / "patches" / name
        if INSTALLED and not own.is_file() and shipped.is_file():
            return shipped
        return own if own.is_file() else PATCHES / name

    def located(self, folder: Path) -> Self:
        """Return the same table, for a recipe that lies in `folder`."""
        copy = self.model_copy()
        copy._patches_of_recipe = folder / "patches"  # noqa: SLF001 our own
        return copy

    @model_validator(mode="before")
    @classmethod
    def _release_from_branch(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        branch = str(values.get("branch"))
        # A missing or misspelt branch is a fault of its own; that one is enough.
        if not re.fullmatch(r"[\w./+-]+", branch) or "branch" not in values:
            return {"release": NO_RELEASE, **values}
        # r1.8 and v1.8.0 name a release; master and a fork's own branches do not.
        named = branch if re.match(r"[rv]\d+\.\d+", branch) else None
        if values.get("interface") == "own":
            return {"release": NO_RELEASE, **values}
        stated = values.get("release") or named or values.get("version")
        found = {"release": stated} if stated else {}
        # A name such as r1.15.5+nv22.12 says more than the release line, which ./configure needs.
        if isinstance(stated, str) and re.match(r"[rv]?\d+\.\d+(\.\d|\+)", stated):
            found["version"] = stated
        # What follows a version in a branch's name is not part of it: r2.4-with-fixes.
        if named and stated == named:
            readers = {"release": Release.parse, "version": ExactRelease.parse}
            found = {key: readers[key](named) for key in found}
        # What the recipe states itself comes last, so that it wins.
        return {**found, **values}

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.version and self.version.line != self.release:
            message = f"source.version: {self.version} is not of release {self.release}"
            raise ValueError(message)
        if self.interface == "tensorflow" and self.release == NO_RELEASE:
            raise ValueError(
                'source.release: none belongs to interface = "own"; the rules of TensorFlow\'s '
                "interface go by its release"
            )
        return self

    @property
    def exact(self) -> ExactRelease:
        """The version that the recipe states, or else the first one of its release."""
        version = self.version or ExactRelease(*self.release)
        # Graphcore's branches carry the SDK's version, not one of TensorFlow's with a suffix.
        of_graphcore = "graphcore" in self.url or "/sdk-release-" in self.branch
        return version._replace(fork="ipu") if of_graphcore and not version.fork else version


_PINNED = {"sha256": f"Let '{invoke('pin')}' write it."}
"""What to do about a checksum that is missing."""


class SubstituteTable(Table):
    """Other bytes for an archive that cannot be downloaded any more.

    The wheel is then not built from the pinned bytes, and says so.
    """

    reason: Statement
    """Why the pinned archive cannot be downloaded, and what this one is; shown wherever the wheel
    is described."""
    replaces: Replaced | None = None
    """The checksum that the tree pins, or, where it pins none, the url that it names. tfwright
    refuses the recipe if the tree names another archive."""
    REMEDIES: ClassVar = _PINNED
    sha256: Sha256
    """The checksum of the file that is used instead."""
    urls: tuple[DownloadUrl, ...] = ()
    """Where that file can be downloaded; without them the archive's own urls stay in the tree."""
    git: GitUrl | None = None
    """A repository whose commit is packed, with the directory that the archive's rule expects."""
    commit: Commit | None = None
    """The commit of that repository."""
    prefix: InnerPath | None = None
    """The directory that the commit is packed into, where it is not the one that the rule
    strips."""
    exclude: tuple[InnerPath, ...] = ()
    """Paths of the commit that are left out of the pack."""
    strip_prefix: Line | None = None
    """The directory in the substitute, where it is not named as the rule expects."""
    only_if_missing: bool = False
    """Use the pinned archive wherever a source has it. A lock file then states which of both its
    builds take."""
    patches: tuple[InnerPath, ...] = ()
    """Those of source.patches that only this substitute needs; a build that takes the pinned
    archive leaves them out. They may not change Bazel's files."""

    @property
    def pins(self) -> bool:
        """Say whether it pins an archive that the tree names without a checksum."""
        return self.replaces is not None and "://" in self.replaces

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        both_or_neither = bool(self.urls) == bool(self.git)
        # A branch or tag of the repository could move, so the commit is required.
        if both_or_neither or bool(self.git) != bool(self.commit):
            raise ValueError("give either urls, or git with commit")
        return self


class FileSourceTable(Table):
    """One more place that has exactly the pinned bytes of a file.

    It is a git repository, or a file in a package of a registry.
    """

    REMEDIES: ClassVar = _PINNED
    sha256: Sha256
    """The checksum of the file, as the tree or a substitute pins it."""
    git: GitUrl | None = None
    """A repository. Without `ref` and `blob`, it is one more repository for an archive or a commit
    that tfwright packs itself."""
    ref: Name | None = None
    """A commit or tag that is packed into `prefix`, as GitLab and other forges do: in the form that
    the urls of the file end in, else compressed by gzip."""
    prefix: InnerPath | None = None
    """The directory in that archive: ``eigen-3.3.9``."""
    blob: Commit | None = None
    """Git's id of the file's content, where the file itself is in the repository."""
    package: PackageUrl | None = None
    """A package of a registry: ``pkg:npm/sqlite3@4.0.4``, ``pkg:pypi/NAME@VERSION``,
    ``pkg:deb/debian/NAME``."""
    member: InnerPath | None = None
    """The file in the package; for a distribution's source package the name of one of its files."""

    @model_validator(mode="after")
    def _is_one_place(self) -> Self:
        both_or_neither = bool(self.git) == bool(self.package)
        if both_or_neither or bool(self.package) != bool(self.member):
            raise ValueError("give either git, or package with member")
        # The directory is part of the packed bytes, so ref makes no archive without prefix.
        incomplete = bool(self.ref) != bool(self.prefix)
        if incomplete or (self.ref and self.blob):
            raise ValueError("give git alone, git with ref and prefix, or git with blob")
        if self.package and (self.ref or self.blob):
            raise ValueError("ref and blob belong to git, not to a package")
        return self


class FetchTable(Table):
    """What a build downloads in addition to what the tree itself names."""

    # Excluded: what the document says counts, and not where it lies.
    archives: Name | InnerPath | None = Field(default=None, exclude=True)
    """A document of ``archives/``, by its name without ``.toml``, or the path of one in the
    recipe's directory. Its substitutes and sources join those below."""
    substitutes: dict[Name, SubstituteTable] = {}
    """Other archives, by the name of the external repository whose archive they replace."""
    sources: tuple[FileSourceTable, ...] = ()
    """More places that have the pinned bytes; tfwright checks each file by its checksum."""

    @property
    def other_bytes(self) -> dict[str, SubstituteTable]:
        """The substitutes of archives that the tree pins: the wheel is made of other bytes."""
        substitutes = self.substitutes.items()
        return {name: table for name, table in substitutes if not table.pins}

    @property
    def patches(self) -> frozenset[str]:
        """The patches that belong to a substitute."""
        return frozenset(patch for table in self.substitutes.values() for patch in table.patches)

    def without(self, names: Collection[str]) -> Self:
        """Return the same without some substitutes."""
        kept = {name: table for name, table in self.substitutes.items() if name not in names}
        return self.changed(substitutes=kept)


class ImageTable(Table):
    """A container image; the digest decides, name and tag are for people."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9._/:-]{0,200}[a-z0-9])?$")]
    """Registry and repository: ``docker.io/library/debian``."""
    tag: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")] = (
        "latest"
    )
    """The tag that had this digest; it is shown, and never resolved."""
    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    """The digest of the image's manifest. Required, since a tag can move to another image."""
    containerfile: InnerPath | None = None
    """The Containerfile next to the recipe that the image was built from, for
    `invoke image --build`."""

    @property
    def shown(self) -> str:
        """Name and the begin of the digest, as people read them."""
        return f"{self.name}@{self.digest[:19]}…"


class HostTable(Table):
    """What the machine that builds must have; the check stage compares it with the real one."""

    system: Literal["Linux", "Darwin", "any"]
    """The operating system as ``uname -s`` prints it; ``Darwin`` is macOS."""
    machine: str = "x86_64"
    """The processor as ``uname -m`` prints it; ``any`` for a recipe that compiles nothing."""
    python: Annotated[str, StringConstraints(pattern=PYTHON)]
    """The target Python, ``3.6``; ``any`` takes the Python that runs tfwright."""
    requirements: tuple[PackagePin, ...] = ()
    """What the build needs in the target Python, as exact pip pins: ``numpy==1.14.5``. What pip
    resolved for them lies next to the recipe, in ``NAME.pins``."""
    macos: Version | None = None
    """The version of macOS."""
    xcode: Version | None = None
    """The version of Xcode."""
    clang: Line | None = None
    """The build number of Apple's clang, as ``cc --version`` prints it: ``800.0.42.1``."""
    gcc: Version | None = None
    """The newest gcc that this TensorFlow, or its CUDA, accepts."""
    cuda: Version | None = None
    """The version of the CUDA toolkit."""
    cudnn: Version | None = None
    """The version of cuDNN."""
    nccl: Version | None = None
    """The version of NCCL, for a recipe that uses the host's NCCL."""
    tensorrt: Version | None = None
    """The version of TensorRT."""
    driver: Version | None = None
    """The oldest NVIDIA driver that runs the wheel."""
    programs: tuple[Name, ...] = ()
    """Other programs that the build runs from the system's own PATH: ``["perl", "bison"]``."""
    sha256: dict[Literal["cuda", "cudnn", "nccl", "tensorrt"], Sha256] = {}
    """Digests of NVIDIA's own archives, for `invoke toolkit`."""
    image: ImageTable | None = None
    """The container image in which configure to verify run; without one they run on the host."""


# Bazel's releases are published under these names of systems and processors.
class BazelTable(Table):
    """The Bazel that builds."""

    version: Version
    """The exact version of Bazel."""
    sha256: dict[
        Annotated[str, StringConstraints(pattern=r"^(linux|darwin)-(x86_64|arm64)$")], Sha256
    ] = {}
    """Checksum of the binary per platform. Without one tfwright trusts the first download, and
    records its checksum."""


class PromptTable(Table):
    """A question of a fork, of a patched ./configure or of another repository."""

    variable: Variable
    """The name of the answer in ``[configure.answers]``."""
    question: Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_check_question)]
    """The text of the question, to its very end; ``*`` matches what differs from host to host."""
    kind: Literal["yes-no", "text"] = "text"
    """Whether the answer is true or false, or a text."""
    yes: Line = "y"
    """What is typed where the answer is true."""
    no: Line = "n"
    """What is typed where the answer is false."""
    when: Line = ""
    """The program asks only if the answers fulfil this: ``TF_A and not TF_B or TF_C``."""
    optional: Flag = False
    """The program may skip this question, so the recipe need not answer it."""
    environment: Flag = False
    """The program does not ask this, but reads the variable from its environment."""


# A flag with a blank in it stands in quotes.
_BAZELRC_LINE = re.compile(r"(build|test|run|common|fetch|query|coverage)(:[\w.+-]+)? ['\"]?-\S.*")


def _bazelrc_line(text: str) -> str:
    # import and try-import would let a recipe make Bazel read any file of the host.
    if not _BAZELRC_LINE.fullmatch(text):
        raise ValueError("must be a line of flags such as 'build --copt=-O2' or 'build:opt -c opt'")
    return one_line(text)


def is_bazelrc_line(text: str) -> bool:
    """Say whether a recipe may state a line of a bazelrc."""
    try:
        _bazelrc_line(text)
    except ValueError:
        return False
    return True


BazelrcLine = Annotated[str, AfterValidator(_bazelrc_line)]
"""One line of a bazelrc that sets flags; it cannot import another file."""


class BazelrcTable(Table):
    """How the file that ./configure writes for Bazel differs from that of this TensorFlow.

    tfwright puts the answer of that name in place of ``@NAME@``; ``@PYTHON_BIN_PATH@`` and
    ``@PYTHON_LIB_PATH@`` are the target Python and its site-packages.
    """

    lines: tuple[BazelrcLine, ...] = ()
    """The whole file, for a repository with an interface of its own. Without these lines tfwright
    does not check the file."""
    adds: tuple[BazelrcLine, ...] = ()
    """Lines that a fork, or a patch of ./configure, writes in addition."""
    omits: tuple[BazelrcLine, ...] = ()
    """Lines that TensorFlow writes, and this ./configure does not."""


class ConfigureTable(Table):
    """The answers to ``./configure``."""

    by: Literal["dialogue", "environment"] = "dialogue"
    """``dialogue`` types the answers at the prompts; ``environment`` exports them, and treats any
    prompt as an error."""
    # Excluded, since `answers` has them, too.
    no: tuple[Variable, ...] = Field(default=(), exclude=True)
    """Questions whose answer is no: each stands for ``NAME = false`` among the answers."""
    answers: dict[Variable, Flag | Line] = {}
    """The answers, by the names of TensorFlow's own variables; true is y, and false is n."""
    program: InnerPath = "configure"
    """The program in the tree that asks the questions."""
    writes: InnerPath | None = None
    """The file that the program writes for Bazel; ``.bazelrc`` by default with ``interface =
    "own"``."""
    prompts: tuple[PromptTable, ...] = ()
    """Questions that tfwright's catalogue does not have, in the order in which they are asked."""
    bazelrc: BazelrcTable = BazelrcTable.defaults()
    """How the file that ./configure writes for Bazel differs from that of this TensorFlow."""
    timeout: Annotated[int, Field(gt=0, le=3600, strict=True)] = 60
    """Seconds to wait for a prompt; the first one may take twice as long, since Bazel unpacks
    itself."""

    def agrees_to(self, variable: str) -> bool:
        """Say whether the answer is yes."""
        return self.answers.get(variable) is True

    @model_validator(mode="before")
    @classmethod
    def _answers_no(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        refused, answers = values.get("no"), values.get("answers", {})
        if not (isinstance(refused, list) and isinstance(answers, dict)):
            return values
        # What is no name is a fault of the list, which describes it once.
        named = {name: False for name in refused if isinstance(name, str)}
        for name in named:
            if answers.get(name, False) is not False:
                raise ValueError(f"{name} is in configure.no, and has another answer below")
        return {**values, "answers": {**named, **answers}}


class CompileTable(Table):
    """What Bazel builds, and how."""

    target: Annotated[str, StringConstraints(pattern=r"^//[A-Za-z0-9_./:+-]*$")] = TENSORFLOW_TARGET
    """The target of ``bazel build``; from 2.17 on ``//tensorflow/tools/pip_package:wheel``."""
    flags: tuple[Line, ...] = ()
    """Flags of ``bazel build``, after the ones that tfwright needs."""
    env: dict[Variable, Line] = {}
    """Environment of the Bazel client and server, in addition to the fixed minimum."""
    peak: Annotated[float, Field(ge=0.01, le=10_000, strict=True)] = 1.5
    """GiB that one compile action may take. Jobs at once are limited so that all fit in memory."""


class NcclTable(Table):
    """The separate rebuild of ``_nccl_ops.so`` (TensorFlow 1.0 to 1.12)."""

    rebuild: Flag = False
    """Whether to rebuild it."""
    flags: tuple[Line, ...] = ()
    """Further flags for the compiler, such as ``-DGOOGLE_CUDA=1``."""


class PackageTable(Table):
    """How the wheel is made from what was built."""

    project_name: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None
    ) = None
    """The wheel's name, if it is not TensorFlow's own."""
    program: InnerPath | None = None
    """The program in the tree that makes the wheel, if it is not TensorFlow's build_pip_package;
    by default, with ``interface = "own"``, what ``compile.target`` builds."""
    arguments: tuple[Line, ...] = (DESTINATION,)
    """The program's arguments; ``@DESTINATION@`` becomes the directory for the wheel."""
    flags: tuple[Line, ...] = ()
    """Further arguments of build_pip_package, such as ``--gpu``."""
    platform: (
        Annotated[
            str, StringConstraints(pattern=r"^manylinux_[0-9]{1,4}_[0-9]{1,4}_[A-Za-z0-9_]+$")
        ]
        | None
    ) = None
    """The platform in the wheel's tag: ``manylinux_2_31_x86_64``. The build fails if auditwheel
    finds that a shared library does not conform to it."""
    libraries: dict[LibraryName, LibraryName] = {}
    """macOS: name of a shared library that the linker wrote = name that replaces it:
    ``"@rpath/libcudart.9.2.dylib" = "/usr/local/cuda/lib/libcudart.9.2.dylib"``. The new name works
    without DYLD_LIBRARY_PATH."""
    rpath: tuple[LibraryFolder, ...] = ()
    """macOS: absolute directories in which the loader looks for names that still begin with
    ``@rpath/``; they replace those of the building machine."""


KERNELS = "kernels"
"""Stands for one test of each family of kernels; some minutes in all."""
_KERNEL_TESTS = (
    "math_ops/matmul_op",
    "nn_ops/conv_ops",
    "math_ops/reduction_ops",
    "array_ops/array_ops",
    "array_ops/concat_op",
    "nn_ops/relu_op",
    "nn_ops/softmax_op",
)
_FAMILIES_SINCE = Release(2, 8)
"""The first release whose kernel tests lie in a folder for each family."""


def kernel_tests(release: Release) -> tuple[str, ...]:
    """Return the paths of the tests that `KERNELS` stands for."""
    names = (
        name if release >= _FAMILIES_SINCE else name.partition("/")[2] for name in _KERNEL_TESTS
    )
    return tuple(f"tensorflow/python/kernel_tests/{name}_test.py" for name in names)


class VerifyTable(Table):
    """The checks that the wheel must pass before it is published."""

    imports: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")], ...] = (
        "tensorflow",
    )
    """Modules that must import in a fresh venv of the target Python."""
    requirements: tuple[PackagePin, ...] = ()
    """Exact pins for what the wheel depends on, at versions that the target Python can run, in
    addition to those of ``NAME.pins``."""
    plugins: tuple[PackagePin, ...] = ()
    """Packages that are installed together with the wheel for the tests only, such as
    tensorflow-metal."""
    smoke: tuple[InnerPath, ...] = SMOKE
    """Programs of tfwright's smoke folder, run by the target Python on the first of `imports`; by
    default, with ``interface = "own"``, none. On a machine without a GPU, the report names the
    parts that were skipped."""
    tests: tuple[InnerPath, ...] = ()
    """Tests of the source tree itself that must pass with the installed wheel; ``kernels`` stands
    for one test of each family of kernels."""
    env: dict[Variable, Line] = {}
    """Environment of all these programs, in addition to the fixed minimum."""
    glibc: Version | None = None
    """The oldest glibc that the wheel must load on."""
    cpu: CpuLevel | None = None
    """The newest instruction set of an x86-64 CPU that the wheel may need. Each includes those
    before it; ``avx2`` includes FMA, BMI and F16C, which came with it in Haswell."""
    macos: Version | None = None
    """The oldest macOS that the wheel must load on."""
    architectures: tuple[Architecture, ...] = ()
    """GPU code that every shared library with GPU code must have: ``sm_70`` as machine code,
    ``compute_70`` as PTX."""
    size: Annotated[int, Field(gt=0, strict=True)] | None = None
    """The largest size of the wheel, in bytes."""

    @property
    def module(self) -> str:
        """What the smoke programs run on."""
        return next(iter(self.imports), "tensorflow")


class VerifiedTable(Table):
    """How far this recipe was really run; `invoke build --verified-by` writes it.

    Without it, or after a change to the recipe, tfwright shows the recipe as unverified.
    """

    until: Stage
    """The last stage that was run."""
    on: dt.date
    """The date of the run."""
    host: Statement
    """The machine that ran it."""
    by: Statement
    """The person who ran it."""
    note: Line = ""
    """Anything that readers should know, such as inputs that were substituted."""
    digests: dict[Literal["recipe", "patches", "lock", "tfwright", "run"], Line] = {}
    """A short checksum of each part that decides the wheel, and of this table, taken at that
    run."""

    def __str__(self) -> str:
        return f"{self.until} ({self.on})"


BESIDE_THE_BUILD = frozenset({"axes", "verified"})
"""Tables that decide nothing of what the recipe builds: the former makes further recipes, the
latter tells of a build that ended."""


class Recipe(Table):
    """Everything that decides the bytes of one wheel."""

    # The tables stand in the order in which the pipeline reads them; README.md follows it.
    name: RecipeName
    """The file's name without ``.toml``; not written in the file."""
    summary: Statement
    """One line for lists of recipes: which TensorFlow, and for whom."""
    source: SourceTable
    """The TensorFlow to build, and the changes that the recipe makes to it."""
    host: HostTable
    """What the machine that builds must have."""
    axes: AxesTable = AxesTable.defaults()
    """Values that make several recipes of one file."""
    bazel: BazelTable
    """The Bazel that builds."""
    fetch: FetchTable = FetchTable.defaults()
    """What a build downloads in addition to what the tree itself names."""
    toolkit: ToolkitTable = ToolkitTable.defaults()
    """Where CUDA, its libraries and nvcc's host compiler come from; or the name of a document of
    ``toolkits/``."""
    configure: ConfigureTable = ConfigureTable.defaults()
    """The answers to ``./configure``."""
    compile: CompileTable = CompileTable.defaults()
    """What Bazel builds, and how."""
    nccl: NcclTable = NcclTable.defaults()
    """The separate rebuild of ``_nccl_ops.so``."""
    package: Annotated[PackageTable, Field(validate_default=True)] = PackageTable.defaults()
    """How the wheel is made from what was built."""
    verify: VerifyTable = VerifyTable.defaults()
    """The checks that the wheel must pass."""
    verified: VerifiedTable | None = None
    """How far this recipe was really run."""
    # Private like the one above: where a recipe lies decides nothing.
    _argument: str = PrivateAttr(default="")
    _documents: tuple[Path, ...] = PrivateAttr(default=())

    @property
    def argument(self) -> str:
        """What ``--recipe`` takes for it: the name, or the path of one that is not in recipes/."""
        return self._argument or self.name

    @property
    def documents(self) -> tuple[Path, ...]:
        """The other files that it is made of: its toolkit, archives and packages."""
        return self._documents

    @property
    def wheel_identity(self) -> tuple[str, ...]:
        """What decides the file name of its wheel; TensorFlow derives the version from its source.

        Of capabilities and flags of Bazel, only WHEEL_NAME is in that name.
        """
        host, package = self.host, self.package
        named = [flag for flag in self.compile.flags if "=WHEEL_NAME=" in flag]
        own = (host.python, host.system, host.machine, package.project_name or "", *package.flags)
        return (self.source.commit, *own, *named)

    @field_validator("axes")
    @classmethod
    def _with_other_pythons(cls, table: AxesTable, info: ValidationInfo) -> AxesTable:
        own = info.data["host"].python if "host" in info.data else ""
        if own in table.python or len({*table.python}) < len(table.python):
            raise ValueError(
                f"python: name each Python once, and not {own}, which is that of [host]"
            )
        return table

    @field_validator("configure", "package", "verify")
    @classmethod
    def _of_another_repository(cls, table: Table, info: ValidationInfo) -> Table:
        """Fill in what most repositories with an interface of their own have."""
        source, compiling = info.data.get("source"), info.data.get("compile")
        if not source or not source.own_interface:
            return table
        usual: dict[str, object] = {}
        match table:
            case ConfigureTable():
                usual["writes"] = ".bazelrc"
            case PackageTable() if compiling and compiling.target != WHEEL_TARGET:
                # //:build_pip_pkg is built as bazel-bin/build_pip_pkg.
                usual["program"] = f"bazel-bin/{compiling.target.replace(':', '/').lstrip('/')}"
            case VerifyTable():
                usual["smoke"] = ()
        return table.changed(**{key: usual[key] for key in usual.keys() - table.model_fields_set})

    @field_validator("verify")
    @classmethod
    def _with_kernel_tests(cls, table: VerifyTable, info: ValidationInfo) -> VerifyTable:
        if KERNELS not in table.tests or "source" not in info.data:
            return table
        kernels = kernel_tests(info.data["source"].release)
        tests = (kernels if name == KERNELS else (name,) for name in table.tests)
        return table.changed(tests=tuple(chain.from_iterable(tests)))

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for name, _ in self.toolkit.parts():
            # The compiler's version is part of its package's name: see `ToolkitTable.gcc`.
            if name != "compiler" and getattr(self.host, name) is None:
                raise ValueError(f"toolkit.{name}: name its version as well: [host] {name}")
        for patch in sorted(self.fetch.patches - {*self.source.patches}):
            raise ValueError(
                f"fetch.substitutes: {patch} is a patch of a substitute, and source.patches does "
                "not list it; list it there as well, in the order in which it is applied"
            )
        first, last = SEPARATE_NCCL
        separate = first <= self.source.release <= last
        if self.nccl.rebuild and not separate:
            message = (
                f"nccl.rebuild: TensorFlow {self.source.release} has no separate _nccl_ops.so; "
                "only 1.0 to 1.12 do"
            )
            raise ValueError(message)
        # A wheel for "any" system may be built on a Mac, so only Linux is refused.
        if self.host.system == "Linux" and (self.package.libraries or self.package.rpath):
            raise ValueError(
                "package.libraries and package.rpath rewrite macOS libraries; a Linux recipe has "
                "none"
            )
        if self.package.project_name and self.package.program:
            raise ValueError(
                "package.project_name belongs to TensorFlow's build_pip_package; "
                "state the name in package.arguments as package.program takes it"
            )
        if self.package.project_name and self.source.release < NAMED_SINCE:
            message = (
                f"package.project_name: build_pip_package of TensorFlow {self.source.release} "
                "does not have --project_name, which came with 1.9"
            )
            raise ValueError(message)
        own = self.source.own_interface
        if not own and self.configure.bazelrc.lines:
            raise ValueError(
                "configure.bazelrc.lines is the whole file of an interface of its own; "
                "for TensorFlow's, state the differences in configure.bazelrc.adds and omits"
            )
        if own and self.compile.target == TENSORFLOW_TARGET:
            raise ValueError('compile.target must be stated with source.interface = "own"')
        return self


HERMETIC_PYTHON = Release(2, 14), Release(2, 18)
"""The first release whose Bazel downloads the Python that it builds for, and the first that has a
name of its own for that, before TensorFlow's."""
FIRST_BY_BAZEL = Release(2, 16)
"""The first release that has the target `WHEEL_TARGET`."""
LAST_BY_PROGRAM = Release(2, 16)
"""The last release whose build_pip_package takes a directory and makes a wheel there."""


def hermetic_python(release: Release) -> tuple[str, ...]:
    """Return the variables in which Bazel reads the version of its Python, the best one first."""
    first, renamed = HERMETIC_PYTHON
    return HERMETIC_PYTHON_NAMES[release < renamed :] if release >= first else ()


def lacking_python_flag(recipe: Recipe) -> str:
    """Return the flag by which Bazel builds for the recipe's Python; empty if none is lacking."""
    python, names = recipe.host.python, hermetic_python(recipe.source.release)
    if python == "any" or not names:
        return ""
    # A patch level is allowed: the flag may say which one Bazel downloads.
    named = re.compile(rf"--\w+_env=(?:{'|'.join(names)})={re.escape(python)}(?:\.\d+)?")
    has = any(map(named.fullmatch, recipe.compile.flags))
    return "" if has else f"--repo_env={names[0]}={python}"


def check_makes_wheel(target: str, table: PackageTable, release: Release = NO_RELEASE) -> None:
    """Raise RecipeError if no wheel is made from what is compiled, as far as a release is known."""
    if table.program:
        return
    makes = {
        TENSORFLOW_TARGET: release <= LAST_BY_PROGRAM,
        WHEEL_TARGET: release >= FIRST_BY_BAZEL or release == NO_RELEASE,
    }
    if not makes.get(target):
        named = " or ".join(f'"{one}"' for one, makes_one in makes.items() if makes_one)
        of = f" of TensorFlow {release}" if release != NO_RELEASE else ""
        raise RecipeError(
            f"{target} makes no wheel{of}",
            remedy=f"Write target = {named} into [compile], name the program that makes the wheel "
            "in package.program, or build with --until compile.",
        )


def find(name: str, *, to_write: bool = False) -> Path:
    """Return the file of the recipe that is named, by name or by path.

    Raises RecipeError with the nearest name if there is none, and for a recipe of an installed
    tfwright that is to be written.
    """
    by_name = [folder / f"{name}.toml" for folder in _recipe_folders()]
    for path in [Path(name)] if name.endswith(".toml") else by_name:
        # No file system has such a name, and asking for one is an error of its own.
        if len(name) > LONGEST_PATH:
            continue
        file = file_of(path)
        if not file.is_file() or (file != path and path.stem not in names_on_axes(file)):
            continue
        if to_write and INSTALLED and path.resolve().is_relative_to(SHIPPED):
            raise RecipeError(
                f"{path.stem} came with tfwright, and is not changed",
                remedy=f"Make a copy: 'invoke new --like {path.stem} --name NAME'; then --recipe "
                "NAME.",
            )
        return path
    wanted = name[:LONGEST_PATH].removesuffix(".toml")
    # A part of a name, such as "r1.8", is not like the whole.
    whole = [known for known in names() if wanted in known]
    near = did_you_mean(wanted, whole, similar=0) or did_you_mean(wanted, names())
    remedy = (
        "'invoke recipes' lists all recipes; --recipe takes a name, or a path that ends in .toml."
    )
    if INSTALLED and not near and not (ROOT / HOST_FILE).is_file():
        remedy += " Your own recipes are found in the directory of 'invoke init' and below it."
    raise RecipeError(f"Unknown recipe {name[:LONGEST_PATH]!r}{near}", remedy=remedy)


def find_editable(name: str) -> Path:
    """Return the file of a recipe as `find` does, for its text to be changed."""
    return file_with_text(find(name, to_write=True))


def file_with_text(path: Path) -> Path:
    """Return the file of a recipe; raise RecipeError if another recipe makes it with its axes."""
    if (file := file_of(path)) != path:
        raise RecipeError(
            f"{path.stem} has no text of its own: it is {file.stem} for another Python",
            remedy=f"Name {file.stem} here.",
        )
    return path


def _recipe_folders() -> list[Path]:
    """Return where recipes lie that need no path: a person's own, then those of the package."""
    return [RECIPES, SHIPPED / "recipes"] if INSTALLED else [RECIPES]


def names() -> list[str]:
    """Return the names of the recipes in recipes/ and of those that came with tfwright, sorted."""
    paths = (path for folder in _recipe_folders() for path in folder.glob("*.toml"))
    return sorted({name for path in paths for name in names_on_axes(path)})


def readable_recipes(wanted: Collection[str] | None = None) -> Iterator[Recipe]:
    """Yield these recipes, or all; a broken one must not keep the others from being used."""
    for name in names() if wanted is None else wanted:
        try:
            yield read(name)
        except RecipeError:
            continue


def read(name: str, complete: Callable[[dict[str, Any]], None] | None = None) -> Recipe:
    """Load and check a recipe, by name or by path.

    `complete` may put values in the place of what the file does not say yet. Raises RecipeError
    naming file, line and remedy for what is wrong in it, missing patches and assets included.
    """
    path = find(name)
    # The name is that of the file, so that a copied recipe cannot keep the old one.
    folder = path.resolve().parent
    own = "" if folder in map(Path.resolve, _recipe_folders()) else shell_word(str(path))
    parts = Composing(path, complete)

    def completed(values: dict[str, Any]) -> None:
        parts.complete(values)
        if complete:
            complete(values)

    try:
        loaded = load(file_of(path), Recipe, extra={"name": path.stem}, complete=completed)
    except RecipeError as fault:
        # Complete the commands in the remedies of a recipe that does not load.
        argument = own or path.stem
        fault.recipe = argument
        if isinstance(fault, DocumentError):
            fault.faults = tuple(
                replace(found, remedy=with_recipe(found.remedy, argument)) for found in fault.faults
            )
        raise
    source = loaded.source.located(folder)
    recipe = loaded.changed(source=source, axes=AxesTable.defaults())
    recipe._argument = own  # noqa: SLF001 our own
    recipe._documents = tuple(parts.documents)  # noqa: SLF001 our own
    for file in (*source.patches, *source.assets.values()):
        _check_file(path, source, file)
    return recipe


def whole_text(path: Path) -> str:
    """Return the text of a recipe in one file, with what its other documents say in it."""
    import tomli_w

    parts, values = Composing(path), values_of(file_of(path))
    parts.complete(values)
    if not parts.documents:
        return path.read_text("utf-8")
    if isinstance(fetch := values.get("fetch"), dict):
        fetch.pop("archives", None)
    return tomli_w.dumps(values)


def _check_file(path: Path, source: SourceTable, name: str) -> None:
    """Insist that a patch or an asset is a file under patches/, and no link out of it."""
    file = source.file(name)
    folder = Path(str(file).removesuffix(name))
    # A link in patches/ must not lead tfwright to a file elsewhere on the host.
    real = file.resolve()
    if real.is_relative_to(folder.resolve()) and real.is_file():
        return
    # The model keeps no line numbers, so the line is found by the name that it holds.
    lines = file_of(path).read_text("utf-8").splitlines()
    line = next((number for number, text in enumerate(lines, 1) if name in text), 1)
    raise RecipeError(
        f"{path}:{line}: {name} is not a file under {folder}",
        remedy="Add the file there or in patches/ of the recipe's directory, or correct its name.",
        where=f"{path}:{line}",
    )
