"""A reader fuzzed by coverage: `python -m tests.attack.guided READER FOLDER [OPTIONS OF LIBFUZZER]`.

FOLDER takes what was found to reach new code, and what ended wrong. It needs atheris, which is none
of the developers' requirements: `pip install atheris`. `-max_total_time=600` ends after ten minutes.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tfwright"]):
    from tests.attack.targets import TARGETS

    # Some readers import what they read with when they are called.
    for sample in TARGETS[sys.argv[1]].samples() if len(sys.argv) > 1 else ():
        TARGETS[sys.argv[1]].read(sample)

LONGEST = 10.0
"""Seconds of processor time that one input may take."""
USUAL = ("-timeout=300", "-rss_limit_mb=4096", "-max_len=65536", "-print_final_stats=1")
"""The clock of a busy machine says little, and so libFuzzer's own limit of time is a wide one."""


def main(name: str, folder: Path, options: list[str]) -> None:
    """Fuzz one reader until libFuzzer ends it."""
    target = TARGETS[name]
    seeds, found = folder / "seeds", folder / "found"
    for place in (seeds, found):
        place.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(target.samples()):
        (seeds / str(number)).write_bytes(sample)

    def attempt(content: bytes) -> None:
        begun = time.process_time()
        with suppress(*target.allowed):
            target.read(content)
        spent = time.process_time() - begun
        assert spent < LONGEST, f"it took {spent:.1f} s of the processor"

    prefix = f"-artifact_prefix={folder}/wrong-"
    arguments = [*USUAL, prefix, *options, str(found), str(seeds)]
    atheris.Setup([sys.argv[0], *arguments], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"{__doc__}\nReaders: {', '.join(TARGETS)}")
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
