"""Files of a build host that a disk or a person has damaged."""

import datetime as dt
import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.failing import fails

from tfwright.errors import HostError, RecipeError
from tfwright.index import write
from tfwright.nightly import site, state

NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "value", ["'yesterday'", "''", "x'ff'", "5"], ids=["word", "empty", "bytes", "number"]
)
def test_a_row_of_the_state_that_cannot_be_read_says_what_to_do(
    value: object, tmp_path: Path
) -> None:
    with state.open_state(tmp_path) as kept:
        kept.check("demo", "links", NOW, passed=True, detail="")
    with closing(sqlite3.connect(tmp_path / state.FILE)) as database:
        database.execute("update checked set at = ?", (value,))
        database.commit()
    with fails(HostError, tmp_path / state.FILE), state.open_state(tmp_path) as kept:
        kept.checks("links")


@pytest.mark.parametrize("text", ["[[[1]]]", "5", "[", "[" * 200_000, "\\xff", "null", '"x"'])
def test_a_damaged_list_of_yanked_wheels_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / site.YANKED).write_text(text)
    with fails(RecipeError, tmp_path / site.YANKED):
        site.yanked_wheels(tmp_path)


def test_a_full_directory_of_a_night_is_named_with_its_own_key(tmp_path: Path) -> None:
    directory = tmp_path / "srv"
    for path, own in ((directory / "site/index.html", True), (tmp_path / "srv2/x", False)):
        full = OSError(errno.ENOSPC, "No space left on device", str(path))
        with fails(HostError, path) as caught, state.open_state(directory):
            raise full
        assert (f"the disk of {directory}," in caught.value.remedy) is own
        assert ("directory in nightly.toml" in caught.value.remedy) is own


def test_a_yank_can_be_taken_back(tmp_path: Path) -> None:
    name = "demo-1.0-py3-none-any.whl"
    place = tmp_path / "site" / write.PACKAGES / name
    place.parent.mkdir(parents=True)
    place.touch()
    site.yank(tmp_path, name, "wrong cuDNN")
    assert site.yanked_wheels(tmp_path) == {name: "wrong cuDNN"}
    site.yank(tmp_path, name, None)
    assert site.yanked_wheels(tmp_path) == {}
