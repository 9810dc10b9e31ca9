"""`invoke new`: a recipe from what is known about a release, with a reason behind each pin.

What the tables of host/ know is filled in with its source. Every question of ./configure gets an
answer: from the pins, from the person at the terminal, or "no", which leaves the feature out. The
recipe is unverified, and the report lists what is still open.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tfwright.build import verified
from tfwright.configure import expected, validation
from tfwright.configure.prompt import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.names import recipe_name
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import ExactRelease, Release, is_version
from tfwright.errors import RecipeError
from tfwright.host import compatibility, versions
from tfwright.match import ranking as match
from tfwright.match.ranking import Wish
from tfwright.new import bazel
from tfwright.printable import shell_word
from tfwright.rules import tree_bazel, tree_requirements, tree_version
from tfwright.schema import writing as schema
from tfwright.tools import files
from tfwright.tools.git.remote import Remote, named_commit

URL = "https://github.com/tensorflow/tensorflow.git"
ROUNDS = 8
"""Answers can lead to further questions; no release nests them deeper than this."""
TEXTS = {"CC_OPT_FLAGS": "-march=x86-64 -mtune=generic", "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc"}
"""Answers that serve most people: a wheel for any x86-64, made by the system's compiler."""
BUILDING = ("numpy", "wheel")
"""Packages that every build imports."""
BUILDING_IF_REQUIRED = ("keras-applications", "keras-preprocessing", "six")
"""Packages that the build imports too, of a release that requires them."""
OLDEST_CAPABILITY = "3.0"
"""The oldest GPUs that TensorFlow has code for."""
Ask = Callable[[Prompt, str], str]
"""Asks a person, with a default in the form that is typed; returns the default where there is
none."""


@dataclass(frozen=True)
class NewRecipe:
    """A recipe that was written, and what is still open in it."""

    path: Path
    open: tuple[str, ...]
    pinning: str = ""
    """The command that resolves the packages of the build, and those of the wheel if setup.py of
    the commit says them; empty for a copy, which has its pins."""


@dataclass
class _Draft:
    """A recipe's text as it grows."""

    lines: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    pinning: str = ""

    def table(self, name: str) -> None:
        self.lines += ["", f"[{name}]"]

    def pin(self, key: str, value: object, reason: str) -> None:
        self.lines.append(f"{key} = {json.dumps(value)}  # {reason}")


@dataclass(frozen=True)
class Tools:
    """Versions that a person names where the tables have none, or others."""

    bazel: str = ""


@dataclass(frozen=True)
class WantedRelease:
    """What a person names as the release of a new recipe."""

    version: ExactRelease
    tag: bool = False
    """Whether it is one commit, as of 1.8.0, and not the newest one of a branch, as of 1.8."""
    commit: str = ""
    """The commit, where a person names it; a mirror may have the history and no tags."""

    @property
    def line(self) -> Release:
        """The release line."""
        return self.version.line

    def __str__(self) -> str:
        return str(self.version if self.tag else self.line)


@dataclass(frozen=True)
class Toolkit:
    """The CUDA of a new recipe, and the one that the release was tested with."""

    row: compatibility.Cuda
    tested: compatibility.Tested | None

    @property
    def is_tested(self) -> bool:
        """Whether the release was tested with this CUDA."""
        return self.tested is not None and self.tested.cuda == self.row.version

    def cudnn(self) -> tuple[str, str]:
        """Return the cuDNN and the reason for it."""
        least, most = self.row.cudnn
        wanted = self.tested.cudnn if self.tested else ""
        # 7 is of any 7.x, of which 9.2 takes those from 7.1 on.
        fits = versions.within(wanted, least, most) or versions.is_of(least, wanted)
        if self.tested and wanted and fits:
            return wanted, f"tested with this release: {self.tested.source}"
        # A newer one may lack what this release calls: cuDNN 9 removed functions of 8.
        reason = "the oldest for this CUDA, since this release was tested with an older one"
        return least, f"{reason}: {self.row.source('cudnn')}"


