"""Disks that are full, out of inodes or read-only while a stage runs: the error says so, nothing is lost."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.attack.campaign import MOST_CASES, Attack
from tests.attack.program import Demo

from tfwright.pipeline.stages import PIPELINE

SIZE = 700
"""MiB of each disk; the demo with its Bazel takes 450."""
LEFT = (0, 8, 64, 300, 1_000, 8_000)
"""KiB that are left on the full disk."""
CACHED = [stage.name for stage in PIPELINE if stage.cached]


@contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Path]:
    """Mount a small disk: ext4 in a file, or one in memory; skip where that is not allowed."""
    if os.geteuid():
        pytest.skip("only root can mount a disk")
    place, image = folder / "disk", folder / "image"
    place.mkdir()
    if kind == "ext4":
        with image.open("wb") as stream:
            stream.truncate(SIZE * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        command = ["mount", "-o", "loop", str(image), str(place)]
    else:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "none", str(place)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip(f"this system does not mount a disk of the kind {kind}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


class Ballast:
    """What takes the room of a disk away."""

    def __init__(self, disk: Path) -> None:
        self.disk, self.file, self.folder = (disk, disk / "ballast", disk / "ballasts")

    def fill(self, left: int) -> None:
        """Leave so many bytes."""
        room = os.statvfs(self.disk)
        size = max(room.f_bavail * room.f_frsize - left, 1)
        with self.file.open("wb") as stream:
            # ext4 needs some of the room for its own lists of what the file takes.
            while size > 0:
                try:
                    os.posix_fallocate(stream.fileno(), 0, size)
                except OSError:
                    size -= 64 * 1024
                else:
                    return

    def take_inodes(self, left: int) -> None:
        """Leave room for so many files."""
        self.folder.mkdir()
        for number in range(os.statvfs(self.disk).f_favail - left):
            (self.folder / str(number)).touch()

    def remove(self) -> None:
        """Make room again."""
        self.file.unlink(missing_ok=True)
        subprocess.run(["rm", "-rf", self.folder], check=True)


def verdict(demo: Demo, stage: str, what: str) -> str:
    """Build on a disk without room and collect garbage; say what ended otherwise than it should."""
    full = demo.wrong(demo.run("build", "--again", stage), may_fail=True)
    collected = demo.run("vault", "--gc").fault
    if full or collected:
        return f"{what}: {full or f'vault --gc: {collected}'}"
    return ""


@pytest.mark.parametrize("kind", ["ext4", "tmpfs"])
def test_disks_full_in_each_stage(kind: str, tmp_path: Path, attack: Attack) -> None:
    with mounted(kind, tmp_path) as disk:
        demo, ballast = Demo(disk), Ballast(disk)
        for number in attack.numbers(MOST_CASES // 2):
            luck = attack.luck(number)
            stage, left = luck.choice(CACHED), luck.choice(LEFT)
            what = f"{stage}, {left} KiB left"
            ballast.fill(left * 1024)
            wrong = verdict(demo, stage, what)
            ballast.remove()
            after = demo.wrong(demo.run("build"))
            attack.tried(what, wrong or (f"{what}, with room again: {after}" if after else ""))


def test_disks_without_inodes_in_each_stage(tmp_path: Path, attack: Attack) -> None:
    with mounted("ext4", tmp_path) as disk:
        demo, ballast = Demo(disk), Ballast(disk)
        for number in attack.numbers(MOST_CASES // 4):
            luck = attack.luck(number)
            stage, left = luck.choice(CACHED), luck.choice((0, 1, 8))
            what = f"{stage}, {left} inodes left"
            ballast.take_inodes(left)
            wrong = verdict(demo, stage, what)
            ballast.remove()
            after = demo.wrong(demo.run("build"))
            attack.tried(what, wrong or (f"{what}, with room again: {after}" if after else ""))


def test_disks_that_are_read_only_in_each_stage(tmp_path: Path, attack: Attack) -> None:
    with mounted("ext4", tmp_path) as disk:
        demo = Demo(disk)
        for number in attack.numbers(MOST_CASES // 4):
            luck = attack.luck(number)
            stage = luck.choice(CACHED)
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            wrong = verdict(demo, stage, stage)
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
            after = demo.wrong(demo.run("build"))
            attack.tried(stage, wrong or (f"{stage}, writable again: {after}" if after else ""))
