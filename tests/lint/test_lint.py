import re
import shutil
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Read, change_text, find_text, make_file, make_folder
from tests.remedies.following import CommandLine
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.errors import RecipeError
from tfwright.lint import changes
from tfwright.lint import recipes as linting
from tfwright.pipeline.job import RecipeJob

CPU = "linux-r1.8-cpu"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a real recipe with its lock, outside the checkout; all of it is in one file."""
    shutil.copy(recipes.RECIPES / f"{CPU}.lock", tmp_path)
    shutil.copy(Path(__file__).with_name(f"{CPU}.toml"), tmp_path)
    return tmp_path / f"{CPU}.toml"


def changed(path: Path, before: str, after: str) -> list[linting.LintFinding]:
    """Return what lint finds once a text of the recipe is replaced."""
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")
    return linting.lint(str(path))


@pytest.mark.parametrize("name", recipes.names())
def test_a_bundled_recipe_has_no_findings(name: str) -> None:
    assert [str(finding) for finding in linting.lint(name)] == []


def test_every_patch_and_asset_belongs_to_a_recipe() -> None:
    assert linting.findings_among(recipes.names()) == []


def test_a_recipe_outside_the_checkout_is_checked_like_any_other(outside: Path) -> None:
    assert linting.lint(str(outside)) == []


def test_a_recipe_that_does_not_load_has_one_finding_with_its_line(outside: Path) -> None:
    (found,) = changed(outside, "machine = ", "machin = ")
    assert found.rule == "schema"
    assert "unknown key host.machin" in found.what
    assert outside.read_text("utf-8").splitlines()[found.line - 1].startswith("machin = ")


@pytest.mark.parametrize(
    ("before", "after", "rule", "says"),
    [
        ("numpy==1.14.5", "numpy>=1.14.5", "schema", "must be an exact pin"),
        ("numpy==1.14.5", "-r /etc/passwd", "schema", "must be an exact pin"),
        ('"numpy==1.14.5", ', "", "build", "imports numpy"),
        ('"absl-py==', '"tb-nightly==2.20.0a1", "absl-py==', "nightly", "one night"),
        ('CC_OPT_FLAGS = "', 'CC_OPT_FLAGS = "-march=native ', "native", "ties the wheel"),
        ("TF_NEED_CUDA = false", "TF_NEED_CUDA = true", "cuda", "[host] names no cuda"),
        (
            'CC_OPT_FLAGS = "',
            'CC_OPT_FLAGS = "-march=haswell ',
            "cpu",
            "compiles for CPUs with avx2, and verify.cpu is sse3",
        ),
        ('"--config=opt"', '"--config=opt", "--config=cuda"', "cuda", "TF_NEED_CUDA is not true"),
        ('"--config=opt"', '"--config=opt --copt=-g"', "flag", "holds 2 flags"),
        ("TF_NEED_GCP = false\n", "", "unanswered", "TF_NEED_GCP"),
        ("TF_NEED_GCP = false\n", "TF_NEED_GCP = false\nTF_BANANA = true\n", "answer", "BANANA"),
        ("[compile]", '[compile]\ntarget = "//tensorflow:lib.so"', "wheel", "makes no wheel"),
        (
            "[compile]",
            '[compile]\ntarget = "//tensorflow/tools/pip_package:wheel"',
            "wheel",
            "makes no wheel of TensorFlow 1.8",
        ),
    ],
)
def test_a_mistake_is_found_with_its_rule(
    outside: Path, before: str, after: str, rule: str, says: str
) -> None:
    found = [finding for finding in changed(outside, before, after) if finding.rule == rule]
    assert says in found[0].what
    assert found[0].remedy


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("/usr/bin/gcc-10", "/usr/bin/gcc-11", "gcc 11 is newer"),
        ("sm_86,compute_86", "sm_86,sm_90", "CUDA 11.2, as the recipe states, does not compile"),
        ('cudnn = "8.5"', 'cudnn = "7.6"', "cuDNN 7.6 was not made for CUDA 11.2"),
        ('cudnn = "8.5"', 'cudnn = "9.1"', "TensorFlow 2.6 was tested with 8.1"),
    ],
)
def test_a_compiler_a_gpu_or_a_cudnn_that_the_cuda_of_a_recipe_does_not_take_is_found(
    tmp_path: Path, before: str, after: str, says: str
) -> None:
    name = "linux-r2.6-cuda11.2"
    shutil.copy(recipes.RECIPES / f"{name}.pins", tmp_path)
    text = (recipes.RECIPES / f"{name}.toml").read_text("utf-8").replace("toolkit = ", "# ", 1)
    copy = make_file(tmp_path / f"{name}.toml", text)
    assert "cuda" not in {found.rule for found in linting.lint(str(copy))}
    assert any(says in found.what for found in changed(copy, before, after))


def test_a_build_whose_bazel_would_download_another_python_is_found(tmp_path: Path) -> None:
    path = Path(shutil.copy(recipes.find("linux-r2.20-cuda12.8-sm120"), tmp_path))
    name = "HERMETIC_PYTHON_VERSION=3.12"
    assert not changed(path, name, "TF_PYTHON_VERSION=3.12.4")
    (found,) = changed(path, "TF_PYTHON_VERSION=3.12.4", "PYTHON=3.12")
    assert (found.rule, name in found.remedy) == ("python", True)
    assert "does not name Python 3.12" in found.what
    (found,) = changed(path, "PYTHON=3.12", "HERMETIC_PYTHON_VERSION=3.11")
    assert "HERMETIC_PYTHON_VERSION=3.11 is not Python 3.12 of [host]" in found.what


def test_cuda_on_macos_needs_patches_after_tensorflow_1_1(tmp_path: Path) -> None:
    recipe = recipes.find("macos-r1.8-cuda9.2")
    text = re.sub(r"(?ms)^patches = .*?\]", "patches = []", recipe.read_text("utf-8"))
    copy = make_file(tmp_path / recipe.name, text)
    assert any("no patches" in found.what for found in linting.lint(str(copy)))
    older = text.replace('branch = "r1.8"', 'branch = "r1.1"')
    copy.write_text(older, "utf-8")
    assert not any("no patches" in found.what for found in linting.lint(str(copy)))


AXES = '["3.10", "3.11", "3.13"]'


@pytest.mark.parametrize(
    ("release", "before", "after", "says"),
    [
        ("r2.21", 'VERSION = "12.8.1"', 'VERSION = "12.9.1"', "[host] names 12.8"),
        # What depends on such an answer is not counted.
        ("r2.21", "TF_NEED_CUDA = true", 'TF_NEED_CUDA = "true"', "neither true nor false"),
        ("r2.20", AXES, '["3.12"]', "name each Python once, and not 3.12"),
        ("r2.20", AXES, '["3.11", "3.11"]', "name each Python once, and not 3.12"),
    ],
)
def test_a_mistake_that_others_follow_from_is_one_finding(
    tmp_path: Path, release: str, before: str, after: str, says: str
) -> None:
    path = Path(shutil.copy(recipes.find(f"linux-{release}-cuda12.8-sm120"), tmp_path))
    (found,) = changed(path, before, after)
    assert says in found.what


@pytest.mark.medium
def test_a_recipe_is_held_against_its_commit_where_a_mirror_on_this_host_has_it(
    outside: Path, tmp_path: Path
) -> None:
    setup = "tensorflow/tools/pip_package/setup.py"
    tree = {setup: "_VERSION = '1.8.0'\n", "tools/bazel.rc": "build:mkl -c opt\n"}
    pinned = commit(tmp_path / "upstream", tree)
    other = commit(tmp_path / "upstream", {setup: "_VERSION = '1.9.0'\n"})
    recipe = recipes.read(str(outside))
    host_file = HostFile(mirrors={recipe.source.url: str(tmp_path / "upstream")})
    text = outside.read_text("utf-8").replace(recipe.source.commit, pinned)

    def said(text: str) -> list[str]:
        outside.write_text(text, "utf-8")
        rules = {"config", "release", "setup"}
        return [one.what for one in linting.lint(str(outside), host_file) if one.rule in rules]

    assert said(text.replace('"--config=opt"', '"--config=opt", "--config=mkl"')) == []
    (what,) = said(text.replace('"--config=opt"', '"--config=opt", "--config=mlk"'))
    assert what.startswith("--config=mlk: neither")
    assert "did you mean 'mkl'" in what
    newer = commit(
        tmp_path / "upstream",
        {setup: "_VERSION = '1.8.0'\nREQUIRED_PACKAGES = ['six >= 99', 'new']\n"},
    )
    # One finding with one command: pip resolves the packages together.
    (what,) = said(text.replace(pinned, newer))
    assert "setup.py requires six>=99 (1.11.0 is pinned), new (not pinned)" in what
    (what,) = said(text.replace(pinned, other))
    assert "TensorFlow 1.9.0, the recipe says 1.8" in what


def test_all_mistakes_are_found_at_once(outside: Path) -> None:
    changed(outside, 'CC_OPT_FLAGS = "', 'CC_OPT_FLAGS = "-march=native ')
    found = changed(outside, "numpy==1.14.5", "numpy==1.14.6")
    assert {"numpy", "native", "lock"} <= {finding.rule for finding in found}


def test_a_wrong_answer_does_not_hide_that_others_are_missing(outside: Path) -> None:
    found = changed(outside, "TF_NEED_GCP = false\n", "TF_BANANA = true\n")
    assert {"answer", "unanswered"} <= {finding.rule for finding in found}


def test_what_depends_on_a_wrong_answer_is_not_asked_for_yet(outside: Path) -> None:
    found = changed(outside, "TF_NEED_MPI = false", 'TF_NEED_MPI = "perhaps"')
    assert "unanswered" not in {finding.rule for finding in found}


def test_a_pin_without_a_reason_is_found_by_its_line() -> None:
    text = '[bazel]\n# Why.\nversion = "1"\n\npeak = 2\nsystem = "x"  # why\n'
    assert linting.lines_without_reason(text) == [(5, "peak = 2")]


def test_a_name_that_hides_what_is_in_it_is_found(outside: Path) -> None:
    renamed = outside.rename(outside.with_name("mine.toml"))
    assert [finding.rule for finding in linting.lint(str(renamed))] == ["name"]


def test_a_patch_without_its_header_is_found_beside_the_recipe(outside: Path) -> None:
    name = recipes.read(CPU).source.patches[0]
    body = (recipes.PATCHES / name).read_text("utf-8").partition("diff --git")
    own = make_file(outside.parent / "patches" / name, body[1] + body[2])
    (found,) = linting.lint(str(outside))
    assert (found.rule, found.file) == ("patch", own)
    assert "the header must say Why:, Upstream:, Drop when:" in found.what


def own_patch(outside: Path, drop_when: str) -> None:
    """Put a copy of the recipe's first patch next to it, with another condition."""
    name = recipes.read(CPU).source.patches[0]
    text = (recipes.PATCHES / name).read_text("utf-8")
    text = re.sub(r"(?m)^Drop when: .*$", f"Drop when: {drop_when}", text)
    make_file(outside.parent / "patches" / name, text)


