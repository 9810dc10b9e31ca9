"""What a worker lacks of a build's inputs, and what becomes of what it is sent."""

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Read, make_file, make_folder
from tests.remedies.following import CommandLine
from tests.toolkit.test_providing import CUDNN_WHEEL, CUDNNS
from tests.upstream import commit
from tests.workers.conftest import Programs
from tests.workers.test_remote import LOCAL_SSH

from tfwright.bundle import packing as bundles
from tfwright.documents.host_file import HostFile, WorkerTable
from tfwright.documents.recipe import ROOT, ImageTable, Recipe
from tfwright.documents.toolkit import ToolkitTable
from tfwright.errors import HostError, SupplyError
from tfwright.pipeline.job import Places, RecipeJob
from tfwright.pipeline.results import Inputs
from tfwright.progress import SILENCE, Listener
from tfwright.tools import files
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import clones, mirror
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin
from tfwright.tools.python import packages
from tfwright.tools.remote import ssh
from tfwright.tools.remote.ssh import RemoteBuild
from tfwright.vault import bundle
from tfwright.vault.bundle import BundledClone, Content, Kind, Manifest
from tfwright.wheel.seal import build_record
from tfwright.workers import supply

ARCHIVE = b"an archive"
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
CUDNN = CUDNNS["wheel"]
REMOTE = "https://example.org/small.git"
ALL = ["source", "clone", "archive", "bazel", "package", "toolkit"]
HOST = WorkerTable(
    name="one", address="one.example", directory="/srv/tfwright", build_out="/out", inputs=True
)


@pytest.fixture
def recipe(tmp_path: Path, recipe: Recipe) -> Recipe:
    """Return a recipe whose commit exists."""
    pinned = commit(tmp_path / "upstream", {"BUILD": "one"})
    pins = {CUDNN_WHEEL: hashlib.sha256(CUDNN).hexdigest()}
    toolkit = ToolkitTable.model_validate({"cudnn": {"wheels": pins}})
    return recipe.changed(
        source=recipe.source.changed(commit=pinned),
        host=recipe.host.changed(cuda="10.1", cudnn="7.6"),
        toolkit=toolkit,
    )


@pytest.fixture
def offered(tmp_path: Path, recipe: Recipe) -> Path:
    """Lay out the inputs of the recipe on the host that sends them."""
    room, made = tmp_path / "offered", tmp_path / "made"
    made.mkdir()
    upstream = tmp_path / "upstream/.git"
    cloned = commit(tmp_path / "small", {"BUILD": "two"})
    clones.fetch(Clone(REMOTE, cloned), made, Origin.of(str(tmp_path / "small")), offline=False)
    kept = clones.path_of(made, REMOTE)
    mirror.write_bundle(upstream, recipe.source.commit, made / "source.bundle")
    mirror.write_bundle(kept, cloned, made / cloned, history=True)
    (made / "recipe.json").write_text(
        build_record.recipe_content(recipe).model_dump_json(), "utf-8"
    )
    names: list[tuple[Kind, str, bytes]] = [
        ("archive", SHA256, ARCHIVE),
        ("bazel", "bazel", b"a Bazel"),
        ("package", "six-1.11.0-py3-none-any.whl", b"six"),
        ("toolkit", hashlib.sha256(CUDNN).hexdigest(), CUDNN),
    ]
    contents = [
        bundle.member_of("recipe", made / "recipe.json"),
        bundle.member_of("source", made / "source.bundle"),
        bundle.member_of("clone", made / cloned),
    ]
    for kind, name, content in names:
        (made / name).write_bytes(content)
        contents.append(bundle.member_of(kind, made / name, name))
    return laid_out(room, recipe, contents, BundledClone(remote=REMOTE, commit=cloned))