def new(  # noqa: PLR0913, PLR0917 each is a fact of its own
    wish: Wish,
    wanted: WantedRelease,
    host_file: HostFile,
    folder: Path,
    ask: Ask,
    tools: Tools | None = None,
) -> NewRecipe:
    """Write a recipe for a release into `folder`.

    Raises RecipeError if the release was never made for what is wished for, its commit is of
    another one, or the file exists; SupplyError if the repository does not name the tag or branch.
    """
    release = wanted.line
    version = wanted.version
    toolkit = _toolkit(wish, release)
    path = folder / f"{_name(wish, version, toolkit)}.toml"
    if path.exists():
        raise RecipeError(
            f"{path} exists already",
            remedy=f"To go on with it, run 'invoke lint --recipe {shell_word(str(path))}', which "
            "lists what it lacks. To begin again, rename or delete it.",
        )
    draft = _Draft()
    _describe(draft, wish, wanted, toolkit)
    draft.lines[:0] = [schema.line_in(folder), ""]
    texts = _source(draft, wanted, host_file)
    python = _host(draft, wish, release, toolkit)
    _packages(draft, tree_requirements.setup_of(texts), python)
    _bazel(draft, bazel.chosen(release, texts, (tools or Tools()).bazel))
    _compile(draft, release, python)
    try:
        _answer(draft, path, wish, toolkit, ask)
    except KeyboardInterrupt:
        # What a person answered so far is kept: 'invoke lint' lists the other questions.
        files.write(path, _text(draft))
        raise
    except RecipeError:
        # It does not load, and would only stop the next attempt.
        files.remove(path)
        raise
    argument = shell_word(str(path))
    return NewRecipe(
        path,
        tuple(line.replace("FILE", argument) for line in draft.open),
        draft.pinning.replace("FILE", argument),
    )


def _name(wish: Wish, version: ExactRelease, toolkit: Toolkit | None) -> str:
    """Return a name that says what `invoke lint` asks of names: system, branch and CUDA."""
    platform = "macos" if wish.system == "Darwin" else "linux"
    candidate = f"-{version.candidate}" if version.candidate else ""
    suffix = f"cuda{toolkit.row.version}" if toolkit else "cpu"
    return f"{platform}-r{version.line}{candidate}-{suffix}"


def _toolkit(wish: Wish, release: Release) -> Toolkit | None:
    """Return the CUDA for a recipe; None for one without a GPU.

    It is the one that is asked for, or else what the release was tested with, as far as that
    compiles for the GPU. Raises RecipeError if no such CUDA is known.
    """
    if not (wish.gpu or wish.cuda):
        return None
    tested = match.tested_with(release)
    row = compatibility.cuda(wish.cuda) or match.toolkit_for(wish, tested)
    if row is None and wish.cuda:
        known = ", ".join(row.version for row in compatibility.cudas())
        raise RecipeError(f"Nothing is known of CUDA {wish.cuda}", remedy=f"Name one of {known}.")
    if row is None or (wish.gpu and not versions.within(wish.gpu, *row.capabilities)):
        line = f"CUDA {row.version}" if row else f"The CUDA of TensorFlow {release}"
        machine = f"--os {wish.system or 'Linux'} --release {release}"
        if wish.gpu:
            machine = f"--gpu {wish.gpu} {machine}"
        raise RecipeError(
            f"{line} does not compile for compute capability {wish.gpu or 'any'}",
            remedy=f"Name another CUDA with --cuda, or another release; 'invoke match {machine}' "
            "lists what fits together.",
        )
    if wish.system == "Darwin" and compatibility.mac(row.version) is None:
        raise RecipeError(
            f"NVIDIA made no CUDA {row.version} for macOS",
            remedy="Leave out --gpu and --cuda, or name an older CUDA; the last one was 10.2.",
        )
    return Toolkit(row, tested)


