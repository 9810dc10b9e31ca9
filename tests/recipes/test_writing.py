import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import change_text, make_file
from tests.upstream import commit, run_git

from tfwright.configure.catalogue import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, SupplyError
from tfwright.lint import recipes as lint
from tfwright.lock import packages
from tfwright.match.wish import Wish
from tfwright.recipes import writing
from tfwright.recipes.writing import Ask, NewRecipe, parse_release
from tfwright.rules import tree_files


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository like TensorFlow's, with some of its branches and no files of it."""
    folder = tmp_path / "upstream"
    commit(folder)
    for branch in ("r1.4", "r1.8", "r2.6", "r2.15", "r2.20", "r2.21", "r2.99"):
        run_git("branch", branch, cwd=folder)
    run_git("tag", "v1.12.0-rc0", cwd=folder)
    return folder


@pytest.fixture
def host_file(upstream: Path, tmp_path: Path) -> HostFile:
    """Return a host file that names it for upstream's own repository."""
    return HostFile(build_out=tmp_path / "build_out", mirrors={writing.URL: upstream.as_uri()})


def pinned(made: NewRecipe) -> str:
    """Give the packages a version each, as `invoke pin` does; return the path."""
    text = made.path.read_text("utf-8")
    lists = re.compile(r"requirements = \[[^\]]*\]")
    text = lists.sub(lambda one: re.sub(r'"([\w-]+)[^"]*"', r'"\1==1"', one[0]), text)
    return str(make_file(made.path, text))


def alone(_: object, default: str) -> str:
    """Answer as a shell without a terminal does."""
    return default


def read(made: NewRecipe) -> Recipe:
    """Return a new recipe, without the packages that it does not pin yet."""
    return recipes.read(str(made.path), packages.remove_open)


New = Callable[..., NewRecipe]
"""What the fixture `new` is: writes a recipe for a release, and a wish for Linux if not another."""


@pytest.fixture
def new(host_file: HostFile, tmp_path: Path) -> New:
    def written(release: str, ask: Ask = alone, bazel: str = "", **wish: str) -> NewRecipe:
        wanted = Wish(**{"system": "Linux"} | wish)
        return writing.new(wanted, parse_release(release), host_file, tmp_path, ask, bazel)

    return written


def test_a_new_recipe_answers_every_question_and_gives_every_reason(new: New) -> None:
    made = new("1.8", python="3.6")
    assert made.path.name == "linux-r1.8-cpu.toml"
    assert lint.lint(pinned(made)) == []
    recipe = read(made)
    assert recipe.verified is None
    assert recipe.configure.answers["TF_NEED_CUDA"] is False
    assert made.unpinned == ("numpy", "wheel", "numpy")


def test_a_gpu_decides_cuda_capabilities_and_answers(new: New) -> None:
    made = new("2.6", gpu="8.6", python="3.8")
    recipe = read(made)
    assert recipe.host.cuda == "11.2"
    assert recipe.configure.answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "8.6"
    # An empty version lets configure build NCCL from its source: nothing is left to decide.
    assert recipe.configure.answers["TF_NCCL_VERSION"] == ""
    assert [line for line in made.open if "not empty" in line] == []
    assert [str(finding) for finding in lint.lint(pinned(made))] == []


def test_a_person_is_asked_and_believed(new: New) -> None:
    asked = []

    def ask(prompt: Prompt, default: str) -> str:
        asked.append(prompt.variable)
        return "true" if prompt.variable == "TF_NEED_S3" else default

    made = new("1.8", ask, python="3.6")
    assert "TF_NEED_S3" in asked
    assert read(made).configure.answers["TF_NEED_S3"] is True


@pytest.mark.medium
def test_a_branch_that_the_repository_lacks_is_named(new: New) -> None:
    with fails(SupplyError, "r1.9"):
        new("1.9", python="3.6")


def test_a_copy_is_not_verified(tmp_path: Path) -> None:
    original = make_file(tmp_path / "demo.toml", recipes.find("demo").read_text("utf-8"))
    made = writing.copy_recipe(original, "mine")
    assert read(made).verified is None
    with fails(RecipeError, ".toml"):
        writing.copy_recipe(original, "mine")


@pytest.mark.parametrize(
    ("gpu", "cuda", "asked"),
    [("", "", "--python"), ("12.0", "", "a CUDA with --cuda"), ("12.0", "12.8", "--python")],
)
def test_an_unknown_release_asks_for_what_no_table_has_and_leaves_no_half_recipe_behind(
    gpu: str, cuda: str, asked: str, tmp_path: Path, new: New
) -> None:
    with fails(RecipeError, asked):
        new("2.99", gpu=gpu, cuda=cuda)
    assert not list(tmp_path.glob("*.toml"))


