"""Where an index is, and what serves it to others."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.nightly.wheels import write_wheel

from tfwright.documents.nightly import NightlyFile
from tfwright.errors import RecipeError
from tfwright.index import serving as index
from tfwright.index.serving import IndexPlace


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_a_number_that_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    place = IndexPlace(tmp_path, "")
    with fails(RecipeError, port), index.serving(place, port):
        pass
    with fails(RecipeError, port):
        index.nginx_configuration(place, port, "wheels.example")


def test_a_folder_without_wheels_is_not_made_an_index(tmp_path: Path) -> None:
    with fails(RecipeError, tmp_path):
        index.find_index(str(tmp_path))
    # The last wheel of an index may be gone.
    (tmp_path / "simple").mkdir()
    assert index.find_index(str(tmp_path)).folder == tmp_path


def test_a_folder_of_packages_gives_no_name_other_bytes(tmp_path: Path) -> None:
    """Its wheels are served as never changing; those next to the index may be replaced."""
    for home, refused in ((tmp_path / "site/packages", 1), (tmp_path / "plain", 0)):
        write_wheel(home, body="made = 1\n")
        place = index.find_index(str(tmp_path / home.relative_to(tmp_path).parts[0]))
        assert index.refresh(place).refused == ()
        write_wheel(home, body="made = 2, and longer\n")
        assert len(index.refresh(place).refused) == refused


@pytest.mark.parametrize("port", [8080, 80, 443])
def test_nginx_gets_tls_where_the_address_of_the_site_has_it(tmp_path: Path, port: int) -> None:
    nightly = NightlyFile.model_validate({"directory": tmp_path, "url": "https://w.example/"})
    place = IndexPlace(tmp_path, "packages", nightly)
    text = index.nginx_configuration(place, port, "w.example")
    for line in ("listen 443 ssl;", "listen [::]:443 ssl;", "return 301 https://w.example$request"):
        assert line in text
    assert "ssl" not in index.nginx_configuration(replace(place, nightly=None), 8080, "w.example")
    assert "listen 443 ssl;" in index.nginx_configuration(replace(place, nightly=None), 443, "w")


@pytest.mark.parametrize("value", ["a;b", "a b", "a\nb", "a'b", "$host", "{", "#a", "a\\"])
def test_what_could_end_a_directive_of_nginx_is_refused(value: str, tmp_path: Path) -> None:
    with fails(RecipeError, "nginx"):
        index.nginx_configuration(IndexPlace(tmp_path, ""), 8080, value)
    with fails(RecipeError, "nginx"):
        index.nginx_configuration(IndexPlace(tmp_path / value, ""), 8080, "localhost")
