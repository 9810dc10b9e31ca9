"""What a recipe for a release pins, with the reason for each: `match` names it, `new` writes it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.facts import compatibility, gpus
from tfwright.facts.compatibility import Range, is_of_line, is_older, is_within, version_numbers
from tfwright.host.hermetic import ANOTHER_CUDA
from tfwright.match import releases
from tfwright.match.wish import X86, Wish
from tfwright.rules import listings, tree_files
from tfwright.rules.tree_files import TreeBazel

APART = ("cudnn", "nccl", "nvshmem")
"""NVIDIA's libraries that are no part of a CUDA."""


@dataclass(frozen=True)
class DerivedPin:
    """One thing that a new recipe pins, or leaves to a person."""

    name: str
    """Its key in the recipe: ``host.cuda``."""
    value: str
    why: str = ""
    source: str = ""
    open: bool = False
    """Whether `value` says what a person has to decide."""

    @property
    def reason(self) -> str:
        """The comment behind it in the recipe."""
        return ": ".join(filter(None, (self.why, self.source)))

    def __str__(self) -> str:
        return f"{self.value} ({self.why})" if self.why else self.value


@dataclass(frozen=True)
class Toolkit:
    """The CUDA of a new recipe, and the one that the release was tested with."""

    row: compatibility.Cuda
    release: Release
    tested: compatibility.Tested | None
    tree: compatibility.Hermetic | None
    """What Bazel downloads for the release, or for the commit where its lists were read."""

    @classmethod
    def of(cls, row: compatibility.Cuda | None, release: Release) -> Self | None:
        """Return the toolkit of a recipe for a release; None for one without CUDA."""
        if not row:
            return None
        tested, tree = compatibility.tested_with(release), compatibility.hermetic(release)
        return cls(row, release, tested, tree)

    def of_commit(self, bazelrc: str, lists: Mapping[str, str], source: str) -> Self:
        """Return the same with what `listings.hermetic_of_commit` reads of a commit."""
        tree = listings.hermetic_of_commit(self.tree, bazelrc, lists, source) if self.tree else None
        return replace(self, tree=tree)

    @property
    def cudnn(self) -> DerivedPin:
        """The cuDNN to build with."""
        least, most = self.row.cudnn
        wanted = self.tested.cudnn if self.tested else ""
        # 7 is of any 7.x, of which 9.2 takes those from 7.1 on.
        fits = is_within(wanted, least, most) or is_of_line(least, wanted)
        if self.tested and wanted and fits:
            return DerivedPin("host.cudnn", wanted, "tested with this release", self.tested.source)
        # A newer one may lack what this release calls: cuDNN 9 removed functions of 8.
        why = "the oldest for this CUDA"
        why += ", since this release was tested with an older one" if self.tested else ""
        return DerivedPin("host.cudnn", least, why, self.row.source("cudnn"))

    def capabilities(self, wish: Wish) -> str:
        """Return the compute capabilities to compile for: the one that is wished for, or all."""
        # TensorFlow asks again for a compute capability below 3.0.
        least = max(self.row.capabilities[0], releases.OLDEST_CAPABILITY, key=version_numbers)
        return wish.gpu or f"{least},{self.row.capabilities[1]}"

    def downloaded_versions(self) -> tuple[str, str]:
        """Return the CUDA and cuDNN in full that Bazel downloads; empty for what no tree lists."""
        if not (tree := self.tree):
            return "", ""
        cudas = [cuda for cuda in tree.cudas if is_of_line(cuda, self.row.version)]
        cudnns = [cudnn for cudnn in tree.cudnns if not is_older(cudnn, self.cudnn.value)]
        return cudas[-1] if cudas else "", cudnns[0] if cudnns else ""

    def pip_packages(self, setup: str) -> list[str]:
        """Name the packages of pip that hold what Bazel downloads: a wheel is tried with them.

        They are those that setup.py lists for the extra and-cuda.
        """
        cuda, cudnn = self.downloaded_versions()
        found = re.findall(r"['\"](nvidia-[a-z-]+-cu)\d+\b", setup)
        # setup.py lists those of the CUDA that the release was tested with.
        major = self.row.version.partition(".")[0]
        names = dict.fromkeys(f"{name}{major}" for name in found)
        if not (cuda and cudnn and names):
            return []
        # NVIDIA's package of a whole CUDA requires those that go together, each as an extra of it.
        parts = {re.sub(r"^nvidia-(cuda-)?|-cu\d+$", "", name): name for name in names}
        extras = ({"runtime": "cudart"}.get(part, part) for part in parts if part not in APART)
        apart = [name for part, name in parts.items() if part in APART]
        return [
            f"cuda-toolkit[{','.join(extras)}]=={cuda}",
            *(f"{name}=={cudnn}.*" if "cudnn" in name else name for name in apart),
        ]

    def pins(self, wish: Wish) -> Iterator[DerivedPin]:
        """Yield CUDA and what goes with it on the system of a wish."""
        row, tested, tree = self.row, self.tested, self.tree
        why = f"what was asked for; nothing is known of TensorFlow {self.release} with it"
        if tested:
            why = f"this release was tested with {tested.cuda}"
            why = "tested with this release" if tested.cuda == row.version else why
        yield DerivedPin("host.cuda", row.version, why, tested.source if tested else "")
        yield self.cudnn
        where = row.source("capabilities")
        yield DerivedPin("compute capabilities", self.capabilities(wish), source=where)
        mac = compatibility.mac(row.version) if wish.system == "Darwin" else None
        if mac:
            newest = f"the newest for this CUDA, with Apple clang {mac.clang} or earlier"
            yield DerivedPin("host.xcode", mac.xcode, newest, mac.why)
            yield DerivedPin("host.macos", mac.macos, "for this CUDA", mac.why)
            page = "https://www.tensorflow.org/install/source#macos"
            yield DerivedPin("patches", compatibility.MAC_CUDA, source=page, open=True)
        elif gpus.is_jetson_only(wish.gpu):
            says = "change both to those of the Jetson's JetPack, which has its driver as well"
            yield DerivedPin("host.cuda, host.cudnn", says, source=gpus.JETPACK, open=True)
        else:
            drivers = compatibility.drivers(row, wish.gpu)
            yield DerivedPin(
                "host.driver", drivers.least, f"drivers {drivers} run it", drivers.source
            )
            # Where Bazel downloads CUDA, clang is nvcc's host compiler.
            if tree is None:
                gcc, reason = compatibility.gcc(self.release, row)
                why, _, source = reason.partition(": ")
                yield DerivedPin("host.gcc", gcc, why, source)
        if tree and (lacking := tree.lacks(row.version, self.cudnn.value)):
            says = (
                f"TensorFlow {self.release} lists {lacking}, so that Bazel would take its default "
                f"instead, of CUDA {tree.cuda} and cuDNN {tree.cudnn}; choose another CUDA, or "
                f"{ANOTHER_CUDA}"
            )
            yield DerivedPin("host.cuda, host.cudnn", says, source=tree.source, open=True)
        if tested is None or tree:
            return
        for name, version, own in (
            ("CUDA", row.version, tested.cuda),
            ("cuDNN", self.cudnn.value, tested.cudnn),
        ):
            major = own.partition(".")[0]
            if major and not is_of_line(version, major):
                says = (
                    f"TensorFlow {self.release} was tested with {name} {own}, and a new major "
                    "version removes functions; patch what calls them, or choose a CUDA that has "
                    f"{name} {major}"
                )
                yield DerivedPin(f"host.{name.lower()}", says, source=tested.source, open=True)


