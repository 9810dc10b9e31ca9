"""`invoke lint`: what is wrong with recipes and their patches, all at once and without a build.

Each rule is a function that yields findings for one recipe; `RULES` lists them. A rule reads the
recipe's own text where it judges what a person wrote, such as the reason behind a pin.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tfwright.build import verified
from tfwright.configure import expected, validation
from tfwright.documents import composing
from tfwright.documents import recipe as recipes
from tfwright.documents.faults import line_of
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.toml import DocumentError
from tfwright.errors import RecipeError
from tfwright.facts import compatibility
from tfwright.host import cuda, hermetic, toolchain
from tfwright.printable import did_you_mean, shell_word
from tfwright.rules import configurations, dropping, tree_files
from tfwright.rules.dropping import DropFacts
from tfwright.tools.git import patching
from tfwright.tools.git.mirror import Origin
from tfwright.tools.python import pips
from tfwright.tools.python.packages import name_of
from tfwright.vault import lock, locking

DESCRIBING = {"summary", "until", "on", "host", "by", "note", "digests"}
DESCRIBING |= {"variable", "question", "kind", "when"}
"""Keys that describe a recipe, or the questions of its tree, rather than pin something, and so need
no reason."""
SYSTEMS = {"Linux": "linux", "Darwin": "macos", "any": "any"}
"""How the names of recipes begin."""
_KEY = re.compile(r"[\"\w./-]+ = ")


@dataclass(frozen=True)
class LintFinding:
    """One thing to correct in a recipe, its lock file or a patch."""

    file: Path
    line: int
    what: str
    remedy: str
    rule: str
    """The name of the rule, for people who search for it."""
    harmless: bool = False
    """Whether it only says what could not be checked here."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Subject:
    """A recipe under inspection, with the text that its author wrote."""

    path: Path
    recipe: Recipe
    host_file: HostFile = field(default_factory=HostFile)

    @cached_property
    def history(self) -> Path | None:
        """The repository on this host that the host file names for the source; None if none."""
        url = self.recipe.source.url
        mirror = self.host_file.mirror_of(url) or url
        # Lint asks no server: a bundled tree has no history, and neither has a remote one here.
        local = None if self.recipe.source.bundled else Origin.of(mirror).local
        return local if local and local.is_dir() else None

    @cached_property
    def tree_texts(self) -> dict[str, str]:
        """setup.py and .bazelrc of the commit by path, without those that a patch changes.

        Empty where no repository on this host is named for it.
        """
        if self.history is None:
            return {}
        paths = (*tree_files.SETUPS, *configurations.BAZELRCS)
        return tree_files.unpatched_texts(self.history, self.recipe.source, paths)

    @cached_property
    def downloads(self) -> compatibility.Hermetic | None:
        """What Bazel downloads for the commit, as far as repositories on this host show it."""
        return hermetic.downloads(self.recipe, self.host_file)

    @cached_property
    def text(self) -> str:
        """The recipe's file."""
        return composing.file_of(self.path).read_text("utf-8")

    def line_with(self, part: str) -> int:
        """Return the first line of the file that holds a text; 1 if there is none."""
        lines = enumerate(self.text.splitlines(), 1)
        return next((number for number, line in lines if part in line), 1)

    def finding(
        self, rule: str, place: int | str | tuple[int | str, ...], what: str, remedy: str
    ) -> LintFinding:
        """Return a finding in the recipe's own file, at a line, a dotted key or its parts."""
        key = tuple(place.split(".")) if isinstance(place, str) else place
        line = key if isinstance(key, int) else line_of(self.text, key)
        return LintFinding(composing.file_of(self.path), line, what, remedy, rule)


Rule = Callable[[Subject], Iterator[LintFinding]]


