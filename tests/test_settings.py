"""The host file."""

from pathlib import Path

import pytest

from tfwright import settings
from tfwright.errors import RecipeError
from tfwright.recipe import ROOT
from tfwright.settings import Settings


def test_a_host_without_a_file_has_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFWRIGHT_HOST_FILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings.read().build_out == ROOT / "build_out"


def test_a_host_file_that_is_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "none.toml"))
    with pytest.raises(RecipeError, match="cannot be read"):
        settings.read()


def test_a_relative_path_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "host.toml"
    file.write_text('jobs = 2\nbuild_out = "here"\n', "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(file))
    with pytest.raises(RecipeError, match=r"host.toml:2: build_out: here must be an absolute path"):
        settings.read()


def test_a_place_with_a_space_is_refused_before_tensorflow_trips_over_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "host.toml"
    file.write_text('build_out = "/my disk/out"\n', "utf-8")
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(file))
    with pytest.raises(RecipeError, match="must have no space"):
        settings.read()


def test_a_mirror_is_found_by_its_url_or_by_a_pattern_with_fields() -> None:
    host = Settings(mirrors={"https://github.com/a/b.git": "/b.git", "https://github.com/{owner}/{name}.git": "/m/{owner}+{name}"})
    assert host.mirror_of("https://github.com/a/b.git") == "/b.git"
    assert host.mirror_of("https://github.com/google/re2.git") == "/m/google+re2"
    assert host.mirror_of("https://github.com/google/re2/x.git") is None
    assert host.mirror_of("https://example.org/google/re2.git") is None
