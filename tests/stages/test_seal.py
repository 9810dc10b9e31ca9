import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.errors import WheelError
from tfwright.release import Release
from tfwright.results import RawWheel, Tree
from tfwright.stage import Artefact, Job
from tfwright.stages import seal


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(path=tmp_path, commit="0123456789" * 4, epoch=1_540_000_000, release=Release(1, 12), content="")


def test_the_sealed_wheel_keeps_its_name_and_its_files(job: Job, tree: Tree, make_wheel: Callable[..., Path]) -> None:
    raw = make_wheel()
    sealed = seal.run(job, tree, RawWheel(wheel=Artefact.of(raw))).wheel
    assert sealed.path == job.places.dist / "sealed" / raw.name
    with zipfile.ZipFile(raw) as before, zipfile.ZipFile(sealed.path) as after:
        assert {name: before.read(name) for name in before.namelist()} == {name: after.read(name) for name in after.namelist()}
        assert {member.date_time for member in after.infolist()} == {(2018, 10, 20, 1, 46, 40)}


def test_a_wheel_that_was_sealed_before_under_another_name_does_not_stay(job: Job, tree: Tree, make_wheel: Callable[..., Path]) -> None:
    seal.run(job, tree, RawWheel(wheel=Artefact.of(make_wheel())))
    seal.run(job, tree, RawWheel(wheel=Artefact.of(make_wheel(name="small-2.0-py3-none-any.whl"))))
    assert [path.name for path in (job.places.dist / "sealed").iterdir()] == ["small-2.0-py3-none-any.whl"]


def test_a_wheel_whose_record_is_wrong_is_not_sealed(job: Job, tree: Tree, make_wheel: Callable[..., Path]) -> None:
    raw = make_wheel()
    with zipfile.ZipFile(raw, "a") as wheel:
        wheel.writestr("smuggled.py", "")
    with pytest.raises(WheelError, match=r"RECORD says: smuggled\.py is not listed"):
        seal.run(job, tree, RawWheel(wheel=Artefact.of(raw)))
    assert not (job.places.dist / "sealed").exists()