@pytest.mark.parametrize("cuda", ["", "12.8"])
def test_a_release_after_all_that_are_known_is_written_as_the_newest_one_and_says_so(
    cuda: str, new: New
) -> None:
    made = new("2.99", cuda=cuda, python="3.13", bazel="7.4.1")
    assert any("2.99" in line and "2.21" in line for line in made.open)
    recipe = read(made)
    assert ("--config=cuda_wheel" in recipe.compile.flags) is bool(cuda)
    if cuda:
        assert [flag for flag in recipe.compile.flags if "cuda" in flag] == [
            "--config=cuda_nvcc",
            "--config=cuda_wheel",
        ]
        assert recipe.configure.answers["HERMETIC_CUDA_VERSION"] == "12.8.1"
        assert recipe.host.gcc is None
    assert lint.lint(pinned(made)) == []


def test_a_release_candidate_is_its_tag(new: New) -> None:
    made = new("1.12-rc0")
    assert made.path.name == "linux-r1.12-rc0-cpu.toml"
    recipe = read(made)
    assert str(recipe.source.exact) == "1.12.0-rc0"
    assert recipe.source.release == Release(1, 12)
    assert lint.lint(pinned(made)) == []


def test_the_first_version_of_a_line_is_its_tag_and_not_the_newest_commit_of_the_branch(
    new: New, upstream: Path
) -> None:
    run_git("tag", "v1.8.0", cwd=upstream)
    tagged = run_git("rev-parse", "HEAD", cwd=upstream)
    commit(upstream)
    for text in ("1.8.0", "v1.8.0"):
        made = new(text, python="3.6")
        recipe = read(made)
        made.path.unlink()
        assert recipe.source.commit == tagged
        assert str(recipe.source.exact) == "1.8.0"
        assert recipe.summary == "TensorFlow 1.8.0 for Linux"


def test_a_commit_can_be_named_where_the_mirror_has_no_tags(new: New, upstream: Path) -> None:
    setup = (
        "_VERSION = '2.4.0'\nREQUIRED_PACKAGES = [\n"
        "    'numpy ~= 1.19.2', 'keras_preprocessing ~= 1.1.2', 'gast == 0.3.3',\n"
        "    'protobuf >= 3.9.2']\n"
    )
    named = commit(upstream, {tree_files.SETUPS[0]: setup})
    made = new(f"v2.4.0@{named}", python="3.8")
    assert read(made).source.commit == named
    assert not [line for line in made.open if "source.commit" in line]
    # What setup.py leaves without a bound gets the one of its time.
    protobuf = "protobuf<3.21,>=3.9.2"
    required = ("numpy~=1.19.2", "keras_preprocessing~=1.1.2", "gast==0.3.3", protobuf)
    building = ("numpy~=1.19.2", "wheel", "keras-preprocessing~=1.1.2")
    assert made.unpinned == building + required
    with fails(RecipeError, "2.4", "2.3"):
        new(f"2.3@{named}", python="3.8")
    # Whether a server has a commit is known once it is fetched.
    made = new(f"2.3.0@{'0' * 40}", python="3.8")
    assert "source.commit" in made.open[0]
    with fails(RecipeError, "40"):
        parse_release("v2.4.0@185fc30")


def test_what_is_no_release_is_refused() -> None:
    for text in ("banana", "1.8x", "", "1", "r1.8/x"):
        with fails(RecipeError, "--release"):
            parse_release(text)


@pytest.mark.medium
def test_cudnn_and_cuda_are_what_the_release_was_tested_with(new: New) -> None:
    made = new("1.4", cuda="8.0")
    recipe = read(made)
    assert recipe.host.cudnn == recipe.configure.answers["TF_CUDNN_VERSION"] == "6"
    # TensorFlow does not take the 2.0 that this CUDA compiles for.
    assert recipe.configure.answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "3.0,6.2"
    made = new("1.8", cuda="9.2")
    assert "this release was tested with 9.0" in made.path.read_text("utf-8")


def test_a_gpu_that_the_tested_cuda_does_not_know_gets_another_cuda(new: New) -> None:
    made = new("2.20", gpu="12.0")
    recipe = read(made)
    assert (recipe.host.cuda, recipe.host.cudnn) == ("12.8", "9.7")
    assert recipe.compile.target == recipes.WHEEL_TARGET
    # Bazel would download another Python.
    named = f"--repo_env=HERMETIC_PYTHON_VERSION={recipe.host.python}"
    assert named in recipe.compile.flags
    assert lint.lint(pinned(made)) == []
    with fails(RecipeError, "--cuda"):
        new("1.8", gpu="12.0")


