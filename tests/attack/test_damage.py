"""Each kept file damaged in four ways: the right wheel, or an error that says what to do."""

import random
from pathlib import Path

import pytest
from tests.attack.campaign import MOST_CASES, Attack
from tests.attack.program import Demo

SMALL = 4 * 1024**2
"""Bytes up to which a file is damaged: state, stamps, logs, wheels, and the smaller tools."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


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
    for number in attack.numbers(MOST_CASES):
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
