"""What `invoke vault --verify` notices: a change in anything that later builds use."""

import hashlib
import os
import zlib
from pathlib import Path

import pytest
from tests.limits import largest_file
from tests.making import make_file
from tests.toolkit.parts import part_of
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes
from tfwright.errors import SupplyError
from tfwright.toolkit import tree
from tfwright.toolkit.tree import ToolkitRecord
from tfwright.tools import files, trees
from tfwright.tools.bazel import binary as bazels
from tfwright.tools.python import packages
from tfwright.tools.python.venv import DONE
from tfwright.vault import bundle, usage, verification
from tfwright.vault.store import Store


@pytest.fixture
def build_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recipes, "names", list)
    return tmp_path / "build_out"


@pytest.fixture
def venv(build_out: Path) -> Path:
    """Make what is left in the vault of a venv with one package."""
    home = build_out / "vault/pythons/3.11.7-0123456789ab"
    make_file(home / "lib/python3.11/site-packages/wheel/__init__.py", "VERSION = 1\n")
    make_file(home / "pyvenv.cfg", "home = /usr/bin\n")
    (home / "bin").mkdir()
    (home / "bin/python").symlink_to("/usr/bin/python3")
    (home / DONE).write_text("wheel==1.0\n", "utf-8")
    home.with_name(f"{home.name}.sha256").write_text(trees.content_digest(home))
    return home


def damaged(build_out: Path, *, repair: bool = False) -> SupplyError:
    with pytest.raises(SupplyError) as caught:
        verification.verify(build_out, tree.damages(build_out), repair=repair)
    return caught.value


def test_a_venv_as_it_was_installed_is_sound(build_out: Path, venv: Path) -> None:
    entries = verification.verify(build_out, tree.damages(build_out), repair=False)
    assert [entry.path for entry in entries] == [venv]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lib/python3.11/site-packages/wheel/__init__.py", "VERSION = 2\n"),
        ("lib/python3.11/site-packages/wheel/__init__.py", None),
        ("lib/python3.11/site-packages/sitecustomize.py", "import evil\n"),
        ("lib/python3.11/site-packages/evil.pth", "import evil\n"),
        ("pyvenv.cfg", "home = /evil\n"),
        ("bin/python", "#!/bin/false\n"),
    ],
)
def test_a_change_in_a_venv_is_noticed_and_repaired(
    build_out: Path, venv: Path, name: str, content: str | None
) -> None:
    (venv / name).unlink(missing_ok=True)
    if content:
        make_file(venv / name, content)
    told = damaged(build_out)
    assert "is not as it was made" in told.evidence.lines[0]
    assert "invoke vault --verify --repair" in told.remedy
    assert "invoke fetch" in damaged(build_out, repair=True).remedy
    assert not venv.exists()
    verification.verify(build_out, tree.damages(build_out), repair=False)


@pytest.fixture
def mirror(build_out: Path, tmp_path: Path) -> Path:
    """Make a mirror with one pack."""
    work = tmp_path / "work"
    commit(work, {"file": "content\n" * 100})
    run_git("repack", "-adq", cwd=work)
    bare = build_out / "git/work-01234567.git"
    run_git("clone", "--quiet", "--bare", "--no-local", work, bare, cwd=tmp_path)
    return bare


def test_an_object_that_is_a_file_of_its_own_is_hashed(build_out: Path, mirror: Path) -> None:
    make_file(
        mirror / "objects/ab/cdef0123456789abcdef0123456789abcdef01",
        zlib.compress(bytes("blob 5", "ascii") + bytes(1) + b"other"),
    )
    told = damaged(build_out).evidence.lines[0]
    assert "object abcdef0123456789abcdef0123456789abcdef01" in told


@pytest.mark.parametrize("harm", ["pack", "HEAD", "config", "packed-refs", "shallow"])
def test_damage_in_a_mirror_is_noticed(build_out: Path, mirror: Path, harm: str) -> None:
    path = next(mirror.glob("objects/pack/*.pack")) if harm == "pack" else mirror / harm
    content = bytearray(b"damaged")
    if harm == "pack":
        path.chmod(0o644)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert str(mirror) in damaged(build_out).evidence.lines[0]


def test_a_change_in_a_toolkit_is_noticed_and_left_to_its_own_command(build_out: Path) -> None:
    root = build_out / "toolkits/cuda-9.2"
    files.write(root / "lib64/libcudart.so", "CUDA")
    part = part_of(root)
    files.write(root / tree.RECORD, ToolkitRecord(parts={"cuda": part}).model_dump_json())
    verification.verify(build_out, tree.damages(build_out), repair=False)
    files.write(root / "lib64/libcudart.so", "other")
    told = damaged(build_out, repair=True)
    assert "lib64/libcudart.so is not as unpacked" in told.evidence.lines[0]
    assert "invoke toolkit" in told.remedy
    assert root.is_dir()


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"version": 1}'])
def test_a_damaged_record_of_a_bazel_stops_nothing(
    build_out: Path, tmp_path: Path, content: str
) -> None:
    found = make_file(tmp_path / "found", "a Bazel")
    kept = bazels.add_to_store(
        found, "0.26.1", bazels.platform_name(), build_out / "vault", "a test"
    )
    kept.path.with_name("about.json").write_text(content, "utf-8")
    assert bazels.find_stored("0.26.1", {}, (build_out / "vault",)) is None
    usage.take_inventory(build_out, [])
    bazels.add_to_store(found, "0.26.1", bazels.platform_name(), build_out / "vault", "a test")
    assert bazels.find_stored("0.26.1", {}, (build_out / "vault",)) == kept


def test_unused_files_are_removed_from_a_full_disk(build_out: Path) -> None:
    store = Store(build_out / "vault/repository_cache")
    sha256 = hashlib.sha256(b"idle").hexdigest()
    with store.admitting(sha256, "a test") as path:
        path.write_bytes(b"idle")
    for aged in (store.path(sha256), store.path(sha256).parent):
        os.utime(aged, (10**9, 10**9))
    (build_out / bundle.UNPACKING).mkdir()
    (build_out / "small").mkdir()
    (build_out / "small/lock").touch()
    packages.write_page(build_out / "vault")
    with largest_file(0):
        usage.remove_unused(build_out, [])
    assert not store.holds(sha256)
    assert not (build_out / bundle.UNPACKING).exists()
