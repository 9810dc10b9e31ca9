import os
from pathlib import Path

from tfwright.host import probes


def test_this_host_is_described_as_uname_does(tmp_path: Path) -> None:
    host = probes.look(tmp_path / "not" / "there" / "yet")
    assert (host.system, host.machine) == (os.uname().sysname, os.uname().machine)
    assert str(host) == f"{host.system}-{host.machine}"
    assert host.free > 0


def test_the_compiler_is_known_by_the_first_line_of_its_version(tmp_path: Path) -> None:
    compiler = probes.look(tmp_path).compiler
    assert "\n" not in compiler
    assert any(character.isdigit() for character in compiler) or not compiler