def test_a_patch_whose_own_header_says_that_it_is_due_is_found(outside: Path) -> None:
    own_patch(outside, "release >= 1.8")
    (found,) = linting.lint(str(outside))
    assert (found.rule, found.file) == ("patch-due", outside)
    assert "Drop when: release >= 1.8" in found.what


def test_a_condition_that_cannot_be_read_is_found_in_the_patch(outside: Path) -> None:
    own_patch(outside, "release => 1.9")
    patch = outside.parent / "patches" / recipes.read(CPU).source.patches[0]
    text = patch.read_text("utf-8")
    # Another field may speak of this one.
    patch.write_text(text.replace("Why: ", "Why: not yet Drop when: it is mended: ", 1), "utf-8")
    (found,) = linting.lint(str(outside))
    assert (found.rule, found.file.suffix) == ("drop-when", ".patch")
    assert found.line > 1
    assert patch.read_text("utf-8").splitlines()[found.line - 1].startswith("Drop when:")


def test_a_lock_that_its_recipe_has_left_behind_is_found(outside: Path) -> None:
    found = changed(outside, "numpy==1.14.5", "numpy==1.14.6")
    (outdated, *_) = [finding for finding in found if finding.rule == "lock"]
    assert "requirement numpy==1.14.6 is wanted" in outdated.what
    # The commands of a remedy take a recipe by its path.
    assert outdated.remedy.startswith(f"Run 'invoke lock --recipe {outside}'")
    assert recipes.read(CPU).argument == CPU


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only recipe of a checkout, which is the demo's."""
    checkout = tmp_path / "checkout"
    commit(checkout, {"recipes/demo.toml": (recipes.RECIPES / "demo.toml").read_text("utf-8")})
    monkeypatch.setattr(changes, "ROOT", checkout)
    monkeypatch.setattr(recipes, "RECIPES", checkout / "recipes")
    return checkout / "recipes/demo.toml"


