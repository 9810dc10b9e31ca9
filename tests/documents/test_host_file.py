"""The host file."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.documents import host_file
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT
from tfwright.documents.toml import load
from tfwright.errors import RecipeError


def test_a_host_without_a_file_has_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFWRIGHT_HOST_FILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert host_file.read().build_out == ROOT / "build_out"


def test_a_host_file_that_is_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(tmp_path / "none.toml"))
    with fails(RecipeError, "cannot be read"):
        host_file.read()


def test_a_relative_path_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_file(tmp_path / "host.toml", 'jobs = 2\nbuild_out = "here"\n')
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(file))
    with fails(RecipeError, "host.toml:2", "build_out"):
        host_file.read()


@pytest.mark.parametrize(
    "line", ["cache.size = inf", "cache.size = 1e300", "cache.size = nan", f"jobs = {10**20}"]
)
def test_a_number_that_no_machine_has_is_refused(line: str, tmp_path: Path) -> None:
    file = make_file(tmp_path / "host.toml", f"{line}\n")
    with fails(RecipeError, "host.toml:1", "docs/host.md"):
        load(file, HostFile)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ('{ path = "/x" }', "bazels.5.1.1.version is missing"),
        ('{ path = "/x", version = "1", colour = 3 }', "unknown key bazels.5.1.1.colour"),
        ("3", "bazels.5.1.1: must be a path in quotes, not 3"),
    ],
)
def test_of_a_path_or_a_table_one_fault_is_named(value: str, fault: str, tmp_path: Path) -> None:
    file = make_file(tmp_path / "host.toml", f'bazels."5.1.1" = {value}\n')
    with fails(RecipeError) as caught:
        load(file, HostFile)
    assert caught.value.what.startswith(f"{file}:1: {fault}")


def test_a_mirror_is_found_by_its_url_or_by_a_pattern_with_fields() -> None:
    host = HostFile(
        mirrors={
            "https://github.com/a/b.git": "/b.git",
            "https://github.com/{owner}/{name}.git": "/m/{owner}+{name}",
        }
    )
    assert host.mirror_of("https://github.com/a/b.git") == "/b.git"
    assert host.mirror_of("https://github.com/google/re2.git") == "/m/google+re2"
    assert host.mirror_of("https://github.com/google/re2/x.git") is None
    # What a url has in a field's place is taken as it is.
    assert host.mirror_of("https://github.com/{name}/re2.git") == "/m/{name}+re2"
    assert host.mirror_of("https://example.org/google/re2.git") is None


def test_braces_that_are_no_field_stand_for_themselves() -> None:
    host = HostFile(mirrors={"https://a.org/{name}{2}": "/m/{2}{name}{"})
    assert host.mirror_of("https://a.org/x{2}") == "/m/{2}x{"
    assert host.mirror_of("https://a.org/xx") is None


@pytest.mark.parametrize(
    ("pattern", "mirror"), [("https://a.org/{name}", "/m/{nmae}"), ("https://{a}/{a}", "/m/{a}")]
)
def test_a_mirror_whose_fields_do_not_fit_its_pattern_is_refused(pattern: str, mirror: str) -> None:
    with pytest.raises(ValueError, match="must hold each field once"):
        HostFile(mirrors={pattern: mirror})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('mirrors = {"https://a/b" = "upstream"}', "must be an absolute path"),
        ('mirrors = {"https://a/b" = "ext::sh -c id"}', "or a url with https"),
        ('mirrors = {"https://a/b" = "ssh://-oProxyCommand=id/"}', "or a url"),
        ('downloads = {"https://a/" = "file:///srv/a/"}', "must be an address"),
    ],
)
def test_a_place_that_cannot_be_asked_is_refused_with_its_line(
    line: str, why: str, tmp_path: Path
) -> None:
    file = make_file(tmp_path / "host.toml", f"# mine\n{line}\n")
    with pytest.raises(RecipeError, match=rf"host\.toml:2: .*{why}"):
        load(file, HostFile)


def test_a_pattern_that_matches_in_too_many_ways_is_refused() -> None:
    crowded = "".join(f"{{{letter}}}" for letter in "abcdefghijkl")
    with pytest.raises(ValueError, match="may hold 2 fields between two slashes"):
        HostFile(mirrors={f"https://a.org/{crowded}/x": "/m"})
    host = HostFile(mirrors={"https://{host}.{zone}/{name}": "/{zone}/{name}"})
    assert host.mirror_of("https://a.org/x") == "/org/x"


def test_a_text_is_not_taken_for_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_file(tmp_path / "host.toml", '[cache]\nenabled = "no"\n')
    monkeypatch.setenv("TFWRIGHT_HOST_FILE", str(path))
    with fails(RecipeError, "quotes"):
        host_file.read()
