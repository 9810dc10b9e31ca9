"""The program killed, out of room, with damaged files: right bytes, or a clear error."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attack.campaign import Attack
from tests.attack.program import SIGNALS, Demo, seconds_of

SMALL = 4 * 1024**2
"""Bytes up to which a file is damaged: state, stamps, logs, wheels, and the smaller tools."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


def test_builds_killed_at_random_moments(demo: Demo, attack: Attack) -> None:
    usual = seconds_of(demo)
    for number in attack.numbers():
        luck = attack.luck(number)
        name = luck.choice(list(SIGNALS))
        demo.forget()
        kills = luck.choice((1, 1, 2))
        for _ in range(kills):
            demo.killed(SIGNALS[name], luck.uniform(0.1, usual), "build")
        attack.tried(name, demo.wrong(demo.run("build")))


def test_fetches_killed_at_random_moments(demo: Demo, attack: Attack) -> None:
    for number in attack.numbers():
        luck = attack.luck(number)
        name = luck.choice(list(SIGNALS))
        demo.forget()
        parts = ("vault/files", "vault/pythons", "git")
        lost = luck.choice(parts)
        shutil.rmtree(demo.build_out / lost, ignore_errors=True)
        demo.killed(SIGNALS[name], luck.uniform(0.1, 8), "fetch", "--recipe", "demo")
        attack.tried(f"{name} without {lost}", demo.wrong(demo.run("build")))


def empty(_: bytes, __: random.Random) -> bytes:
    return b""


def cut(content: bytes, luck: random.Random) -> bytes:
    return content[: luck.randrange(len(content) or 1)]


def flipped(content: bytes, luck: random.Random) -> bytes:
    made = bytearray(content)
    if made:
        made[luck.randrange(len(made))] ^= 1 << luck.randrange(8)
    return bytes(made)


def garbage(content: bytes, luck: random.Random) -> bytes:
    return luck.randbytes(len(content) or 10)


WAYS = {"empty": empty, "cut": cut, "flipped": flipped, "garbage": garbage}


def kept(demo: Demo) -> list[Path]:
    """Return the files that tfwright keeps between builds, but for Bazel's own."""
    found = []
    for path in sorted(demo.build_out.rglob("*")):
        inside = path.relative_to(demo.build_out).parts
        bazels = "bazel" in inside[:2] or "bazel_install" in inside or "disk_cache" in inside
        if path.is_file() and not path.is_symlink() and not bazels and path.stat().st_size <= SMALL:
            found.append(path)
    return found


def kind(path: Path, demo: Demo) -> str:
    """Return the folder below build_out that a file is in."""
    return "/".join(path.relative_to(demo.build_out).parts[:2])


def test_each_kept_file_damaged_in_four_ways(demo: Demo, attack: Attack) -> None:
    places = kept(demo)
    by_kind: dict[str, list[Path]] = {}
    for path in places:
        by_kind.setdefault(kind(path, demo), []).append(path)
    for number in attack.numbers():
        luck = attack.luck(number)
        # By kind first: a venv has thousands of files, and a lock is one.
        path = luck.choice(by_kind[luck.choice(sorted(by_kind))])
        way = luck.choice(list(WAYS))
        if not path.is_file():
            continue
        content, mode = path.read_bytes(), path.stat().st_mode
        path.chmod(0o644)
        path.write_bytes(WAYS[way](content, luck))
        path.chmod(mode)
        words = luck.choice((("build",), ("build", "--fresh"), ("build", "--again", "package")))
        ended = demo.run(*words)
        # What refuses a damaged file, and says so, is right; what builds must build the same.
        wrong = demo.wrong(ended, may_fail=True)
        name = f"{path.relative_to(demo.build_out)} {way}, {' '.join(words)}"
        attack.tried(f"{kind(path, demo)} {way}", f"{name}: {wrong}" if wrong else "")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            path.chmod(0o644)
        path.write_bytes(content)
        path.chmod(mode)
        again = demo.run("build", "--fresh")
        if wrong := demo.wrong(again):
            attack.tried(f"{kind(path, demo)} {way}", f"{name}, put right again: {wrong}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of its own, in memory."""
    if os.geteuid():
        pytest.skip("only root can mount a disk in memory")
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400m", "none", str(place)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this system does not mount a disk in memory")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_disks_full_at_random_moments(disk: Path, attack: Attack) -> None:
    demo = Demo(disk)
    ballast = disk / "ballast"
    for number in attack.numbers():
        luck = attack.luck(number)
        demo.forget()
        left = luck.choice((0, 8, 64, 300, 1_000, 8_000)) * 1024
        room = os.statvfs(disk)
        with ballast.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, max(room.f_bavail * room.f_frsize - left, 1))
        full = demo.run("build")
        wrong = demo.wrong(full, may_fail=True)
        collected = demo.run("vault", "--gc")
        wrong = wrong or (f"vault --gc: {collected.fault}" if collected.fault else "")
        ballast.unlink()
        after = demo.wrong(demo.run("build"))
        what = f"{left:,} bytes left: {wrong}" if wrong else ""
        attack.tried(f"{left:,} bytes left", what or (f"afterwards: {after}" if after else ""))
