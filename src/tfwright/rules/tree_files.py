"""What files of a TensorFlow tree state, read and never run: its release, its Bazel, setup.py."""

import ast
import operator
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tfwright.documents.recipe import SourceTable
from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import RecipeError
from tfwright.facts.compatibility import is_within
from tfwright.rules.starlark.language import parse_python
from tfwright.tools import files
from tfwright.tools.git.remote import Remote
from tfwright.tools.git.repository import GitRepository

_NUMBERS = r"[0-9]{1,9}\.[0-9]{1,9}(?![0-9])"
"""As `ExactRelease.parse` reads them: the tree may say anything."""
RELEASES = {
    "tensorflow/tf_version.bzl": re.compile(rf"^TF_VERSION = \"({_NUMBERS}[^\"\n]*)", re.MULTILINE),
    "tensorflow/tools/pip_package/setup.py": re.compile(
        rf"^_VERSION = ['\"]({_NUMBERS}[^'\"\n]*)", re.MULTILINE
    ),
}
"""Where a tree states its version: 2.18 and later, and every release before."""
_VERSION = r"['\"](\d+\.\d+\.\d+)['\"]"
_LIMITS = (
    # One of the two texts has both limits, in this order.
    ("configure.py", re.compile(rf"check_bazel_version\({_VERSION}(?:, *{_VERSION})?\)")),
    (
        "configure.py",
        re.compile(rf"_TF_MIN_BAZEL_VERSION = {_VERSION}\n(?:_TF_MAX_BAZEL_VERSION = {_VERSION})?"),
    ),
    ("configure", re.compile(rf"MIN_BAZEL_VERSION={_VERSION}()")),
    ("WORKSPACE", re.compile(rf"(?m)^check_version\({_VERSION}()\)")),
)
BAZELS = (".bazelversion", "configure.py", "configure", "WORKSPACE")
"""The files of a tree that say it."""
SETUPS = ("tensorflow/tools/pip_package/setup.py", "tensorflow/tools/pip_package/setup.py.tpl")
"""Where a tree says it; from about 2.19 on in the second, which Bazel completes."""
TOOLCHAINS = ("tensorflow/workspace0.bzl", "tensorflow/workspace3.bzl")
"""Where a tree pins the repository whose lists of CUDA and cuDNN Bazel reads, since about 2.20."""
CUDA_LISTS = (
    "third_party/gpus/cuda/hermetic/cuda_redist_versions.bzl",
    "gpu/cuda/cuda_redist_versions.bzl",
)
"""The file of that repository that has the lists, before and after it moved."""
_TOOLCHAIN = re.compile(
    r"(https://github\.com/google-ml-infra/rules_ml_toolchain)/archive/([0-9a-f]{40})\."
)
NIGHTLY = "-nightly"
"""setup.py names two packages for some requirements, one of them for nightly wheels only."""
_COMPARISONS = {ast.Lt: operator.lt, ast.GtE: operator.ge, ast.Eq: operator.eq}


def check_release(repository: Path, commit: str, table: SourceTable) -> None:
    """Raise RecipeError if the commit is of another release than the recipe says.

    Rules, prompts and patches are chosen by the release. With a wrong one the first thing that
    fails is a question of ./configure that this release does not ask.
    """
    # Other projects that Bazel builds have neither file.
    if table.interface != "tensorflow":
        return
    texts = GitRepository(repository).texts_at(commit, tuple(RELEASES))
    # Only a stated version is compared in full: a branch's commits come after its first release.
    wanted = table.version or ExactRelease(*table.release)
    if other := _other_version(texts, wanted, exact=table.version is not None):
        raise RecipeError(
            f"The pinned commit is TensorFlow {other}, the recipe says "
            f"{table.version or table.release}",
            remedy=(
                "Pin a commit of the branch that source.branch names, or correct source.branch"
                ", source.release and source.version."
            ),
            where=f"{commit[:12]}:{next(iter(texts))}",
        )


def check_named_release(
    texts: Mapping[str, str], wanted: ExactRelease, commit: str, remote: Remote, option: str
) -> None:
    """Raise RecipeError if a commit is of another release than the name that led to it.

    `texts` are its files of `RELEASES`; `option` is the one that takes VERSION@COMMIT.
    """
    if other := _other_version(texts, wanted, exact=bool(wanted.patch or wanted.candidate)):
        raise RecipeError(
            f"Commit {commit} is TensorFlow {other}, not {wanted}",
            remedy=f"To build this one, write {option} {other}@{commit}. "
            + remote.other_names_remedy(f"v{wanted}"),
        )


