import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file, make_folder
from tests.upstream import run_git

from tfwright.configure.catalogue import Prompt
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.release import Release
from tfwright.errors import RecipeError, SupplyError
from tfwright.lint import recipes as lint
from tfwright.lock import packages
from tfwright.match.wish import Wish
from tfwright.recipes import writing
from tfwright.recipes.writing import wanted_of
from tfwright.rules import tree_files


@pytest.fixture
def host_file(tmp_path: Path) -> HostFile:
    """Return a host file whose mirror of TensorFlow has two branches and no files of it."""
    upstream = make_folder(tmp_path / "upstream")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (
        ["init", "-q", "-b", "r1.8"],
        ["commit", "-q", "--allow-empty", "-m", "Begin"],
        ["branch", "r2.6"],
        ["branch", "r1.4"],
        ["branch", "r2.15"],
        ["branch", "r2.20"],
        ["branch", "r2.21"],
        ["branch", "r2.99"],
        ["tag", "v1.12.0-rc0"],
    ):
        subprocess.run(["git", *identity, *command], cwd=upstream, check=True)
    return HostFile(build_out=tmp_path / "build_out", mirrors={writing.URL: f"file://{upstream}"})


def pinned(path: Path) -> str:
    """Give the packages a version each, as `invoke pin` does; return the path."""
    text = path.read_text("utf-8")
    lists = re.compile(r"requirements = \[[^\]]*\]")
    path.write_text(
        lists.sub(lambda one: re.sub(r'"([\w-]+)[^"]*"', r'"\1==1"', one[0]), text), "utf-8"
    )
    return str(path)


def alone(_: object, default: str) -> str:
    """Answer as a shell without a terminal does."""
    return default


