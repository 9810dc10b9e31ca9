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


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('build_out = "here"', "build_out: here must be an absolute path"),
        ('build_out = "/out\\u0000"', "a path without control characters"),
        ('build_out = "/out\\n"', "a path without control characters"),
        ('build_out = "/out\\u001b[2J"', "a path without control characters"),
        ("cache.size = inf", "cache.size"),
        ("cache.size = 1e300", "cache.size"),
        ("cache.size = nan", "cache.size"),
        ('cache.enabled = "no"', "true or false, without quotes"),
        (f"jobs = {10**20}", "jobs"),
        ('bazels."5.1.1" = { path = "/x" }', "bazels.5.1.1.version is missing"),
        (
            'bazels."5.1.1" = { path = "/x", version = "1", colour = 3 }',
            "unknown key bazels.5.1.1.colour",
        ),
        ('bazels."5.1.1" = 3', "bazels.5.1.1: must be a path in quotes, not 3"),
        ('mirrors = {"https://a/b" = "upstream"}', "must be an absolute path"),
        ('mirrors = {"https://a/b" = "ext::sh -c id"}', "or a url with https"),
        ('mirrors = {"https://a/b" = "ssh://-oProxyCommand=id/"}', "or a url"),
        ('mirrors = {"https://a/" = "https://b/\\u0000"}', "printable text"),
        ('downloads = {"https://a/" = "file:///srv/a/"}', "must be an address"),
        ('downloads = {"https://a/" = "https://b/\\u0000"}', "printable text"),
    ],
)
def test_what_no_host_can_mean_is_refused_with_its_line(
    line: str, why: str, tmp_path: Path
) -> None:
    file = make_file(tmp_path / "host.toml", f"# mine\n{line}\n")
    with fails(RecipeError, f"{file}:2: ", why) as caught:
        load(file, HostFile)
    assert "\n" not in caught.value.what


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


def test_a_pattern_that_matches_in_too_many_ways_is_refused() -> None:
    crowded = "".join(f"{{{letter}}}" for letter in "abcdefghijkl")
    with pytest.raises(ValueError, match="may hold 2 fields between two slashes"):
        HostFile(mirrors={f"https://a.org/{crowded}/x": "/m"})
    host = HostFile(mirrors={"https://{host}.{zone}/{name}": "/{zone}/{name}"})
    assert host.mirror_of("https://a.org/x") == "/org/x"
