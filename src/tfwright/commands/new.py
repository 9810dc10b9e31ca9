"""`invoke new`: a recipe from what is known about a release, with a reason behind each pin.

What the tables of host/ know is filled in with its source. Every question of ./configure gets an
answer: from the pins, from the person at the terminal, or "no", which leaves the feature out. The
recipe is unverified, and the report lists what is still open.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tfwright.commands import schema, verified
from tfwright.configure import expected, validation
from tfwright.configure.prompt import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError
from tfwright.host import compatibility
from tfwright.host.match import Wish
from tfwright.tools import files
from tfwright.tools.git import remote

URL = "https://github.com/tensorflow/tensorflow.git"
ROUNDS = 8
"""Answers can lead to further questions; no release nests them deeper than this."""
TEXTS = {
    "CC_OPT_FLAGS": "-march=x86-64 -mtune=generic",
    "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc",
}
"""Answers that serve most people: a wheel for any x86-64, made by the system's compiler."""
Ask = Callable[[Prompt, str], str]
"""Asks a person, with a default in the form that is typed; returns the default where there is
none."""


@dataclass(frozen=True)
class NewRecipe:
    """A recipe that was written, and what is still open in it."""

    path: Path
    open: tuple[str, ...]


@dataclass
class _Draft:
    """A recipe's text as it grows."""

    lines: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def table(self, name: str) -> None:
        self.lines += ["", f"[{name}]"]

    def pin(self, key: str, value: object, reason: str) -> None:
        self.lines.append(f"{key} = {json.dumps(value)}  # {reason}")


def new(
    wish: Wish, release: Release, host_file: HostFile, folder: Path, ask: Ask
) -> NewRecipe:
    """Write a recipe for a release into `folder`.

    Raises RecipeError if the release was never made for what is wished for, or the file exists;
    SupplyError if the repository does not name the release's branch.
    """
    toolkit = _toolkit(wish, release)
    platform = "macos" if wish.system == "Darwin" else "linux"
    suffix = f"cuda{toolkit.version}" if toolkit else "cpu"
    # The name says what `invoke lint` asks of names: system, branch and CUDA.
    path = folder / f"{platform}-r{release}-{suffix}.toml"
    if path.exists():
        raise RecipeError(
            f"{path} exists already", remedy="Change that one, or rename it."
        )
    draft = _Draft()
    _describe(draft, wish, release, toolkit)
    # Elsewhere the path in this line would lead to nothing.
    if folder.resolve() == recipes.RECIPES.resolve():
        draft.lines[:0] = [schema.LINE, ""]
    _source(draft, release, host_file)
    _host(draft, wish, release, toolkit)
    _bazel(draft, release)
    _answer(draft, path, wish, toolkit, ask)
    return NewRecipe(path, tuple(draft.open))


def _toolkit(wish: Wish, release: Release) -> compatibility.Cuda | None:
    """Return the CUDA that the release was tested with; None for a recipe without a GPU."""
    if not (wish.gpu or wish.cuda):
        return None
    tested = []
    for row in compatibility.tested():
        first, last = row.releases
        if first <= release <= last:
            tested.append(row)
    wanted = wish.cuda or (tested[0].cuda if tested else "")
    found = compatibility.cuda(wanted)
    if found is None:
        raise RecipeError(
            f"The tables of tested builds name no CUDA for TensorFlow {release}",
            remedy="Name one: invoke new --release R --cuda 11.2.",
        )
    return found


def _describe(
    draft: _Draft, wish: Wish, release: Release, toolkit: compatibility.Cuda | None
) -> None:
    system = "macOS" if wish.system == "Darwin" else "Linux"
    kind = f"with CUDA {toolkit.version} " if toolkit else ""
    draft.lines = [
        "# Written by 'invoke new'; not run yet.",
        "",
        f"summary = {json.dumps(f'TensorFlow {release} {kind}for {system}')}",
    ]


def _source(draft: _Draft, release: Release, host_file: HostFile) -> None:
    """Pin the newest commit of the release's branch."""
    address = host_file.mirror_of(URL) or URL
    # git needs a directory to run in, and a new checkout has none yet.
    host_file.build_out.mkdir(parents=True, exist_ok=True)
    commit = remote.commit_of(host_file.build_out, address, f"r{release}")
    draft.table("source")
    # A branch moves; the commit is what makes the recipe build the same next year.
    draft.lines += [
        f"# The branch of release {release} at upstream; the commit is its newest one today.",
        f'url = "{URL}"',
        f'branch = "r{release}"',
        f'commit = "{commit}"',
    ]


