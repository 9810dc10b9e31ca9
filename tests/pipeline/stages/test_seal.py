import dataclasses
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.making import Maker, make_file
from tests.results import configured_of, facts_of, inputs_of, tree_of
from tests.tools.bazel.test_workspaces import binary
from tests.upstream import commit, run_git

from tfwright.documents.recipe import Recipe
from tfwright.errors import WheelError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import NcclOps, RawWheel, SealedWheel
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import seal
from tfwright.wheel import record
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import BuildRecord

COMMIT = "0123456789" * 4
PINNED, USED, OTHER, IDLE = "a" * 64, "b" * 64, "c" * 64, "d" * 64
Sealed = Callable[..., SealedWheel]
LOCK = f"""
[tensorflow]
commit = "{COMMIT}"
tree = "{COMMIT}"

[bazel]
version = "0.26.1"

[[archives]]
names = ["gif_archive"]
urls = ["https://gone.example.org/giflib-5.1.4.tar.gz"]
sha256 = "{PINNED}"
needed = true

[[archives]]
names = ["nsync"]
urls = ["https://mirror.example.org/github.com/google/nsync/archive/0559ce0.tar.gz", "https://github.com/google/nsync/archive/0559ce0.tar.gz"]
sha256 = "{OTHER}"

[[archives]]
names = ["idle"]
urls = ["https://example.org/idle.zip"]
sha256 = "{IDLE}"
needed = false

[[substitutes]]
sha256 = "{PINNED}"
source = "https://example.org/giflib-from-git.tar.gz"
reason = "Its server is gone"
used = "{USED}"
"""


@pytest.fixture
def locked(job: RecipeJob, tmp_path: Path) -> RecipeJob:
    lock = make_file(tmp_path / "small.lock", LOCK)
    return dataclasses.replace(job, locked=lock)


@pytest.fixture
def sealed(locked: RecipeJob, tmp_path: Path) -> Sealed:
    """Return a function that seals a wheel, with results of the other stages that differ as they do from host to host."""

    def run(
        raw: Path,
        folder: str = "one",
        *,
        stub: bool = False,
        job: RecipeJob = locked,
        **tables: Mapping[str, object],
    ) -> SealedWheel:
        bazel = Artefact(path=tmp_path / folder / "bazel", sha256="e" * 64, size=1)
        place = tmp_path / folder
        library = Artefact(path=place / "_nccl_ops.so", sha256="f" * 64, size=1)
        pinned = {"commit": COMMIT, "epoch": 1_540_000_000}
        urls = ("https://example.org/gif.tar.gz",)
        other = {"reason": "Its server is gone", "sha256": USED, "urls": urls}
        # Of a tree that has no such archive only a lock can say that it was replaced.
        fetch = {"substitutes": {"gif_archive": other} if job.locked else {}}
        replaced = {"gif_archive": PINNED} if job.locked else {}
        return seal.run(
            job,
            Recipe.model_validate(locked.recipe.model_dump() | {"fetch": fetch} | tables),
            facts_of(place / "python", python="3.11.7", compiler="cc 12.2.0"),
            inputs_of(place, bazel, place / "python", **pinned, substitutes=replaced),
            tree_of(job, path=place, content=COMMIT, **pinned),
            configured_of(bazel, exported={"PYTHON_BIN_PATH": str(place), "TF_NEED_CUDA": "0"}),
            NcclOps(library=library if stub else None, stub=stub),
            RawWheel(wheel=Artefact.of(raw)),
        )

    return run


def bill_of(sealed: SealedWheel) -> dict[str, Any]:
    with zipfile.ZipFile(sealed.wheel.path) as wheel:
        bill = json.loads(wheel.read(f"small-1.0.dist-info/{build_record.BILL_NAME}"))
    return {one["name"]: one for one in bill["components"]}


def recorded(sealed: SealedWheel) -> BuildRecord:
    with zipfile.ZipFile(sealed.wheel.path) as wheel:
        found = build_record.read(wheel)
    assert found
    return found


def test_the_sealed_wheel_keeps_its_name_and_its_files(
    locked: RecipeJob, sealed: Sealed, make_wheel: Maker
) -> None:
    raw = make_wheel()
    made = sealed(raw).wheel
    assert made.path == locked.places.dist / "sealed" / raw.name
    with zipfile.ZipFile(raw) as before, zipfile.ZipFile(made.path) as after:
        kept = [name for name in before.namelist() if not name.endswith("RECORD")]
        assert {name: before.read(name) for name in kept} == {
            name: after.read(name) for name in kept
        }
        assert {Path(name).name for name in set(after.namelist()) - set(before.namelist())} == {
            "tfwright.json",
            "tfwright.cdx.json",
        }
        assert {member.date_time for member in after.infolist()} == {(2018, 10, 20, 1, 46, 40)}
        assert record.faults(after) == []


def test_nothing_of_the_place_shows_in_the_bytes(
    sealed: Sealed, make_wheel: Maker, tmp_path: Path
) -> None:
    one = sealed(make_wheel()).wheel
    content = one.path.read_bytes()
    with zipfile.ZipFile(one.path) as wheel:
        assert not [name for name in wheel.namelist() if str(tmp_path).encode() in wheel.read(name)]
    assert sealed(make_wheel(), "another-place").wheel.path.read_bytes() == content


