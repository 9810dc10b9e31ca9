import sys
from pathlib import Path

import pytest

from tfwright.errors import SupplyError
from tfwright.tools.python import resolving, venv

PIP = f"""\
#!{sys.executable}
import json, sys

command = sys.argv[4]
if command == "list":
    print(json.dumps([{{"name": "wheel", "version": "0.37.1"}}, {{"name": "pip", "version": "18.1"}}]))
    sys.exit()
(constraints,) = open(sys.argv[-1]).read().splitlines() or [""]
for version in VERSIONS:
    if "!=" + version not in constraints:
        break
else:
    sys.exit()
if "-v" in sys.argv:
    # Of another index, which says it; a file that is none of a package is left alone.
    for file in ("wheel-0.45.0.tar.gz#sha256=0", "wheel-0.44.0-py3-none-any.whl", "other-9.tar.gz", "x"):
        print("  The package https://example.org/a/" + file + " (from https://example.org/simple/) "
              "(requires-python:>=3.9) is incompatible with the pythonversion in use.")
    print("  Using version " + version + " (newest of versions: ...)")
print(COMPLAINT)
sys.exit(1)
"""


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what pip complains about, which a test may change; its venv holds that pip only."""
    said = ["wheel requires Python '>=3.9' but the running Python is 3.6.15"]

    def create(_: Path, __: str, home: Path, ___: Path) -> None:
        program = home / "bin/python"
        program.parent.mkdir(parents=True)
        text = PIP.replace("COMPLAINT", repr(said[0]))
        program.write_text(
            text.replace("VERSIONS", '["0.48.0", "0.46.3", "0.45", "0.44"]')
        )
        program.chmod(0o755)

    monkeypatch.setattr(venv, "create", create)
    return said


@pytest.mark.medium
@pytest.mark.parametrize(
    "complaint",
    [
        "wheel requires Python '>=3.9' but the running Python is 3.6.15",
        "ERROR: Package 'wheel' requires a different Python: 3.6.15 not in '>=3.9'",
    ],
)
def test_an_old_pip_is_led_to_the_newest_version_for_its_python(
    pip: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    complaint: str,
) -> None:
    pip[:] = [complaint]
    log = tmp_path / "pin.log"
    # What one index says of its files is believed of those of the others: two attempts fail.
    monkeypatch.setattr(resolving, "MOST_UNFIT", 3)
    found = resolving.closure(Path("python3.6"), "3.6.15", ["wheel"], log)
    assert found == ("wheel==0.37.1",)


@pytest.mark.medium
def test_what_pip_complains_about_otherwise_is_the_error(
    pip: list[str], tmp_path: Path
) -> None:
    pip[:] = ["No matching distribution found for wheel"]
    with pytest.raises(SupplyError, match="No matching distribution found"):
        resolving.closure(Path("p"), "3.6.15", ["wheel"], tmp_path / "pin.log")


@pytest.mark.medium
def test_a_package_of_which_no_version_fits_is_named(
    pip: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pip
    monkeypatch.setattr(resolving, "MOST_UNFIT", 1)
    with pytest.raises(SupplyError, match="Too many versions of wheel are for"):
        resolving.closure(Path("p"), "3.6.15", ["wheel"], tmp_path / "pin.log")
