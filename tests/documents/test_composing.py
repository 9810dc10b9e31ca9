"""A recipe in several files: its toolkit, its archives and the packages next to it."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.documents import recipe as recipes
from tfwright.documents.composing import names_on_axes
from tfwright.errors import RecipeError
from tfwright.lint import rewriting

RECIPE = """\
summary = "x"

[source]
url = "https://example.org/tensorflow.git"
branch = "r1.8"
commit = "93bc2e2072e0daccbcff7a90d397b704a9e8f778"

[host]
system = "Linux"
python = "3.6"
cuda = "11.8"
requirements = ["numpy==1.14.5"]

[bazel]
version = "0.17.2"
"""
LONG = (
    RECIPE
    + f"""
# Why these.

[fetch.substitutes.zlib]
reason = "gone"
replaces = "{"1" * 64}"
urls = ["https://example.org/zlib.tar.gz"]
sha256 = "{"2" * 64}"

[[fetch.sources]]
sha256 = "{"2" * 64}"
git = "https://example.org/zlib.git"

# From Debian.

[toolkit.cuda]
tree = "{"3" * 64}"

[toolkit.cuda.debian]
suite = "bookworm"

[toolkit.cuda.debian.files]
"nvidia-cuda-dev_11.8_amd64.deb" = "{"4" * 64}"

[verify]
# Of May 2018.
requirements = [
{"".join(f'    "package{number}==1.{number}",{chr(10)}' for number in range(10, 30))}]
cpu = "sse3"
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "linux-r1.8-cuda11.8.toml"


def test_a_rewritten_recipe_means_the_same_and_keeps_the_comments(path: Path) -> None:
    path.write_text(LONG, "utf-8")
    before = recipes.read(str(path)).model_dump_json()
    rewriting.rewrite(str(path))
    after = recipes.read(str(path))
    assert after.model_dump_json() == before
    assert [document.name for document in after.documents] == [
        "cuda-11.8-debian12.toml",
        "r1.8.toml",
        "linux-r1.8-cuda11.8.pins",
    ]
    texts = "".join(document.read_text("utf-8") for document in after.documents)
    for comment in ("# Why these.", "# From Debian.", "# Of May 2018."):
        assert comment in texts
        assert comment not in path.read_text("utf-8")
    assert not rewriting.rewrite(str(path))


def test_reasons_within_a_list_and_its_line_ends_stay(path: Path) -> None:
    reasons = LONG.replace('"package10==1.10",', '"package10==1.10",  # 1.11 fails')
    reasons = reasons.replace("\n]\ncpu", "\n    # Nothing else.\n]  # By hand.\ncpu")
    path.write_bytes(
        reasons.replace("requirements = [", "requirements=[").replace("\n", "\r\n").encode()
    )
    rewriting.rewrite(str(path))
    pins = path.with_suffix(".pins").read_text("utf-8")
    for comment in ("# package10==1.10: 1.11 fails\n", "# Nothing else.\n", "# By hand.\n"):
        assert comment in pins
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")


def test_what_cannot_be_rewritten_stays_as_it_was(path: Path) -> None:
    # Its rest would name no table in a document of toolkits.
    odd = LONG.replace("[toolkit.cuda", "[toolkit]\n[toolkit.cuda", 1).replace(
        "[toolkit]", '["toolkit"]'
    )
    path.write_text(odd, "utf-8")
    with fails(RecipeError, "Leave it as it is"):
        rewriting.rewrite(str(path))
    assert path.read_text("utf-8") == odd
    assert [*path.parent.iterdir()] == [path]


def test_a_recipe_that_does_not_load_is_not_rewritten(path: Path) -> None:
    broken = LONG.replace("summary =", "sumary =")
    path.write_text(broken, "utf-8")
    assert not rewriting.rewrite(str(path))
    assert path.read_text("utf-8") == broken


