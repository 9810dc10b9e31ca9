from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import change_text, make_file, make_folder
from tests.results import Notebook
from tests.upstream import run_git

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.patch import writing as patching
from tfwright.pipeline.job import RecipeJob
from tfwright.port import archives
from tfwright.port import porting as port
from tfwright.rules.tree_files import SETUPS
from tfwright.tools.http import client

RECIPE = """\
#:schema ./schema/recipe.json

summary = "x"

[source]
url = "file://{repository}"
branch = "r1.8"
commit = "{commit}"
exclude = ["docs", "core/old"]
patches = ["r1.8/0001-moved.patch", "r1.8/0002-outlived.patch", "r1.8/0003-misfit.patch",
    "other/0003-misfit-too.patch"]

[host]
system = "Linux"
python = "3.6"
requirements = ["numpy==1.14.5"]

[bazel]
version = "0.14.0"
sha256.linux-x86_64 = "{old}"

# What stands in for archives.

[fetch.substitutes.gone]
reason = "x"
replaces = "{gone}"
urls = ["https://example.org/gone.tar.gz"]
sha256 = "{gone}"

# More about the next one.

[fetch.substitutes.changed]
reason = "x"
replaces = "{old}"
urls = ["https://example.org/changed.tar.gz"]
sha256 = "{old}"
patches = ["r1.8/0002-outlived.patch", "r1.8/0003-misfit.patch"]

[fetch.substitutes.renamed]
reason = "x"
replaces = "{same}"
urls = ["https://example.org/same.tar.gz"]
sha256 = "{old}"

[configure]
no = ["TF_NEED_CUDA",
    "TF_NEED_JEMALLOC"]  # no reason

[configure.answers]
TF_NEED_GCP = false

[compile]
flags = ["--config=opt", "--config=nokafka", "--config=mkl"]  # no reason either

[verify]
requirements = ["tensorboard==1.8.0", "six==1.11.0"]
tests = ["core/op.cc", "core/gone_test.py"]
"""
ARCHIVE = """\
http_archive(
    name = "{name}",
    sha256 = "{sha256}",
    urls = ["https://nowhere.invalid/{name}.tar.gz"],
)
"""
PATCH = """\
Why: x
Upstream: none; x
Drop when: {drop_when}

diff --git a/core/op.cc b/core/op.cc
--- a/core/op.cc
+++ b/core/op.cc
@@ -{line},3 +{line},3 @@
 line {line}
-line {next}
+line {next} is patched
 line {last}
"""


