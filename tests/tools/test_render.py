"""Templates that want a value which they are not given."""

from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from tfwright.tools import render
from tfwright.tools.render import MissingValueError


@pytest.fixture(autouse=True)
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let templates come from a folder of the test's own."""
    monkeypatch.setattr(render, "TEMPLATES", tmp_path)
    render.renderer.cache_clear()
    yield tmp_path
    render.renderer.cache_clear()


def test_a_key_that_a_mapping_lacks_is_named(templates: Path) -> None:
    (templates / "a.j2").write_text("build --x={{ answers.TF_X }}\n", "utf-8")
    with pytest.raises(MissingValueError, match="TF_X"):
        render.render("a.j2", {"answers": {}})
    assert render.render("a.j2", {"answers": {"TF_X": "1"}}) == "build --x=1\n"


def test_a_name_without_a_value_is_a_fault_of_ours(templates: Path) -> None:
    (templates / "a.j2").write_text("build --x={{ mode }}\n", "utf-8")
    with pytest.raises(jinja2.UndefinedError, match="mode"):
        render.render("a.j2", {})


def test_values_are_escaped_in_html_only(templates: Path) -> None:
    for name in ("a.html.j2", "a.txt.j2"):
        (templates / name).write_text("{{ text }}", "utf-8")
    assert render.render("a.html.j2", {"text": "<b>"}) == "&lt;b&gt;"
    assert render.render("a.txt.j2", {"text": "<b>"}) == "<b>"
