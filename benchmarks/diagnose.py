"""How fast `invoke diagnose` reads a good build's log, against `grep -E` with the same patterns.

    python benchmarks/diagnose.py [MEGABYTES]    # 1000 by default

The log is made up of what Bazel and compilers write: progress, commands, warnings with their
context. grep counts the lines that match any pattern; the reader finds which, where, and what else
complains. grep is timed in the C locale, where it is fastest, and on a tenth of the log in UTF-8.
Processor time is counted, which depends less on what else the host does.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfwright.diagnosis import reader
from tfwright.diagnosis.families import all_families

ROUNDS = 3
LOOK_AROUND = re.compile(r"\(\?<?[!=](?:\[[^\]]*\]|\\.|[^()\\]|\([^()]*\))*\)")
GROUP = re.compile(r"\(\?(?:P<\w+>|:)")
LAZY = re.compile(r"([*+?}])\?")
BOUNDED = re.compile(r"(?<!\\)\{(?:0,)?\d{2,}\}|\{\d,\d{2,}\}")
SET = re.compile(r"(?<!\\)\[(\^?)((?:\\.|[^\]\\])+)\]")
FILES = (
    "tensorflow/core/kernels/cwise_op_add_1.cc",
    "external/com_google_absl/absl/strings/str_format/bind.cc",
    "tensorflow/core/util/error_codes.pb.cc",
)
LINES = (
    "[{done:,} / 4,024] Compiling {file} [for host]; {time}s local ... (2 actions, 1 running)",
    "INFO: From Compiling {file}:",
    "In file included from ./tensorflow/core/framework/op_kernel.h:24:0,",
    (
        "{file}:{time}:17: warning: comparison of integer expressions of different signedness: "
        "'int' and 'long unsigned int' [-Wsign-compare]"
    ),
    (
        "./tensorflow/core/framework/register_types.h:{time}:3: note: in expansion of macro "
        "'TF_CALL_REAL_NUMBER_TYPES'"
    ),
    (
        "  /usr/bin/gcc -U_FORTIFY_SOURCE -fstack-protector -Wall -D_FORTIFY_SOURCE=1 -DNDEBUG "
        "-DEIGEN_MPL2_ONLY -iquote . -c {file}"
    ),
    "     for (int i = 0; i < shape.dims(); ++i) {{",
    "                     ~~^~~~~~~~~~~~~~",
)


def main(megabytes: int) -> None:
    """Make the log, time both, and print the speeds and their ratio."""
    with tempfile.TemporaryDirectory(prefix="tfwright-diagnose-") as place:
        log, part, patterns = (Path(place) / name for name in ("log", "part", "patterns"))
        make(log, megabytes << 20)
        make(part, megabytes * 100_000)
        patterns.write_text(
            "".join(extended(entry.pattern) + "\n" for entry in all_families()), "utf-8"
        )
        check(patterns)
        ours = speed(log, lambda: reader.diagnose(str(log)))
        plain = speed(log, lambda: grep(patterns, log, "C"))
        wide = speed(part, lambda: grep(patterns, part, "C.UTF-8"), rounds=1)
    print(f"{len(all_families())} patterns, {megabytes} MB")
    print(f"diagnose               {ours:8.1f} MB/s")
    print(f"grep -E, C             {plain:8.1f} MB/s   ratio {ours / plain:.2f}")
    print(f"grep -E, C.UTF-8       {wide:8.1f} MB/s   ratio {ours / wide:.1f}")


def make(path: Path, size: int) -> None:
    """Write a log of about `size` bytes, the same at every run."""
    chance = random.Random(1)  # noqa: S311 a log needs no cryptography
    block = "\n".join(
        chance.choice(LINES).format(
            done=chance.randrange(4024), file=chance.choice(FILES), time=chance.randrange(900)
        )
        for _ in range(20_000)
    )
    with path.open("wb") as stream:
        while stream.tell() < size:
            stream.write(block.encode() + b"\n")


def extended(pattern: str) -> str:
    """Return a pattern as POSIX extended expressions have it: without names and look-arounds."""
    pattern = LOOK_AROUND.sub("", pattern)
    pattern = GROUP.sub("(", pattern).replace(r"[^\n]", ".")
    # grep copies what is repeated up to 300 times as often, and then needs minutes to begin.
    pattern = BOUNDED.sub("*", pattern)
    pattern = LAZY.sub(r"\1", pattern)
    return SET.sub(_plain_set, pattern).replace(r"\d", "[0-9]").replace(r"\'", "'")


def _plain_set(found: re.Match[str]) -> str:
    """Return a set of characters without the escapes that POSIX does not know there."""
    content = found[2].replace(r"\d", "0-9").replace(r"\w", "a-zA-Z0-9_").replace(r"\s", " \t")
    content = content.replace(r"\n", "").replace(r"\x00-\x7f", " -~")
    closing = "]" if r"\]" in content else ""
    last = "-" if re.search(r"-$|\\-", content) else ""
    content = content.replace(r"\]", "").replace(r"\-", "").replace("\\", "").removesuffix("-")
    return f"[{found[1]}{closing}{content}{last}]"


def check(patterns: Path) -> None:
    """Make sure that grep finds what the reader finds."""
    samples = "".join(entry.sample + "\n" for entry in all_families() if entry.sample)
    missed = subprocess.run(
        [tool(), "-v", "-E", "-f", str(patterns)],
        input=samples,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    if missed:
        sys.exit(f"grep does not match:\n{missed}")


def grep(patterns: Path, log: Path, locale: str) -> None:
    """Count the lines that match."""
    subprocess.run(
        [tool(), "-c", "-E", "-f", str(patterns), str(log)],
        env={**os.environ, "LC_ALL": locale},
        stdout=subprocess.DEVNULL,
        check=False,
    )


def tool() -> str:
    """Return the path of grep."""
    return shutil.which("grep") or sys.exit("grep is not on PATH")


def speed(log: Path, run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the megabytes a second of processor time, in the fastest round."""
    times = []
    for _ in range(rounds):
        begun = used()
        run()
        times.append(used() - begun)
    return log.stat().st_size / 1e6 / min(times)


def used() -> float:
    """Return the seconds of processor time that this process and its children have taken."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