def test_a_cudnn_of_another_major_version_than_the_tested_one_is_left_to_decide(new: New) -> None:
    made = new("2.15", gpu="12.0", python="3.11")
    assert any("was tested with cuDNN 8.9" in line for line in made.open)


def test_a_python_that_the_release_does_not_take_is_no_matter_of_cuda(tmp_path: Path) -> None:
    wish = Wish(system="Linux", cuda="12.3", python="3.13")
    with pytest.raises(RecipeError) as caught:
        writing.new(wish, parse_release("2.16"), HostFile(), tmp_path, alone)
    assert "leave out --gpu" not in caught.value.remedy


def test_an_older_cuda_than_the_release_takes_is_refused_before_the_network_is_asked(
    tmp_path: Path,
) -> None:
    wish = Wish(system="Linux", gpu="3.0", cuda="10.1")
    # Without a host file for tests, upstream's own repository would be asked.
    with fails(RecipeError, "made for CUDA 11, and not 10.1"):
        writing.new(wish, parse_release("2.4"), HostFile(), tmp_path, alone)


def test_a_mac_gets_no_driver_and_no_gcc(new: New) -> None:
    made = new("1.8", system="Darwin", cuda="9.2")
    host = read(made).host
    assert (host.gcc, host.driver) == (None, None)
    assert host.xcode
    with fails(RecipeError, "11.2"):
        new("2.6", system="Darwin", cuda="11.2")


@pytest.mark.medium
def test_an_interrupted_interview_keeps_what_was_answered(tmp_path: Path, new: New) -> None:
    def ask(prompt: Prompt, default: str) -> str:
        if prompt.variable == "TF_NEED_S3":
            raise KeyboardInterrupt
        return "true" if prompt.variable == "TF_NEED_JEMALLOC" else default

    with pytest.raises(KeyboardInterrupt):
        new("1.8", ask, python="3.6")
    kept = recipes.read(str(tmp_path / "linux-r1.8-cpu.toml"), packages.remove_open)
    assert kept.configure.answers["TF_NEED_JEMALLOC"] is True


def test_a_copy_has_the_packages_for_each_python_of_its_axes(tmp_path: Path) -> None:
    original = recipes.find("linux-r2.21-cuda12.8-sm120")
    writing.copy_recipe(original, "linux-r2.21-cuda12.8-mine", str(tmp_path))
    for python in ("", "-py310", "-py313"):
        copied = recipes.read(str(tmp_path / f"linux-r2.21-cuda12.8-mine{python}.toml"))
        of_original = recipes.read(f"linux-r2.21-cuda12.8-sm120{python}")
        assert copied.verify.requirements == of_original.verify.requirements
        assert f"for {copied.name}.toml;" in copied.documents[-1].read_text("utf-8")


@pytest.mark.parametrize("name", ["../mine", "with space", "", "vault", "-x"])
def test_a_copy_needs_a_name_that_a_recipe_can_have(tmp_path: Path, name: str) -> None:
    original = make_file(tmp_path / "demo.toml", recipes.find("demo").read_text("utf-8"))
    with pytest.raises(RecipeError, match=r"must be a file|is a directory of"):
        writing.copy_recipe(original, name)
    assert list(tmp_path.iterdir()) == [original]


def test_a_copy_can_be_put_elsewhere(tmp_path: Path) -> None:
    made = writing.copy_recipe(recipes.find("demo"), "mine", str(tmp_path / "own"))
    assert made.path == tmp_path / "own/mine.toml"
    first, *_ = made.path.read_text("utf-8").splitlines()
    assert (made.path.parent / first.removeprefix("#:schema ")).is_file()
    assert read(made).name == "mine"


def test_a_copy_of_the_demo_and_the_demo_can_both_be_in_the_wheelhouse(tmp_path: Path) -> None:
    names = {"Mine", "mine-2"}
    made = [writing.copy_recipe(recipes.find("demo"), name, str(tmp_path)) for name in names]
    assert (
        len({recipes.read("demo").wheel_identity, *(read(one).wheel_identity for one in made)}) == 3
    )


def test_a_copy_of_a_recipe_that_came_with_tfwright_is_put_among_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = recipes.find("demo").read_text("utf-8")
    original = make_file(tmp_path / "package/recipes/demo.toml", text)
    monkeypatch.setattr(writing, "SHIPPED", tmp_path / "package")
    monkeypatch.setattr(recipes, "RECIPES", tmp_path / "own/recipes")
    assert writing.copy_recipe(original, "mine").path == tmp_path / "own/recipes/mine.toml"
    assert list(original.parent.iterdir()) == [original]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"= 1", b"machin = 1"])
