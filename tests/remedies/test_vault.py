"""What is said of the vault, of bundles and of toolkits, done to the letter."""

import hashlib
import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from tests.bundle import test_bundle as bundles
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import CommandLine, commands, failing
from tests.toolkit import test_providing as toolkits
from tests.vault import test_substitutes as replacing
from tests.workers import test_supply

from tfwright.bundle import packing, unpacking
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import SILENCE
from tfwright.toolkit import layout, sources
from tfwright.toolkit import providing as toolkit
from tfwright.toolkit.providing import KINDS
from tfwright.toolkit.sources import Supplier
from tfwright.tools import apt
from tfwright.tools.bazel import binary
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.vault import bundle, substitutes
from tfwright.vault.origins import Origins
from tfwright.vault.store import Store
from tfwright.workers import supply

pytestmark = pytest.mark.medium

# Substitutes


FFT = "fft2d"


OPEN = f'def tf_workspace():\n  http_archive(name = "{FFT}", sha256 = "{replacing.OLD}", '
PREFIX = f'MORE = {{"strip_prefix": "old"}}\n{OPEN}urls = ["https://a.example/b.zip"], **MORE)\n'
ADDRESS = f'MORE = {{"urls": ["https://a.example/b.zip"]}}\n{OPEN}**MORE)\n'
DIGEST = (
    f'MORE = {{"sha256": "{replacing.OLD}", "urls": ["https://a.example/b.zip"]}}\n'
    f'def tf_workspace():\n  http_archive(name = "{FFT}", **MORE)\n'
)
PATCHED = (
    f'def tf_workspace():\n  http_archive(name = "{FFT}", sha256 = "{replacing.NEW}", '
    'urls = ["https://github.com/o/r/archive/v1.tar.gz"])\n'
)


@pytest.mark.parametrize("text", [PREFIX, ADDRESS, DIGEST])
def test_an_archive_that_no_substitute_can_replace_is_replaced_by_a_patch(text: str) -> None:
    whole = {**replacing.TEXTS, "tensorflow/workspace.bzl": text}
    wanted = {FFT: replacing.table(strip_prefix="r-1")}
    fault = failing(lambda: substitutes.rewrite_rules(whole, wanted), RecipeError)
    assert fault.remedy == "Replace this archive by a patch of the tree instead."
    # A tree with such a patch asks for the other archive without a substitute.
    assert replacing.found({"tensorflow/workspace.bzl": PATCHED}, FFT).sha256 == replacing.NEW


# Toolkits


@pytest.fixture
def cudnn(job: RecipeJob) -> RecipeJob:
    """Return a job for a recipe with CUDA 10.1 and cuDNN 7.6."""
    return toolkits.job.__wrapped__(job)  # type: ignore[attr-defined,no-any-return]


def test_an_archive_with_a_link_that_leads_out_is_downloaded_again(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "toolkit")
    link = folder / "bin"
    link.symlink_to("/etc")
    fault = failing(lambda: layout.normalize(folder), SupplyError)
    assert fault.remedy == "Download it again from NVIDIA."
    link.unlink()
    link.symlink_to("lib64")
    layout.normalize(folder)


@pytest.mark.parametrize("wants", ["neither", "cuDNN"])
def test_a_recipe_or_a_file_is_named_for_a_toolkit(
    shell: CommandLine, cudnn: RecipeJob, tmp_path: Path, wants: str
) -> None:
    bare = recipes.read("demo")
    recipe = bare if wants == "neither" else cudnn.recipe
    fault = failing(lambda: toolkit.check_wanted(recipe, [], HostFile()), RecipeError)
    if wants == "neither":
        (listing,) = commands(fault.remedy)
        shell.succeeds(listing)
        assert re.search(r"--recipe;", fault.remedy)
        toolkit.check_wanted(recipes.read("demo-cuda"), [], HostFile())
        return
    options = re.findall(r"--(\w+) FILE", fault.remedy)
    assert {*options, "compiler"} == KINDS.keys()
    given = {name: (str(tmp_path / name), "") for name in options}
    downloads = toolkit.named_downloads(given)
    assert len(downloads) == len(options)
    toolkit.check_wanted(recipe, downloads, HostFile())