def lint(name: str, host_file: HostFile | None = None) -> list[LintFinding]:
    """Return all findings for one recipe, by name or by path, in the order of its lines.

    Of a recipe that does not load, only the faults that keep it from that are found. `host_file`
    may name a mirror whose history shows whether upstream has a patch by now.
    """
    path = recipes.find(name)
    try:
        subject = Subject(path, recipes.read(name), host_file or HostFile())
    except RecipeError as fault:
        return list(_schema_findings(path, fault))
    # Some findings are about the lock file or a patch, so sort by file before line.
    rules = RULES if subject.recipe.source.own_interface else (*OF_TENSORFLOW, *RULES)
    found = [finding for rule in rules for finding in rule(subject)]
    # What has no reason is right all the same, so it comes last.
    return sorted(
        found, key=lambda finding: (finding.rule == "reason", str(finding.file), finding.line)
    )


def lint_all(names: Sequence[str], host_file: HostFile) -> list[LintFinding]:
    """Return the findings for recipes, then those that only several of them together show."""
    # Recipes of one file share what is wrong with it.
    found = dict.fromkeys(finding for name in names for finding in lint(name, host_file))
    return [*found, *findings_among(names)]


def _schema_findings(path: Path, fault: RecipeError) -> Iterator[LintFinding]:
    """Take the message about several faults apart: each has a line of its own in it."""
    # A document that the recipe names has its own file and line.
    place = re.fullmatch(r"(.+):(\d+)", fault.evidence.where)
    file, line = (Path(place[1]), int(place[2])) if place else (path, 1)
    if isinstance(fault, DocumentError):
        for found in fault.faults:
            yield LintFinding(file, found.line, found.what, found.remedy, "schema")
        return
    yield LintFinding(file, line, _without_place(file, fault.what), fault.remedy, "schema")


def _without_place(path: Path, what: str) -> str:
    """Take ``FILE:LINE:`` off a message; the finding names them itself."""
    return re.sub(rf"^{re.escape(str(path))}(:\d+)?:? ", "", what)


# What a recipe says


def names_itself(subject: Subject) -> Iterator[LintFinding]:
    """Find a file name without system, branch and CUDA, by which `invoke recipes` sorts."""
    recipe = subject.recipe
    if recipe.source.bundled:
        return
    system = SYSTEMS[recipe.host.system]
    line = recipe.source.branch
    # A tag says its patch level, which the names of branches leave out.
    if re.match(r"v\d", line):
        line = f"r{recipe.source.release}"
    # NVIDIA names its branches by month; a recipe's name has the release that people look for.
    if "/NVIDIA/" in recipe.source.url:
        line = f"nv{recipe.source.release}"
    start = f"{system}-{line}-"
    cuda = f"cuda{recipe.host.cuda}" if recipe.host.cuda else ""
    # A recipe without CUDA must not say CUDA, and whatever follows is the author's choice.
    says_cuda = cuda in recipe.name if cuda else "cuda" not in recipe.name
    if recipe.name.startswith(start) and says_cuda:
        return
    wanted = f"{start}{cuda or 'cpu'}"
    yield subject.finding(
        "name",
        1,
        f"the name {recipe.name!r} does not say system, branch and CUDA",
        f"Rename the file, for example to {wanted}.toml.",
    )


def gives_reasons(subject: Subject) -> Iterator[LintFinding]:
    """Find pins without a comment behind or above them: they cannot be judged later."""
    if subject.recipe.source.bundled:
        return
    for number, text in lines_without_reason(subject.text):
        yield subject.finding(
            "reason",
            number,
            f"'{text}' has no reason",
            "Write behind it, or above it and its neighbours, why it is this value: # ...",
        )


def lines_without_reason(text: str) -> list[tuple[int, str]]:
    """Return number and text of the lines that pin something, with no comment behind or above.

    A comment above holds until the next blank line or table; one above a list, for the whole list.
    A substitute states its reason in a key of its own.
    """
    bare: list[tuple[int, str]] = []
    covered = inside = False
    for number, line in enumerate(text.splitlines(), 1):
        # A comment covers its block only; else the first one would excuse the whole file.
        if not line or line.startswith("["):
            covered = False
        covered = covered or line.startswith(("#", "reason = "))
        if not (inside or covered) and _is_pin(line):
            bare.append((number, line))
        inside = (inside or line.endswith("[")) and line != "]"
    return bare


