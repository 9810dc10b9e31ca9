"""`invoke new`: a recipe from what is known about a release, with a reason behind each pin.

What the tables of host/ know is filled in with its source. Every question of ./configure gets an
answer: from the pins, from the person at the terminal, or "no", which leaves the feature out. The
recipe is unverified, and the report lists what is still open.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tfwright.build import verified
from tfwright.configure import expected, validation
from tfwright.configure.catalogue import Prompt
from tfwright.develop import schemas
from tfwright.documents import recipe as recipes
from tfwright.documents.composing import copied_pins
from tfwright.documents.filesystem import SHIPPED
from tfwright.documents.host_file import HostFile
from tfwright.documents.names import recipe_name
from tfwright.documents.release import ExactRelease, Release, is_version
from tfwright.errors import RecipeError, TfwrightError
from tfwright.facts import compatibility
from tfwright.facts.compatibility import is_older
from tfwright.host.cuda import CAPABILITIES, capabilities_variable
from tfwright.lock import packages
from tfwright.match import pins, releases
from tfwright.match.pins import DerivedPin, Toolkit
from tfwright.match.wish import Wish
from tfwright.options import job_of
from tfwright.printable import shell_word
from tfwright.rules import tree_files
from tfwright.rules.patched_tree import BAZELRC
from tfwright.terminal import console
from tfwright.tools import files, toml_editing
from tfwright.tools.git import demo
from tfwright.tools.git.remote import Remote, named_commit
from tfwright.tools.render import render

URL = "https://github.com/tensorflow/tensorflow.git"
ROUNDS = 8
"""Answers can lead to further questions; no release nests them deeper than this."""
ARMV8 = "-march=armv8-a"
FLAGS = {"x86_64": "-march=x86-64 -mtune=generic", "aarch64": ARMV8, "arm64": ARMV8}
"""What serves most people: code for every processor of a machine."""
Ask = Callable[[Prompt, str], str]
"""Asks a person, with a default in the form that is typed; returns the default where there is
none."""


@dataclass(frozen=True)
class NewRecipe:
    """A recipe that was written, and what is still open in it."""

    path: Path
    open: tuple[str, ...]
    unpinned: tuple[str, ...] = ()
    """Packages in it that 'invoke pin' has to find versions for; none in a copy."""


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


def new(  # noqa: PLR0913, PLR0917 each is a fact of its own
    wish: Wish,
    wanted: WantedRelease,
    host_file: HostFile,
    folder: Path,
    ask: Ask,
    bazel_version: str = "",
) -> NewRecipe:
    """Write a recipe for a release into `folder`.

    Raises RecipeError if the release was never made for what is wished for, its commit is of
    another one, or the file exists; SupplyError if the repository does not name the tag or branch.
    """
    draft = _Draft(wish, wanted, _choose_toolkit(wish, wanted.line), folder)
    path = folder / f"{draft.name}.toml"
    if path.exists():
        raise RecipeError(
            f"{path} exists already",
            remedy=f"To go on with it, run 'invoke lint --recipe {shell_word(str(path))}', which "
            "lists what it lacks. To begin again, rename it, or add --folder DIRECTORY.",
        )
    texts = draft.pin_source(host_file)
    draft.pin_host()
    draft.name_packages(tree_files.setup_of(texts))
    draft.bazel = pins.bazel_pin(wanted.line, texts, bazel_version)
    try:
        draft.answer_questions(path, ask)
    except KeyboardInterrupt:
        # What a person answered so far is kept: 'invoke lint' lists the other questions.
        files.write(path, draft.text())
        raise
    except RecipeError:
        # It does not load, and would only stop the next attempt.
        files.remove(path)
        raise
    argument = shell_word(str(path))
    return NewRecipe(
        path,
        tuple(line.replace("FILE", argument) for line in draft.open),
        (*draft.building, *draft.verifying),
    )


def _choose_toolkit(wish: Wish, release: Release) -> Toolkit | None:
    """Return the CUDA for a recipe; None for one without a GPU.

    It is the one that is asked for, or else what the release was tested with, as far as that
    compiles for the GPU. Raises RecipeError if the release does not go with the wish.
    """
    tested = compatibility.tested_with(release)
    row = compatibility.cuda(wish.cuda) or releases.toolkit_for(wish, release)
    # A CUDA that is asked for may be newer than the release; an older one lacks what it calls.
    least = tested.cuda.partition(".")[0] if tested else ""
    too_old = is_older(wish.cuda, least)
    wanted = replace(wish, gpu="", cuda="") if wish.cuda and not too_old else wish
    reasons = list(releases.refusals(release, wanted)) if release in releases.KNOWN else []
    if not reasons and row:
        reasons = [*filter(None, [releases.misfit(row, wish)])]
    elif not reasons and wish.cuda:
        known = (row.version for row in compatibility.cudas())
        usable = ", ".join(version for version in known if not is_older(version, least))
        reasons = [f"nothing is known of CUDA {wish.cuda}; the tables have CUDA {usable}"]
    elif not reasons and wish.gpu:
        reasons = ["tfwright's tables do not have the CUDA of this release"]
    if reasons:
        names = {"os": wish.system or "Linux", "gpu": wish.gpu, "python": wish.python}
        names |= {"driver": wish.driver, "glibc": wish.glibc, "release": str(release)}
        options = " ".join(f"--{name} {value}" for name, value in names.items() if value)
        way = "leave out --gpu and --cuda" if row or wish.cuda else "a CUDA with --cuda"
        if releases.toolkit_for(replace(wish, cuda=""), release):
            way = "another CUDA with --cuda"
        other = f", or {way}" if wish.gpu or wish.cuda else ""
        cpu_only = replace(wish, gpu="", cuda="")
        if release in releases.KNOWN and any(releases.refusals(release, cpu_only)):
            other = ""
        other = "" if any(releases.barriers(wish)) else f"Name another release{other}; "
        raise RecipeError(
            f"TensorFlow {release} cannot be built for this: {'; '.join(reasons)}",
            remedy=f"{other}'invoke match {options}' lists what fits together.",
        )
    return Toolkit.of(row, release)


@dataclass
class _Draft:
    """What a recipe is to say, as it grows."""

    wish: Wish
    wanted: WantedRelease
    toolkit: Toolkit | None
    folder: Path
    source: dict[str, str] = field(default_factory=dict)
    pins: dict[str, DerivedPin] = field(default_factory=dict)
    """What the tables say, by key."""
    bazel: DerivedPin | None = None
    answers: dict[str, str] = field(default_factory=dict)
    """Those of ./configure, as TOML writes them."""
    open: list[str] = field(default_factory=list)
    building: list[str] = field(default_factory=list)
    verifying: list[str] = field(default_factory=list)

    @property
    def machine(self) -> str:
        return self.wish.machine or "x86_64"

    @property
    def tree(self) -> compatibility.Hermetic | None:
        """What Bazel downloads for the release."""
        return compatibility.hermetic(self.wanted.line)

    @property
    def clang(self) -> str:
        """The host's clang, where upstream compiles with no other; empty where Bazel brings one."""
        linux = self.wish.system != "Darwin"
        return self.tree.compiler_for(self.machine) if self.tree and linux else ""

    @property
    def name(self) -> str:
        """A name that says what `invoke lint` asks of names: system, branch and CUDA."""
        version = self.wanted.version
        platform = "macos" if self.wish.system == "Darwin" else "linux"
        candidate = f"-{version.candidate}" if version.candidate else ""
        suffix = f"cuda{self.toolkit.row.version}" if self.toolkit else "cpu"
        suffix += "" if self.machine == "x86_64" else f"-{self.machine}"
        return f"{platform}-r{version.line}{candidate}-{suffix}"

    def pin_source(self, host_file: HostFile) -> dict[str, str]:
        """Pin the commit; return the texts of its tree that later pins follow from."""
        wanted = self.wanted
        address = host_file.mirror_of(URL) or URL
        # git needs a directory to run in, and a new checkout has none yet.
        host_file.build_out.mkdir(parents=True, exist_ok=True)
        remote = Remote(host_file.build_out, address)
        branch, commit = f"r{wanted.line}", wanted.commit
        reason = "The commit that was asked for."
        if wanted.tag and not commit:
            tag, commit = remote.release_of(wanted.version)
            reason = f"The tag {tag} at upstream."
        elif not commit:
            commit = remote.commit_of(branch)
            reason = f"The branch of release {wanted.line}; the commit is its newest one today."
        # A branch moves; the commit is what makes the recipe build the same next year.
        self.source = {"reason": reason, "url": URL, "branch": branch, "commit": commit}
        paths = (*tree_files.BAZELS, *tree_files.RELEASES, *tree_files.SETUPS, BAZELRC)
        texts = remote.texts(commit, (*paths, *tree_files.TOOLCHAINS))
        if wanted.commit and not texts:
            self.open.append(
                f"source.commit: {address} showed none of its files; 'invoke fetch --recipe FILE' "
                "says whether it has it"
            )
        tree_files.check_named_release(texts, wanted.version, commit, remote, "--release")
        url, listing = tree_files.toolchain_of(texts)
        if self.toolkit:
            lists: Mapping[str, str] = {}
            if listing:
                other = Remote(host_file.build_out, host_file.mirror_of(url) or url)
                lists = other.texts(listing, tree_files.CUDA_LISTS)
            bazelrc, source = texts.get(BAZELRC, ""), f"{url} at {listing[:12]}"
            self.toolkit = self.toolkit.of_commit(bazelrc, lists, source)
        return texts

    def pin_host(self) -> None:
        """Pin what the machine must have, and what the wheel is held to."""
        release, wish = self.wanted.line, self.wish
        found = [
            DerivedPin("host.system", wish.system or "Linux", "what was asked for"),
            DerivedPin("host.machine", self.machine, "what was asked for, or else this host's"),
            *pins.pins(release, wish, self.toolkit),
        ]
        self.pins = {pin.name: pin for pin in found if not pin.open}
        if "host.python" not in self.pins:
            raise RecipeError(
                f"No table says which Python TensorFlow {release} takes",
                remedy="Look into setup.py of the tree, and add --python VERSION.",
            )
        if release > releases.KNOWN[0]:
            self.open.append(
                f"nothing is known of TensorFlow {release}; what ./configure asks, the flags and "
                f"what Bazel downloads are written as for {releases.KNOWN[0]}, until a build shows "
                "otherwise"
            )
        for pin in found:
            if pin.open:
                self.open.append(": ".join(filter(None, (pin.name, pin.value, pin.source))))

    def name_packages(self, setup: str) -> None:
        """Name the packages of build and wheel; `invoke pin` finds versions that go together."""
        python = self.pins["host.python"].value
        required = tree_files.required_packages(setup, python)
        bounds = map(Requirement, compatibility.package_bounds(str(self.wanted.line)))
        bounded = {bound.name: bound.specifier for bound in bounds}
        for requirement in required:
            # Old releases set no upper bounds, and later packages broke what they had promised.
            if {part.operator for part in requirement.specifier} <= {">", ">=", "!="}:
                bound = bounded.get(canonicalize_name(requirement.name), SpecifierSet())
                requirement.specifier &= bound
        self.verifying = [str(requirement).partition(";")[0].strip() for requirement in required]
        if nightlies := tree_files.nightly_packages(setup, python):
            self.verifying += [str(release) for _, release in nightlies]
            self.open.append(
                f"setup.py of this tree wants {' and '.join(str(one) for one, _ in nightlies)}, of "
                "which the index keeps the last nights only; verify.requirements names what the "
                "release wants instead. Patch setup.py to want the same"
            )
        self.verifying += self.toolkit.pip_packages(setup) if self.toolkit else []
        if not recipes.hermetic_python(self.wanted.line):
            building = tree_files.build_packages(self.wanted.line, required)
            self.building = [name + version for name, version in building.items()]
            # The wheel is tried with the numpy of its build, whatever setup.py says.
            if "numpy" not in {canonicalize_name(requirement.name) for requirement in required}:
                self.verifying.append("numpy")

    def answer_questions(self, path: Path, ask: Ask) -> None:
        """Answer every question of ./configure, and those that the answers lead to."""
        toolkit = self.toolkit
        self.answers["TF_NEED_CUDA"] = "true" if toolkit else "false"
        if toolkit:
            capabilities = json.dumps(toolkit.capabilities(self.wish))
            # What a release does not ask for is dropped.
            self.answers |= {
                "TF_CUDA_VERSION": json.dumps(toolkit.row.version),
                "TF_CUDNN_VERSION": json.dumps(toolkit.cudnn.value),
                "TF_CUDA_COMPUTE_CAPABILITIES": capabilities,
                # From 2.18 on Bazel downloads CUDA, and the three have other names.
                "HERMETIC_CUDA_COMPUTE_CAPABILITIES": capabilities,
            }
            cuda, cudnn = toolkit.downloaded_versions()
            self.answers |= {
                "HERMETIC_CUDA_VERSION": json.dumps(cuda),
                "HERMETIC_CUDNN_VERSION": json.dumps(cudnn),
            }
        # Which questions ./configure asks depends on earlier answers, so ask until none is left.
        for _ in range(ROUNDS):
            files.write(path, self.text())
            recipe = recipes.read(str(path), complete=packages.remove_open)
            interview = expected.interview(recipe, HostFile())
            # Not every release asks for each part of CUDA, nor by the same names.
            read = {prompt.variable for prompt in interview.dialect.prompts}
            useless = [fault.variable for fault in validation.faults(interview) if fault.harmless]
            useless += [variable for variable in self.answers if variable not in read]
            for variable in useless:
                self.answers.pop(variable, None)
            lacking = interview.unanswered()
            if not (lacking or useless):
                return
            for prompt in lacking:
                texts = {
                    "CC_OPT_FLAGS": FLAGS.get(self.machine, ""),
                    "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc",
                    "CLANG_COMPILER_PATH": self.clang,
                }
                default = json.dumps(texts.get(prompt.variable, ""))
                if prompt.yes_no:
                    default = json.dumps(prompt.variable == "TF_NEED_CLANG" and bool(self.clang))
                answer = ask(prompt, default)
                # Where an empty text is an answer, it is a good one: configure then uses what it
                # finds.
                if answer == '""' and not prompt.empty:
                    self.open.append(f"{prompt.variable} needs a value that is not empty")
                self.answers[prompt.variable] = answer
        self.open.append(
            "some questions of ./configure still have no answer: see 'invoke plan --recipe FILE'"
        )

    def text(self) -> str:
        """Return the recipe."""
        release, toolkit = self.wanted.line, self.toolkit
        kind = f"with CUDA {toolkit.row.version} " if toolkit else ""
        system = "macOS" if self.wish.system == "Darwin" else "Linux"
        tree, listed = self.tree, toolkit.tree if toolkit else None
        values = {
            **vars(self),
            "host": {
                key.removeprefix("host."): pin
                for key, pin in self.pins.items()
                if key.startswith("host.")
            },
            # A JSON string is a TOML string.
            "toml": json.dumps,
            "listed": toml_editing.format_list,
            "no": [name for name, answer in self.answers.items() if answer == "false"],
            "schema": schemas.line_in(self.folder),
            "summary": f"TensorFlow {self.wanted} {kind}for {system}",
            "by_program": release <= recipes.LAST_BY_PROGRAM,
            # Later Bazels do not take the first flag; compilers of a Mac make one kind of object.
            "compiled_twice": system == "Linux" and release <= Release(2, 12),
            "tree": tree,
            "wheel_target": recipes.WHEEL_TARGET,
            "by_bazel": toolkit and tree,
            "nvshmem": listed.nvshmem_for(toolkit.row.version) if toolkit and listed else "",
            "gpus": CAPABILITIES[bool(tree)],
            "set_again": bool(tree) or compatibility.clang_configuration(release),
            "by_clang": self.answers.get("TF_CUDA_CLANG") == "true",
            "clang": self.clang,
            "python_names": recipes.hermetic_python(release)[:1],
            "floors": self._wheel_checks(),
        }
        return render("recipe.toml.j2", values)

    def _wheel_checks(self) -> dict[str, object]:
        """Return what verify checks in the wheel, which follows from the answers."""
        floors: dict[str, object] = {}
        capabilities = self.answers.get(capabilities_variable(self.answers), '""')
        if made_for := list(filter(None, capabilities.strip("\"'").split(","))):
            # PTX may be in it or not, which nothing is said of here.
            names = [part if "_" in part else f"sm_{part.replace('.', '')}" for part in made_for]
            floors["architectures"] = [name for name in names if "sm_" in name]
        for key, pin in self.pins.items():
            if key.startswith("verify."):
                floors[key.removeprefix("verify.")] = pin.value
        return floors


