"""What is said of the target Python, its packages and pip, done to the letter."""

import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pip
import pytest
from tests.making import change_text, find_text, make_file, make_program
from tests.remedies.following import commands, failing
from tests.tools.python.test_packages import small_wheel
from tests.tools.python.test_resolving import Venv, offer
from tests.tools.python.test_resolving import index as served_index
from tests.tools.python.test_sdist import package as old_thing

from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError, RecipeError, SupplyError, TfwrightError, ToolError
from tfwright.host import pythons
from tfwright.tools.python import packages, pips, resolving, sdist, venv
from tfwright.tools.python.sdist import Sdist

pytestmark = pytest.mark.medium

PYTHON = """\
#!/bin/sh
# A Python whose venvs get pip in a moment.
case "$2" in
venv) {python} -m venv --without-pip "$3" && ln -s {pip} "$3"/lib/python*/site-packages;;
*) exec {python} "$@";;
esac
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return an interpreter that makes a real venv in a moment."""
    path = tmp_path / "pythons/python3"
    path.parent.mkdir()
    text = PYTHON.format(python=sys.executable, pip=Path(pip.__file__).parent)
    make_program(path, text)
    return path


Make = Callable[..., Path]


@pytest.fixture
def make(python: Path, tmp_path: Path) -> Make:
    """Return what makes a venv with some pins."""

    def made(*pins: str, offline: bool = False) -> Path:
        stores, log = (tmp_path / "store",), tmp_path / "log"
        return venv.make_venv(python, pins, stores, offline=offline, log=log)

    return made


index = served_index


@pytest.mark.slow
def test_a_requirement_is_pinned_and_its_venv_made_while_there_is_a_network(
    make: Make, index: Path
) -> None:
    offer(index, "small", "1.0")
    fault = failing(lambda: make("small", offline=True), RecipeError)
    shown = find_text(r'"(name==)version"', fault.remedy)
    pin = shown[1].replace("name", "small") + "1.0"
    fault = failing(lambda: make(pin, offline=True), SupplyError)
    assert commands(fault.remedy) == ["invoke fetch"]
    # What fetches completes the command with the recipe, and makes the venv so.
    make(pin)
    assert make(pin, offline=True)


@pytest.mark.slow
def test_what_the_pinned_packages_need_is_pinned(make: Make, index: Path) -> None:
    offer(index, "small", "1.0", "Requires-Dist: needed>=2")
    fault = failing(lambda: make("small==1.0"), RecipeError)
    assert fault.remedy == "Pin in the recipe what the pinned packages need."
    needed = find_text(r"requires (\w+), which is not installed", fault.what)
    offer(index, needed[1], "2.0")
    assert make("small==1.0", f"{needed[1]}==2.0")


@pytest.mark.slow
def test_a_version_that_cannot_be_installed_gives_way_to_another(make: Make, index: Path) -> None:
    offer(index, "small", "1.0")
    (wheel,) = index.glob("small/*")
    with zipfile.ZipFile(wheel, "a") as content:
        content.writestr("../../outside", "")
    failing(lambda: make("small==1.0"), SupplyError, "version")
    offer(index, "small", "2.0")
    assert make("small==2.0")