def _is_pin(line: str) -> bool:
    """Tell whether a line sets a key that pins something, without saying why on the same line."""
    key = _KEY.match(line)
    if not key or " # " in line:
        return False
    # A list's own lines may carry their reasons inside it.
    return key[0].removesuffix(" = ") not in DESCRIBING and not line.endswith("[")


def tries_the_numpy_it_was_built_with(subject: Subject) -> Iterator[LintFinding]:
    """Find a wheel that is tried with another numpy than the build's: its ABI could differ."""
    recipe = subject.recipe
    built = {pin for pin in recipe.host.requirements if pin.startswith("numpy==")}
    for pin in sorted(built - set(recipe.verify.requirements)):
        # Such a project may well not import numpy once it is built.
        if not recipe.verify.requirements and recipe.source.own_interface:
            continue
        yield subject.finding(
            "numpy",
            "verify.requirements",
            f"the wheel is built with {pin} and verified without it",
            f'Add "{pin}" to verify.requirements.',
        )


def pins_no_nightly_package(subject: Subject) -> Iterator[LintFinding]:
    """Find packages of one night without a reason: an index keeps them for some weeks only."""
    comments = " ".join(re.findall(r"#.*", subject.text))
    for pin in subject.recipe.verify.requirements:
        name = pin.partition("==")[0]
        if name.endswith(tree_files.NIGHTLY) and name not in comments:
            yield subject.finding(
                "nightly",
                "verify.requirements",
                f"{pin} is the package of one night, which the index will remove",
                f"Patch setup.py to require a release, or say in a comment why {name} will do.",
            )


def leaves_no_default_of_tensorflow(subject: Subject) -> Iterator[LintFinding]:
    """Find another repository that would be configured or verified as if it were TensorFlow."""
    recipe = subject.recipe
    if not recipe.source.own_interface or recipe.source.bundled:
        return
    if not recipe.configure.bazelrc.lines:
        yield subject.finding(
            "own",
            "configure",
            "configure.bazelrc.lines is not stated, so that no build compares what is written",
            f"Run 'invoke record --recipe {recipe.argument}', which writes them.",
        )
    if "imports" not in recipe.verify.model_fields_set:
        yield subject.finding(
            "own",
            "verify",
            "verify.imports is not stated, and the default is for TensorFlow",
            "Name the modules that the wheel brings.",
        )
    names = {pin.partition("==")[0] for pin in recipe.verify.requirements}
    for pin in recipe.host.requirements:
        name = pin.partition("==")[0]
        if re.match(r"tensorflow(-cpu|-gpu)?$", name) and name not in names:
            yield subject.finding(
                "verify",
                "verify",
                f"the wheel is built with {pin} and verified without it; verify installs no "
                "dependencies by itself",
                f"Run 'invoke pin --recipe {recipe.argument} --verify {pin.partition(' ')[0]}'.",
            )


def answers_configure(subject: Subject) -> Iterator[LintFinding]:
    """Find questions of the release without an answer, and answers that it cannot mean."""
    interview = expected.interview(subject.recipe, HostFile())
    for fault in validation.faults(interview):
        place = ("configure", "answers", fault.variable)
        yield subject.finding("answer", place, str(fault), fault.remedy)
    if missing := expected.unanswered_error(interview):
        yield subject.finding("unanswered", "configure.answers", missing.what, missing.remedy)