def test_packages_that_move_may_stand_in_any_order(path: Path) -> None:
    unsorted = LONG.replace('"package10==1.10",', '"package9-plugin==1", "package9==1",')
    path.write_text(unsorted, "utf-8")
    rewriting.rewrite(str(path))
    requirements = recipes.read(str(path)).verify.requirements
    assert requirements[:2] == ("package11==1.11", "package12==1.12")
    assert requirements[-2:] == ("package9==1", "package9-plugin==1")
    assert "# cuda, by checksum" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("release", "test"), [("2.7", "matmul_op_test.py"), ("2.8", "math_ops/matmul_op_test.py")]
)
def test_kernel_tests_lie_where_the_release_has_them(path: Path, release: str, test: str) -> None:
    text = (
        RECIPE.replace("r1.8", f"r{release}") + '\n[verify]\ntests = ["kernels", "own_test.py"]\n'
    )
    path.write_text(text, "utf-8")
    tests = recipes.read(str(path)).verify.tests
    assert tests[0] == f"tensorflow/python/kernel_tests/{test}"
    assert tests[7:] == ("own_test.py",)


def test_a_second_recipe_names_the_toolkit_that_is_there(path: Path) -> None:
    path.write_text(LONG, "utf-8")
    rewriting.rewrite(str(path))
    # One that does not load is for `lint` to name.
    broken = path.parent / "toolkits/broken.toml"
    broken.write_text("cuda = 1\n", "utf-8")
    other = path.with_name("linux-r1.8-cuda11.8-debug.toml")
    other.write_text(LONG, "utf-8")
    written = rewriting.rewrite(str(other))
    assert {file.suffix for file in written} == {".pins", ".toml"}
    assert len(list(path.parent.glob("toolkits/*"))) == 2


def test_a_recipe_in_one_file_means_the_same(path: Path, tmp_path: Path) -> None:
    path.write_text(LONG, "utf-8")
    rewriting.rewrite(str(path))
    whole = make_file(tmp_path / "elsewhere" / path.name, recipes.whole_text(path))
    assert recipes.read(str(whole)).model_dump() == recipes.read(str(path)).model_dump()
    assert not recipes.read(str(whole)).documents


def test_packages_of_the_recipe_win_over_resolved_ones(path: Path) -> None:
    path.write_text(RECIPE, "utf-8")
    pins = 'both = ["NumPy==1.13.0", "six==1.11.0"]\nverify = ["absl-py==0.2.0"]\n'
    path.with_suffix(".pins").write_text(pins, "utf-8")
    read = recipes.read(str(path))
    assert read.host.requirements == ("numpy==1.14.5", "six==1.11.0")
    assert read.verify.requirements == ("absl-py==0.2.0", "NumPy==1.13.0", "six==1.11.0")


def test_a_recipe_adds_to_the_archives_that_it_names(path: Path) -> None:
    path.write_text(LONG, "utf-8")
    rewriting.rewrite(str(path))
    own = f'\n[[fetch.sources]]\nsha256 = "{"5" * 64}"\ngit = "https://example.org/x.git"\n'
    path.write_text(path.read_text("utf-8") + own, "utf-8")
    fetch = recipes.read(str(path)).fetch
    assert [source.sha256[0] for source in fetch.sources] == ["2", "5"]
    assert list(fetch.substitutes) == ["zlib"]


@pytest.mark.parametrize("name", ["cuda-11.9", "../toolkit.toml", "/etc/passwd.toml", "link.toml"])
def test_a_document_that_is_not_there_or_leaves_the_directory_is_refused(
    path: Path, name: str
) -> None:
    # The link leads out of the recipe's directory.
    (path.parent / "link.toml").symlink_to("/etc/hostname")
    path.write_text(f'toolkit = "{name}"\n{RECIPE}', "utf-8")
    with fails(RecipeError, "toolkit", name) as caught:
        recipes.read(str(path))
    assert caught.value.remedy


def test_a_toolkit_may_be_a_file_next_to_the_recipe(path: Path) -> None:
    (path.parent / "mine.toml").write_text(f'[cuda]\ntree = "{"3" * 64}"\n', "utf-8")
    path.write_text(f'toolkit = "mine.toml"\n{RECIPE}', "utf-8")
    read = recipes.read(str(path))
    assert read.toolkit.cuda
    assert read.toolkit.cuda.tree == "3" * 64