def _other_version(
    texts: Mapping[str, str], wanted: ExactRelease, *, exact: bool
) -> ExactRelease | None:
    """Return the version that a tree states, if it is another one; None if it states none."""
    stated = _stated_version(texts)
    # What a fork adds behind the plus sign is not in the files of all of them.
    agrees = stated and (
        stated[:3] == wanted[:3] and stated.candidate == wanted.candidate
        if exact
        else stated.line == wanted.line
    )
    return None if agrees else stated


def _stated_version(texts: Mapping[str, str]) -> ExactRelease | None:
    found = (pattern.search(texts.get(path, "")) for path, pattern in RELEASES.items())
    return next((ExactRelease.parse(one[1]) for one in found if one), None)


def release_of(texts: Mapping[str, str]) -> Release | None:
    """Return the release that a tree says it is; `texts` are its files of `RELEASES` by path."""
    stated = _stated_version(texts)
    return stated.line if stated else None


@dataclass(frozen=True)
class TreeBazel:
    """What a tree says; an empty bound is none."""

    least: str
    most: str
    file: str
    exact: str = ""
    """The version in .bazelversion, which its authors built with."""


def bazel_of(texts: Mapping[str, str]) -> TreeBazel | None:
    """Return what a tree says of its Bazel; None if it says nothing.

    `texts` are its files by path, as many of `BAZELS` as it has.
    """
    # The bounds that ./configure compares with.
    limits = next(
        (
            TreeBazel(found[1], found[2] or "", path)
            for path, pattern in _LIMITS
            if (found := pattern.search(texts.get(path, "")))
        ),
        None,
    )
    # Comments and further lines are allowed in it; bazelisk reads the first line.
    first = texts.get(".bazelversion", "").partition("\n")[0].strip()
    if not re.fullmatch(r"\d+\.\d+\.\d+", first):
        return limits
    # The candidates of 2.1 name a version that their own ./configure refuses.
    if limits and not is_within(first, limits.least, limits.most):
        return limits
    return TreeBazel(first, first, ".bazelversion", first)