def agrees_with_its_host(subject: Subject) -> Iterator[LintFinding]:
    """Find a CUDA in the answers that is not the one which [host] names."""
    recipe = subject.recipe
    needs = recipe.configure.answers.get("TF_NEED_CUDA")
    # Some releases do not ask; then no answer has to agree. A text is a finding of its own.
    if isinstance(needs, bool) and needs != bool(recipe.host.cuda):
        what = "TF_NEED_CUDA is true, but [host] names no cuda"
        if recipe.host.cuda:
            what = "TF_NEED_CUDA is not true, but [host] names a cuda"
        key = "configure.answers.TF_NEED_CUDA"
        yield subject.finding("cuda", key, what, "Make the two agree.")
    if not cuda.uses_cuda(recipe) and "--config=cuda" in recipe.compile.flags:
        what = "compile.flags has --config=cuda, and TF_NEED_CUDA is not true"
        yield subject.finding("cuda", "compile.flags", what, "Make the two agree.")
    version = str(recipe.configure.answers.get("TF_CUDA_VERSION") or "")
    if version and recipe.host.cuda and not version.startswith(recipe.host.cuda):
        yield subject.finding(
            "cuda",
            "configure.answers.TF_CUDA_VERSION",
            f"the answers name CUDA {version}, [host] names {recipe.host.cuda}",
            "Make the two agree.",
        )


def states_one_cuda(subject: Subject) -> Iterator[LintFinding]:
    """Find answers, flags and floors about CUDA that cannot hold together."""
    for found in hermetic.contradictions(subject.recipe, subject.downloads):
        yield subject.finding("cuda", found.key, found.what, found.remedy)


def names_a_cudnn_of_the_release(subject: Subject) -> Iterator[LintFinding]:
    """Find a cuDNN that is not for this CUDA, or of another major version than the release's."""
    recipe = subject.recipe
    tested = compatibility.tested_with(recipe.source.release)
    found = cuda.in_force(recipe, subject.downloads)
    row = compatibility.cuda(found.version) if found else None
    if not (found and found.cudnn and row and tested):
        return
    least, most = row.cudnn
    major, own = (version.partition(".")[0] for version in (found.cudnn, tested.cudnn))
    # The least of a row may be for its newest GPUs only.
    if not compatibility.is_within(found.cudnn, least.partition(".")[0], most):
        what = f"cuDNN {found.cudnn} was not made for CUDA {row.version}"
        remedy = f"Name one from {least} to {most}: {row.source('cudnn')}."
        yield subject.finding("cudnn", "host.cudnn", what, remedy)
    # 8 and 9 removed functions. A CUDA that came later may have no such cuDNN as the release wants,
    # and NVIDIA's fork has changes for later ones.
    elif (
        major != own
        and {major, own} & {"8", "9"}
        and compatibility.is_within(tested.cudnn, least, most)
        and not recipe.source.exact.fork
    ):
        what = f"cuDNN {found.cudnn} is pinned; TensorFlow {recipe.source.release} was tested with "
        what += f"{tested.cudnn}, and a new major version removes functions"
        remedy = f"Name a later one of {own}, see {tested.source}; or patch what calls them."
        yield subject.finding("cudnn", "host.cudnn", what, remedy)


def applies_its_cpu_flags(subject: Subject) -> Iterator[LintFinding]:
    """Find CC_OPT_FLAGS that no compiler is given: ./configure writes them for --config=opt."""
    recipe = subject.recipe
    if not recipe.configure.answers.get("CC_OPT_FLAGS"):
        return
    applied = re.search(r"--config=(opt|release\w*)(\s|$)", " ".join(recipe.compile.flags))
    if not applied and recipe.compile.target.startswith("//tensorflow"):
        yield subject.finding(
            "opt",
            "configure.answers.CC_OPT_FLAGS",
            "CC_OPT_FLAGS has no effect, since ./configure writes it for --config=opt only",
            'Add "--config=opt" to compile.flags.',
        )


