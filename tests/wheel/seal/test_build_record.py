import json
import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker

from tfwright.documents import recipe
from tfwright.errors import WheelError
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import BuildRecord

PLACE = f"small-1.0.dist-info/{build_record.NAME}"


def holding(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr(PLACE, content)
    return path


def test_a_record_is_read_as_it_was_written(make_wheel: Maker, a_record: BuildRecord) -> None:
    with zipfile.ZipFile(holding(make_wheel(), build_record.write(a_record))) as wheel:
        assert build_record.read(wheel) == a_record


def test_a_wheel_from_elsewhere_has_no_record(make_wheel: Maker) -> None:
    with zipfile.ZipFile(make_wheel()) as wheel:
        assert build_record.read(wheel) is None


@pytest.mark.parametrize("name", recipe.names())
def test_a_record_holds_the_recipe_that_it_was_made_from(name: str) -> None:
    read = recipe.read(name)
    held = build_record.recipe_of(build_record.recipe_content(read))
    assert held.model_dump(exclude={"verified"}) == read.model_dump(exclude={"verified"})


def test_who_verified_a_recipe_does_not_change_its_digest() -> None:
    read = recipe.read("demo")
    alone = build_record.recipe_content(read.changed(verified=None))
    assert build_record.recipe_content(read) == alone


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        (b"[]", "should be an object"),
        (json.dumps({"format": 2}).encode(), "format: Input should be 1"),
        (b" " * (build_record.LARGEST + 1), "more than"),
    ],
)
def test_a_record_that_cannot_be_read_is_reported(
    make_wheel: Maker, content: bytes, why: str
) -> None:
    said = fails(WheelError, build_record.NAME, why)
    with zipfile.ZipFile(holding(make_wheel(), content)) as wheel, said:
        build_record.read(wheel)