def test_the_record_says_what_the_wheel_was_made_from(sealed: Sealed, make_wheel: Maker) -> None:
    found = recorded(sealed(make_wheel(), stub=True))
    assert (found.recipe.name, found.source.commit, found.bazel.version, found.found.compiler) == (
        "small",
        COMMIT,
        "0.26.1",
        "cc 12.2.0",
    )
    assert found.lock
    assert found.stubs == ("_nccl_ops.so",)
    assert [(one.name, one.used) for one in found.substitutions] == [("gif_archive", USED)]
    assert [(one.name, one.passed) for one in found.checks] == [("RECORD", True), ("tags", True)]
    assert found.build.environment["PYTHON_BIN_PATH"] == "@PYTHON_BIN_PATH@"
    assert found.build.environment["TF_NEED_CUDA"] == "0"


def test_what_is_wrong_with_a_wheel_is_recorded_and_left_to_verify(
    sealed: Sealed, make_wheel: Maker
) -> None:
    found = recorded(sealed(make_wheel(name="small-1.0-cp27-none-any.whl")))
    assert [(one.name, one.passed) for one in found.checks] == [("RECORD", True), ("tags", False)]


def test_the_bill_names_the_archives_that_were_needed_and_what_stood_in(
    sealed: Sealed, make_wheel: Maker
) -> None:
    parts = bill_of(sealed(make_wheel()))
    assert set(parts) == {"tensorflow", "gif_archive", "nsync"}
    assert parts["nsync"]["purl"] == f"pkg:github/google/nsync@0559ce0?checksum=sha256:{OTHER}"
    assert parts["gif_archive"]["hashes"][0]["content"] == USED
    assert parts["gif_archive"]["pedigree"]["ancestors"][0]["hashes"][0]["content"] == PINNED


def test_a_wheel_that_was_sealed_before_under_another_name_does_not_stay(
    locked: RecipeJob, sealed: Sealed, make_wheel: Maker
) -> None:
    sealed(make_wheel())
    sealed(make_wheel(name="small-2.0-py3-none-any.whl"))
    assert [path.name for path in (locked.places.dist / "sealed").iterdir()] == [
        "small-2.0-py3-none-any.whl"
    ]


def test_a_wheel_whose_record_is_wrong_is_not_sealed(
    locked: RecipeJob, sealed: Sealed, make_wheel: Maker
) -> None:
    raw = make_wheel()
    with zipfile.ZipFile(raw, "a") as wheel:
        wheel.writestr("smuggled.py", "")
    with fails(WheelError, "RECORD", "smuggled.py"):
        sealed(raw)
    assert list((locked.places.dist / "sealed").iterdir()) == []


def test_the_bill_names_each_package_of_a_toolkit_whichever_was_taken(
    sealed: Sealed, make_wheel: Maker, locked: RecipeJob
) -> None:
    pins = {"nvidia_cudnn_cu11-8.6.0.163-py3-none-manylinux1_x86_64.whl": "6" * 64}
    archives = {"https://example.org/cudnn-8.6.tar.xz": "7" * 64}
    made = sealed(
        make_wheel(),
        host=locked.recipe.host.model_dump() | {"cudnn": "8.6"},
        toolkit={"cudnn": {"wheels": pins, "archives": archives}},
    )
    parts = bill_of(made).items()
    found = {name: one["hashes"][0]["content"] for name, one in parts if "cudnn: " in name}
    both = pins | archives
    assert found == {f"cudnn: {name}": both[name] for name in both}


def test_a_platform_that_cannot_be_proved_is_not_claimed(
    sealed: Sealed, make_wheel: Maker, locked: RecipeJob
) -> None:
    pytest.importorskip("auditwheel")
    with fails(WheelError, "auditwheel"):
        sealed(make_wheel(), package={"platform": "manylinux_2_31_x86_64"})
    assert not (locked.places.dist / "sealed").exists()


def test_the_lock_is_part_of_what_a_sealed_wheel_depends_on(
    job: RecipeJob, locked: RecipeJob
) -> None:
    assert locked.locked
    without, before = seal.inputs(job), seal.inputs(locked)
    assert before.keys() - without.keys() == {"small.lock"}
    locked.locked.write_text(f"{LOCK}\n", "utf-8")
    assert seal.inputs(locked) != before


def test_without_a_lock_the_bill_names_what_the_rules_of_the_tree_download(
    sealed: Sealed, make_wheel: Maker, job: RecipeJob, tmp_path: Path
) -> None:
    rule = (
        f'http_archive(name = "zlib", sha256 = "{OTHER}", '
        'urls = ["https://example.org/zlib-1.3.tar.gz"])\n'
    )
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": rule})
    source = job.recipe.source.model_dump() | {"commit": pinned}
    place = tmp_path / "one"
    run_git("clone", "--bare", "upstream", place, cwd=tmp_path)
    binary(place, b"")
    found = sealed(make_wheel(), job=job, source=source)
    assert set(bill_of(found)) == {"tensorflow", "zlib"}
    assert recorded(found).lock is None