def has_one_flag_in_each_text(subject: Subject) -> Iterator[LintFinding]:
    """Find texts with several flags: Bazel takes each text for one."""
    for flag in subject.recipe.compile.flags:
        if len(parts := re.split(r"\s+(?=--[a-z])", flag)) > 1:
            what = f"{flag!r} holds {len(parts)} flags, and Bazel takes it for one"
            remedy = f"Write {', '.join(map(json.dumps, parts))}."
            yield subject.finding("flag", subject.line_with(flag), what, remedy)


def agrees_with_its_tree(subject: Subject) -> Iterator[LintFinding]:
    """Find what the pinned commit contradicts, if the host file names a repository that has it."""
    recipe, source = subject.recipe, subject.recipe.source
    if subject.history is None or source.own_interface:
        return
    try:
        tree_files.check_release(subject.history, source.commit, source)
    except RecipeError as fault:
        yield subject.finding("release", "source.commit", fault.what, fault.remedy)
        return
    texts = subject.tree_texts
    setup = tree_files.setup_of(texts)
    judged = tree_files.judge_pins(recipe.verify.requirements, setup, recipe.host.python)
    if asking := [pin for pin in judged if pin.asks]:
        built = set(map(name_of, recipe.host.requirements))
        asked = tree_files.pin_options(asking, built)
        # One command: pip would refuse the one package with the old release of the other.
        what = f"setup.py requires {', '.join(pin.says for pin in asking)}"
        remedy = f"Run: invoke pin --recipe {recipe.argument} {asked}"
        yield subject.finding("setup", "verify.requirements", what, remedy)
    rcs = [texts[path] for path in configurations.BAZELRCS if path in texts]
    interview = expected.interview(recipe, HostFile())
    # Without an answer it is not known what ./configure defines.
    if not rcs or expected.unanswered_error(interview):
        return
    rendered = expected.render(interview, recipe.configure) or ""
    names = configurations.defined_configs("\n".join((*rcs, rendered)))
    for flag in recipe.compile.flags:
        name = flag.removeprefix("--config=")
        if name not in {flag, *names} and " " not in name:
            yield subject.finding(
                "config",
                subject.line_with(flag),
                f"{flag}: neither .bazelrc of the pinned commit nor ./configure defines it"
                f"{did_you_mean(name, sorted(names))}",
                "Remove it, or correct its name.",
            )


def has_the_packages_of_its_build(subject: Subject) -> Iterator[LintFinding]:
    """Find packages that the build imports, and that no pin brings: it would stop after hours."""
    recipe, source = subject.recipe, subject.recipe.source
    if source.bundled or recipes.hermetic_python(source.release):
        return
    setup = tree_files.setup_of(subject.tree_texts)
    required = tree_files.required_packages(setup, recipe.host.python)
    built = set(map(name_of, recipe.host.requirements))
    needed = tree_files.build_packages(source.release, required).items()
    if lacking := [name + version for name, version in needed if name not in built]:
        yield subject.finding(
            "build",
            "host.requirements",
            f"the build imports {', '.join(lacking)}, and host.requirements has no such pin",
            f"Run: invoke pin --recipe {recipe.argument} "
            + " ".join(f"--add {shell_word(each)}" for each in lacking),
        )


def is_not_tied_to_one_cpu(subject: Subject) -> Iterator[LintFinding]:
    """Find ``-march=native``, which makes a wheel for the building machine only."""
    recipe = subject.recipe
    flags = (str(recipe.configure.answers.get("CC_OPT_FLAGS", "")), *recipe.compile.flags)
    for flag in flags:
        if toolchain.is_native(flag):
            yield subject.finding(
                "native",
                subject.line_with(flag),
                f"{flag!r} ties the wheel to the processor of the building machine",
                "Name the instruction set instead, such as -march=x86-64 or -mavx.",
            )