@pytest.mark.parametrize("way", ["Take another way", "differs"])
def test_other_files_come_another_way_or_their_difference_is_stated(
    cudnn: RecipeJob, tmp_path: Path, way: str
) -> None:
    contents = {"cudnn.tgz": "7, Linux", toolkits.CUDNN_WHEEL: "wheel"}
    pins = dict[str, str]()
    job = cudnn
    for name, packed in contents.items():
        content = toolkits.CUDNNS[packed]
        job, pin = toolkits.dropped(job, tmp_path / "drop", name, content)
        pins |= pin
    archives = {"https://example.com/cudnn.tgz": pins.pop("cudnn.tgz")}

    def provide(**keys: object) -> object:
        wanting = toolkits.pinned(job, cudnn=keys)
        return list(toolkits.installer(wanting).obtain())

    other = failing(lambda: provide(archives=archives, tree="0" * 64), RecipeError)
    pinned = other.what.rpartition(" ")[2]
    wrong = {"wheels": pins, "tree": pinned}
    fault = failing(lambda: provide(**wrong), RecipeError, way)
    line = find_text(r"\[toolkit\.cudnn\.differs\] (\w+) = ", fault.remedy)
    if way == "differs":
        assert provide(**wrong, differs={line[1]: "a text"})
    else:
        assert provide(archives=archives, tree=pinned)