def pins(release: Release, wish: Wish, toolkit: Toolkit | None) -> Iterator[DerivedPin]:
    """Yield what a recipe for a release pins of its host and its wheel, to serve a wish."""
    known = compatibility.python(release)
    if known:
        # The newest Python of the range has wheels for the longest time.
        python, why = wish.python or known.most, f"TensorFlow {release} takes {known}"
        yield DerivedPin("host.python", python, why, known.source)
    elif wish.python:
        yield DerivedPin("host.python", wish.python, "what was asked for")
    if toolkit:
        yield from toolkit.pins(wish)
    if wish.cpu:
        yield DerivedPin("verify.cpu", wish.cpu)
    if wish.macos:
        yield DerivedPin("verify.macos", wish.macos)
    if wish.glibc and wish.system != "Darwin":
        yield DerivedPin("verify.glibc", wish.glibc, "built in an image that has no newer one")
        tree = compatibility.hermetic(release)
        what, remedy = tree.beyond(wish.glibc, wish.machine or X86[0]) if tree else ("", "")
        if what:
            yield DerivedPin("verify.glibc", f"{what}. {remedy}", open=True)


def new_recipe_pins(wanted: Wish) -> list[DerivedPin]:
    """Return what a new recipe for a wish would pin, for the newest TensorFlow that fits.

    The list is empty if no TensorFlow fits.
    """
    for release in releases.fitting_releases(wanted):
        toolkit = Toolkit.of(releases.toolkit_for(wanted, release), release)
        try:
            found = bazel_pin(release, {})
        except RecipeError:
            found = DerivedPin("bazel.version", "", "as the tree says, or --bazel")
        why = "" if wanted.release else "the newest that fits"
        line = DerivedPin("TensorFlow", wanted.release or str(release), why)
        return [line, found, *pins(release, wanted, toolkit)]
    return []


def bazel_pin(release: Release, texts: Mapping[str, str], asked: str = "") -> DerivedPin:
    """Return the Bazel for a release whose tree has these texts: one that it was built with.

    A newer Bazel than the tested one may be allowed and still fail, so that the newest is never
    taken. Raises RecipeError if neither the tree nor a table says anything.
    """
    if asked and not re.fullmatch(r"\d+(\.\d+)+(-?rc\d+)?", asked):
        raise RecipeError(
            f"--bazel {asked!r} is not a version of Bazel", remedy="Write it as --bazel 3.1.0."
        )
    if asked:
        return DerivedPin("bazel.version", asked, "what was asked for")
    tree = tree_files.bazel_of(texts)
    if tree and tree.exact:
        return DerivedPin("bazel.version", tree.exact, f"what {tree.file} of this commit says")
    known, says = allowed_bazels(release, tree)
    tested = compatibility.tested_bazel(release)
    if tested and known.contains(tested.version):
        why = "; ".join(filter(None, (f"TensorFlow {release} was tested with it", says)))
        return DerivedPin("bazel.version", tested.version, why, tested.source)
    if known.least:
        why = f"the oldest that is allowed, since newer ones are untested; {says}"
        return DerivedPin("bazel.version", known.least, why, known.source)
    raise RecipeError(
        f"Neither the tree nor a table says which Bazel TensorFlow {release} needs",
        remedy="Look into .bazelversion of the tree, and add --bazel VERSION.",
    )


def allowed_bazels(release: Release, tree: TreeBazel | None) -> tuple[Range, str]:
    """Return the Bazels that a tree allows, or else its release, and what says so, if anything.

    The tree decides about the pinned commit; the table is about the release.
    """
    if tree and not tree.exact:
        known = Range(tree.least, tree.most, "")
        return known, f"{tree.file} of this commit takes {known}"
    if found := compatibility.bazel(release):
        return found, f"./configure takes {found}"
    return Range("", "", ""), ""
