"""The bundled recipes, their patches and the page that describes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tfwright.configure import expected
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import PATCHES, RECIPES, Recipe
from tfwright.documents.toml import Table

NAMES = recipes.names()
REAL = [name for name in NAMES if name != "demo"]
PATCH_FILES = sorted(PATCHES.glob("*/*.patch"))
UNPINNED = {"summary", "until", "on", "host", "by", "note"}
"""Keys of a recipe that describe rather than pin."""


def uncommented(text: str) -> list[str]:
    """Return the lines of a recipe that pin something, with no comment behind or above.

    A comment above holds until the next blank line or table; one above a list, for all of the list. A
    substitute says its reason in a key of its own.
    """
    bare, covered, inside = [], False, False
    for line in text.splitlines():
        key = re.match(r"[\"\w./-]+ = ", line)
        if not line or line.startswith("["):
            covered = False
        covered = covered or line.startswith(("#", "reason = "))
        if (
            key
            and not inside
            and not covered
            and "  # " not in line
            and key[0].removesuffix(" = ") not in UNPINNED
        ):
            bare.append(line)
        inside = (inside or line.endswith("[")) and line != "]"
    return bare


@pytest.mark.parametrize("name", NAMES)
def test_every_bundled_recipe_loads(name: str) -> None:
    assert recipes.read(name).summary


@pytest.mark.parametrize("name", REAL)
def test_a_recipes_name_says_its_system_release_and_cuda(name: str) -> None:
    recipe = recipes.read(name)
    system = {"Linux": "linux", "Darwin": "macos"}[recipe.host.system]
    # NVIDIA's branches are named by month; a recipe's name keeps to the release that people ask for.
    fork = "nv" if recipe.source.url.startswith("https://github.com/NVIDIA/") else ""
    line = f"{fork}{recipe.source.release}" if fork else recipe.source.branch
    assert name.startswith(f"{system}-{line}-")
    assert f"cuda{recipe.host.cuda}" in name if recipe.host.cuda else "cuda" not in name


@pytest.mark.parametrize("name", REAL)
def test_every_pin_has_its_reason_as_a_comment(name: str) -> None:
    # A list's own lines may carry their reasons inside it.
    bare = [
        line
        for line in uncommented((RECIPES / f"{name}.toml").read_text("utf-8"))
        if line != "flags = ["
    ]
    assert bare == []


def test_a_pin_without_a_reason_is_noticed() -> None:
    assert uncommented('[bazel]\n# Why.\nversion = "1"\n\npeak = 2\nsystem = "x"  # why\n') == [
        "peak = 2"
    ]


@pytest.mark.parametrize("name", REAL)
def test_python_packages_are_pinned_exactly(name: str) -> None:
    recipe = recipes.read(name)
    pins = (*recipe.host.requirements, *recipe.verify.requirements, *recipe.verify.plugins)
    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin)] == []


@pytest.mark.parametrize("name", REAL)
def test_the_wheel_is_tried_with_the_numpy_that_it_was_built_against(name: str) -> None:
    recipe = recipes.read(name)
    built = {pin for pin in recipe.host.requirements if pin.startswith("numpy==")}
    assert built <= set(recipe.verify.requirements)


@pytest.mark.parametrize("name", REAL)
def test_answers_agree_with_the_host_that_is_asked_for(name: str) -> None:
    recipe = recipes.read(name)
    answers = recipe.configure.answers
    version = answers.get("TF_CUDA_VERSION") or answers.get("HERMETIC_CUDA_VERSION")
    assert (answers["TF_NEED_CUDA"] is True) == bool(recipe.host.cuda)
    assert str(version or "").startswith(recipe.host.cuda or "")


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_of_the_release_has_an_answer(name: str) -> None:
    recipe = recipes.read(name)
    expected.insist_on_answers(expected.interview(recipe, HostFile()))


@pytest.mark.parametrize("name", REAL)
def test_no_answer_is_one_that_the_release_never_wants(name: str) -> None:
    recipe = recipes.read(name)
    assert expected.remarks(expected.interview(recipe, HostFile())) == []


@pytest.mark.parametrize("name", REAL)
def test_no_wheel_is_tied_to_the_cpu_that_built_it(name: str) -> None:
    recipe = recipes.read(name)
    flags = (str(recipe.configure.answers.get("CC_OPT_FLAGS", "")), *recipe.compile.flags)
    assert not any("native" in flag for flag in flags)


def test_the_debug_twin_differs_in_what_it_compiles_with_only() -> None:
    plain, debug = (
        recipes.read(f"linux-r1.14-cuda10.0{suffix}").model_dump() for suffix in ("", "-debug")
    )
    assert {key for key in plain if plain[key] != debug[key]} == {"name", "summary", "compile"}


def test_every_patch_and_asset_belongs_to_a_recipe() -> None:
    named = {
        file
        for name in NAMES
        for file in (*recipes.read(name).source.patches, *recipes.read(name).source.assets.values())
    }
    assert {str(path.relative_to(PATCHES)) for path in PATCHES.glob("*/*")} == named


@pytest.mark.parametrize("patch", PATCH_FILES, ids=lambda path: path.name)
def test_every_patch_says_why_where_it_comes_from_and_when_to_drop_it(patch: Path) -> None:
    header = patch.read_text("utf-8").partition("diff --git")[0]
    assert re.findall(r"^(\w[\w ]*):", header, re.MULTILINE) == ["Why", "Upstream", "Drop when"]


def documented(readme: str) -> dict[str, list[str]]:
    """Return the keys that the page lists, by the heading of their table."""
    sections = re.split(r"^### ", readme, flags=re.MULTILINE)[1:]
    return {
        section.partition("\n")[0].partition("]")[0].lstrip("["): re.findall(
            r"^\| `(\w+)` \|", section, re.MULTILINE
        )
        for section in sections
    }


def test_the_page_describes_every_key_of_every_table() -> None:
    tables: dict[str, type[Table]] = {
        "At the top": Recipe,
        **{name: _table(name) for name in list(Recipe.model_fields)[2:]},
    }
    assert documented((RECIPES / "README.md").read_text("utf-8")) == {
        name: list(table.model_fields) for name, table in tables.items()
    }


def _table(name: str) -> type[Table]:
    kinds = {kind.__name__: kind for kind in Table.__subclasses__()}
    return kinds[f"{name.title()}Table"]


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_our_nccl_header_compiles_and_every_call_says_that_there_is_no_nccl(tmp_path: Path) -> None:
    (tmp_path / "cuda_runtime.h").write_text("typedef struct CUstream_st* cudaStream_t;\n", "utf-8")
    source = tmp_path / "program.cc"
    source.write_text(
        '#include <cstdio>\n#include "nccl.h"\n'
        "int main() {\n"
        "  ncclComm_t comm = nullptr; int device = 0; ncclUniqueId id; cudaStream_t stream = nullptr;\n"
        "  ncclResult_t results[] = {ncclCommInitAll(&comm, 1, &device), ncclGetUniqueId(&id), ncclCommInitRank(&comm, 1, id, 0),\n"
        "    ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, comm, stream), ncclBcast(nullptr, 1, ncclHalf, 0, comm, stream),\n"
        "    ncclReduce(nullptr, nullptr, 1, ncclInt64, ncclMin, 0, comm, stream)};\n"
        "  ncclCommDestroy(comm);\n"
        "  for (ncclResult_t result : results) std::puts(ncclGetErrorString(result));\n"
        "}\n",
        "utf-8",
    )
    program = tmp_path / "program"
    subprocess.run(
        [
            "g++",
            "-std=c++11",
            "-Wall",
            "-Werror",
            f"-I{tmp_path}",
            f"-I{PATCHES / 'r1.8'}",
            source,
            "-o",
            program,
        ],
        check=True,
    )
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(said) == 6
    assert all("without NCCL" in line for line in said)