def stays_below_its_cpu_floor(subject: Subject) -> Iterator[LintFinding]:
    """Find flags that compile for a newer CPU than verify allows, as it says after hours."""
    recipe = subject.recipe
    floor, answered = recipe.verify.cpu, recipe.configure.answers.get("CC_OPT_FLAGS", "")
    flags = " ".join((str(answered), *recipe.compile.flags))
    for flag in re.findall(r"(?<![\w-])-m[\w.=-]+", flags):
        level = compatibility.cpu_level(flag)
        if level and floor and compatibility.is_above(level, floor):
            yield subject.finding(
                "cpu",
                "verify.cpu",
                f"{flag} compiles for CPUs with {level}, and verify.cpu is {floor}",
                "Make the two agree, or verify refuses the wheel.",
            )


def makes_a_wheel(subject: Subject) -> Iterator[LintFinding]:
    """Find a target from which no wheel is made; a build would say so after hours."""
    recipe = subject.recipe
    try:
        recipes.check_makes_wheel(recipe.compile.target, recipe.package, recipe.source.release)
    except RecipeError as fault:
        yield subject.finding("wheel", "compile.target", fault.what, fault.remedy)


def pins_a_pip_that_reads_its_wheel(subject: Subject) -> Iterator[LintFinding]:
    """Find a platform tag that the target Python's own pip does not read, as only verify said."""
    recipe = subject.recipe
    pins = (*recipe.verify.requirements, *recipe.verify.plugins)
    try:
        pips.check_reads_platform(recipe.package.platform, recipe.host.python, pins)
    except RecipeError as fault:
        yield subject.finding("pip", "verify.requirements", fault.what, fault.remedy)


def names_the_python_of_bazel(subject: Subject) -> Iterator[LintFinding]:
    """Find a build whose Bazel would download its default Python, and not the recipe's."""
    if flag := recipes.lacking_python_flag(subject.recipe):
        python = subject.recipe.host.python
        other = next((one for one in subject.recipe.compile.flags if "_PYTHON_VERSION=" in one), "")
        what = f"compile.flags does not name Python {python}, and Bazel downloads its own"
        if other:
            what = f"{other} is not Python {python} of [host], and Bazel downloads the one it names"
        remedy = f'Write "{flag}" instead.' if other else f'Add "{flag}".'
        yield subject.finding("python", "compile.flags", what, remedy)


def has_a_compiler(subject: Subject) -> Iterator[LintFinding]:
    """Find a build by the clang that Bazel downloads, for what it is not for."""
    recipe = subject.recipe
    tree = cuda.downloading_clang(recipe)
    if tree is None:
        return
    if recipe.host.machine not in {"any", *tree.clang_downloaded}:
        yield subject.finding(
            "compiler",
            "compile.flags",
            f"Bazel downloads a clang for {', '.join(tree.clang_downloaded)} only, and the recipe "
            f"is for {recipe.host.machine}",
            'Add "--config=clang_local" to compile.flags, which takes the compiler of the host.',
        )
    what, remedy = tree.beyond(recipe.verify.glibc or "", recipe.host.machine)
    if what:
        yield subject.finding("compiler", "verify.glibc", what, remedy)


def has_patches_for_cuda_on_macos(subject: Subject) -> Iterator[LintFinding]:
    """Find a build with CUDA for macOS of a source tree that was not made for it."""
    recipe = subject.recipe
    if recipe.host.system != "Darwin" or not cuda.uses_cuda(recipe) or recipe.source.patches:
        return
    if recipe.source.release > compatibility.LAST_MAC_CUDA:
        yield subject.finding(
            "patches",
            "source",
            f"the recipe has no patches, and TensorFlow after {compatibility.LAST_MAC_CUDA} does "
            "not compile with CUDA on macOS",
            "Add patches, such as those of macos-r1.8-cuda9.2; 'invoke patch --add FILE' takes "
            "them in.",
        )


