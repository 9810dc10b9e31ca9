"""demo-hermetic by a real Bazel 7: locked, bundled, and built from the bundle without a network.

Wanted: a Bazel 7.7.1 that runs on this host, of $TFWRIGHT_BAZELS or by any other way; or, for one
that needs an image, the recipe with it, $TFWRIGHT_HERMETIC_RECIPE, its host file,
$TFWRIGHT_HERMETIC_HOST, and the folder `images` of a vault that has it, $TFWRIGHT_HERMETIC_IMAGES.
For the modules of MODULE.bazel: the registry, or a folder with its files, $TFWRIGHT_HERMETIC_REGISTRY.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.making import make_file

from tfwright.documents.recipe import RECIPES, ROOT
from tfwright.tools import files
from tfwright.tools.git import demo

pytestmark = pytest.mark.real


@pytest.fixture(params=["WORKSPACE", "MODULE.bazel"])
def settings(
    obtain_bazel: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Path, list[str]]]:
    """Return a recipe of the tree, in a folder of its own, and lines of a host file for it."""
    given, host = (os.environ.get(f"TFWRIGHT_HERMETIC_{name}") for name in ("RECIPE", "HOST"))
    recipe = Path(given) if given else RECIPES / "demo-hermetic.toml"
    copied = tmp_path / "hermetic-of-a-bundle.toml"
    text = recipe.read_text()
    if request.param == "MODULE.bazel":
        text = text.replace("flags = [", 'flags = [\n    "--config=bzlmod",', 1)
    copied.write_text(text)
    if host:
        lines = Path(host).read_text().splitlines()
        yield copied, [line for line in lines if not line.startswith(("build_out", "drop"))]
    else:
        yield copied, ["[bazels]", f'"7.7.1" = "{obtain_bazel("7.7.1")}"']
    # A bundle puts its recipe among those of the checkout.
    for unpacked in RECIPES.glob(f"{copied.stem}.*"):
        unpacked.unlink()


def invoke(folder: Path, lines: list[str], *words: str) -> str:
    """Run a command with a host file of its own and return what it prints."""
    folder.mkdir(exist_ok=True)
    drop = f'drop = "{folder.parent}/drop"' if folder.name == "one" else ""
    text = "\n".join([f'build_out = "{folder}/out"', drop, *lines, ""])
    host = make_file(folder / "host.toml", text)
    done = subprocess.run(
        [sys.executable, "-m", "invoke", *words],
        cwd=ROOT,
        env={**os.environ, "TFWRIGHT_HOST_FILE": str(host)},
        capture_output=True,
        text=True,
        check=False,
    )
    for server in ("github.com", "bcr.bazel.build"):
        # As tfwright says it, and as Bazel does.
        if server in done.stderr and re.search("not be found|Unknown host", done.stderr):
            pytest.skip(f"files of {server} cannot be had here")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_from_a_bundle_without_a_network_is_the_same(
    settings: tuple[Path, list[str]], tmp_path: Path
) -> None:
    recipe, lines = settings
    redist = [sys.executable, str(demo.HERMETIC_TREE / "redist.py"), str(tmp_path / "drop")]
    subprocess.run(redist, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if registry := os.environ.get("TFWRIGHT_HERMETIC_REGISTRY"):
        (tmp_path / "drop/registry").symlink_to(registry)
    of_recipe = ("--recipe", str(recipe))
    for images in sorted(Path(os.environ.get("TFWRIGHT_HERMETIC_IMAGES", "/nowhere")).glob("*")):
        (tmp_path / "one/out/vault/images").mkdir(parents=True, exist_ok=True)
        (tmp_path / "one/out/vault/images" / images.name).symlink_to(images)
    # First: the bill of materials of a wheel says what the lock knows.
    invoke(tmp_path / "one", lines, "lock", *of_recipe)
    first = invoke(tmp_path / "one", lines, "build", *of_recipe)
    bundle = tmp_path / "all.bundle"
    invoke(tmp_path / "one", lines, "bundle", *of_recipe, "--output", str(bundle))
    # Neither mirrors nor a drop folder: the bundle has all.
    container = lines[lines.index("[container]") :] if "[container]" in lines else []
    invoke(tmp_path / "two", container, "bundle", "--unpack", str(bundle))
    second = invoke(tmp_path / "two", container, "build", *of_recipe, "--offline")
    assert files.sha256(Path(first)) == files.sha256(Path(second))