def _host(
    draft: _Draft, wish: Wish, release: Release, toolkit: compatibility.Cuda | None
) -> None:
    draft.table("host")
    draft.pin("system", wish.system or "Linux", "what was asked for")
    draft.pin("machine", "x86_64", "the only machine that these tables know")
    known = compatibility.python(release)
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
        tested = next(
            row for row in compatibility.tested() if row.releases[0] <= release
        )
        draft.pin("cuda", toolkit.version, f"tested with this release: {tested.source}")
        draft.pin(
            "cudnn", toolkit.cudnn[1], f"made for this CUDA: {toolkit.source('cudnn')}"
        )
        draft.pin(
            "gcc", toolkit.gcc, f"the newest for this CUDA: {toolkit.source('gcc')}"
        )
        oldest, source = compatibility.driver(toolkit, wish.gpu)
        draft.pin("driver", oldest, f"the oldest that runs it: {source}")
    draft.lines += [
        "# What TensorFlow's own build imports; 'invoke pin' adds what these need.",
        "requirements = []",
    ]
    # pip alone knows what these packages need; `invoke pin` asks it.
    draft.open.append(
        "the packages of the build: invoke pin --recipe FILE --add numpy --add wheel"
    )


def _bazel(draft: _Draft, release: Release) -> None:
    known = compatibility.bazel(release)
    draft.table("bazel")
    if known:
        version = known.most or known.least
        draft.pin("version", version, f"./configure takes {known}: {known.source}")
    else:
        # A recipe without a version does not load, and this one should, to be finished.
        draft.pin("version", "0", "the tree's own .bazelversion says which one")
        draft.open.append("bazel.version: write what .bazelversion of the tree says")


def _answer(
    draft: _Draft, path: Path, wish: Wish, toolkit: compatibility.Cuda | None, ask: Ask
) -> None:
    """Answer every question of ./configure, and those that the answers lead to."""
    _decided(draft, wish, toolkit)
    # Which questions ./configure asks depends on earlier answers, so ask until none is left.
    for _ in range(ROUNDS):
        files.write(path, _text(draft))
        recipe = recipes.read(str(path))
        interview = expected.interview(recipe, HostFile())
        # Not every release asks for each part of CUDA.
        useless = [
            fault.variable for fault in validation.faults(interview) if fault.harmless
        ]
        for variable in useless:
            draft.answers.pop(variable, None)
        lacking = interview.unanswered()
        if not (lacking or useless):
            return
        for prompt in lacking:
            draft.answers[prompt.variable] = _asked(draft, recipe, prompt, ask)
    draft.open.append(
        "some questions of ./configure still have no answer: see 'invoke plan'"
    )


def _decided(draft: _Draft, wish: Wish, toolkit: compatibility.Cuda | None) -> None:
    """Give the answers that follow from the pins."""
    draft.answers["TF_NEED_CUDA"] = "true" if toolkit else "false"
    if toolkit:
        draft.answers["TF_CUDA_VERSION"] = json.dumps(toolkit.version)
        draft.answers["TF_CUDNN_VERSION"] = json.dumps(toolkit.cudnn[1])
        capabilities = (
            wish.gpu or f"{toolkit.capabilities[0]},{toolkit.capabilities[1]}"
        )
        draft.answers["TF_CUDA_COMPUTE_CAPABILITIES"] = json.dumps(capabilities)


def _asked(draft: _Draft, recipe: Recipe, prompt: Prompt, ask: Ask) -> str:
    """Ask for one answer; without a person, the answer to a yes-or-no question is no."""
    default = "false" if prompt.yes_no else json.dumps(TEXTS.get(prompt.variable, ""))
    given = ask(prompt, default)
    if given == default and not prompt.yes_no and default == '""':
        draft.open.append(
            f"{prompt.variable}: {recipe.name} needs a value that is not empty"
        )
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


def copy(path: Path, name: str) -> NewRecipe:
    """Write a copy of a recipe under another name, without its [verified] table.

    Raises RecipeError if there is such a recipe already.
    """
    target = path.with_name(f"{name}.toml")
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Choose another name.")
    text = verified.removed_from(path.read_text("utf-8"))
    files.write(target, schema.headed(f"# A copy of {path.stem}; not run yet.", text))
    return NewRecipe(target, ("what makes it differ from the recipe that it copies",))
