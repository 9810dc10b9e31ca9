"""The tarfile module that archives are unpacked with."""

import io
from pathlib import Path

import pytest

from tfwright.tools.unpacking import tarfile

HOSTILE: dict[str, dict[str, object]] = {
    "../out": {},
    "/etc/out": {},
    "link": {"type": tarfile.SYMTYPE, "linkname": "../../out"},
    "hard": {"type": tarfile.LNKTYPE, "linkname": "../out"},
    "device": {"type": tarfile.CHRTYPE},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_filters_are_there_whatever_the_python(name: str, tmp_path: Path) -> None:
    backport = pytest.importorskip(
        "backports.tarfile", reason="this venv is of earlier requirements"
    )
    for module in (tarfile, backport):
        packed = io.BytesIO()
        with module.open(fileobj=packed, mode="w") as tar:
            member = module.TarInfo(name)
            for key, value in HOSTILE[name].items():
                setattr(member, key, value)
            tar.addfile(member)
        packed.seek(0)
        inside = tmp_path / module.__name__
        with module.open(fileobj=packed, mode="r|*") as tar:
            try:
                tar.extract(tar.next(), inside, filter="data")
            except module.FilterError:
                continue
            # An absolute name is taken as one below the directory.
            assert [path.name for path in inside.rglob("*")] == ["etc", "out"]