def names_a_bazel_of_the_release(subject: Subject) -> Iterator[LintFinding]:
    """Find a Bazel that ./configure of the release refuses, or that is of another age."""
    recipe = subject.recipe
    release, version = recipe.source.release, recipe.bazel.version
    newer = recipe.configure.agrees_to("TF_IGNORE_MAX_BAZEL_VERSION")
    wanted, source, refused = compatibility.unusual_bazel(recipe.source.exact, version, newer=newer)
    if wanted and (refused or not newer):
        yield subject.finding(
            "bazel",
            "bazel.version",
            f"Bazel {version} is pinned, and TensorFlow {release} takes {wanted}",
            f"Pin such a Bazel; see {source}.",
        )


def says_what_it_replaces(subject: Subject) -> Iterator[LintFinding]:
    """Find a substitute that is bound to no archive: it could replace another version."""
    for name, table in subject.recipe.fetch.substitutes.items():
        if table.replaces is None:
            yield subject.finding(
                "replaces",
                ("fetch", "substitutes", name),
                f"the substitute {name} does not state which archive it replaces",
                f"Run 'invoke fetch --recipe {subject.recipe.argument}': it shows the line.",
            )
        elif table.replaces == table.sha256:
            yield subject.finding(
                "replaces",
                ("fetch", "substitutes", name, "replaces"),
                f"the substitute {name} replaces an archive by the same archive",
                "Write as 'replaces' the checksum of the rule in the tree. The same file from "
                "another place is a [[fetch.sources]].",
            )


def was_verified_on_a_day(subject: Subject) -> Iterator[LintFinding]:
    """Find a date of verification on which nothing can have been verified."""
    verification = subject.recipe.verified
    if verification and (reason := verified.impossible_date(verification)):
        yield subject.finding(
            "verified",
            "verified.on",
            reason,
            f"Let 'invoke build --recipe {subject.recipe.argument} --verified-by NAME' "
            "write the table.",
        )


# Its patches and its lock file


def has_sound_patches(subject: Subject) -> Iterator[LintFinding]:
    """Find patches without the three fields of their header, or that change more than text."""
    for name in subject.recipe.source.patches:
        patch = subject.recipe.source.file(name)
        # A bad header says nothing about the body, so report both.
        for read in (patching.read_header, patching.read):
            try:
                read(patch)
            except RecipeError as fault:
                # An error about the whole file names no line.
                line = fault.evidence.where.rpartition(":")[2]
                number = int(line) if line.isdigit() else 1
                what = _without_place(patch, fault.what).removeprefix(f"{patch}: ")
                yield LintFinding(patch, number, what, fault.remedy, "patch")


def has_no_patch_that_is_due(subject: Subject) -> Iterator[LintFinding]:
    """Find patches that their own ``Drop when:`` says to remove, or whose condition is misspelt."""
    facts = DropFacts.of(subject.recipe, repository=subject.history)
    for name in subject.recipe.source.patches:
        patch = subject.recipe.source.file(name)
        try:
            drop_when = patching.read_header(patch).drop_when
        except RecipeError:
            # `has_sound_patches` says what is wrong with the header.
            continue
        verdict = dropping.judge(drop_when, facts)
        if verdict.answer == "due":
            yield subject.finding(
                "patch-due",
                subject.line_with(name),
                f"{name} is to be dropped: its header says 'Drop when: {verdict.condition}'",
                "Remove it from source.patches; correct its header if the build still needs it.",
            )
        elif unknown := dropping.unknown_upstream(drop_when, facts):
            yield _unchecked_finding(subject, name, unknown)
        if condition := dropping.misspelt_condition(drop_when):
            # The field, and not a line of another one that speaks of it.
            lines = enumerate(patch.read_text("utf-8", "surrogateescape").splitlines(), 1)
            line = next((number for number, text in lines if text.startswith("Drop when:")), 1)
            what = f"'{condition}' cannot be read as a condition"
            remedy = "Write release >= 1.9, upstream COMMIT, or a sentence; docs/new-recipe.md."
            yield LintFinding(patch, line, what, remedy, "drop-when")