def laid_out(
    room: Path, recipe: Recipe, contents: Sequence[Content], *clones: BundledClone
) -> Path:
    """Lay out the inputs of a recipe in a folder, with their manifest; return the folder."""
    manifest = Manifest(
        tfwright="0",
        recipe=recipe.name,
        platform=binary.platform_name(),
        python="3.11",
        bazel=recipe.bazel.version,
        members=tuple(dict(contents)),
        clones=clones,
    )
    bundle.write_folder(room, manifest, dict(contents))
    return room


def sent(offered: Path, to: Path) -> Path:
    """Copy what is offered, as rsync does; return the folder."""
    shutil.copytree(offered, to, dirs_exist_ok=True)
    return to


def kinds(paths: Sequence[str]) -> list[str]:
    return [path.partition("/")[0] for path in paths]


@pytest.fixture
def worker(tmp_path: Path) -> HostFile:
    """Return the host file of a worker that has nothing yet and needs no toolkit."""
    return HostFile(build_out=tmp_path / "worker")


@pytest.fixture
def folder(worker: HostFile) -> Path:
    """Return where a worker gets inputs."""
    return worker.build_out / supply.FOLDER / "small"


@pytest.mark.medium
def test_a_worker_lacks_all_inputs_and_none_after_it_took_them(
    offered: Path, worker: HostFile, folder: Path, recipe: Recipe
) -> None:
    sent(offered, folder)
    assert kinds(supply.missing_members(folder, worker)) == ALL
    # Its own CUDA serves: nothing is unpacked.
    worker = worker.changed(cuda=worker.build_out)
    supply.unpack_inputs(folder, worker, SILENCE)
    assert not folder.exists()
    sent(offered, folder)
    assert supply.missing_members(folder, worker) == []
    places = Places(worker.build_out, recipe.name)
    assert [path.name for path in packages.stored_files(places.vault)] == [
        "six-1.11.0-py3-none-any.whl"
    ]
    # What one recipe brought, another one does not lack.
    for name in ("manifest.json", "recipe/recipe.json"):
        text = (folder / name).read_text("utf-8").replace('small"', 'other"')
        (folder / name).write_text(text, "utf-8")
    assert supply.missing_members(folder, worker) == []


@pytest.mark.medium
def test_what_a_worker_lost_it_lacks_again(offered: Path, worker: HostFile, folder: Path) -> None:
    worker = worker.changed(cuda=worker.build_out)
    supply.unpack_inputs(sent(offered, folder), worker, SILENCE)
    sent(offered, folder)
    shutil.rmtree(worker.build_out / "vault/packages")
    shutil.rmtree(worker.build_out / "git")
    assert kinds(supply.missing_members(folder, worker)) == ["source", "clone", "package"]
    for path in ("archive", "bazel", "toolkit"):
        shutil.rmtree(folder / path)
    supply.unpack_inputs(folder, worker, SILENCE)
    sent(offered, folder)
    assert supply.missing_members(folder, worker) == []


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["source", "clone", "archive", "package"])
def test_a_file_that_changed_on_the_way_is_named_and_nothing_is_put_anywhere(
    offered: Path, worker: HostFile, folder: Path, kind: str
) -> None:
    sent(offered, folder)
    (path,) = (folder / kind).iterdir()
    path.write_bytes(b"other bytes")
    with fails(SupplyError, f"{kind}/"):
        supply.unpack_inputs(folder, worker, SILENCE)
    assert not (worker.build_out / "vault").exists()


@pytest.mark.parametrize("content", ["", "{}", "null"])
def test_a_folder_without_inputs_is_refused(tmp_path: Path, worker: HostFile, content: str) -> None:
    (tmp_path / bundle.MANIFEST).write_text(content, "utf-8")
    with fails(SupplyError, tmp_path):
        supply.missing_members(tmp_path, worker)