def _describe(draft: _Draft, wish: Wish, wanted: WantedRelease, toolkit: Toolkit | None) -> None:
    system = "macOS" if wish.system == "Darwin" else "Linux"
    kind = f"with CUDA {toolkit.row.version} " if toolkit else ""
    draft.lines = [
        "# Written by 'invoke new'; not run yet.",
        "",
        f"summary = {json.dumps(f'TensorFlow {wanted} {kind}for {system}')}",
    ]


def _source(draft: _Draft, wanted: WantedRelease, host_file: HostFile) -> dict[str, str]:
    """Pin the commit; return the texts of its tree that name Bazel."""
    address = host_file.mirror_of(URL) or URL
    # git needs a directory to run in, and a new checkout has none yet.
    host_file.build_out.mkdir(parents=True, exist_ok=True)
    remote = Remote(host_file.build_out, address)
    reason, commit = _commit(wanted, remote)
    draft.table("source")
    # A branch moves; the commit is what makes the recipe build the same next year.
    draft.lines += [
        f"# {reason}",
        f'url = "{URL}"',
        f'branch = "r{wanted.line}"',
        f'commit = "{commit}"',
    ]
    if wanted.tag:
        draft.lines.append(f'version = "{wanted.version}"')
    paths = (*tree_bazel.PATHS, *tree_version.PLACES, *tree_requirements.PATHS)
    texts = remote.texts(commit, paths)
    stated = tree_version.stated(texts)
    if wanted.commit and not texts:
        draft.open.append(
            f"source.commit: {address} showed none of its files; 'invoke fetch --recipe FILE' "
            "says whether it has it"
        )
    if stated and stated != wanted.line:
        raise RecipeError(
            f"Commit {commit} is TensorFlow {stated}, not {wanted.line}",
            remedy="Name a commit of that release, or --release of this one.",
        )
    return texts


def _commit(wanted: WantedRelease, remote: Remote) -> tuple[str, str]:
    """Return the commit that a person names, of a tag, or the newest one of a branch; and why."""
    if wanted.commit:
        return "The commit that was asked for.", wanted.commit
    if wanted.tag:
        name, commit = remote.release_of(wanted.version)
        return f"The tag {name} at upstream.", commit
    commit = remote.commit_of(f"r{wanted.line}")
    return (f"The branch of release {wanted.line}; the commit is its newest one today.", commit)


def _host(draft: _Draft, wish: Wish, release: Release, toolkit: Toolkit | None) -> str:
    """Pin what the machine must have; return the target Python."""
    draft.table("host")
    draft.pin("system", wish.system or "Linux", "what was asked for")
    draft.pin("machine", "x86_64", "the only machine that these tables know")
    known = compatibility.python(release)
    if not (known or wish.python):
        raise RecipeError(
            f"No table says which Python TensorFlow {release} takes",
            remedy="Look into setup.py of the tree, and add --python VERSION.",
        )
    # The newest Python of the range has wheels for the longest time.
    python = wish.python or (known.most if known else "")
    if known and not known.holds(python):
        raise RecipeError(
            f"TensorFlow {release} was not made for Python {python}",
            remedy=f"It takes {known} ({known.source}).",
        )
    reason = "what was asked for"
    if known:
        reason = f"TensorFlow {release} takes {known}: {known.source}"
    draft.pin("python", python, reason)
    if toolkit:
        _gpu(draft, wish, release, toolkit)
    draft.lines += [
        "# What TensorFlow's own build imports; 'invoke pin' adds what these need.",
        "requirements = []",
    ]
    return python


def _packages(draft: _Draft, setup: str, python: str) -> None:
    """Name the command that pins the packages: pip alone knows what these need."""
    required = tree_requirements.required(setup, python)
    asked = [
        f"--add {shlex.quote(name + versions)}" for name, versions in _building(required).items()
    ]
    for requirement in required:
        plain = str(requirement).partition(";")[0].strip()
        asked.append(f"--verify {shlex.quote(plain)}")
    draft.pinning = f"invoke pin --recipe FILE {' '.join(asked)}"