def test_a_fault_of_a_document_is_shown_in_its_own_file(path: Path) -> None:
    (path.parent / "mine.toml").write_text('[cuda]\ntree = "3"\n', "utf-8")
    path.write_text(f'toolkit = "mine.toml"\n{RECIPE}', "utf-8")
    with fails(RecipeError, "mine.toml:2"):
        recipes.read(str(path))


def test_questions_that_are_answered_with_no_are_answers(path: Path) -> None:
    more = '[configure]\nno = ["TF_NEED_S3"]\nanswers.TF_NEED_CUDA = true\n'
    path.write_text(RECIPE + more, "utf-8")
    answers = recipes.read(str(path)).configure.answers
    assert answers == {"TF_NEED_S3": False, "TF_NEED_CUDA": True}
    path.write_text(RECIPE + more.replace("CUDA", "S3"), "utf-8")
    with fails(RecipeError, "TF_NEED_S3"):
        recipes.read(str(path))


AXES = """\
summary = "A recipe for tests"
source = {url = "https://example.org/t.git", branch = "r2.20", commit = "%s"}
bazel.version = "7.4.1"
[axes]
python = ["3.13"]
[host]
system = "Linux"
python = "3.12"
[compile]
flags = ["--repo_env=HERMETIC_PYTHON_VERSION=3.12", "--jobs=1"]
""" % ("a" * 40)


def test_an_axis_gives_a_recipe_for_another_python_with_packages_of_its_own(tmp_path: Path) -> None:
    file = make_file(tmp_path / "linux-r2.20.toml", AXES)
    make_file(tmp_path / "linux-r2.20-py313.pins", 'verify = ["numpy==2.1.0"]\n')
    other = recipes.read(str(tmp_path / "linux-r2.20-py313.toml"))
    assert (other.name, other.host.python) == ("linux-r2.20-py313", "3.13")
    assert other.compile.flags == ("--repo_env=HERMETIC_PYTHON_VERSION=3.13", "--jobs=1")
    assert other.verify.requirements == ("numpy==2.1.0",)
    assert file in other.documents
    assert recipes.read(str(file)).host.python == "3.12"
    assert names_on_axes(file) == ["linux-r2.20", "linux-r2.20-py313"]


@pytest.mark.parametrize("name", ["linux-r2.20-py311", "linux-r2.20-py312", "other-py313"])
def test_a_python_that_is_on_no_axis_is_no_recipe(tmp_path: Path, name: str) -> None:
    make_file(tmp_path / "linux-r2.20.toml", AXES)
    with fails(RecipeError, name):
        recipes.read(str(tmp_path / f"{name}.toml"))


@pytest.mark.parametrize("flags", ["3", "true", '"--jobs=1"'])
def test_flags_that_are_no_list_are_a_fault_on_an_axis_as_well(tmp_path: Path, flags: str) -> None:
    text = AXES.replace('["--repo_env=HERMETIC_PYTHON_VERSION=3.12", "--jobs=1"]', flags)
    make_file(tmp_path / "linux-r2.20.toml", text)
    with fails(RecipeError, "compile.flags"):
        recipes.read(str(tmp_path / "linux-r2.20-py313.toml"))


def test_a_recipe_of_an_axis_has_no_text_that_could_be_changed(tmp_path: Path) -> None:
    make_file(tmp_path / "linux-r2.20.toml", AXES)
    path = tmp_path / "linux-r2.20-py313.toml"
    with fails(RecipeError, "linux-r2.20-py313", "linux-r2.20"):
        recipes.find_editable(str(path))
    # A bundle takes it as one document, which stands for itself.
    text = recipes.whole_text(path)
    assert (
        recipes.read(str(make_file(tmp_path / "b/linux-r2.20-py313.toml", text))).host.python
        == "3.13"
    )


def test_a_part_of_a_toolkit_whose_version_the_recipe_does_not_name_is_left_out() -> None:
    without, with_nccl = map(recipes.read, ("linux-r2.10-cuda11.8", "linux-nv1.15-cuda11.8"))
    assert without.toolkit.nccl is None
    assert without.toolkit.changed(nccl=with_nccl.toolkit.nccl) == with_nccl.toolkit
