"""The report of a nightly build, where it was built and elsewhere."""

import shutil
from pathlib import Path

import pytest
from tests.making import Read
from tests.nightly.fake import host_with
from tests.remedies.following import CommandLine

from tfwright.nightly import builds, night

pytestmark = pytest.mark.medium


@pytest.fixture
def build(nightly_directory: Path) -> Path:
    """Return the directory of the only build of a host."""
    night.run(host_with(nightly_directory, "demo"))
    (folder,) = (nightly_directory / "site/builds").iterdir()
    return folder


def test_a_build_that_came_from_another_host_is_reported_without_its_night(
    shell: CommandLine, build: Path, nightly_directory: Path, tmp_path: Path, out: Read
) -> None:
    copy = shutil.copytree(build, tmp_path / "copy")
    shutil.rmtree(nightly_directory)
    (tmp_path / "nightly.toml").unlink()
    shell.succeeds(f"invoke report --build {copy}")
    assert build.name in out()


def test_a_directory_whose_document_is_damaged_holds_no_build(
    shell: CommandLine, build: Path
) -> None:
    (build / builds.DOCUMENT).write_text("{", "utf-8")
    shell.remedy(f"invoke report --build {build}")
    assert shell.fault
    assert shell.fault.what == f"No nightly build has the name '{build}'"


def test_a_report_is_the_builds_page_where_html_is_asked_for(
    shell: CommandLine, nightly_directory: Path, out: Read
) -> None:
    host = host_with(nightly_directory, "a")
    host.changed_after_a_night()
    night.run(host)
    out()
    shell.succeeds("invoke report --build a --html")
    page = out()
    assert page.startswith("<!DOCTYPE html>")
    assert "2026-01-01-a" in page, "it is compared with the last good one"
