"""The demo built again elsewhere by a real Bazel; and variants of it that become something else each time, each in its own way.

Wanted from the environment where there is no network: TFWRIGHT_BAZELS, a folder that holds Bazel's binary.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfwright.documents.recipe import ROOT
from tfwright.tools.process import isolation

pytestmark = pytest.mark.real

LIBRARY = "tensorflow_demo/_demo_ops.so"
PARTS = ("src", "recipes", "patches", "templates")
RULE = """
genrule(
    name = "stamp",
    outs = ["stamp.h"],
    cmd = "echo \\\\#define STAMP \\\\\\"made: $$({command})\\\\\\" > $@",
)
"""


def checkout(folder: Path, command: str) -> Path:
    """Copy this checkout; its demo bakes what a command prints into the library."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tasks.py", folder)
    core = folder / "src/tfwright/demo/tree/tensorflow/core"
    build = (
        (core / "BUILD")
        .read_text("utf-8")
        .replace(
            '        "public/version.h",\n', '        "public/version.h",\n        "stamp.h",\n'
        )
    )
    (core / "BUILD").write_text(build + RULE.format(command=command), "utf-8")
    source = (
        (core / "c_api.cc")
        .read_text("utf-8")
        .replace("#include <algorithm>", '#include "tensorflow/core/stamp.h"\n#include <algorithm>')
    )
    (core / "c_api.cc").write_text(
        source.replace(
            "const char* TF_Version()",
            "const char* TF_Stamp() { return STAMP; }\n\nconst char* TF_Version()",
        ),
        "utf-8",
    )
    _pin(folder)
    return folder


def _pin(folder: Path) -> None:
    """Let the recipe pin the changed tree."""
    script = """
from pathlib import Path
from tempfile import mkdtemp
from tfwright.documents import recipe
from tfwright.tools.git import demo
from tfwright.tools.git.repository import GitRepository
print(recipe.read('demo').source.commit, demo.commit_tree(GitRepository(Path(mkdtemp())).make().path))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = done.stdout.split()
    recipe = folder / "recipes/demo.toml"
    recipe.write_text(recipe.read_text("utf-8").replace(before, after), "utf-8")


def invoke(folder: Path, place: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    bazels = [
        f'[bazels]\n"0.26.1" = "{path}"\n'
        for path in Path(os.environ.get("TFWRIGHT_BAZELS", "/nowhere")).glob(
            "**/bazel-0.26.1-linux-x86_64"
        )
    ]
    (place / "host.toml").write_text(f'build_out = "{place}/out"\n' + "".join(bazels[:1]), "utf-8")
    env = {
        **os.environ,
        "TFWRIGHT_HOST_FILE": str(place / "host.toml"),
        "PYTHONPATH": str(folder / "src"),
    }
    return subprocess.run(
        [sys.executable, "-m", "invoke", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def reproduced(folder: Path, place: Path) -> dict[str, Any]:
    """Build, build again elsewhere, and return what came of it."""
    built = invoke(folder, place, "build")
    assert built.returncode == 0, built.stderr
    done = invoke(folder, place, "reproduce", "--json")
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_demo_becomes_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    assert reproduced(ROOT, tmp_path)["reproduced"] is True


def test_with_the_cache_nothing_is_compiled_elsewhere(tmp_path: Path) -> None:
    assert invoke(ROOT, tmp_path, "build").returncode == 0
    done = invoke(ROOT, tmp_path, "reproduce", "--cached")
    assert done.returncode == 0, done.stderr
    said = invoke(ROOT, tmp_path, "cache", "--json").stdout
    last, first = (build["use"] for build in json.loads(said)["builds"])
    assert first["hits"] == 0
    assert last["hits"] == last["lookups"] > 0


@pytest.mark.skipif(
    isolation.address_obstacle() is not None,
    reason="address-space randomisation cannot be switched off here",
)
@pytest.mark.parametrize(
    ("command", "cause"),
    [
        pytest.param("od -An -N8 -tx1 /dev/urandom", "Every build differs", id="random numbers"),
        pytest.param("date +%Y-%m-%d.%H:%M:%S.%N", "Every build differs", id="a clock"),
        pytest.param(
            "cd $(GENDIR) && pwd -P",
            "Built again in the same place it is the same",
            id="the directory",
        ),
        pytest.param(
            "python3 -c 'print(id(object()))'",
            "It varies with address-space randomisation",
            id="an address",
        ),
    ],
)
def test_what_is_baked_in_is_found_where_it_is_and_its_cause_is_told(
    command: str, cause: str, tmp_path: Path
) -> None:
    found = reproduced(checkout(tmp_path / "checkout", command), tmp_path)
    assert found["reproduced"] is False
    library = next(one for one in found["comparison"]["differences"] if one["member"] == LIBRARY)
    assert ".rodata" in library["what"]
    assert any("text 'made: " in line for line in library["lines"])
    assert any(one.startswith(cause) for one in found["causes"]), found["causes"]
