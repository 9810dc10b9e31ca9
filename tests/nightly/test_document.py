"""nightly.toml, and the targets that it stands for."""

from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.documents import nightly
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import RecipeError
from tfwright.nightly import targets as nightly_targets


def read(tmp_path: Path, text: str) -> NightlyFile:
    file = make_file(tmp_path / "nightly.toml", f'directory = "/srv/x"\n{text}')
    return nightly.read(file)


def test_a_recipe_in_a_file_of_its_own_gives_its_targets_the_files_name(tmp_path: Path) -> None:
    text = '[[recipe]]\nname = "/srv/recipes/mine.toml"\nfollow = { tags = "v2.*" }\n'
    (found,) = nightly.targets(read(tmp_path, text))
    assert (found.name, found.recipe) == ("mine", "/srv/recipes/mine.toml")


def test_sizes_are_written_with_units(tmp_path: Path) -> None:
    limits = read(tmp_path, '[retention]\nsize = "2 GiB"\nfree = 17\n').retention
    assert (limits.size, limits.free) == (2 * 1024**3, 17)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour = 1", "unknown key colour"),
        ('url = "ftp://x"', "http"),
        ('[[recipe]]\nname = "../x"', "recipe"),
        ('[[recipe]]\nname = "a"\nlocal = "a+b"', "local version"),
        ('[[recipe]]\nname = "a"\n[[recipe]]\nname = "a"', "listed twice"),
        ('[[recipe]]\nname = "a"\nfollow = {}', "either branch or tags"),
        ('[retention]\nsize = "many"', "must be a size"),
        ('[[notices.webhook]]\ntoken_file = "x"', "either url or url_file"),
        ('[[notices.webhook]]\nurl = "ftp://x/y"', "an address that begins with"),
        ('[[notices.mail]]\nto = ["a@b\\nBcc: c@d"]\nsender = "x@y"', "to"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with fails(RecipeError, "nightly.toml:", complaint):
        read(tmp_path, text)


def test_a_fingerprint_changes_with_the_recipe_and_not_with_its_name(tmp_path: Path) -> None:
    from tfwright.documents.host_file import HostFile

    host = HostFile(build_out=tmp_path)
    names = [Target(name="demo", recipe="demo"), Target(name="other", recipe="demo")]
    jobs = [nightly_targets.job_of(target, host) for target in names]
    first, second = (nightly_targets.fingerprint(job) for job in jobs)
    assert first == second
    changed = Target(name="demo", recipe="demo", capabilities="7.0")
    third = nightly_targets.fingerprint(nightly_targets.job_of(changed, host))
    assert third["the recipe's [configure]"] != first["the recipe's [configure]"]
