"""The wheel index as files."""

import json
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.nightly.wheels import write_wheel

from tfwright.errors import HostError, WheelError
from tfwright.index import wheels, write
from tfwright.index.wheels import parse_name, read_wheel


def page(folder: Path, project: str = "demo", place: str = "simple") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / place / project / "index.json").read_text())
    return found


def indexed(folder: Path, *versions: str, **wheel: Any) -> Path:  # noqa: ANN401 as `write_wheel` takes them
    """Write wheels and the index of their folder; return the last one."""
    for version in versions or ("1.0",):
        made = write_wheel(folder / "packages", version=version, **wheel)
    write.refresh(folder)
    return made


class Anchors(HTMLParser):
    """Collects the links of a page as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))


def test_a_wheel_is_listed_with_hash_size_and_metadata(tmp_path: Path) -> None:
    wheel = indexed(tmp_path, requires_python=">=3.6")
    (listed,) = page(tmp_path)["files"]
    assert listed["filename"] == wheel.name
    assert listed["size"] == wheel.stat().st_size
    assert listed["requires-python"] == ">=3.6"
    assert listed["yanked"] is False
    assert "provenance" not in listed
    assert page(tmp_path)["meta"] == {"api-version": "1.4"}


def test_the_metadata_file_is_cut_out_byte_for_byte(tmp_path: Path) -> None:
    wheel = indexed(tmp_path)
    with zipfile.ZipFile(wheel) as content:
        inside = content.read("demo-1.0.dist-info/METADATA")
    assert (tmp_path / "packages" / f"{wheel.name}.metadata").read_bytes() == inside


def test_links_in_html_lead_to_the_wheel_with_its_hash(tmp_path: Path) -> None:
    indexed(tmp_path, "1.0+cu92.sm30")
    (anchor,) = Anchors((tmp_path / "simple/demo/index.html").read_text()).found
    href = str(anchor["href"])
    assert href.startswith("../../packages/demo-1.0%2Bcu92.sm30-py3-none-any.whl#sha256=")
    assert anchor["data-core-metadata"] == anchor["data-dist-info-metadata"]


def test_each_recipe_has_an_index_of_its_own(tmp_path: Path) -> None:
    first = write_wheel(tmp_path / "packages")
    write_wheel(tmp_path / "packages", version="2.0")
    write.refresh(tmp_path, {first.name: {"recipe": "linux-r1.8-cpu"}})
    own = page(tmp_path, place="r/linux-r1.8-cpu")
    assert own["versions"] == ["1.0"]
    target = tmp_path / "r/linux-r1.8-cpu/demo" / own["files"][0]["url"]
    assert target.resolve() == first


def test_nothing_is_read_or_written_when_nothing_changed(tmp_path: Path) -> None:
    write_wheel(tmp_path / "packages")
    assert write.refresh(tmp_path).written > 0
    again = write.refresh(tmp_path)
    assert (again.read, again.written) == (0, 0)


def test_one_new_wheel_is_read_and_no_other(tmp_path: Path) -> None:
    indexed(tmp_path, "1.0", "1.1", "1.2", "1.3", "1.4")
    write_wheel(tmp_path / "packages", version="1.10")
    again = write.refresh(tmp_path)
    assert again.read == 1
    assert page(tmp_path)["versions"][-1] == "1.10"


def test_a_hidden_wheel_leaves_the_pages_and_stays_on_the_disk(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "packages", version="1.0")
    indexed(tmp_path, "2.0")
    write.refresh(tmp_path, {wheel.name: {"hidden": True}})
    assert page(tmp_path)["versions"] == ["2.0"]
    assert wheel.exists()


def test_pages_go_with_the_last_wheel_of_a_project(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "packages", project="old")
    write_wheel(tmp_path / "packages")
    write.refresh(tmp_path, {wheel.name: {"recipe": "r1"}})
    wheel.unlink()
    write.refresh(tmp_path)
    assert not (tmp_path / "simple/old").exists()
    assert not (tmp_path / "r/r1").exists()
    assert json.loads((tmp_path / "simple/index.json").read_text())["projects"] == [
        {"name": "demo"}
    ]


def test_a_name_never_stands_for_other_bytes(tmp_path: Path) -> None:
    indexed(tmp_path)
    write_wheel(tmp_path / "packages", body="answer = 43\n")
    update = write.refresh(tmp_path)
    (fault,) = update.refused
    assert "other bytes" in fault.what
    assert 'local = "build.1"' in fault.remedy
    # A page with the old hash would send users to the new bytes.
    assert not (tmp_path / "simple/demo").exists()


def test_a_name_stays_taken_after_its_wheel_was_deleted(tmp_path: Path) -> None:
    wheel = indexed(tmp_path)
    wheel.unlink()
    write.refresh(tmp_path)
    write_wheel(tmp_path / "packages", body="answer = 43\n")
    assert write.refresh(tmp_path).refused


def test_a_wheelhouse_of_builds_by_hand_may_replace_a_wheel(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    write.refresh(tmp_path, packages="")
    write_wheel(tmp_path, body="answer = 43\n")
    update = write.refresh(tmp_path, packages="")
    assert not update.refused
    assert page(tmp_path)["files"][0]["hashes"]["sha256"] == update.wheels[0].sha256


def test_a_damaged_wheel_keeps_no_other_out_of_the_index(tmp_path: Path) -> None:
    write_wheel(tmp_path / "packages")
    (tmp_path / "packages/bad-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 not a zip")
    (tmp_path / "packages/no version.whl").write_bytes(b"")
    update = write.refresh(tmp_path)
    assert len(update.refused) == 2
    assert [wheel.project for wheel in update.wheels] == ["demo"]


def test_metadata_about_another_project_is_refused(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, project="demo")
    renamed = wheel.rename(tmp_path / "numpy-1.0-py3-none-any.whl")
    with fails(WheelError, renamed.name, "demo 1.0"):
        read_wheel(renamed, "")


@pytest.mark.parametrize(
    "name",
    [
        "demo-1.0-py3-none-any\n.whl",
        "../demo-1.0-py3-none-any.whl",
        ".demo-1.0-py3-none-any.whl",
        'demo"onclick-1.0-py3-none-any.whl',
        "demo.whl",
        "demo-1.0-py3-none-any.whl/x",
    ],
)
def test_hostile_names_are_refused(name: str) -> None:
    with pytest.raises(WheelError):
        parse_name(name)


def test_hostile_text_cannot_leave_its_attribute(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "packages")
    reason = '"><script>alert(1)</script>'
    write.refresh(tmp_path, {wheel.name: {"yanked": reason}})
    text = (tmp_path / "simple/demo/index.html").read_text()
    assert "<script" not in text
    assert Anchors(text).found[0]["data-yanked"] == reason
    assert page(tmp_path)["files"][0]["yanked"] == reason


def test_a_project_can_be_archived_with_a_reason(tmp_path: Path) -> None:
    write_wheel(tmp_path / "packages")
    write.refresh(tmp_path, statuses={"demo": ("archived", "no CUDA 9 host any more")})
    assert page(tmp_path)["project-status"] == {
        "status": "archived",
        "reason": "no CUDA 9 host any more",
    }


def test_a_lost_catalog_costs_time_and_nothing_else(tmp_path: Path) -> None:
    indexed(tmp_path)
    before = (tmp_path / "simple/demo/index.html").read_text()
    (tmp_path / "packages" / wheels.FILE).unlink()
    assert write.refresh(tmp_path).read == 1
    after = (tmp_path / "simple/demo/index.html").read_text()
    assert before.split("data-upload-time")[0] == after.split("data-upload-time")[0]


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"wheels": 5}', "[" * 200_000, "\\xff"])
def test_a_damaged_catalog_is_named_until_it_is_deleted(damaged: str, tmp_path: Path) -> None:
    write_wheel(tmp_path / "packages")
    assert write.refresh(tmp_path).read == 1
    assert write.refresh(tmp_path).read == 0
    catalog = tmp_path / "packages" / wheels.FILE
    catalog.write_text(damaged)
    with fails(HostError, f"Delete {catalog}"):
        write.refresh(tmp_path)
    catalog.unlink()
    assert write.refresh(tmp_path).read == 1


def test_links_into_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = write_wheel(tmp_path / "outside")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / outside.name).symlink_to(outside)
    assert write.refresh(tmp_path).wheels == ()


@pytest.mark.parametrize(
    ("local", "bumped"), [("", "build.1"), ("cu92", "cu92.1"), ("cu92.1", "cu92.2")]
)
def test_a_wheel_of_other_bytes_is_refused_with_a_version_that_is_free(
    local: str, bumped: str
) -> None:
    name = f"demo-1.0{'+' if local else ''}{local}-py3-none-any.whl"
    with fails(WheelError, name, f"demo 1.0+{bumped}:"):
        wheels.refuse_other_bytes({name: "2" * 64}, name, "1" * 64)
