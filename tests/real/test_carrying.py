"""The demo, bundled here, built from the bundle where there is neither a network nor a home directory with anything in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.making import make_folder

from tfwright.documents.recipe import ROOT
from tfwright.tools import files
from tfwright.tools.process import isolation
from tfwright.tools.process.command import Command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.skipif(
        isolation.isolation_obstacle() is not None, reason=str(isolation.isolation_obstacle())
    ),
]

PARTS = ("tasks.py", "requirements.txt", "src", "recipes", "patches", "templates")


def tasks(
    checkout: Path, *arguments: str, alone: bool = False, caller: Mapping[str, str] | None = None
) -> str:
    """Run a command of a checkout, and return what it prints on stdout."""
    base = Path(sys.base_prefix) / "bin/python3" if alone else Path(sys.executable)
    home = make_folder(checkout.parent / "home")
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(caller or {})}
    start = (str(base), "tasks.py") if alone else (str(base), "-m", "invoke")
    command = Command((*start, *arguments), checkout, env)
    return subprocess.run(
        (isolation.in_own_network(command) if alone else command).argv,
        cwd=checkout,
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of its own that nothing was set up in; the demo's documents are left to the bundle."""
    path = make_folder(tmp_path / "checkout")
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, path / part)
    (path / "recipes/demo.toml").unlink()
    shutil.rmtree(path / "patches/demo")
    return path


def test_the_demo_built_from_its_bundle_without_a_network_has_the_same_bytes(
    tmp_path: Path, checkout: Path
) -> None:
    host, bundle = tmp_path / "host.toml", tmp_path / "demo.tar"
    bazels = [
        f'[bazels]\n"0.26.1" = "{path}"\n'
        for path in Path(os.environ.get("TFWRIGHT_BAZELS", "/nowhere")).glob(
            "**/bazel-0.26.1-linux-x86_64"
        )
    ]
    host.write_text(f'build_out = "{tmp_path / "there"}"\n' + "".join(bazels), "utf-8")
    here = {**os.environ, "TFWRIGHT_HOST_FILE": str(host)}
    before = Path(tasks(ROOT, "build", caller=here).strip())
    tasks(ROOT, "bundle", "--output", str(bundle), caller=here)
    tasks(checkout, "bundle", "--unpack", str(bundle), alone=True)
    after = Path(tasks(checkout, "build", "--offline", alone=True).strip())
    assert after.is_relative_to(checkout)
    assert files.sha256(after) == files.sha256(before)