def _building(required: Iterable[Requirement]) -> dict[str, str]:
    """Return the packages that TensorFlow's build imports, with the versions that it requires."""
    building = dict.fromkeys(BUILDING, "")
    for requirement in required:
        name = canonicalize_name(requirement.name)
        if name in {*BUILDING, *BUILDING_IF_REQUIRED}:
            building[name] = str(requirement.specifier)
    return building


def _gpu(draft: _Draft, wish: Wish, release: Release, toolkit: Toolkit) -> None:
    """Pin CUDA and what goes with it on this system."""
    row, tested = toolkit.row, toolkit.tested
    reason = f"what was asked for; nothing is known of TensorFlow {release} with it"
    if tested:
        reason = f"tested with this release: {tested.source}"
        if not toolkit.is_tested:
            reason = f"this release was tested with {tested.cuda}: {tested.source}"
    draft.pin("cuda", row.version, reason)
    draft.pin("cudnn", *toolkit.cudnn())
    mac = compatibility.mac(row.version) if wish.system == "Darwin" else None
    if mac:
        draft.pin("xcode", mac.xcode, f"the newest for this CUDA: {mac.why}")
        draft.pin("macos", mac.macos, f"for this CUDA: {mac.why}")
        draft.open.append("patches: TensorFlow has not been made for CUDA on macOS since 1.2")
        return
    draft.pin("gcc", row.gcc, f"the newest for this CUDA: {row.source('gcc')}")
    oldest, source = compatibility.driver(row, wish.gpu)
    draft.pin("driver", oldest, f"the oldest that runs it: {source}")


def _bazel(draft: _Draft, found: bazel.ChosenBazel) -> None:
    draft.table("bazel")
    draft.pin("version", found.version, found.reason)


def _compile(draft: _Draft, release: Release, python: str) -> None:
    if release < recipes.HERMETIC_PYTHON:
        return
    draft.table("compile")
    if release > recipes.LAST_BY_PROGRAM:
        reason = "Bazel itself makes the wheel since 2.17"
        draft.pin("target", recipes.WHEEL_TARGET, reason)
    draft.lines += [
        "# Bazel downloads the Python that it builds for, whatever ./configure got. 2.14, the",
        "# first release that does, knows the second name only.",
        "flags = [",
        *(f'    "--repo_env={name}={python}",' for name in recipes.HERMETIC_PYTHON_NAMES),
        "]",
    ]


def _answer(draft: _Draft, path: Path, wish: Wish, toolkit: Toolkit | None, ask: Ask) -> None:
    """Answer every question of ./configure, and those that the answers lead to."""
    _decided(draft, wish, toolkit)
    # Which questions ./configure asks depends on earlier answers, so ask until none is left.
    for _ in range(ROUNDS):
        files.write(path, _text(draft))
        recipe = recipes.read(str(path))
        interview = expected.interview(recipe, HostFile())
        # Not every release asks for each part of CUDA, nor by the same names.
        read = {prompt.variable for prompt in interview.dialect.prompts}
        useless = [fault.variable for fault in validation.faults(interview) if fault.harmless]
        useless += [variable for variable in draft.answers if variable not in read]
        for variable in useless:
            draft.answers.pop(variable, None)
        lacking = interview.unanswered()
        if not (lacking or useless):
            _note_download(draft, toolkit)
            return
        for prompt in lacking:
            draft.answers[prompt.variable] = _asked(draft, recipe, prompt, ask)
    draft.open.append(
        "some questions of ./configure still have no answer: see 'invoke plan --recipe FILE'"
    )


def _note_download(draft: _Draft, toolkit: Toolkit | None) -> None:
    """Leave the exact version to a person where Bazel downloads CUDA: tables have its line only."""
    if toolkit and draft.answers.get("HERMETIC_CUDA_VERSION") == '""':
        draft.open.append(
            f"HERMETIC_CUDA_VERSION: a full version of CUDA {toolkit.row.version}; without it "
            "Bazel downloads the tree's default"
        )