def test_a_recipe_that_does_not_load_is_not_copied_and_named_itself(
    tmp_path: Path, text: bytes
) -> None:
    original = make_file(tmp_path / "broken.toml", text)
    with fails(RecipeError, "broken.toml"):
        writing.copy_recipe(original, "mine")
    assert list(tmp_path.iterdir()) == [original]


def test_a_jetson_is_another_machine_whose_driver_and_cuda_are_its_own(new: New) -> None:
    made = new("2.6", machine="aarch64", gpu="8.7", python="3.8")
    recipe = read(made)
    assert recipe.host.machine == "aarch64"
    assert recipe.host.driver is None
    assert "x86" not in str(recipe.configure.answers["CC_OPT_FLAGS"])
    assert any("JetPack" in line for line in made.open)


def test_what_was_asked_for_is_what_the_wheel_is_held_to(new: New) -> None:
    made = new("2.6", gpu="8.6", python="3.8", cpu="avx")
    verify = read(made).verify
    assert (verify.architectures, verify.cpu) == (("sm_86",), "avx")


@pytest.mark.parametrize(
    ("release", "variable"), [("2.15", "TF_PYTHON_VERSION"), ("2.20", "HERMETIC_PYTHON_VERSION")]
)
def test_the_python_of_bazel_is_named_as_the_release_reads_it(
    release: str, variable: str, new: New
) -> None:
    flags = read(new(release, python="3.11")).compile.flags
    assert [flag for flag in flags if "PYTHON" in flag] == [f"--repo_env={variable}=3.11"]


@pytest.mark.parametrize(("release", "cuda"), [("2.20", "12.5"), ("2.15", "12.2")])
def test_kernels_by_clang_keep_the_gpus_that_were_asked_for(
    release: str, cuda: str, new: New
) -> None:
    clang = '"/usr/lib/llvm-18/bin/clang"'
    answers = {"TF_CUDA_CLANG": "true", "CLANG_CUDA_COMPILER_PATH": clang}

    def ask(prompt: Prompt, default: str) -> str:
        return answers.get(prompt.variable, default)

    made = new(release, ask, python="3.11", cuda=cuda, gpu="8.9")
    assert [str(finding) for finding in lint.lint(pinned(made))] == []
    assert "--config=cuda_nvcc" not in read(made).compile.flags


def test_a_cuda_that_the_tree_does_not_list_is_left_to_decide_and_found(new: New) -> None:
    made = new("2.20", python="3.12", cuda="13.0", gpu="12.0")
    lists = "lists no CUDA 13.0 (it ends with 12.8.1) and no cuDNN 9.12 (it ends with 9.8.0)"
    assert any(lists in line for line in made.open)
    found = lint.lint(pinned(made))
    assert {finding.rule for finding in found} == {"cuda"}


def test_a_commit_takes_the_cuda_that_its_own_rules_list(
    host_file: HostFile, tmp_path: Path, upstream: Path
) -> None:
    toolchain = tmp_path / "toolchain"
    pair = ["https://a.example/b.json", "0" * 64]
    lists = f"CUDA_REDIST_JSON_DICT = {json.dumps({'12.8.0': pair, '13.0.0': pair})}\n"
    lists += f"NVSHMEM_REDIST_JSON_DICT = {json.dumps({'3.3.9': pair})}\n"
    lists += f"CUDNN_REDIST_JSON_DICT = {json.dumps({'9.8.0': pair})}\n"
    listing = commit(toolchain, {tree_files.CUDA_LISTS[0]: lists})
    url = "https://github.com/google-ml-infra/rules_ml_toolchain"
    text = f'urls = ["{url}/archive/{listing}.tar.gz"]\n'
    default = 'common:cuda --repo_env=HERMETIC_CUDA_VERSION="13.0.0"\n'
    named = commit(upstream, {tree_files.TOOLCHAINS[0]: text, ".bazelrc": default})
    mirrors = {**host_file.mirrors, f"{url}.git": f"file://{toolchain}"}
    mine = host_file.changed(mirrors=mirrors)
    wanted = parse_release(f"2.21@{named}")
    wish = Wish(system="Linux", python="3.12", cuda="12.8")
    made = writing.new(wish, wanted, mine, tmp_path, alone)
    answers = read(made).configure.answers
    assert answers["HERMETIC_CUDA_VERSION"] == "12.8.0"
    for cuda, lacks, says in (
        ("12.9", "no CUDA 12.9 (it ends with 13.0.0)", "lists CUDA to 13.0.0"),
        ("13.0", "no NVSHMEM 3.3.20 (it ends with 3.3.9)", "lists NVSHMEM to 3.3.9"),
    ):
        made = writing.new(replace(wish, cuda=cuda), wanted, mine, tmp_path, alone)
        (decide,) = (line for line in made.open if lacks in line)
        assert "its default instead, of CUDA 13.0.0 and cuDNN 9.3.0" in decide
        remedies = [finding.remedy for finding in lint.lint(pinned(made), mine)]
        assert any(says in remedy for remedy in remedies)
    whats = [finding.what for finding in lint.lint(pinned(made), mine)]
    assert not any("Bazel takes CUDA" in what for what in whats)
    answered = made.path.read_text("utf-8")
    made.path.write_text(answered.replace('VERSION = "13.0.0"', 'VERSION = ""'), "utf-8")
    assert [finding.what for finding in lint.lint(str(made.path), mine)] == whats