def _unchecked_finding(subject: Subject, patch: str, condition: str) -> LintFinding:
    """Say that nothing here shows whether upstream has a patch."""
    url = subject.recipe.source.url
    why = f"[mirrors] of the host file names no repository on this host for {url}"
    remedy = "Name one with its history there, or let a host check it that has one."
    if subject.history:
        why = f"{subject.history} lacks one of the two commits, or the history between them"
        remedy = "Fetch the missing history into that repository."
    what = f"{patch}: 'Drop when: {condition}' cannot be checked here: {why}"
    found = subject.finding("patch-unchecked", subject.line_with(patch), what, remedy)
    return replace(found, harmless=True)


def has_current_pins(subject: Subject) -> Iterator[LintFinding]:
    """Find packages that pip resolved for other ones than the recipe names by now."""
    if composing.has_outdated_pins(subject.path):
        path = subject.path.with_suffix(composing.PINS)
        remedy = f"Run 'invoke pin --recipe {subject.recipe.argument}'; unneeded ones go, too."
        yield LintFinding(path, 1, composing.OUTDATED, remedy, "pins")


def has_a_current_lock(subject: Subject) -> Iterator[LintFinding]:
    """Find a lock file that pins something else than the recipe."""
    path = subject.path.with_suffix(".lock")
    if not path.is_file():
        return
    remedy = f"Run 'invoke lock --recipe {subject.recipe.argument}', and read what it changes."
    try:
        outdated = locking.recipe_differences(subject.recipe, lock.read(path))
    except RecipeError as fault:
        yield LintFinding(path, 1, _without_place(path, fault.what), fault.remedy, "lock")
        return
    for reason in outdated:
        yield LintFinding(path, 1, f"is outdated: {reason}", remedy, "lock")


OF_TENSORFLOW: Sequence[Rule] = (
    names_itself,
    applies_its_cpu_flags,
    agrees_with_its_tree,
    has_the_packages_of_its_build,
    names_the_python_of_bazel,
    has_a_compiler,
    has_patches_for_cuda_on_macos,
    names_a_cudnn_of_the_release,
    names_a_bazel_of_the_release,
)
"""Rules that go by the release of TensorFlow."""
RULES: Sequence[Rule] = (
    gives_reasons,
    tries_the_numpy_it_was_built_with,
    pins_no_nightly_package,
    leaves_no_default_of_tensorflow,
    answers_configure,
    agrees_with_its_host,
    states_one_cuda,
    has_one_flag_in_each_text,
    is_not_tied_to_one_cpu,
    stays_below_its_cpu_floor,
    makes_a_wheel,
    pins_a_pip_that_reads_its_wheel,
    says_what_it_replaces,
    was_verified_on_a_day,
    has_sound_patches,
    has_no_patch_that_is_due,
    has_current_pins,
    has_a_current_lock,
)
"""Rules for every recipe, in the order in which one is written."""


# Several recipes


def findings_among(names: Sequence[str]) -> list[LintFinding]:
    """Return findings that no single recipe shows; only for all of recipes/ together."""
    # With a few recipes only, each patch of the others would look unused.
    if set(names) != set(recipes.names()):
        return []
    try:
        read = [recipes.read(name) for name in names]
    except RecipeError:
        # Its own findings say why it does not load; which patches it names is unknown.
        return []
    named = {name for recipe in read for name in recipe.source.named_files}
    remedy = "Name it in a recipe, or delete it."
    found = [
        LintFinding(path, 1, "belongs to no recipe", remedy, "unused-patch")
        for path in sorted(recipes.PATCHES.glob("*/*"))
        if str(path.relative_to(recipes.PATCHES)) not in named
    ]
    first: dict[tuple[str, ...], str] = {}
    for recipe in read:
        other = first.setdefault(recipe.wheel_identity, recipe.name)
        if other != recipe.name:
            file = composing.file_of(recipes.find(recipe.name))
            what = f"its wheel would have the same file name as the one of {other}"
            remedy = "Set package.project_name in one of them."
            found.append(LintFinding(file, 1, what, remedy, "same-wheel"))
    return found