@pytest.mark.parametrize("why", ["no apt", "no archive", "another build"])
def test_each_way_that_failed_says_what_opens_it(
    cudnn: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    name, content = "libcudnn7_7.6.5_amd64.deb", b"a package"
    pin = hashlib.sha256(content).hexdigest()
    debian = {"suite": "bookworm", "files": {name: pin}}
    wanting = toolkits.pinned(cudnn, cudnn={"debian": debian})
    part = dict(wanting.recipe.toolkit.parts())["cudnn"]
    given = {"no apt": content, "no archive": content, "another build": b"other"}
    monkeypatch.setattr(apt, "is_available", lambda: why != "no apt")
    monkeypatch.setattr(apt, "host_archive_url", lambda: "")

    def download(_: object, __: object, ___: object, folder: Path, ____: Path) -> list[Path]:
        (folder / name).write_bytes(given[why])
        return [folder / name]

    monkeypatch.setattr(apt, "download", download)
    host_file = HostFile(build_out=tmp_path)
    if why == "another build":
        host_file = HostFile(build_out=tmp_path, debian="http://debian.example")

    def obtain(host_file: HostFile) -> sources.Obtained:
        store = Store(tmp_path / "store")
        store.root.mkdir(exist_ok=True)
        supplier = Supplier(store, host_file, SILENCE, tmp_path / "log")
        return supplier.obtain("cuDNN", part)

    fault = failing(lambda: obtain(host_file), SupplyError)
    (line,) = fault.evidence.lines
    if why == "no apt":
        assert "Use a Debian host or container" in line
        monkeypatch.setattr(apt, "is_available", lambda: True)
        host_file = HostFile(build_out=tmp_path, debian="http://debian.example")
    elif why == "no archive":
        key = find_text(r"in the host file: (\w+) = 'http://…'", line)
        settings = {"build_out": tmp_path, key[1]: "http://debian.example"}
        host_file = HostFile.model_validate(settings)
    else:
        assert "find the pinned one elsewhere" in line
        assert "Copy the files of one way into" in fault.remedy
        drop = make_folder(tmp_path / "drop")
        (drop / "any name").write_bytes(content)
        host_file = HostFile(build_out=tmp_path, drop=drop)
    assert obtain(host_file).way == "debian"


def test_the_packages_of_a_toolkit_are_obtained_before_they_are_bundled(
    cudnn: RecipeJob, tmp_path: Path
) -> None:
    job, pin = toolkits.dropped(
        cudnn, tmp_path / "drop", toolkits.CUDNN_WHEEL, toolkits.CUDNNS["wheel"]
    )
    wanting = toolkits.pinned(job, cudnn={"wheels": pin})

    def content() -> list[bundle.Content]:
        return list(packing.toolkit_members(wanting))

    fault = failing(content, SupplyError)
    (command,) = commands(fault.remedy)
    assert command == "invoke toolkit --recipe small"
    assert list(toolkits.installer(wanting, accepted=False).obtain())
    assert [member.kind for member, _ in content()] == ["toolkit"]


# Bundles


@pytest.fixture
def build_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(unpacking, "RECIPES", tmp_path / "checkout/recipes")
    monkeypatch.setattr(unpacking, "PATCHES", tmp_path / "checkout/patches")
    return tmp_path / "build_out"


@pytest.mark.parametrize("way", ["Free some space", "--into"])
def test_room_is_made_or_a_larger_disk_named_for_a_bundle(
    shell: CommandLine, tmp_path: Path, build_out: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024 as shutil's
    full = {"build_out"}

    def disk_usage(path: Path) -> object:
        free = 10 if any(name in Path(path).parts for name in full) else 1 << 40
        return usage(1 << 40, 0, free)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    file = bundles.made(tmp_path)
    command = f"invoke bundle --unpack {file}"
    shell.remedy(command, way)
    if way == "--into":
        shell.succeeds(f"{command} --into {tmp_path}/larger")
    else:
        full.clear()
        shell.succeeds(command)
    assert build_out


# Inputs for a worker


@pytest.fixture
def offered(tmp_path: Path, recipe: Recipe) -> Path:
    return test_supply.offered.__wrapped__(  # type: ignore[attr-defined,no-any-return]
        tmp_path,
        test_supply.recipe.__wrapped__(tmp_path, recipe),  # type: ignore[attr-defined]
    )


def test_a_worker_of_another_platform_gets_no_inputs(
    offered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "platform_name", lambda: "hurd-mips")
    worker = HostFile(build_out=tmp_path / "worker")
    fault = failing(lambda: supply.missing_members(offered, worker), HostError)
    key = find_text(r"'(inputs) = true'", fault.remedy)
    table = {"name": "one", "address": "one.example", "directory": "/srv"}
    for taken in (True, False):
        given = {**table, key[1]: True} if taken else table
        (made,) = HostFile.model_validate({"workers": [given]}).workers
        assert made.inputs is taken


def test_an_older_worker_says_something_else_and_is_updated(offered: Path, tmp_path: Path) -> None:
    manifest = bundle.read_folder(offered)
    log = make_file(tmp_path / "log", "No idea what '--lacking' is!\n")
    old = RemoteBuild(0.0, printed=log.read_text(), log=str(log))
    fault = failing(lambda: supply.lacking_of(old, manifest), HostError)
    named = find_text(r"Read what it printed: (\S+);", fault.remedy)
    assert "No idea" in Path(named[1]).read_text("utf-8")
    worker = HostFile(build_out=tmp_path / "worker")
    said = json.dumps(supply.missing_members(offered, worker))
    new = RemoteBuild(0.0, printed=said, log=str(log))
    assert supply.lacking_of(new, manifest)


def test_a_dropped_file_that_was_removed_is_put_there_again(tmp_path: Path) -> None:
    file = make_file(tmp_path / "drop/a", b"right")
    places = Origins(HostFile(drop=file.parent), tmp_path / "git")
    sha256 = hashlib.sha256(b"right").hexdigest()

    def take() -> None:
        places._copy_dropped(file.parent, sha256, tmp_path / "taken")

    take()
    file.unlink()
    failing(take, SupplyError, "again")
    file.write_bytes(b"right")
    take()
