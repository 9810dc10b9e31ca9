from pathlib import Path

import pytest
from tests.making import make_file
from tests.upstream import commit

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import SubstituteTable
from tfwright.pipeline.job import RecipeJob
from tfwright.port import archives
from tfwright.rules.model import Repository, Rules

RECIPE = """\
summary = "x"
source = {{url = "file://{grpc}", branch = "r1.8", commit = "{commit}"}}
host = {{system = "Linux", python = "3.6"}}
bazel.version = "0.14.0"
[fetch.substitutes.grpc]
reason = "The pinned commit without a file"
replaces = "{old}"
git = "file://{grpc}"
commit = "{commit}"
exclude = ["test.cc"]
sha256 = "{packed}"
"""


def pinning(commit: str, sha256: str) -> Rules:
    """Return the rules of a tree that names the archive of a commit."""
    url = f"https://github.com/grpc/grpc/archive/{commit}.tar.gz"
    strip = f"grpc-{commit}"
    rule = Repository("grpc", "http_archive", "WORKSPACE", 1, (url,), sha256, strip, by_url=True)
    return Rules((rule,), ())


@pytest.mark.medium
def test_a_substitute_that_packs_a_commit_packs_the_one_of_the_new_tree(tmp_path: Path) -> None:
    grpc = tmp_path / "grpc"
    first = commit(grpc, {"a.cc": "1", "test.cc": "x"})
    second = commit(grpc, {"a.cc": "2"})
    old, new, packed = "a" * 64, "b" * 64, "c" * 64
    text = RECIPE.format(grpc=grpc, commit=first, old=old, packed=packed)
    path = make_file(tmp_path / "small.toml", text)
    job = RecipeJob(recipe=recipes.read(str(path)), host_file=HostFile(build_out=tmp_path / "out"))
    before, table = pinning(first, old), job.recipe.fetch.substitutes["grpc"]
    changes = archives.commit_changes(job, "grpc", table, before, pinning(second, new))
    archives.Substitutes(path).replace_texts("grpc", changes)
    carried = recipes.read(str(path)).fetch.substitutes["grpc"]
    assert (carried.commit, carried.replaces, carried.exclude) == (second, new, ("test.cc",))
    assert carried.sha256 not in {old, new, packed}
    # Of a commit that no source has there is no pack, and neither of one that the tree never named.
    assert not archives.commit_changes(job, "grpc", table, before, pinning("f" * 40, new))
    assert not archives.commit_changes(
        job, "grpc", table, pinning(second, old), pinning(second, new)
    )
    others = SubstituteTable(reason="x", urls=("https://example.org/x.tar.gz",), sha256=packed)
    assert not archives.commit_changes(job, "grpc", others, before, pinning(second, new))


def test_what_the_new_tree_clones_is_not_gone_and_no_clang_of_local_config_is_an_archive(
    tmp_path: Path,
) -> None:
    before = pinning("1" * 40, "a" * 64)
    remote = "https://example.org/grpc.git"
    cloned = Repository("grpc", "git_repository", "WORKSPACE", 1, (remote,), commit="2" * 40)
    clang = Repository(
        "local_config_cuda", "download_and_extract", "clang.bzl", 1, (f"{remote}.tgz",), "b" * 64
    )
    text = RECIPE.format(grpc=tmp_path, commit="1" * 40, old="a" * 64, packed="c" * 64)
    recipe = recipes.read(str(make_file(tmp_path / "small.toml", text)))
    job = RecipeJob(recipe=recipe, host_file=HostFile(build_out=tmp_path / "out"), offline=True)
    after = Rules((cloned, clang), ())
    compared = archives.ComparedArchives.of(before, after, job, None)
    assert [pin.name for pin in compared.pins(())] == ["unchanged"]
    assert "clones 222222222222" in archives.unreplaced_remedy(after, "grpc")
    assert "pins another archive" in archives.unreplaced_remedy(before, "grpc")


def test_the_patches_of_another_recipe_come_with_their_commit_and_programs() -> None:
    other = recipes.read("linux-r2.10-cpu")
    replaced = str(other.fetch.substitutes["sobol_data"].replaces)
    found = archives.other_substitutes(other.source.url)[replaced]
    assert (found.commit, found.programs) == (other.source.commit, ("perl",))
    assert not archives.other_substitutes("https://example.org/fork.git")[replaced].commit