def test_a_new_recipe_answers_every_question_and_gives_every_reason(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", python="3.6")
    made = writing.new(wish, wanted_of("1.8"), host_file, tmp_path, alone)
    assert made.path.name == "linux-r1.8-cpu.toml"
    assert lint.lint(pinned(made.path)) == []
    recipe = recipes.read(str(made.path), packages.without_open)
    assert recipe.verified is None
    assert recipe.configure.answers["TF_NEED_CUDA"] is False
    assert made.unpinned == ("numpy", "wheel", "numpy")


def test_a_gpu_decides_cuda_capabilities_and_answers(host_file: HostFile, tmp_path: Path) -> None:
    wish = Wish(system="Linux", gpu="8.6", python="3.8")
    made = writing.new(wish, wanted_of("2.6"), host_file, tmp_path, alone)
    recipe = recipes.read(str(made.path), packages.without_open)
    assert recipe.host.cuda == "11.2"
    assert recipe.configure.answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "8.6"
    # An empty version lets configure build NCCL from its source: nothing is left to decide.
    assert recipe.configure.answers["TF_NCCL_VERSION"] == ""
    assert [line for line in made.open if "not empty" in line] == []
    assert [str(finding) for finding in lint.lint(pinned(made.path))] == []


def test_a_person_is_asked_and_believed(host_file: HostFile, tmp_path: Path) -> None:
    asked = []

    def ask(prompt: Prompt, default: str) -> str:
        asked.append(prompt.variable)
        return "true" if prompt.variable == "TF_NEED_S3" else default

    wish = Wish(system="Linux", python="3.6")
    made = writing.new(wish, wanted_of("1.8"), host_file, tmp_path, ask)
    assert "TF_NEED_S3" in asked
    assert (
        recipes.read(str(made.path), packages.without_open).configure.answers["TF_NEED_S3"] is True
    )


def test_nothing_is_overwritten(host_file: HostFile, tmp_path: Path) -> None:
    (tmp_path / "linux-r1.8-cpu.toml").write_text("mine\n", "utf-8")
    wish = Wish(system="Linux", python="3.6")
    with fails(RecipeError, ".toml"):
        writing.new(wish, wanted_of("1.8"), host_file, tmp_path, alone)
    assert (tmp_path / "linux-r1.8-cpu.toml").read_text("utf-8") == "mine\n"


@pytest.mark.medium
def test_a_branch_that_the_repository_lacks_is_named(host_file: HostFile, tmp_path: Path) -> None:
    with fails(SupplyError, "r1.9"):
        writing.new(
            Wish(system="Linux", python="3.6"), wanted_of("1.9"), host_file, tmp_path, alone
        )


def test_a_copy_is_not_verified(tmp_path: Path) -> None:
    original = make_file(tmp_path / "demo.toml", recipes.find("demo").read_text("utf-8"))
    made = writing.copy(original, "mine")
    assert recipes.read(str(made.path), packages.without_open).verified is None
    with fails(RecipeError, ".toml"):
        writing.copy(original, "mine")


@pytest.mark.parametrize(
    ("gpu", "cuda", "asked"),
    [("", "", "--python"), ("12.0", "", "a CUDA with --cuda"), ("12.0", "12.8", "--python")],
)
def test_an_unknown_release_asks_for_what_no_table_has_and_leaves_no_half_recipe_behind(
    gpu: str, cuda: str, asked: str, host_file: HostFile, tmp_path: Path
) -> None:
    folder = tmp_path / "recipes"
    wish = Wish(system="Linux", gpu=gpu, cuda=cuda)
    with fails(RecipeError, asked):
        writing.new(wish, wanted_of("2.99"), host_file, folder, alone)
    assert not list(folder.glob("*"))


def test_a_release_candidate_is_its_tag(host_file: HostFile, tmp_path: Path) -> None:
    version = wanted_of("1.12-rc0")
    made = writing.new(Wish(system="Linux"), version, host_file, tmp_path, alone)
    assert made.path.name == "linux-r1.12-rc0-cpu.toml"
    recipe = recipes.read(str(made.path), packages.without_open)
    assert str(recipe.source.exact) == "1.12.0-rc0"
    assert recipe.source.release == Release(1, 12)
    assert lint.lint(pinned(made.path)) == []


def test_the_first_version_of_a_line_is_its_tag_and_not_the_newest_commit_of_the_branch(
    host_file: HostFile, tmp_path: Path
) -> None:
    upstream = Path(host_file.mirrors[writing.URL].removeprefix("file://"))
    run_git("tag", "v1.8.0", cwd=upstream)
    tagged = run_git("rev-parse", "HEAD", cwd=upstream)
    run_git("commit", "-q", "--allow-empty", "-m", "Mend", cwd=upstream)
    for text in ("1.8.0", "v1.8.0"):
        folder = tmp_path / text
        wish = Wish(system="Linux", python="3.6")
        made = writing.new(wish, wanted_of(text), host_file, folder, alone)
        recipe = recipes.read(str(made.path), packages.without_open)
        assert recipe.source.commit == tagged
        assert str(recipe.source.exact) == "1.8.0"
        assert recipe.summary == "TensorFlow 1.8.0 for Linux"


def test_a_commit_can_be_named_where_the_mirror_has_no_tags(
    host_file: HostFile, tmp_path: Path
) -> None:
    upstream = Path(host_file.mirrors[writing.URL].removeprefix("file://"))
    make_file(
        upstream / "tensorflow/tools/pip_package/setup.py",
        "_VERSION = '2.4.0'\nREQUIRED_PACKAGES = [\n"
        "    'numpy ~= 1.19.2', 'keras_preprocessing ~= 1.1.2', 'gast == 0.3.3',\n"
        "    'protobuf >= 3.9.2']\n",
    )
    run_git("add", ".", cwd=upstream)
    run_git("commit", "-q", "-m", "2.4.0", cwd=upstream)
    commit = run_git("rev-parse", "HEAD", cwd=upstream)
    wish = Wish(system="Linux", python="3.8")
    named = wanted_of(f"v2.4.0@{commit}")
    made = writing.new(wish, named, host_file, tmp_path, alone)
    assert recipes.read(str(made.path), packages.without_open).source.commit == commit
    assert not [line for line in made.open if "source.commit" in line]
    # What setup.py leaves without a bound gets the one of its time.
    protobuf = "protobuf<3.21,>=3.9.2"
    required = ("numpy~=1.19.2", "keras_preprocessing~=1.1.2", "gast==0.3.3", protobuf)
    building = ("numpy~=1.19.2", "wheel", "keras-preprocessing~=1.1.2")
    assert made.unpinned == building + required
    with fails(RecipeError, "2.4", "2.3"):
        writing.new(wish, wanted_of(f"2.3@{commit}"), host_file, tmp_path, alone)
    # Whether a server has a commit is known once it is fetched.
    elsewhere = wanted_of(f"2.3.0@{'0' * 40}")
    made = writing.new(wish, elsewhere, host_file, tmp_path, alone)
    assert "source.commit" in made.open[0]
    with fails(RecipeError, "40"):
        wanted_of("v2.4.0@185fc30")


def test_what_is_no_release_is_refused() -> None:
    for text in ("banana", "1.8x", "", "1", "r1.8/x"):
        with fails(RecipeError, "--release"):
            wanted_of(text)


@pytest.mark.medium
def test_cudnn_and_cuda_are_what_the_release_was_tested_with(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", cuda="8.0")
    made = writing.new(wish, wanted_of("1.4"), host_file, tmp_path, alone)
    recipe = recipes.read(str(made.path), packages.without_open)
    assert recipe.host.cudnn == recipe.configure.answers["TF_CUDNN_VERSION"] == "6"
    # TensorFlow does not take the 2.0 that this CUDA compiles for.
    assert recipe.configure.answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "3.0,6.2"
    other = Wish(system="Linux", cuda="9.2")
    made = writing.new(other, wanted_of("1.8"), host_file, tmp_path, alone)
    assert "this release was tested with 9.0" in made.path.read_text("utf-8")


def test_a_gpu_that_the_tested_cuda_does_not_know_gets_another_cuda(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", gpu="12.0")
    made = writing.new(wish, wanted_of("2.20"), host_file, tmp_path, alone)
    recipe = recipes.read(str(made.path), packages.without_open)
    assert (recipe.host.cuda, recipe.host.cudnn) == ("12.8", "9.7")
    assert recipe.compile.target == recipes.WHEEL_TARGET
    # Bazel would download another Python.
    named = f"--repo_env=HERMETIC_PYTHON_VERSION={recipe.host.python}"
    assert named in recipe.compile.flags
    assert lint.lint(pinned(made.path)) == []
    with fails(RecipeError, "--cuda"):
        writing.new(wish, wanted_of("1.8"), host_file, tmp_path, alone)


def test_an_older_cuda_than_the_release_takes_is_refused_before_the_network_is_asked(
    tmp_path: Path,
) -> None:
    wish = Wish(system="Linux", gpu="3.0", cuda="10.1")
    # Without a host file for tests, upstream's own repository would be asked.
    with fails(RecipeError, "made for CUDA 11, and not 10.1"):
        writing.new(wish, wanted_of("2.4"), HostFile(), tmp_path, alone)


def test_a_mac_gets_no_driver_and_no_gcc(host_file: HostFile, tmp_path: Path) -> None:
    wish = Wish(system="Darwin", cuda="9.2")
    made = writing.new(wish, wanted_of("1.8"), host_file, tmp_path, alone)
    host = recipes.read(str(made.path), packages.without_open).host
    assert (host.gcc, host.driver) == (None, None)
    assert host.xcode
    with fails(RecipeError, "11.2"):
        writing.new(
            Wish(system="Darwin", cuda="11.2"), wanted_of("2.6"), host_file, tmp_path, alone
        )


@pytest.mark.medium
def test_an_interrupted_interview_keeps_what_was_answered(
    host_file: HostFile, tmp_path: Path
) -> None:
    def ask(prompt: Prompt, default: str) -> str:
        if prompt.variable == "TF_NEED_S3":
            raise KeyboardInterrupt
        return "true" if prompt.variable == "TF_NEED_JEMALLOC" else default

    wish = Wish(system="Linux", python="3.6")
    with pytest.raises(KeyboardInterrupt):
        writing.new(wish, wanted_of("1.8"), host_file, tmp_path, ask)
    kept = recipes.read(str(tmp_path / "linux-r1.8-cpu.toml"), packages.without_open)
    assert kept.configure.answers["TF_NEED_JEMALLOC"] is True


def test_a_copy_has_the_packages_for_each_python_of_its_axes(tmp_path: Path) -> None:
    original = recipes.find("linux-r2.21-cuda12.8-sm120")
    writing.copy(original, "linux-r2.21-cuda12.8-mine", str(tmp_path))
    for python in ("", "-py310", "-py313"):
        copied = recipes.read(str(tmp_path / f"linux-r2.21-cuda12.8-mine{python}.toml"))
        of_original = recipes.read(f"linux-r2.21-cuda12.8-sm120{python}")
        assert copied.verify.requirements == of_original.verify.requirements
        assert f"for {copied.name}.toml;" in copied.documents[-1].read_text("utf-8")


@pytest.mark.parametrize("name", ["../mine", "with space", "", "vault", "-x"])
def test_a_copy_needs_a_name_that_a_recipe_can_have(tmp_path: Path, name: str) -> None:
    original = make_file(tmp_path / "demo.toml", recipes.find("demo").read_text("utf-8"))
    with pytest.raises(RecipeError, match=r"must be a file|is a directory of"):
        writing.copy(original, name)
    assert list(tmp_path.iterdir()) == [original]


def test_a_copy_can_be_put_elsewhere(tmp_path: Path) -> None:
    made = writing.copy(recipes.find("demo"), "mine", str(tmp_path / "own"))
    assert made.path == tmp_path / "own/mine.toml"
    first, *_ = made.path.read_text("utf-8").splitlines()
    assert (made.path.parent / first.removeprefix("#:schema ")).is_file()
    assert recipes.read(str(made.path), packages.without_open).name == "mine"


def test_a_copy_of_a_recipe_that_came_with_tfwright_is_put_among_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = recipes.find("demo").read_text("utf-8")
    original = make_file(tmp_path / "package/recipes/demo.toml", text)
    monkeypatch.setattr(writing, "SHIPPED", tmp_path / "package")
    monkeypatch.setattr(recipes, "RECIPES", tmp_path / "own/recipes")
    assert writing.copy(original, "mine").path == tmp_path / "own/recipes/mine.toml"
    assert list(original.parent.iterdir()) == [original]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"= 1", b"machin = 1"])
def test_a_recipe_that_does_not_load_is_not_copied_and_named_itself(
    tmp_path: Path, text: bytes
) -> None:
    original = make_file(tmp_path / "broken.toml", text)
    with fails(RecipeError, "broken.toml"):
        writing.copy(original, "mine")
    assert list(tmp_path.iterdir()) == [original]


def test_a_jetson_is_another_machine_whose_driver_and_cuda_are_its_own(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", machine="aarch64", gpu="8.7", python="3.8")
    made = writing.new(wish, wanted_of("2.6"), host_file, tmp_path, alone)
    recipe = recipes.read(str(made.path), packages.without_open)
    assert recipe.host.machine == "aarch64"
    assert recipe.host.driver is None
    assert "x86" not in str(recipe.configure.answers["CC_OPT_FLAGS"])
    assert any("JetPack" in line for line in made.open)


def test_what_was_asked_for_is_what_the_wheel_is_held_to(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", gpu="8.6", python="3.8", cpu="avx")
    made = writing.new(wish, wanted_of("2.6"), host_file, tmp_path, alone)
    verify = recipes.read(str(made.path), packages.without_open).verify
    assert (verify.architectures, verify.cpu) == (("sm_86",), "avx")


def written(host_file: HostFile, folder: Path, wish: Wish, release: str, **answers: str) -> Path:
    """Write a recipe whose questions a person answers so; return its file, without packages."""
    made = writing.new(
        wish,
        wanted_of(release),
        host_file,
        folder,
        lambda prompt, default: answers.get(prompt.variable, default),
    )
    pinned(made.path)
    return made.path


@pytest.mark.parametrize(
    ("release", "variable"), [("2.15", "TF_PYTHON_VERSION"), ("2.20", "HERMETIC_PYTHON_VERSION")]
)
def test_the_python_of_bazel_is_named_as_the_release_reads_it(
    host_file: HostFile, tmp_path: Path, release: str, variable: str
) -> None:
    wish = Wish(system="Linux", python="3.11")
    path = written(host_file, tmp_path, wish, release)
    assert [flag for flag in recipes.read(str(path)).compile.flags if "PYTHON" in flag] == [
        f"--repo_env={variable}=3.11"
    ]


def test_kernels_by_clang_keep_the_gpus_that_were_asked_for(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", python="3.12", cuda="12.5", gpu="8.9")
    clang = '"/usr/lib/llvm-18/bin/clang"'
    path = written(
        host_file, tmp_path, wish, "2.20", TF_CUDA_CLANG="true", CLANG_CUDA_COMPILER_PATH=clang
    )
    assert [str(finding) for finding in lint.lint(str(path))] == []
    assert "--config=cuda_nvcc" not in recipes.read(str(path)).compile.flags


def test_a_cuda_that_the_tree_does_not_list_is_left_to_decide_and_found(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", python="3.12", cuda="13.0", gpu="12.0")
    made = writing.new(wish, wanted_of("2.20"), host_file, tmp_path, alone)
    lists = "lists no CUDA 13.0 (it ends with 12.8.1) and no cuDNN 9.12 (it ends with 9.8.0)"
    assert any(lists in line for line in made.open)
    found = lint.lint(pinned(made.path))
    assert {finding.rule for finding in found} == {"cuda"}


def committed(repository: Path, path: str, text: str) -> str:
    make_file(repository / path, text)
    run_git("add", ".", cwd=repository)
    run_git("commit", "-q", "-m", path, cwd=repository)
    return run_git("rev-parse", "HEAD", cwd=repository)


def test_a_commit_takes_the_cuda_that_its_own_rules_list(
    host_file: HostFile, tmp_path: Path
) -> None:
    toolchain = make_folder(tmp_path / "toolchain")
    run_git("init", "-q", cwd=toolchain)
    pair = ["https://a.example/b.json", "0" * 64]
    lists = f"CUDA_REDIST_JSON_DICT = {json.dumps({'12.8.0': pair, '13.0.0': pair})}\n"
    lists += f"NVSHMEM_REDIST_JSON_DICT = {json.dumps({'3.3.9': pair})}\n"
    lists += f"CUDNN_REDIST_JSON_DICT = {json.dumps({'9.8.0': pair})}\n"
    listing = committed(toolchain, tree_files.CUDA_LISTS[0], lists)
    url = "https://github.com/google-ml-infra/rules_ml_toolchain"
    upstream = Path(host_file.mirrors[writing.URL].removeprefix("file://"))
    text = f'urls = ["{url}/archive/{listing}.tar.gz"]\n'
    commit = committed(upstream, tree_files.TOOLCHAINS[0], text)
    mirrors = {**host_file.mirrors, f"{url}.git": f"file://{toolchain}"}
    mine = host_file.changed(mirrors=mirrors)
    wanted = wanted_of(f"2.21@{commit}")
    made = writing.new(
        Wish(system="Linux", python="3.12", cuda="12.8"), wanted, mine, tmp_path, alone
    )
    answers = recipes.read(str(made.path), packages.without_open).configure.answers
    assert answers["HERMETIC_CUDA_VERSION"] == "12.8.0"
    for cuda, lacks, says in (
        ("12.9", "no CUDA 12.9 (it ends with 13.0.0)", "lists CUDA to 13.0.0"),
        ("13.0", "no NVSHMEM 3.3.20 (it ends with 3.3.9)", "lists NVSHMEM to 3.3.9"),
    ):
        made = writing.new(
            Wish(system="Linux", python="3.12", cuda=cuda), wanted, mine, tmp_path, alone
        )
        assert any(lacks in line for line in made.open)
        remedies = [finding.remedy for finding in lint.lint(pinned(made.path), mine)]
        assert any(says in remedy for remedy in remedies)


def test_a_cuda_13_that_the_tree_lists_is_written(host_file: HostFile, tmp_path: Path) -> None:
    wish = Wish(system="Linux", python="3.12", cuda="13.0", gpu="12.0")
    path = written(host_file, tmp_path, wish, "2.21")
    answers = recipes.read(str(path)).configure.answers
    assert answers["HERMETIC_CUDA_VERSION"] == "13.0.2"
    assert answers["HERMETIC_CUDNN_VERSION"] == "9.12.0"
    assert lint.lint(str(path)) == []


@pytest.mark.parametrize(("cuda", "path"), [("", False), ("12.8", True)])
@pytest.mark.parametrize("release", ["2.20", "2.21"])
def test_another_machine_takes_its_own_compiler_where_bazel_downloads_one_for_x86(
    host_file: HostFile, tmp_path: Path, release: str, cuda: str, *, path: bool
) -> None:
    wish = Wish(system="Linux", machine="aarch64", python="3.12", cuda=cuda)
    made = written(host_file, tmp_path, wish, release)
    flag = "--config=clang_local"
    flags = recipes.read(str(made)).compile.flags
    assert (flag in flags) is (release == "2.21")
    assert any("CLANG_CUDA_COMPILER_PATH=" in flag for flag in flags) is path
    assert lint.lint(str(made)) == []
    made.write_text(made.read_text("utf-8").replace(flag, "--config=opt"), "utf-8")
    assert [found.rule for found in lint.lint(str(made))] == ["compiler"][release == "2.20" :]


@pytest.mark.parametrize(("release", "machine"), [("2.20", "x86_64"), ("2.21", "aarch64")])
def test_where_bazel_brings_no_compiler_the_clang_of_upstream_is_the_default(
    host_file: HostFile, tmp_path: Path, release: str, machine: str
) -> None:
    wish = Wish(system="Linux", machine=machine, python="3.12")
    answers = recipes.read(str(written(host_file, tmp_path, wish, release))).configure.answers
    assert answers["TF_NEED_CLANG"] is True
    assert answers["CLANG_COMPILER_PATH"] == "/usr/lib/llvm-18/bin/clang"


def test_a_glibc_older_than_that_of_bazels_compiler_stays_open_and_lint_finds_it(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Linux", machine="x86_64", python="3.12", glibc="2.17")
    made = writing.new(wish, wanted_of("2.21"), host_file, tmp_path, alone)
    says = "Bazel's own compiler links against glibc 2.27, and the wheel is to load on 2.17"
    assert any(says in line for line in made.open)
    path = Path(pinned(made.path))
    assert [found.what for found in lint.lint(str(path))] == [says]
    flag = '"--config=opt",'
    path.write_text(path.read_text("utf-8").replace(flag, f'{flag} "--config=clang_local",'))
    assert lint.lint(str(path)) == []


@pytest.mark.parametrize(("release", "building"), [("2.6", True), ("2.15", False)])
def test_a_build_with_bazels_own_python_needs_no_packages_of_the_host(
    host_file: HostFile, tmp_path: Path, release: str, *, building: bool
) -> None:
    wish = Wish(system="Linux", python="3.9")
    made = writing.new(wish, wanted_of(release), host_file, tmp_path, alone)
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
    host_file: HostFile, tmp_path: Path, release: str, system: str, *, once: bool
) -> None:
    wish = Wish(system=system)
    made = written(host_file, tmp_path, wish, release)
    assert ("--force_pic" in recipes.read(str(made)).compile.flags) is once


def test_a_mac_with_arm_is_written_without_an_open_question(
    host_file: HostFile, tmp_path: Path
) -> None:
    wish = Wish(system="Darwin", machine="arm64", python="3.11")
    assert lint.lint(str(written(host_file, tmp_path, wish, "2.15"))) == []