def test_pip_is_led_to_its_index_and_the_pin_to_what_that_has(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(index, "small", "1.0")
    right = os.environ["PIP_INDEX_URL"]
    wrong = "http://127.0.0.1:9/simple"
    monkeypatch.setenv("PIP_INDEX_URL", wrong)
    monkeypatch.setenv("PIP_RETRIES", "0")
    python = Path(sys.executable)

    def bring(*options: str) -> list[Path]:
        return packages.download(python, options, tmp_path / "brought", tmp_path / "log")

    failing(lambda: bring("small==2.0"), SupplyError, "reaches")
    monkeypatch.setenv("PIP_INDEX_URL", right)
    failing(lambda: bring("small==2.0"), SupplyError, "checksum")
    assert [path.name for path in bring("small==1.0")] == ["small-1.0-py3-none-any.whl"]


# The interpreter


def test_the_rest_of_a_python_is_installed(python: Path, tmp_path: Path) -> None:
    rest, text = tmp_path / "rest", python.read_text("utf-8")
    lacking = f"venv) test -e {rest} || {{ echo no ensurepip; exit 1; }}; "
    python.write_text(text.replace("venv)", lacking), "utf-8")
    create = partial(venv.create, python, "3.9.2", tmp_path / "venv", tmp_path / "log")
    failing(create, HostError, "python3.9-venv")
    rest.touch()
    create()


def test_the_target_python_is_named_in_the_host_file(python: Path, tmp_path: Path) -> None:
    wrong = make_program(tmp_path / "wrong", "#!/bin/sh\n")

    def version(interpreter: Path) -> str:
        stores, log = (tmp_path / "store",), tmp_path / "log"
        made = venv.make_venv(interpreter, (), stores, offline=True, log=log)
        return made.parents[1].name

    fault = failing(lambda: version(wrong), HostError)
    table = find_text(r"host file: (\[pythons\])", fault.remedy)
    line = ".".join(platform.python_version_tuple()[:2])
    path = make_file(tmp_path / "host.toml", f'{table[1]}\n"{line}" = "{python}"\n')
    found = pythons.find(line, load(path, HostFile))
    assert found == python
    assert version(found).startswith(f"{line}.")


def test_a_python_whose_pip_does_not_run_is_repaired(python: Path, tmp_path: Path) -> None:
    home, log = tmp_path / "venv", tmp_path / "log"
    venv.create(python, "3.11.4", home, log)
    (link,) = home.glob("lib/python*/site-packages/pip")
    link.rename(link.with_name("pip-away"))
    ask = partial(pips.replacement_pin, home, "3.11.4", log)
    fault = failing(ask, ToolError, "Python")
    assert any("No module named pip" in line for line in fault.evidence.lines)
    link.with_name("pip-away").rename(link)
    assert ask() == ""


# What pins are chosen from


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Venv:
    """Return the stand-in for a target Python whose pip is old."""
    made = Venv(tmp_path)
    monkeypatch.setattr(venv, "create", made.create)
    return made


@pytest.mark.parametrize(
    ("absent", "corrected"),
    [("wheel", ["wheel<1"]), ("pip==21.3.1", ["wheel", "pip==20.3.4"]), ("pip==21.3.1", None)],
)
def test_a_requirement_is_corrected_and_a_pip_named_or_given_to_the_index(
    chosen: Venv, tmp_path: Path, absent: str, corrected: list[str] | None
) -> None:
    def pins(wanted: list[str]) -> tuple[str, ...]:
        log = tmp_path / "log"
        return resolving.resolve(Path("p"), "3.6.15", wanted, log)

    chosen.absent = absent
    remedy = failing(lambda: pins(["wheel"]), SupplyError).remedy
    if corrected is None:
        assert remedy.startswith("Give the package index this pip")
        chosen.absent = "nothing"
    elif absent == "wheel":
        assert remedy.startswith("Correct the requirement that pip names")
    else:
        assert "--add pip==VERSION" in remedy
    assert pins(corrected or ["wheel"])


def test_a_package_that_pip_cannot_list_is_left_out(
    chosen: Venv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(python: Path, version: str, home: Path, log: Path) -> None:
        chosen.create(python, version, home, log)
        # This pip fails over the metadata of a package that it has installed.
        program, listing = home / "bin/python", '    print("DEPRECATION'
        fails = (
            f'    if "broken" in open("{chosen.installed}").read():\n'
            '        sys.exit("broken: no version")\n'
        )
        change_text(program, listing, fails + listing)

    monkeypatch.setattr(venv, "create", create)

    def pins(*wanted: str) -> tuple[str, ...]:
        chosen.installed.unlink(missing_ok=True)
        log = tmp_path / "log"
        return resolving.resolve(Path("p"), "3.6.15", wanted, log)

    fault = failing(lambda: pins("wheel", "broken"), TfwrightError, "requirement")
    assert fault.evidence.log
    assert "broken: no version" in fault.evidence.lines
    assert pins("wheel")


# Source packages


package = old_thing


@pytest.mark.slow
def test_a_source_package_comes_once_pip_is_configured_as_it_should_be(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download() -> None:
        sdist.download(Sdist("old.thing", "1.0rc1"), "", tmp_path / "brought")

    def configured(remedy: str) -> str:
        shown = re.findall(r"'(pip config list)'", remedy)[0].split()
        return subprocess.check_output([sys.executable, "-m", *shown], text=True)

    wrong = str(tmp_path / "elsewhere")
    monkeypatch.setenv("PIP_FIND_LINKS", wrong)
    fault = failing(download, SupplyError, "shows")
    assert wrong in configured(fault.remedy)
    monkeypatch.setenv("PIP_FIND_LINKS", str(package.parent))
    settings, more = tmp_path / "pip.conf", tmp_path / "more.txt"
    more.write_text(f"{small_wheel(tmp_path)}\n", "utf-8")
    settings.write_text(f"[download]\nrequirement = {more}\n", "utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    fault = failing(download, SupplyError, "small-1.0-py3-none-any.whl", "configuration")
    assert str(more) in configured(fault.remedy)
    settings.write_text("", "utf-8")
    download()