def parse_release(text: str) -> WantedRelease:
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


def copy_recipe(path: Path, name: str, folder: str = "") -> NewRecipe:
    """Write a copy of a recipe under another name, without its [verified] table.

    It is put next to the recipe, or into recipes/ if tfwright came with it, unless a folder is
    named. Raises RecipeError if there is such a recipe already, or the name is none for a recipe.
    """
    try:
        recipe_name(name)
    except ValueError as fault:
        raise RecipeError(
            f"{name!r} {fault}", remedy="Choose another name: --name linux-r2.6-mine."
        ) from fault
    beside = recipes.RECIPES if path.parent == SHIPPED / "recipes" else path.parent
    target = (Path(folder) if folder else beside) / f"{name}.toml"
    if target.exists():
        raise RecipeError(f"{target} exists already", remedy="Choose another name.")
    # Its faults are shown with its own lines, and not with those of a copy that is removed again.
    original = recipes.read(str(path))
    text = verified.without_verified(path.read_text("utf-8"))
    head = f"# A copy of {path.stem}; not run yet."
    files.write(target, schemas.with_comment(head, text, target.parent))
    made = [target]
    # Or the wheelhouse could hold only one of the two wheels. A TensorFlow keeps its name.
    if original.source.url == demo.URL:
        own = re.sub(r"\W+", "_", f"tfwright_demo_{name.lower()}")
        toml_editing.put(target, ("package", "project_name"), own, "the wheel's own name")
    for place, packages_of in copied_pins(path, target):
        made.append(place)
        files.write(place, packages_of)
    try:
        recipes.read(str(target))
    except RecipeError:
        # Its patches may lie next to the original only.
        for place in made:
            files.remove(place)
        raise
    return NewRecipe(target, ("how it differs from the recipe that it copies",))


def pin_packages(made: NewRecipe) -> NewRecipe:
    """Let pip find versions for what a new recipe names; say what is in the way where it cannot."""
    if not made.unpinned:
        return made
    job = job_of(str(made.path), complete=packages.remove_open)
    job.listener.note(f"pip looks for versions of {len(made.unpinned)} packages")
    try:
        with console.working("pinning"):
            packages.pin(job, made.path)
    except TfwrightError as fault:
        # The recipe is written, and of use without them.
        open_point = f"versions of its packages: {fault.what}. {fault.remedy}"
        return replace(made, open=(*made.open, open_point))
    return replace(made, unpinned=())
