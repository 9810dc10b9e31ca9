"""The bundled recipes, their patches and the page that describes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.develop import schemas
from tfwright.documents import recipe as recipes
from tfwright.documents.composing import file_of
from tfwright.documents.filesystem import ROOT
from tfwright.documents.recipe import PATCHES, RECIPES, Recipe
from tfwright.documents.toml import Table

NAMES = recipes.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_bundled_recipe_loads(name: str) -> None:
    assert recipes.read(name).summary


def test_the_debug_twin_differs_only_in_what_it_compiles_with_and_in_its_wheels_name() -> None:
    plain, debug = (
        recipes.read(f"linux-r1.14-cuda10.0{suffix}").model_dump() for suffix in ("", "-debug")
    )
    assert {key for key in plain if plain[key] != debug[key]} == {
        "name",
        "summary",
        "compile",
        "package",
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_bundled_recipe_names_its_schema_first(name: str) -> None:
    first = file_of(recipes.find(name)).read_text("utf-8").partition("\n")[0]
    assert first == schemas.LINE
    assert (RECIPES / first.removeprefix("#:schema ")).is_file()


def documented_keys(readme: str) -> dict[str, list[str]]:
    """Return the keys that the page lists, by the heading of their table."""
    sections = re.split(r"^### ", readme, flags=re.MULTILINE)[1:]
    return {
        section.partition("\n")[0].partition("]")[0].lstrip("["): re.findall(
            r"^\| `(\w+)` \|", section, re.MULTILINE
        )
        for section in sections
    }


@pytest.mark.medium
def test_the_page_describes_every_key_of_every_table() -> None:
    tables: dict[str, type[Table]] = {
        "At the top": Recipe,
        **{name: _table(name) for name in list(Recipe.model_fields)[2:]},
    }
    assert documented_keys((ROOT / "docs/recipe.md").read_text("utf-8")) == {
        name: [row.key for row in schemas.rows_of(table)] for name, table in tables.items()
    }


def _table(name: str) -> type[Table]:
    kinds = {kind.__name__: kind for kind in Table.__subclasses__()}
    return kinds[f"{name.title()}Table"]


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_our_nccl_header_compiles_and_every_call_says_that_there_is_no_nccl(tmp_path: Path) -> None:
    (tmp_path / "cuda_runtime.h").write_text("typedef struct CUstream_st* cudaStream_t;\n", "utf-8")
    source = make_file(
        tmp_path / "program.cc",
        '#include <cstdio>\n#include "nccl.h"\n'
        "int main() {\n"
        "  ncclComm_t comm = nullptr; int device = 0; ncclUniqueId id; cudaStream_t stream = "
        "nullptr;\n"
        "  ncclResult_t results[] = {ncclCommInitAll(&comm, 1, &device), ncclGetUniqueId(&id), "
        "ncclCommInitRank(&comm, 1, id, 0),\n"
        "    ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, comm, stream), "
        "ncclBcast(nullptr, 1, ncclHalf, 0, comm, stream),\n"
        "    ncclReduce(nullptr, nullptr, 1, ncclInt64, ncclMin, 0, comm, stream)};\n"
        "  ncclCommDestroy(comm);\n"
        "  for (ncclResult_t result : results) std::puts(ncclGetErrorString(result));\n"
        "}\n",
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
    output = subprocess.run(
        [program], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(output) == 6
    assert all("without NCCL" in line for line in output)
