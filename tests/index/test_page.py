"""What `invoke index` prints."""

from pathlib import Path

import pytest
from tests.making import Read, make_file
from tests.nightly.wheels import write_wheel

from tfwright.index import matching, page, write
from tfwright.index.matching import MatchedWheel
from tfwright.match.wish import Wish
from tfwright.terminal.answer import json_value

URL = "http://127.0.0.1:8080/"


def printed(folder: Path, out: Read) -> str:
    """Return what is printed for the wheels in ``packages`` of a folder."""
    page.show_use(write.refresh(folder), URL)
    return out()


def test_the_configuration_names_the_newest_wheel_with_a_local_version(
    tmp_path: Path, out: Read
) -> None:
    for version in ("1.0+cpu", "1.1+cpu", "1.2"):
        write_wheel(tmp_path / "packages", version=version)
    text = printed(tmp_path, out)
    assert "demo==1.1+cpu" in text
    assert '    demo = { index = "tfwright" }' in text


def test_without_a_local_version_the_configuration_asks_for_one(tmp_path: Path, out: Read) -> None:
    write_wheel(tmp_path / "packages")
    text = printed(tmp_path, out)
    assert "Give wheels a local version and pin it" in text
    assert "==" not in text


def test_an_empty_index_still_says_how_it_is_used(tmp_path: Path, out: Read) -> None:
    assert f"extra-index-url = {URL}simple/" in printed(tmp_path, out)


def test_a_wheel_that_cannot_be_listed_is_named_with_its_remedy(tmp_path: Path, err: Read) -> None:
    make_file(tmp_path / "packages/demo-1.0-py3-none-any.whl", "no wheel")
    page.show_update(write.refresh(tmp_path), str(tmp_path))
    said = err()
    assert "not in the index: " in said
    assert "    do: " in said


def matches(folder: Path, **wish: str) -> list[MatchedWheel]:
    write.refresh(folder)
    text = (folder / matching.FILE).read_bytes()
    return matching.rank_wheels(text, Wish(**wish))


def test_the_wheel_that_fits_best_is_shown_with_how_to_install_it(
    tmp_path: Path, out: Read
) -> None:
    write_wheel(tmp_path / "packages", version="1.0+cpu")
    page.show_matches(matches(tmp_path), URL)
    shown = out()
    assert f"pip install --extra-index-url {URL}simple/ demo==1.0+cpu" in shown
    assert json_value(page.matches_data(matches(tmp_path)))[0]["differs"] == []


def test_a_wheel_that_does_not_fit_is_not_recommended(tmp_path: Path, out: Read) -> None:
    write_wheel(tmp_path / "packages", version="1.0+cpu")
    page.show_matches(matches(tmp_path, release="2.0"), URL)
    shown = out()
    assert "another release" in shown
    assert "pip install" not in shown


def test_an_index_without_a_wheel_says_so(tmp_path: Path, err: Read) -> None:
    (tmp_path / "packages").mkdir()
    page.show_matches(matches(tmp_path), URL)
    assert err() == "This index has no wheel.\n"


@pytest.mark.parametrize(("yanked", "says"), [(True, "is yanked"), (False, "is offered again")])
def test_a_yank_says_what_becomes_of_the_wheel(yanked: object, says: str, err: Read) -> None:
    page.show_yank({"wheel": "a.whl", "yanked": yanked})
    assert f"a.whl {says}" in err()
