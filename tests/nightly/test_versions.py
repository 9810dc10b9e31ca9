"""A wheel under another version."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.making import Maker
from tests.nightly.wheels import write_wheel

from tfwright.index.wheels import read_wheel
from tfwright.nightly import versions
from tfwright.wheel import archive, record
from tfwright.wheel.seal import build_record

pytestmark = pytest.mark.medium

COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
EPOCH = 1_795_305_600  # 2026-11-22


@pytest.mark.parametrize(
    ("version", "local", "commit", "expected"),
    [
        ("1.8.0", "", "", "1.8.0"),
        ("1.8.0", "cpu", "", "1.8.0+cpu"),
        ("2.20.0", "cu128.sm120", "", "2.20.0+cu128.sm120"),
        ("1.15.5+nv23.3", "cu118", "", "1.15.5+nv23.3.cu118"),
        ("2.22.0", "", COMMIT, "2.22.0.dev20261122+g0a1b2c3d4e"),
        ("2.22.0rc1", "cu128", COMMIT, "2.22.0.dev20261122+g0a1b2c3d4e.cu128"),
    ],
)
def test_a_version_says_what_a_wheel_is_for(
    version: str, local: str, commit: str, expected: str
) -> None:
    assert versions.nightly_version(version, local, commit=commit, epoch=EPOCH) == expected


def test_a_relabelled_wheel_is_whole_and_can_be_listed(tmp_path: Path) -> None:
    source = write_wheel(tmp_path)
    target = versions.with_version(source, tmp_path / "out", "1.0+cpu")
    assert target.name == "demo-1.0+cpu-py3-none-any.whl"
    with archive.open_wheel(target) as wheel:
        assert record.faults(wheel) == []
    assert read_wheel(target, "")[0].version == "1.0+cpu"


def test_the_same_wheel_and_version_give_the_same_bytes(tmp_path: Path) -> None:
    source = write_wheel(tmp_path)
    digests = set()
    for name in ("one", "two"):
        target = versions.with_version(source, tmp_path / name, "1.0+cpu")
        digests.add(hashlib.sha256(target.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_pip_installs_a_relabelled_wheel(tmp_path: Path) -> None:
    target = versions.with_version(write_wheel(tmp_path), tmp_path / "out", "1.0+cpu")
    place = tmp_path / "installed"
    argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place)]
    subprocess.run([*argv, str(target)], check=True, capture_output=True)
    assert (place / "demo-1.0+cpu.dist-info/METADATA").is_file()


def test_the_bill_of_a_relabelled_wheel_speaks_of_the_new_version(
    make_sealed: Maker, tmp_path: Path
) -> None:
    target = versions.with_version(make_sealed(), tmp_path / "out", "1.0+cpu")
    with archive.open_wheel(target) as wheel:
        assert record.faults(wheel) == []
        bill = json.loads(wheel.read(f"small-1.0+cpu.dist-info/{build_record.BILL_NAME}"))
    subject = bill["metadata"]["component"]
    assert subject["version"] == "1.0+cpu"
    assert "@1.0%2Bcpu" in subject.get("purl", "@1.0%2Bcpu")