def test_a_cuda_13_that_the_tree_lists_is_written(new: New) -> None:
    made = new("2.21", python="3.12", cuda="13.0", gpu="12.0")
    answers = read(made).configure.answers
    assert answers["HERMETIC_CUDA_VERSION"] == "13.0.2"
    assert answers["HERMETIC_CUDNN_VERSION"] == "9.12.0"
    assert lint.lint(pinned(made)) == []


@pytest.mark.parametrize(("cuda", "path"), [("", False), ("12.8", True)])
@pytest.mark.parametrize("release", ["2.20", "2.21"])
def test_another_machine_takes_its_own_compiler_where_bazel_downloads_one_for_x86(
    release: str, cuda: str, new: New, *, path: bool
) -> None:
    made = new(release, machine="aarch64", python="3.12", cuda=cuda)
    flag = "--config=clang_local"
    flags = read(made).compile.flags
    assert (flag in flags) is (release == "2.21")
    assert any("CLANG_CUDA_COMPILER_PATH=" in flag for flag in flags) is path
    file = pinned(made)
    assert lint.lint(file) == []
    made.path.write_text(made.path.read_text("utf-8").replace(flag, "--config=opt"), "utf-8")
    assert [found.rule for found in lint.lint(file)] == ["compiler"][release == "2.20" :]


@pytest.mark.parametrize(("release", "machine"), [("2.20", "x86_64"), ("2.21", "aarch64")])
def test_where_bazel_brings_no_compiler_the_clang_of_upstream_is_the_default(
    release: str, machine: str, new: New
) -> None:
    answers = read(new(release, machine=machine, python="3.12")).configure.answers
    assert answers["TF_NEED_CLANG"] is True
    assert answers["CLANG_COMPILER_PATH"] == "/usr/lib/llvm-18/bin/clang"


def test_a_glibc_older_than_that_of_bazels_compiler_stays_open_and_lint_finds_it(new: New) -> None:
    made = new("2.21", machine="x86_64", python="3.12", glibc="2.17")
    says = "Bazel's own compiler links against glibc 2.27, and the wheel is to load on 2.17"
    assert any(says in line for line in made.open)
    file = pinned(made)
    assert [found.what for found in lint.lint(file)] == [says]
    flag = '"--config=opt",'
    change_text(made.path, flag, f'{flag} "--config=clang_local",')
    assert lint.lint(file) == []


@pytest.mark.parametrize(("release", "building"), [("2.6", True), ("2.15", False)])
def test_a_build_with_bazels_own_python_needs_no_packages_of_the_host(
    release: str, new: New, *, building: bool
) -> None:
    made = new(release, python="3.9")
    text = made.path.read_text("utf-8")
    assert ("What TensorFlow's own build imports" in text) is building
    assert ("wheel" in made.unpinned) is building


@pytest.mark.parametrize(
    ("release", "system", "once"),
    [
        ("1.8", "Linux", True),
        ("2.6", "Linux", True),
        ("2.15", "Linux", False),
        ("2.6", "Darwin", False),
    ],
)
def test_on_linux_programs_of_the_build_take_the_objects_of_the_wheel(
    release: str, system: str, new: New, *, once: bool
) -> None:
    assert ("--force_pic" in read(new(release, system=system)).compile.flags) is once


def test_a_mac_with_arm_is_written_without_an_open_question(new: New) -> None:
    made = new("2.15", system="Darwin", machine="arm64", python="3.11")
    assert lint.lint(pinned(made)) == []