def _decided(draft: _Draft, wish: Wish, toolkit: Toolkit | None) -> None:
    """Give the answers that follow from the pins; those that a release does not ask are dropped."""
    draft.answers["TF_NEED_CUDA"] = "true" if toolkit else "false"
    if not toolkit:
        return
    capabilities = json.dumps(wish.gpu or _capabilities(toolkit.row))
    draft.answers |= {
        "TF_CUDA_VERSION": json.dumps(toolkit.row.version),
        "TF_CUDNN_VERSION": json.dumps(toolkit.cudnn()[0]),
        "TF_CUDA_COMPUTE_CAPABILITIES": capabilities,
        # From 2.18 on Bazel downloads CUDA, and the three have other names.
        "HERMETIC_CUDA_COMPUTE_CAPABILITIES": capabilities,
    }


def _capabilities(row: compatibility.Cuda) -> str:
    """Return the oldest and the newest compute capability that a CUDA compiles for."""
    least, newest = row.capabilities
    # TensorFlow asks again for a compute capability below 3.0.
    oldest = max(least, OLDEST_CAPABILITY, key=versions.numbers)
    return f"{oldest},{newest}"


def _asked(draft: _Draft, recipe: Recipe, prompt: Prompt, ask: Ask) -> str:
    """Ask for one answer; without a terminal, answer a yes-or-no question with no."""
    default = "false" if prompt.yes_no else json.dumps(TEXTS.get(prompt.variable, ""))
    given = ask(prompt, default)
    # Where an empty text is an answer, it is a good one: configure then uses what it finds.
    if given == '""' and not prompt.empty:
        draft.open.append(f"{prompt.variable}: {recipe.name} needs a value that is not empty")
    return given


def _text(draft: _Draft) -> str:
    return "\n".join([*draft.lines, *_answer_lines(draft)]) + "\n"


def _answer_lines(draft: _Draft) -> Iterator[str]:
    yield from (
        "",
        "[configure.answers]",
        (
            "# The answers about CUDA follow from [host]. The others were given when 'invoke new' "
            "asked,"
        ),
        "# or are false, which leaves a feature out.",
    )
    for variable, value in draft.answers.items():
        yield f"{variable} = {value}"


def wanted_of(text: str) -> WantedRelease:
    """Read what a person names as a release: ``2.6``, ``v2.4.4``, ``1.12.0-rc0``, ``2.4.0@COMMIT``.

    Raises RecipeError for anything else.
    """
    name, commit = named_commit(text)
    if not is_version(name):
        raise RecipeError(
            f"{name!r} is not a TensorFlow release",
            remedy="Write --release 2.6, or a tag such as v2.4.4 or v1.12.0-rc0.",
        )
    version = ExactRelease.parse(name)
    tag = name.count(".") > 1 or bool(version.candidate or version.fork)
    return WantedRelease(version, tag, commit)


def copy(path: Path, name: str, folder: str = "") -> NewRecipe:
    """Write a copy of a recipe under another name, without its [verified] table.

    It is put next to the recipe, unless a folder is named. Raises RecipeError if there is such a
    recipe already, or the name is none for a recipe.
    """
    try:
        recipe_name(name)
    except ValueError as fault:
        raise RecipeError(
            f"{name!r} {fault}", remedy="Choose another name: --name linux-r2.6-mine."
        ) from fault
    target = (Path(folder) if folder else path.parent) / f"{name}.toml"
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Choose another name.")
    # Its faults are shown with its own lines, and not with those of a copy that is removed again.
    recipes.read(str(path))
    text = verified.removed_from(path.read_text("utf-8"))
    head = f"# A copy of {path.stem}; not run yet."
    files.write(target, schema.headed(head, text, target.parent))
    try:
        recipes.read(str(target))
    except RecipeError:
        # Its patches may lie next to the original only.
        files.remove(target)
        raise
    return NewRecipe(target, ("what makes it differ from the recipe that it copies",))
