"""The readers on damaged input.

TFWRIGHT_FUZZ_SECONDS makes it last longer; a failure names the seed that repeats it.
"""

import io
import os
import random
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tfwright.wheel.binary import elf, fatbin, macho_content
from tfwright.wheel.compare import comparison
from tfwright.wheel.inspect import inspection, text

SECONDS = float(os.environ.get("TFWRIGHT_FUZZ_SECONDS", "1"))
LONGEST = 10.0
"""Seconds of the CPU that one damaged file may take; by the clock it would depend on what else
runs."""
CORPUS = Path(__file__).parents[1] / "corpus"
INTERESTING = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63,
    2**64 - 1,
)
"""Numbers that are at the edge of what a field can say."""


def damaged(content: bytes, luck: random.Random) -> bytes:
    """Return content with a few of its bytes changed, or cut, or with a part of it twice."""
    result = bytearray(content)
    for _ in range(luck.randint(1, 8)):
        place = luck.randrange(len(result) or 1)
        width = luck.choice((1, 2, 4, 8))
        number = luck.choice(INTERESTING) if luck.random() < 0.7 else luck.getrandbits(64)
        result[place : place + width] = (number & (1 << 8 * width) - 1).to_bytes(
            width, luck.choice(("little", "big"))
        )
    if luck.random() < 0.1:
        del result[luck.randrange(len(result)) :]
    if luck.random() < 0.1:
        place = luck.randrange(len(result) or 1)
        result[place:place] = result[place : place + 64]
    return bytes(result)


def fuzz(content: bytes, read: Callable[[bytes], object], seconds: float) -> None:
    """Let `read` see damaged forms of `content`, each by a seed of its own."""
    ends = time.monotonic() + seconds
    for seed in range(10**9):
        if time.monotonic() > ends:
            break
        started = time.process_time()
        try:
            read(damaged(content, random.Random(seed)))
        except Exception as fault:  # noqa: BLE001 whatever it is, it is what the test looks for
            pytest.fail(f"seed {seed}: {type(fault).__name__}: {fault}")
        assert time.process_time() - started < LONGEST, f"seed {seed} took too long"


def as_elf(content: bytes) -> None:
    try:
        elf.examine(content)
    except ValueError:
        return


def as_macho(content: bytes) -> None:
    try:
        macho_content.read(content)
    except ValueError:
        return


def as_fat_binary(content: bytes) -> None:
    try:
        fatbin.architectures(content)
    except ValueError:
        return


READERS: dict[str, Callable[[bytes], object]] = {
    "elf": as_elf,
    "macho": as_macho,
    "fatbin": as_fat_binary,
    "text": text.search,
}


@pytest.mark.parametrize("kind", ["elf", "macho", "fatbin"])
def test_damaged_libraries_are_refused_and_nothing_else_happens(kind: str) -> None:
    samples = sorted(CORPUS.glob(f"{kind}-*"))
    assert samples
    for sample in samples:
        fuzz(sample.read_bytes(), READERS[kind], SECONDS / len(samples))


@pytest.mark.parametrize("sample", ["elf-code", "elf-stripped", "macho-symbols", "macho-universal"])
def test_a_damaged_library_is_compared_with_the_sound_one(sample: str) -> None:
    sound = (CORPUS / sample).read_bytes()
    fuzz(
        sound,
        lambda content: comparison.content("a.so", sound, content),
        SECONDS / 4,
    )


def test_damaged_texts_are_searched() -> None:
    fuzz(
        b"\0/home/me/a.cc\0NCCL version 2.4.7+cuda10.0\0/x/bazel-out/b.cc",
        READERS["text"],
        SECONDS / 4,
    )


def test_damaged_wheels_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "small-1.0-cp36-cp36m-manylinux1_x86_64.whl"
    sound = wheel()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inspection.inspect(path)

    fuzz(sound, read, SECONDS)


@pytest.mark.parametrize(
    "only", ["", "METADATA", "WHEEL", "RECORD", "build_info.py"], ids=lambda only: only or "all"
)
def test_wheels_with_damaged_members_are_reported(tmp_path: Path, only: str) -> None:
    path = tmp_path / "small-1.0-cp36-cp36m-manylinux1_x86_64.whl"

    def read(content: bytes) -> None:
        luck = random.Random(content)
        path.write_bytes(wheel(lambda data: damaged(data, luck), only))
        inspection.inspect(path)

    fuzz(b"a seed that is changed", read, SECONDS / 2)


def wheel(change: Callable[[bytes], bytes] = lambda data: data, only: str = "") -> bytes:
    """Return a wheel of the corpus, with `change` made to each of its files.

    With `only`, the change is made to files whose name ends with it.
    """
    metadata = "small-1.0.dist-info"
    files = {
        **{f"small/{sample.name}.so": sample.read_bytes() for sample in sorted(CORPUS.iterdir())},
        "small/platform/build_info.py": b"build_info = {'cuda_version': '9.0'}\nx = ('a', 1)\n",
        f"{metadata}/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
        f"{metadata}/WHEEL": b"Wheel-Version: 1.0\nTag: cp36-cp36m-manylinux1_x86_64\n",
        f"{metadata}/RECORD": b"small/elf-plain.so,sha256=x,1\n",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            # A fixed time, so that a seed gives the same damage again.
            made.writestr(
                zipfile.ZipInfo(name),
                change(data) if name.endswith(only) else data,
                zipfile.ZIP_DEFLATED,
            )
    return content.getvalue()
