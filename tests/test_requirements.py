"""The requirements files, each of which sets up a whole venv."""

import re

import pytest

from tfwright.documents.recipe import ROOT

FILES = sorted(path.name for path in ROOT.glob("requirements-*.txt"))


def pins(name: str) -> dict[str, str]:
    """Return the packages that a file pins, with their versions."""
    text = (ROOT / name).read_text("utf-8")
    found = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", text, re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_what_the_program_itself_needs_at_the_same_version(name: str) -> None:
    wanted = pins("requirements.txt")
    assert len(wanted) > 20
    assert wanted.items() - pins(name).items() == set()