def test_a_change_names_keys_files_and_what_to_run(committed: Path) -> None:
    change_text(committed, "peak = ", "peak = 1")
    change_text(committed, '\nsummary = "', '\nsummary = "New: ')
    # One that was not committed yet is looked at as well.
    shutil.copy(committed, committed.with_name("new.toml"))
    change = changes.change_since("HEAD")
    assert change.recipes == ("demo", "new")
    assert "summary" in [key.key for key in change.keys]
    assert change.files == ("recipes/demo.toml", "recipes/new.toml")
    assert "invoke plan --recipe demo" in change.tests


def test_a_change_of_resolved_packages_names_each_of_them(committed: Path) -> None:
    committed.with_suffix(".pins").write_text('verify = ["six==1.17.0"]\n', "utf-8")
    (key,) = changes.change_since("HEAD").keys
    assert (key.key, key.before, key.after) == ("verify.six", "", "1.17.0")


def test_a_change_is_what_this_branch_did_since_it_left_the_other(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The checkout may lie below the top of its repository, and files may have any name.
    monkeypatch.setattr(changes, "ROOT", committed.parent)
    checkout = committed.parents[1]
    run_git("checkout", "-qb", "other", cwd=checkout)
    commit(checkout, {"recipes/toolkits/of_the_other.toml": ""})
    run_git("checkout", "-q", "-", cwd=checkout)
    make_file(committed.parent / "patches/ä.patch", "")
    assert changes.change_since("other").files == ("patches/ä.patch",)
    monkeypatch.setattr(changes, "ROOT", make_folder(tmp_path / "elsewhere"))
    with fails(RecipeError, "other", tmp_path / "elsewhere"):
        changes.change_since("other")


def test_a_recipe_whose_patch_is_gone_is_among_those_that_a_change_is_about(
    committed: Path,
) -> None:
    change_text(committed, 'patches = ["', 'patches = ["demo/0009-new.patch", "')
    checkout = committed.parents[1]
    commit(checkout, {"patches/demo/0009-new.patch": ""})
    (checkout / "patches/demo/0009-new.patch").unlink()
    assert changes.change_since("HEAD").recipes == ("demo",)


@pytest.mark.parametrize("broken", ["= 1", "a = " + "[" * 9000, "\udcff"])
def test_a_change_that_breaks_a_recipe_is_shown_and_left_to_its_findings(
    committed: Path, broken: str
) -> None:
    committed.write_text(broken, "utf-8", "surrogateescape")
    change = changes.change_since("HEAD")
    assert (change.recipes, change.keys) == (("demo",), ())
    assert [finding.rule for finding in linting.lint("demo")] == ["schema"]


def test_the_keys_of_a_recipe_that_was_broken_before_are_new(committed: Path) -> None:
    whole = committed.read_text("utf-8")
    commit(committed.parents[1], {"recipes/demo.toml": "= 1"})
    committed.write_text(whole, "utf-8")
    change = changes.change_since("HEAD")
    assert {key.before for key in change.keys} == {""}


def test_a_review_says_what_a_build_would_run_and_keep(tmp_path: Path) -> None:
    job = RecipeJob(
        recipe=recipes.read("demo"), host_file=HostFile(build_out=tmp_path / "build_out")
    )
    planned = changes.plan_recipe(job)
    assert planned.recipe == "demo"
    assert {"fetch", "compile", "publish"} <= set(planned.runs)
    assert not (tmp_path / "build_out/demo/tree").exists()


def test_each_fault_of_the_schema_is_a_finding_of_its_own(outside: Path) -> None:
    change_text(outside, "numpy==", "numpy>=")
    found = linting.lint(str(outside))
    assert [finding.rule for finding in found] == ["schema", "schema"]
    assert len({finding.line for finding in found}) == 2


def test_a_substitute_that_replaces_an_archive_by_itself_is_found(outside: Path) -> None:
    text = outside.read_text("utf-8")
    table = text.partition("[fetch.substitutes.nasm]\n")[2]
    own = find_text(r'(?m)^replaces = "(\w+)"[\s\S]*?^sha256 = "(\w+)"', table)
    (found,) = changed(outside, f'replaces = "{own[1]}"', f'replaces = "{own[2]}"')
    assert found.what == ("the substitute nasm replaces an archive by the same archive")
    assert "[[fetch.sources]]" in found.remedy


def test_a_substitute_that_says_nothing_of_what_it_replaces_is_found(outside: Path) -> None:
    text = outside.read_text("utf-8")
    line = find_text(r'(?m)^\[fetch\.substitutes\.nasm\]\n.*\n(replaces = ".*"\n)', text)
    (found,) = [finding for finding in changed(outside, line[1], "") if finding.rule == "replaces"]
    assert "substitute nasm does not state which archive it replaces" in found.what
    assert "[fetch.substitutes.nasm]" in outside.read_text("utf-8").splitlines()[found.line - 1]


def test_a_platform_tag_that_the_pip_of_the_target_python_does_not_read_is_found(
    outside: Path,
) -> None:
    tag = 'platform = "manylinux_2_31_x86_64"  # Debian 11.'
    found = changed(outside, "[verify]", f"[package]\n{tag}\n\n[verify]")
    (pip,) = [finding for finding in found if finding.rule == "pip"]
    text = outside.read_text("utf-8")
    assert text.splitlines()[pip.line - 1] == "requirements = ["
    assert pip.remedy == 'Add "pip==21.3.1" to verify.requirements.'
    head, verify, rest = text.partition("[verify]")
    first = "requirements = ["
    pinned = rest.replace(first, f'{first}\n"pip==21.3.1",', 1)
    outside.write_text(head + verify + pinned, "utf-8")
    assert "pip" not in {found.rule for found in linting.lint(str(outside))}


def with_history(outside: Path, folder: Path) -> tuple[HostFile, str, str]:
    """Let the recipe pin a commit of a mirror; return the mirror's host file and its commits."""
    on_branch, elsewhere = commit(folder), commit(folder, message="two")
    recipe = recipes.read(str(outside))
    change_text(outside, recipe.source.commit, on_branch)
    outside.with_suffix(".lock").unlink()
    return HostFile(mirrors={recipe.source.url: str(folder)}), on_branch, elsewhere


def test_a_patch_that_upstream_has_by_now_is_due(outside: Path, tmp_path: Path) -> None:
    settings, on_branch, elsewhere = with_history(outside, tmp_path / "mirror")
    own_patch(outside, f"upstream {on_branch[:10]}")
    (found,) = linting.lint(str(outside), settings)
    assert (found.rule, found.harmless) == ("patch-due", False)
    own_patch(outside, f"upstream {elsewhere}")
    assert linting.lint(str(outside), settings) == []


@pytest.mark.parametrize(
    ("mirror", "why"), [(False, "names no repository on this host"), (True, "lacks one of the two")]
)
def test_a_condition_that_nothing_here_decides_is_said_and_is_no_fault(
    outside: Path, tmp_path: Path, *, mirror: bool, why: str
) -> None:
    settings, _, _ = with_history(outside, tmp_path / "mirror")
    own_patch(outside, f"upstream {'a' * 40}, or the release is 1.9 or later")
    (found,) = linting.lint(str(outside), settings if mirror else None)
    assert (found.rule, found.harmless) == ("patch-unchecked", True)
    assert f"'Drop when: upstream {'a' * 40}' cannot be checked here" in found.what
    assert why in found.what


def test_a_recipe_of_a_tag_is_named_by_its_release(outside: Path) -> None:
    found = changed(outside, 'branch = "r1.8"', 'branch = "v1.8.0"')
    assert "name" not in {finding.rule for finding in found}


def test_a_verification_in_the_future_is_found(outside: Path) -> None:
    text = outside.read_text("utf-8")
    on = find_text(r"(?m)^on = .*$", text)
    found = changed(outside, on[0], "on = 2999-01-01")
    (early,) = [finding for finding in found if finding.rule == "verified"]
    assert "2999-01-01 has not come yet" in early.what
    assert outside.read_text("utf-8").splitlines()[early.line - 1].startswith("on =")


@pytest.mark.medium
def test_a_change_is_reviewed_with_what_its_builds_would_run(
    shell: CommandLine, committed: Path, out: Read
) -> None:
    change_text(committed, '\nsummary = "', '\nsummary = "New: ')
    shell.status("invoke lint --changed HEAD")
    assert shell.fault is None
    shown = " ".join(out().split())
    assert "demo summary" in shown
    assert "files recipes/demo.toml" in shown
    assert "plan of demo runs check, fetch, source" in shown
    # It cannot be planned, and its findings say why.
    change_text(committed, "TF_NEED_IGNITE = false\n", "")
    shell.status("invoke lint --changed HEAD")
    assert shell.fault is None
    assert "TF_NEED_IGNITE" in out()


OWN = """\
summary = "x"
[source]
url = "https://example.org/ops.git"
branch = "master"
commit = "93bc2e2072e0daccbcff7a90d397b704a9e8f778"
interface = "own"
[host]
system = "Linux"
python = "3.7"
requirements = ["tensorflow-cpu==2.1.0"]
[bazel]
version = "1.1.0"
[compile]
target = "//:build_pip_pkg"
"""


def test_what_another_repository_would_take_from_tensorflow_is_found(tmp_path: Path) -> None:
    path = make_file(tmp_path / "own.toml", OWN)
    found = [each for each in linting.lint(str(path)) if each.rule != "reason"]
    assert [each.rule for each in found] == ["own", "own", "verify"]
    path.write_text(
        OWN
        + '[configure.bazelrc]\nlines = ["build -c opt"]\n'
        + '[verify]\nimports = ["x"]\nrequirements = ["tensorflow-cpu==2.1.0"]\n',
        "utf-8",
    )
    assert {each.rule for each in linting.lint(str(path))} == {"reason"}