def toolchain_of(texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the repository that lists CUDA for a tree, and its commit; empty if it pins none.

    `texts` are its files of `TOOLCHAINS` by path.
    """
    found = _TOOLCHAIN.search("".join(texts.get(path, "") for path in TOOLCHAINS))
    return (f"{found[1]}.git", found[2]) if found else ("", "")


def unpatched_texts(repository: Path, source: SourceTable, paths: Iterable[str]) -> dict[str, str]:
    """Return the texts of files of the pinned commit by path, without those that a patch changes.

    What a patch changes cannot be judged by the commit alone.
    """
    patches = "".join(files.text(source.file(patch)) for patch in source.patches)
    texts = GitRepository(repository).texts_at(source.commit, paths)
    return {path: text for path, text in texts.items() if f"+++ b/{path}\n" not in patches}


def setup_of(texts: Mapping[str, str]) -> str:
    """Return the setup.py of a tree; `texts` are its files of `SETUPS` by path."""
    return next(filter(None, (texts.get(path) for path in SETUPS)), "")


def build_packages(release: Release, required: Iterable[Requirement]) -> dict[str, str]:
    """Return the packages that the build of a release imports, in the versions that are required.

    `required` is what its setup.py requires; the build imports more than that.
    """
    found = dict.fromkeys(("numpy", "wheel"), "")
    # tensorflow.python, which is imported to make the files of the API, imports it from 2.10 on.
    if release > Release(2, 9):
        found["requests"] = ""
    stated = {*found, "keras-applications", "packaging", "six"}
    # From 2.8 on nothing below tensorflow/python imports it; setup.py requires it up to 2.10.
    if release < Release(2, 8):
        stated.add("keras-preprocessing")
    versions = {canonicalize_name(one.name): str(one.specifier) for one in required}
    return found | {name: version for name, version in versions.items() if name in stated}


@dataclass(frozen=True)
class JudgedPin:
    """One requirement of setup.py, against the pins of a recipe."""

    name: str
    says: str = ""
    """What setup.py requires, and what is pinned instead: ``six>=99 (1.17.0 is pinned)``."""
    asks: str = ""
    """What `invoke pin` has to resolve; empty where the pin fits."""


def judge_pins(pins: Sequence[str], setup: str, python: str) -> Iterator[JudgedPin]:
    """Judge each pin of ``verify.requirements`` by the text of a tree's setup.py.

    `python` is the target Python, as ``3.6``. Without pins a recipe verifies nothing.
    """
    # --hash belongs to pip, not to the requirement.
    exact = [Requirement(line.partition(" --hash")[0]) for line in pins]
    pinned = {canonicalize_name(one.name): one for one in exact}
    wanted = required_packages(setup, python)
    for nightly, release in nightly_packages(setup, python):
        wanted.append(nightly if canonicalize_name(nightly.name) in pinned else release)
    for requirement in wanted if pins else ():
        name = canonicalize_name(requirement.name)
        asks = str(requirement).partition(";")[0].strip()
        held = pinned.get(name)
        # `==` is the only operator of an exact pin.
        versions = [Version(one.version) for one in held.specifier] if held else []
        if any(requirement.specifier.filter(versions, prereleases=True)):
            yield JudgedPin(name)
            continue
        says = f"{', '.join(map(str, versions))} is pinned" if held else "not pinned"
        yield JudgedPin(name, f"{asks} ({says})", asks)


def pin_options(pins: Iterable[JudgedPin], built: Collection[str]) -> str:
    """Return the options of `invoke pin` that resolve these packages.

    `built` are those that the build imports: the wheel is tried with the numpy that it was built
    with. What fits the wheel is resolved for the build only.
    """
    return " ".join(
        f"{option} {shlex.quote(pin.asks or pin.name)}"
        for pin in pins
        for option, wanted in (("--add", pin.name in built), ("--verify", pin.asks))
        if wanted
    )


def nightly_packages(setup: str, python: str) -> list[tuple[Requirement, Requirement]]:
    """Return the nightly packages that setup.py of a tree in development requires.

    Each comes with what the release of that tree requires instead. An index keeps the last nights
    only; those that it has may need a later TensorFlow.
    """
    stable = {
        canonicalize_name(requirement.name) for requirement in required_packages(setup, python)
    }
    short = {"tb": "tensorboard", "tf-estimator": "tensorflow-estimator"}
    found = []
    for nightly in required_packages(setup, python, nightly=True):
        name = nightly.name.removesuffix(NIGHTLY)
        bounds = re.sub(r"\.?(a|dev)\d*(?=,|$)", "", str(nightly.specifier))
        # A release names both; only one of them goes into its wheel.
        if short.get(name, name) not in stable:
            found.append((nightly, Requirement(f"{short.get(name, name)}{bounds}")))
    return found


def required_packages(setup: str, python: str, *, nightly: bool = False) -> list[Requirement]:
    """Return what setup.py requires for a Python; empty if it cannot be read.

    The program is read and never run: it is the tree's, and may be for Python 2.
    """
    tree = parse_python(setup)
    if tree is None:
        return []
    numbers = tuple(int(part) for part in python.split(".") if part.isdigit())
    found: dict[str, Requirement] = {}
    for text in _requirement_texts(tree.body, numbers):
        try:
            requirement = Requirement(text)
        # InvalidRequirement is a ValueError; brackets within brackets recurse.
        except (ValueError, RecursionError):
            continue
        marker = requirement.marker
        applies = marker is None or marker.evaluate({"python_version": python})
        if applies and requirement.name.endswith(NIGHTLY) is nightly:
            found.setdefault(canonicalize_name(requirement.name), requirement)
    return list(found.values())


def _requirement_texts(body: Sequence[ast.stmt], python: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts that get into REQUIRED_PACKAGES at the top level of setup.py."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="REQUIRED_PACKAGES")], value=value):
                yield from _constant_texts(value, python)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="REQUIRED_PACKAGES")), args=[added]
                )
            ):
                yield from _constant_texts(added, python)
            case ast.If(test=test):
                answer = _condition_value(test, python)
                # A condition that cannot be read here decides about no requirement.
                if answer is not None:
                    branch = statement.body if answer else statement.orelse
                    yield from _requirement_texts(branch, python)


def _constant_texts(value: ast.AST, python: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of a value, without those that only its conditions compare with."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.BinOp(left=left, right=ast.Constant(value=str(end))):
            # One text in two lines.
            *others, text = ["", *_constant_texts(left, python)]
            yield from others
            yield text + end
        case ast.IfExp(test=test, body=body, orelse=orelse):
            answer = _condition_value(test, python)
            # Where the condition cannot be read, both may apply.
            chosen = {True: [body], False: [orelse], None: [body, orelse]}[answer]
            for part in chosen:
                yield from _constant_texts(part, python)
        case _:
            for child in ast.iter_child_nodes(value):
                yield from _constant_texts(child, python)


def _condition_value(test: ast.expr, python: tuple[int, ...]) -> bool | None:
    """Return what a condition on the Python or the processor says; None for any other one."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left = ast.unparse(test.left)
    try:
        value = ast.literal_eval(test.comparators[0])
    except (ValueError, TypeError):
        return None
    if left == "sys.byteorder":
        return bool(value == "little")
    known = {"sys.version_info": python, "sys.version_info.major": python[:1]}
    bound = value if isinstance(value, tuple) else (value,)
    compare = _COMPARISONS.get(type(test.ops[0]))
    numbers = all(isinstance(part, int) for part in bound)
    if compare is None or not known.get(left) or not numbers:
        return None
    return bool(compare(known[left], bound))
