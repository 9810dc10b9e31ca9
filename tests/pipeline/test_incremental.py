"""Whatever key of a recipe changes, an incremental build gives the bytes of a build from nothing.

Two directories build the demo up to the sealed wheel. One goes from change to change and keeps
what it can; the other forgets what it built before each.
"""

import copy
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.making import make_folder
from tests.pipeline.test_declared import keys

from tfwright import errors
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import SealedWheel

KEYS = {".".join(part for part in key if part) for key in keys()}
DEMO = tomllib.loads((recipes.RECIPES / "demo.toml").read_text("utf-8"))
SECOND_PATCH = """\
Comments the WORKSPACE.

Why: a second patch shows that the series counts.
Upstream: none
Drop when: never

diff --git a/WORKSPACE b/WORKSPACE
--- a/WORKSPACE
+++ b/WORKSPACE
@@ -2 +2,2 @@
 workspace(name = "org_tensorflow")
+# Patched twice.
"""

PROMPT = {"variable": "TF_NEED_NOTHING", "question": "Do you wish nothing?", "kind": "yes-no"}
CHANGES: Mapping[str, object] = {
    "summary": "Another summary",
    "source.branch": "master",
    "source.version": "1.12.0",
    "source.patches": [*DEMO["source"]["patches"], "second.patch"],
    "source.assets": {"tensorflow/new.txt": "new.txt"},
    "source.exclude": ["README.md"],
    "host.system": "Linux",
    "host.machine": "x86_64",
    "host.requirements": ["setuptools==80.9.0", "wheel==0.45.0"],
    "host.gcc": "99",
    "host.programs": ["sed"],
    "host.sha256": {"cuda": "0" * 64},
    "host.nccl": "2.16.2",
    "host.driver": "1.0",
    "bazel.version": "0.24.1",
    "bazel.sha256": None,
    "configure.by": "environment",
    "configure.answers": {"CC_OPT_FLAGS": "-O1"},
    "configure.timeout": 90,
    "configure.prompts": [{**PROMPT, "optional": True}],
    "compile.flags": ["--config=opt", "--copt=-fno-inline"],
    "compile.env": {"A_VARIABLE": "1"},
    "compile.peak": 0.6,
    "nccl.rebuild": False,
    "nccl.flags": ["-fno-inline"],
    "package.project_name": "another_demo",
    "package.flags": ["--gpu"],
    "package.platform": "manylinux_2_36_x86_64",
    "verify.imports": ["tensorflow_demo"],
    "verify.requirements": ["six==1.17.0"],
    "verify.plugins": ["six==1.17.0"],
    "verify.smoke": [],
    "verify.tests": ["tensorflow/test.py"],
    "verify.env": {"A_VARIABLE": "1"},
    "verify.glibc": "2.17",
    "verify.cpu": "avx2",
    "verify.macos": "10.13",
    "verify.architectures": ["sm_70"],
    "verify.size": 2_000_000,
}
"""Another value for each key that the demo can take; a table is merged, and None removes a key."""
REASONS = {
    "each name has directories of its own, so no build of another name is kept": "name",
    "the demo's tree has one address and one commit": "source.url source.commit",
    "another release asks other questions than the demo's ./configure": "source.release",
    "needs a recipe of its own, see linux-custom-op": "source.interface configure.program "
    "configure.writes package.program package.arguments",
    "the demo's wheel is made by the Python that runs the tests": "host.python",
    "refused on another system": "host.macos host.xcode host.clang",
    "the demo has no CUDA; demo-cuda has": "host.cuda host.cudnn host.tensorrt toolkit.cuda "
    "toolkit.cudnn toolkit.nccl toolkit.tensorrt toolkit.compiler",
    "needs a container; tests/tools/container builds in one": "host.image",
    "the demo downloads no archive": "fetch.substitutes fetch.sources",
    "a line more or less is refused, since ./configure does not write it": "configure.bazelrc",
    "another target makes no wheel": "compile.target",
    "only for macOS libraries": "package.libraries package.rpath",
}
"""Why the demo cannot be built with other values of some keys."""


def nested(key: str, value: object) -> dict[str, Any]:
    """Return the change of one key; another version of Bazel has other checksums."""
    table, _, name = key.rpartition(".")
    change = {name: value} | ({"sha256": None} if key == "bazel.version" else {})
    return {table: change} if table else change


def merged(table: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the values of a change; None removes a key."""
    result = dict(copy.deepcopy(table))
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return {key: value for key, value in result.items() if value is not None}


@dataclass(frozen=True)
class Builder:
    """Builds variants of the demo in two directories that share Bazel and the packages."""

    incremental: HostFile
    fresh: HostFile
    patches: Path

    def wheels(self, change: Mapping[str, Any]) -> tuple[str, str]:
        """Return the checksum of the wheel by an incremental build, and by one from nothing."""
        values = merged(DEMO, change)
        recipe = recipes.Recipe.model_validate({"name": "demo", **values})
        # Patches of a test lie where those of a recipe outside the checkout would.
        source = recipe.source.located(self.patches.parent)
        request = RecipeJob(
            recipe=recipe.changed(source=source), host_file=self.incremental, until="seal"
        )
        # Without the build cache every action of the second build really runs.
        other = replace(request, host_file=self.fresh).without_cache()
        return (
            engine.build(request).of(SealedWheel).wheel.sha256,
            engine.build(replace(other, fresh=True)).of(SealedWheel).wheel.sha256,
        )


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    folder = tmp_path_factory.mktemp("incremental")
    patches = make_folder(folder / "recipes" / "patches")
    (patches / "second.patch").write_text(SECOND_PATCH, "utf-8")
    (patches / "new.txt").write_text("new\n", "utf-8")
    made = Builder(
        incremental=HostFile(build_out=folder / "incremental"),
        fresh=HostFile(build_out=folder / "fresh"),
        patches=patches,
    )
    made.wheels({})
    return made


def test_every_key_is_changed_or_has_a_reason() -> None:
    assert sorted([*CHANGES, *" ".join(REASONS.values()).split()]) == sorted(KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("key", CHANGES)
def test_a_changed_key_gives_the_bytes_of_a_build_from_nothing(builder: Builder, key: str) -> None:
    incremental, fresh = builder.wheels(nested(key, CHANGES[key]))
    assert incremental == fresh


@pytest.mark.slow
def test_a_recipe_that_is_as_it_was_gives_the_bytes_that_it_gave(builder: Builder) -> None:
    before, _ = builder.wheels({})
    builder.wheels({"summary": CHANGES["summary"]})
    after, fresh = builder.wheels({})
    assert before == after == fresh


@pytest.mark.slow
def test_a_refused_change_leaves_the_last_build_as_it_was(builder: Builder) -> None:
    before, _ = builder.wheels({})
    with pytest.raises(errors.TfwrightError):
        builder.wheels({"configure": {"answers": {"TF_NEED_GCP": True}}})
    assert builder.wheels({})[0] == before