def commit(repository: Path, version: str, code: str, **archives: str) -> str:
    """Commit a tree of a release with these archives, tag it, and return the commit."""
    keras = "" if version == "1.8.0" else "    'keras_preprocessing >= 1.0.5',\n"
    make_file(
        repository / "tensorflow/tools/pip_package/setup.py",
        f"_VERSION = '{version}'\nREQUIRED_PACKAGES = [\n"
        f"    'six >= 1.10',\n    'tensorboard >= {version}, < 1.99',\n{keras}]\n",
    )
    for folder in ("docs", "core/old") if version == "1.8.0" else ():
        (repository / folder).mkdir(parents=True)
        (repository / folder / "page").write_text("x", "utf-8")
    kafka = "build:nokafka --define=no_kafka=true\n" if version == "1.8.0" else ""
    (repository / ".bazelrc").write_text(f"build:mkl -c opt\n{kafka}", "utf-8")
    rules = [ARCHIVE.format(name=name, sha256=sha256) for name, sha256 in archives.items()]
    (repository / "WORKSPACE").write_text("".join(rules), "utf-8")
    (repository / "core").mkdir(exist_ok=True)
    (repository / "core/op.cc").write_text(code, "utf-8")
    run_git("add", ".", cwd=repository)
    run_git("commit", "--quiet", "-m", version, cwd=repository)
    run_git("tag", f"v{version}", cwd=repository)
    return run_git("rev-parse", "HEAD", cwd=repository)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a recipe of 1.8 with its patches, and tag a 1.12 in its repository."""
    repository, patches = tmp_path / "upstream", tmp_path / "patches/r1.8"
    for folder in (repository, patches, patches.with_name("other")):
        make_folder(folder)
    run_git("init", "--quiet", "--initial-branch=r1.8", cwd=repository)
    code = "".join(f"line {number}\n" for number in range(1, 40))
    old, new, gone, same = "a" * 64, "b" * 64, "c" * 64, "e" * 64
    first = commit(repository, "1.8.0", code, gone=gone, changed=old, renamed=same)
    run_git("rm", "--quiet", "-r", "core/old", cwd=repository)
    moved = "line 0\n" + code.replace("line 31\n", "line 31 by upstream\n")
    commit(repository, "1.12.0", moved, changed=new, fresh="d" * 64, other_name=same)
    for name, line, drop_when in (
        ("0001-moved", 10, "release >= 2.0"),
        ("0002-outlived", 20, "release >= 1.9"),
        ("0003-misfit", 30, "some day"),
        ("../other/0003-misfit-too", 31, "some day"),
    ):
        text = PATCH.format(drop_when=drop_when, line=line, next=line + 1, last=line + 2)
        (patches / f"{name}.patch").write_text(text, "utf-8")
    text = RECIPE.format(repository=repository, commit=first, old=old, gone=gone, same=same)
    return make_file(tmp_path / "linux-r1.8-cpu.toml", text)


def job_of(path: Path) -> RecipeJob:
    """Return a job for a recipe as it is now."""
    host_file = HostFile(build_out=path.with_name("build_out"))
    return RecipeJob(recipe=recipes.read(str(path)), host_file=host_file)


def begun(path: Path) -> port._Porting:
    """Begin to port a recipe into its own file."""
    return port._Porting(job_of(path), path)


@pytest.mark.slow
def test_a_port_changes_what_follows_without_a_doubt_and_lists_the_rest(path: Path) -> None:
    check_port(path)


@pytest.mark.slow
def test_a_file_that_only_the_new_tree_lacks_is_left_out_and_the_patch_that_changes_it_named(
    tmp_path: Path, path: Path
) -> None:
    repository = tmp_path / "upstream"
    blob = run_git("rev-parse", "v1.12.0:core/op.cc", cwd=repository)
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    made = port.port(job_of(path), path, "v1.12.0")
    assert recipes.read(str(made.path)).source.exclude == ("docs", "core/op.cc")
    says = {(pin.kind, pin.name, pin.state): pin.says for pin in made.pins}
    assert says["exclude", "core/op.cc", "look"].startswith("added; the server lacks this file")
    moved = says["patch", "r1.8/0001-moved.patch", "change"]
    assert moved.startswith("changes core/op.cc, which source.exclude leaves out")


@pytest.mark.slow
def test_a_port_that_breaks_off_leaves_nothing_for_the_next_one_to_stumble_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # By then the patch that does not fit was copied into the folder of the new branch.
    with monkeypatch.context() as patched:
        patched.setattr(archives.ComparedArchives, "of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            port.port(job_of(path), path, "v1.12.0")
    assert not list(tmp_path.glob("patches/r1.12/*"))
    check_port(path)


@pytest.mark.medium
def test_a_port_compiles_for_the_python_of_the_recipe_and_what_makes_the_wheel_now(
    path: Path,
) -> None:
    change_text(path, 'branch = "r1.8"', 'branch = "r2.15"')
    porting = begun(path)
    flag = "--repo_env=TF_PYTHON_VERSION=3.6"
    assert [pin.name for pin in porting._remove_flags({}, {})] == [flag]
    assert recipes.read(str(path)).compile.flags[-1] == flag
    assert not list(porting._remove_flags({}, {}))
    change_text(path, 'branch = "r2.15"', 'branch = "r2.17"')
    porting = begun(path)
    assert ("compile.target", "look") in [(pin.name, pin.state) for pin in porting._judge_tools()]
    assert recipes.read(str(path)).compile.target == recipes.WHEEL_TARGET


@pytest.mark.medium
def test_answers_about_cuda_go_to_the_questions_that_ask_for_it_now(path: Path) -> None:
    text = path.read_text("utf-8").replace('branch = "r1.8"', 'branch = "r2.21"')
    before = 'TF_NEED_CUDA = true\nTF_CUDA_VERSION = "12.8.1"\nTF_NCCL_VERSION = ""'
    path.write_text(text.replace('"TF_NEED_CUDA",', "").replace("TF_NEED_GCP = false", before))
    porting = begun(path)
    states = {pin.name: pin.state for pin in (*porting._judge_answers(), *porting._judge_tools())}
    assert (states["TF_CUDA_VERSION"], states["compile.flags"]) == ("look", "change")
    after = recipes.read(str(path)).configure.answers
    assert (after["HERMETIC_CUDA_VERSION"], after["LOCAL_CUDA_PATH"]) == ("12.8.1", "")
    assert not {"TF_CUDA_VERSION", "TF_NCCL_VERSION"} & after.keys()


@pytest.mark.medium
def test_packages_that_the_new_release_does_not_use_are_named_or_removed(path: Path) -> None:
    before = {SETUPS[0]: "REQUIRED_PACKAGES = ['six', 'tensorboard']\n"}
    after = {SETUPS[0]: "REQUIRED_PACKAGES = ['tensorboard']\n"}
    porting = begun(path)
    said = {pin.name: pin.says for pin in porting._judge_requirements(before, after)}
    assert "no longer requires this" in said["six"]
    assert "host.requirements" not in said
    # From 2.14 on the packages of the build are Bazel's own.
    change_text(path, 'branch = "r1.8"', 'branch = "r2.15"')
    after = {SETUPS[0]: "REQUIRED_PACKAGES = ['numpy >= 2', 'six']\n"}
    lists = 'both = ["idna==2.8"]\nbuild = ["wheel==0.33.6"]\nverify = ["absl-py==0.9.0"]\n'
    pins = make_file(path.with_suffix(".pins"), f"# Of its time.\n{lists}")
    porting = begun(path)
    porting.made.append(pins)
    said = {pin.name: pin.says for pin in porting._judge_requirements(before, after)}
    assert "removed" in said["host.requirements"]
    assert "--add" not in said["of setup.py"]
    # What the wheel is tried with stays.
    recipe = recipes.read(str(path))
    assert not recipe.host.requirements
    assert {"absl-py==0.9.0", "idna==2.8"} < {*recipe.verify.requirements}
    assert pins.read_text("utf-8").startswith("# Of its time.\n")


@pytest.mark.medium
def test_archives_that_recipes_share_are_copied_beside_the_new_recipe(path: Path) -> None:
    path.write_text(f'{path.read_text("utf-8")}\n[fetch]\narchives = "r1.8"\n', "utf-8")
    porting = begun(path)
    porting.copy_documents(path, "r1.12")
    assert porting.made[-1] == path.parent.resolve() / "archives/r1.12.toml"
    assert recipes.read(str(path)).fetch.archives == "r1.12"


@pytest.mark.medium
def test_an_unanswered_question_is_one_finding(path: Path) -> None:
    porting = begun(path)
    assert [pin.name for pin in porting._judge_answers() if pin.state == "change"]
    made = porting.run_configure([])
    assert (made.state, made.says.partition(":")[0]) == ("look", "was not run")


def check_port(path: Path) -> None:
    """Port the recipe, and hold the report against what became of each pin."""
    listener = Notebook()
    job = replace(job_of(path), listener=listener)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client, "ask", lambda _: client.Availability(there=None, why="x"))
        made = port.port(job, path, "v1.12.0")
    assert [text for text in listener.notes if "branch r1." in text] == [
        "The server has no branch r1.12; the pinned commit decides"
    ]
    assert made.path == path.with_name("linux-r1.12-cpu.toml")
    written = made.path.read_text("utf-8")
    recipe = recipes.read(str(made.path))
    schema, _, head, *_ = written.splitlines()
    assert (path.parent / schema.removeprefix("#:schema ")).is_file()
    assert head.startswith("# Ported from linux-r1.8-cpu to v1.12.0")
    # Of two patches with one number, the second gets another.
    assert recipe.source.patches == (
        "r1.8/0001-moved.patch",
        "r1.12/0003-misfit.patch",
        "r1.12/0004-misfit-too.patch",
    )
    assert list(recipe.fetch.substitutes) == ["changed", "other_name"]
    assert recipe.fetch.substitutes["changed"].patches == ("r1.12/0003-misfit.patch",)
    assert "# More about the next one." in written
    assert "TF_NEED_JEMALLOC" not in written
    assert 'no = ["TF_NEED_CUDA"]  # no reason' in written
    assert "TF_NEED_GCP" not in written
    # The checksum was that of the other Bazel.
    assert (recipe.bazel.version, recipe.bazel.sha256) == ("0.17.2", {})
    states = {(pin.kind, pin.name): pin.state for pin in made.pins}
    says = {(pin.kind, pin.name, pin.state): pin.says for pin in made.pins}
    # The small tree has none.
    assert states["tool", "./configure"] in {"look", "change"}
    assert states["patch", "r1.8/0001-moved.patch"] == "fits"
    assert states["patch", "r1.8/0002-outlived.patch"] == "look"
    for number, name in ((3, "misfit"), (4, "misfit-too")):
        said = says["patch", f"r1.12/000{number}-{name}.patch", "change"]
        assert said.endswith(
            f"invoke patch --recipe {made.path} --refresh r1.12/000{number}-{name}.patch"
        )
    assert says["substitute", "renamed", "fits"].startswith("now other_name")
    assert states["tool", "Bazel"] == "look"
    assert states["tool", "--config=nokafka"] == "look"
    assert 'flags = ["--config=opt", "--config=mkl"]  # no reason either' in written
    assert states["substitute", "gone"] == "look"
    assert states["substitute", "changed"] == "change"
    assert states["archive", "from no source on this host"] == "look"
    assert recipe.source.exclude == ("docs",)
    assert states["exclude", "core/old"] == "look"
    assert states["test", "core/gone_test.py"] == "change"
    assert says["requirement", "of setup.py", "fits"] == "six"
    redo = says["requirement", "of setup.py", "change"]
    assert "tensorboard<1.99,>=1.12.0 (1.8.0 is pinned)" in redo
    assert f"invoke pin --recipe {made.path} --add six --verify 'tensorboard" in redo
    package = "'keras_preprocessing>=1.0.5'"
    assert redo.endswith(f"--add {package} --verify {package} --add wheel")
    line = int(redo.partition("Resolve line ")[2].split()[0])
    assert written.splitlines()[line - 1].startswith("requirements = [")
    follow_the_remedy(replace(job, recipe=recipe))
    unported = path.with_name("patches") / "r1.8/0003-misfit.patch"
    assert "by upstream" not in unported.read_text("utf-8")


def follow_the_remedy(ported: RecipeJob) -> None:
    """Merge the patch that did not fit into a tree, edit it there, and write it again."""
    tree = patching.make_refresh_tree(ported, "3")
    assert patching.unresolved_files(tree) == ["core/op.cc"]
    merged = (tree / "core/op.cc").read_text("utf-8")
    before, _, rest = merged.partition("<<<<<<< ")
    after = rest.partition(">>>>>>> the patch\n")[2]
    (tree / "core/op.cc").write_text(f"{before}line 31 is patched\n{after}", "utf-8")
    redone = patching.refresh(ported, "3")
    assert redone.path.match("patches/r1.12/0003-misfit.patch")
    assert "line 31 by upstream" in redone.path.read_text("utf-8")
    assert "Base:" not in redone.path.read_text("utf-8")