@pytest.mark.medium
@pytest.mark.parametrize("answer", [["archive/" + SHA256, "../../etc/passwd"], []])
def test_a_worker_is_sent_what_it_lacks_of_what_was_offered(
    job: RecipeJob, offered: Path, monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    files = answer[:1]
    manifest = bundle.read_folder(offered)
    without = [each for each in manifest.members if each.kind != "toolkit"]
    manifest = manifest.changed(members=tuple(without))
    monkeypatch.setattr(supply, "gather", lambda *_, **__: manifest)
    monkeypatch.setattr(ssh, "lacks_packages", lambda *_: False)
    lists: list[list[str]] = []
    asked: list[str] = []

    def send_files(_: WorkerTable, __: Path, names: list[str], to: str, ___: Path) -> None:
        assert to == f"/out/inputs/{job.name}"
        lists.append(names)

    def run(_: WorkerTable, program: Sequence[str], __: Path) -> RemoteBuild:
        asked.append(program[1])
        return RemoteBuild(0.0, printed=json.dumps(answer))

    monkeypatch.setattr(ssh, "send_files", send_files)
    monkeypatch.setattr(ssh, "run", run)
    monkeypatch.setattr(ssh, "remove", lambda *_: asked.append("removed"))
    assert supply.send(HOST, job, job.log("sent")) is None
    begun = [bundle.MANIFEST, "recipe/recipe.json"]
    assert lists == [begun, *([files] if files else [])]
    assert asked == ["--lacking", "--unpack" if files else "removed"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("ends", "removed"),
    [
        (RemoteBuild(1.0, 3, "The disk is full"), True),
        (RemoteBuild(1.0, 4, "bazel came with other bytes"), True),
        (RemoteBuild(1.0, ssh.LOST, "no answer"), False),
        (HostError("The disk of one is full", remedy="Free some."), True),
    ],
)
def test_what_a_worker_cannot_take_is_removed_there_and_goes_on_if_it_was_lost(
    job: RecipeJob,
    offered: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: RemoteBuild | HostError,
    *,
    removed: bool,
) -> None:
    manifest = bundle.read_folder(offered)
    monkeypatch.setattr(supply, "gather", lambda *_, **__: manifest)
    monkeypatch.setattr(ssh, "lacks_packages", lambda *_: False)
    gone: list[str] = []

    def send_files(_: WorkerTable, __: Path, names: list[str], *___: object) -> None:
        if isinstance(ends, HostError) and bundle.MANIFEST not in names:
            raise ends

    def run(_: WorkerTable, program: Sequence[str], __: Path) -> RemoteBuild:
        if program[1] == supply.LACKING:
            return RemoteBuild(0.0, printed="[]")
        assert isinstance(ends, RemoteBuild)
        return ends

    monkeypatch.setattr(ssh, "send_files", send_files)
    monkeypatch.setattr(ssh, "run", run)
    monkeypatch.setattr(ssh, "remove", lambda _, there: gone.append(there))
    if isinstance(ends, HostError):
        with pytest.raises(HostError):
            supply.send(HOST, job, job.log("sent"))
    else:
        assert supply.send(HOST, job, job.log("sent")) == ends
    assert gone == ([f"/out/inputs/{job.name}"] if removed else [])


# From this host's vault to a worker's, with a shell in the place of ssh.


@pytest.mark.medium
def test_inputs_are_laid_out_as_in_a_bundle_with_the_recipe_as_it_is_built(
    small_job: RecipeJob, brought: Inputs, tmp_path: Path
) -> None:
    named = small_job.recipe.changed(name="small-of-a-night")
    job = replace(small_job, recipe=named)
    (tmp_path / "room").mkdir()
    manifest = supply.gather(job, tmp_path / "room", with_toolkit=False)
    assert bundle.read_folder(tmp_path / "room") == manifest
    assert kinds(sorted(each.path for each in manifest.members)) == [
        "archive",
        "bazel",
        "clone",
        "recipe",
        "source",
    ]
    assert supply._read_recipe(tmp_path / "room").name == "small-of-a-night"
    assert brought.programs
    laid = tmp_path / "room/bazel/bazel"
    assert laid.read_bytes() == brought.programs.bazel.path.read_bytes()


@pytest.mark.medium
@pytest.mark.usefixtures("brought")
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize("ready", [False, True])
def test_a_worker_whose_checkout_is_not_set_up_gets_our_own_packages(
    small_job: RecipeJob,
    tmp_path: Path,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ready: bool,
) -> None:
    def own(_: RecipeJob, folder: Path) -> list[Path]:
        make_file(folder / "small-1.0-py3-none-any.whl", b"a wheel")
        return list(folder.iterdir())

    checkout, requirements = tmp_path / "checkout", ROOT / "requirements.txt"
    (checkout / ".venv").mkdir(parents=True)
    if ready:
        make_file(checkout / ".venv/tfwright-requirements", files.sha256(requirements))
    # It lacks nothing, and shows what it was sent so far.
    (checkout / "tasks.py").write_text(
        "import pathlib, shutil, sys\n"
        f"shutil.copytree(sys.argv[-1], {str(tmp_path / 'seen')!r})\n"
        "print([])\n",
        "utf-8",
    )
    monkeypatch.setattr(bundles, "tool_packages", own)
    programs(ssh=LOCAL_SSH.format(home=tmp_path))
    host = HOST.changed(
        address="one", directory=str(checkout), python=sys.executable, build_out="~/there"
    )
    assert supply.send(host, small_job, tmp_path / "log") is None
    seen = {path.name for path in (tmp_path / "seen").iterdir()}
    assert seen == {"manifest.json", "recipe", *(() if ready else ("tool",))}
    # What nothing asks for any more is removed there.
    assert list((tmp_path / "there/inputs").iterdir()) == []


@pytest.mark.medium
def test_the_toolkit_that_was_sent_is_unpacked_there(
    offered: Path, worker: HostFile, recipe: Recipe, listener: Listener, notes: list[str]
) -> None:
    supply.unpack_inputs(offered, worker, listener)
    made = worker.of(recipe).cudnn
    assert made
    assert (made / "include/cudnn_version.h").is_file()
    assert [note for note in notes if note.endswith(f" is in {made}")]


@pytest.mark.parametrize("pinned", [False, True])
def test_a_worker_lacks_an_image_until_all_of_it_is_there(
    tmp_path: Path, worker: HostFile, recipe: Recipe, *, pinned: bool
) -> None:
    table = ImageTable(name="small", digest=f"sha256:{'0' * 64}")
    if pinned:
        host = recipe.host.changed(image=table)
        recipe = recipe.changed(host=host)
    layer, document = tmp_path / "layer", tmp_path / "recipe.json"
    layer.write_bytes(b"a layer")
    content = build_record.recipe_content(recipe)
    document.write_text(content.model_dump_json(), "utf-8")
    contents = [bundle.member_of("recipe", document), bundle.member_of("image", layer)]
    room = laid_out(tmp_path / "room", recipe, contents)
    assert supply.missing_members(room, worker) == (["image/layer"] if pinned else [])
    make_folder(image.path_of(worker.build_out / "vault", table.digest))
    assert supply.missing_members(room, worker) == []


@pytest.mark.medium
def test_a_worker_lists_what_it_lacks_on_one_line_and_then_takes_it(
    shell: CommandLine, offered: Path, tmp_path: Path, out: Read
) -> None:
    folder = sent(offered, tmp_path / "build_out/inputs/small")
    shell.succeeds(f"invoke bundle --lacking {folder}")
    (line,) = out().splitlines()
    assert kinds(json.loads(line)) == ALL
    shell.succeeds(f"invoke bundle --unpack {folder}")
    assert not folder.exists()
    sent(offered, folder)
    out()
    shell.succeeds(f"invoke bundle --lacking {folder}")
    assert json.loads(out()) == []
