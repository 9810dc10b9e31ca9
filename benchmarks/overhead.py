"""What tfwright costs: the demo built by it, against the same commands in a plain shell script.

    python benchmarks/overhead.py [ROUNDS]

The script is made from `invoke plan --json`: the same checkout, ./configure, Bazel, compiler and
build_pip_package, with the same environments, and then the wheel installed in a fresh venv and run.
It does none of the rest: no checks, stamps, locks, digests, comparison of bazelrc files or
canonical bytes. Both run in turn. Cold means an empty tree, output base and disk cache, and a Bazel
that is downloaded but not unpacked; warm means that everything was built before. Then follow a
rebuild with nothing to do and `invoke --list`, each against an invoke collection of one task, by
the clock and in processor time. With 0 rounds, only these are measured.
"""

import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tfwright.documents import recipe
from tfwright.documents.recipe import ROOT
from tfwright.host import pythons
from tfwright.tools import files

INVOKE = (sys.executable, "-m", "invoke")
ONE_TASK = 'from invoke import task\n\n\n@task\ndef hello(_):\n    """Say hello."""\n'
SHORT_PAIRS = 15
"""Runs of each short command; a single one says little."""


class Cost(NamedTuple):
    """What a run took."""

    seconds: float
    """By the clock."""
    cpu: float
    """Processor seconds of its programs, without those that outlive it, such as Bazel's server."""


def main(rounds: int) -> None:
    """Measure everything and print a table of medians and ratios."""
    with tempfile.TemporaryDirectory(prefix="tfwright-overhead-") as place:
        bench = Bench(Path(place))
        bench.prepare()
        cold = [
            (measure(bench.tfwright, bench.forget), measure(bench.script, bench.forget))
            for _ in range(rounds)
        ]
        warm = [(measure(bench.tfwright_again), measure(bench.script_again)) for _ in range(rounds)]
        idle = [(measure(bench.tfwright), measure(bench.one_task)) for _ in range(SHORT_PAIRS)]
        listing = [
            (measure(bench.list_commands), measure(bench.one_task)) for _ in range(SHORT_PAIRS)
        ]
    print(f"{'what':<40} {'tfwright':>9} {'other':>9} {'ratio':>6}")
    if rounds:
        report("cold build / shell script", cold)
        report("compile again, warm / shell script", warm)
    for what, pairs in (
        ("nothing to do / one-task invoke", idle),
        ("invoke --list / one-task invoke", listing),
    ):
        report(what, pairs)
        report("  in processor time", pairs, "cpu")


def report(what: str, pairs: list[tuple[Cost, Cost]], kind: str = "seconds") -> None:
    """Print the medians of both in one kind of time, and the ratio of the two."""
    ours, theirs = (
        statistics.median(getattr(cost, kind) for cost in column)
        for column in zip(*pairs, strict=True)
    )
    print(f"{what:<40} {ours:8.2f}s {theirs:8.2f}s {ours / theirs:6.2f}")


def measure(run: Callable[[], None], before: Callable[[], None] | None = None) -> Cost:
    """Return what `run` takes."""
    if before:
        before()
    begun, used = time.perf_counter(), processor()
    run()
    return Cost(time.perf_counter() - begun, processor() - used)


def processor() -> float:
    """Return the processor seconds of all programs that were run and have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


class Bench:
    """The demo, in a directory of its own."""

    def __init__(self, place: Path) -> None:
        """Keep everything under `place`."""
        self.place = place
        self.out = place / "out"
        self.host = {**os.environ, "TFWRIGHT_HOST_FILE": str(place / "host.toml")}
        # Many containers set it. Every run of tfwright would then compile it again, and nothing of
        # what it is compared with, which pip compiled.
        self.host.pop("PYTHONDONTWRITEBYTECODE", None)
        self.plain = place / "plain.sh"

    def prepare(self) -> None:
        """Fill the vault, write the script, and make the one-task collection."""
        (self.place / "host.toml").write_text(f'build_out = "{self.out}"\n', "utf-8")
        (self.place / "one").mkdir()
        (self.place / "kept").mkdir()
        (self.place / "one/tasks.py").write_text(ONE_TASK, "utf-8")
        self.tfwright()
        self.plain.write_text(self.script_text(), "utf-8")

    def script_text(self) -> str:
        """Return the planned commands from the source stage on as the text of a shell script."""
        plan = subprocess.run(
            [*INVOKE, "plan", "--json"],
            cwd=ROOT,
            env=self.host,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        commands = {
            stage["stage"]: [line(step) for step in stage["steps"] if "argv" in step]
            for stage in json.loads(plan)
        }
        own, kept = self.out / "demo", self.place / "kept"
        shutil.copytree(own / "bin", kept / "bin")
        shutil.copy(own / "bazelrc", kept)
        library = "contrib/nccl/python/ops/_nccl_ops.so"
        lines = [
            "set -eu",
            (
                f"mkdir -p {own}/home {own}/logs {own}/dist/nccl {own}/dist/raw {own}/dist/scratch "
                f"{own}/dist/verify"
            ),
            f"cp -R {kept}/bin {kept}/bazelrc {own}",
            *self.checkout(own / "tree"),
            *commands["configure"],
            *commands["compile"],
            f"{next(text for text in commands['compile']).partition(' build ')[0]} shutdown)",
            *commands["nccl"],
            f"cp -f {own}/dist/nccl/_nccl_ops.so {own}/tree/bazel-bin/tensorflow/{library}",
            *commands["package"],
            *commands["verify"],
        ]
        return (
            "\n".join(lines)
            .replace("@WHEEL@", f"$(echo {own}/dist/raw/*.whl)")
            .replace("@PYTHON@", str(pythons.running_python()))
            + "\n"
        )

    def checkout(self, tree: Path) -> list[str]:
        """Return the source stage as a person would type it."""
        mirror, source = (next((self.out / "git").glob("*.git")), recipe.read("demo").source)
        return [
            f"git init --quiet {tree}",
            f"echo {mirror}/objects > {tree}/.git/objects/info/alternates",
            f"git -C {tree} checkout --quiet {source.commit}",
            *(
                f"mkdir -p {(tree / path).parent} && cp {recipe.PATCHES / asset} {tree / path}"
                for path, asset in source.assets.items()
            ),
            *(f"git -C {tree} apply {recipe.PATCHES / patch}" for patch in source.patches),
        ]

    def forget(self) -> None:
        """Remove what was built, what Bazel cached of it, and what Bazel unpacked of itself."""
        for name in ("demo", "cache", "wheelhouse"):
            files.remove(self.out / name)

    def tfwright(self) -> None:
        """Build with tfwright."""
        self.run(*INVOKE, "build")

    def tfwright_again(self) -> None:
        """Compile again with tfwright: Bazel starts, and finds everything built."""
        self.run(*INVOKE, "build", "--again", "compile", "--until", "compile")

    def script(self) -> None:
        """Build with the script."""
        self.run("sh", str(self.plain))

    def script_again(self) -> None:
        """Compile again with the script."""
        lines = self.plain.read_text("utf-8").splitlines()
        self.run("sh", "-c", "\n".join(text for text in lines if "--output_base=" in text))

    def one_task(self) -> None:
        """List a collection of one task."""
        subprocess.run(
            [*INVOKE, "--list"],
            cwd=self.place / "one",
            env=self.host,
            check=True,
            capture_output=True,
        )

    def list_commands(self) -> None:
        """List the commands of tfwright."""
        self.run(*INVOKE, "--list")

    def run(self, *argv: str) -> None:
        """Run a program in the checkout."""
        done = subprocess.run(
            argv, cwd=ROOT, env=self.host, check=False, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{shlex.join(argv)} failed:\n{done.stdout}{done.stderr}")


def line(step: dict[str, Any]) -> str:
    """Return a planned command as a line of a shell script."""
    variables = [f"{name}={value}" for name, value in step["env"].items()]
    return (
        f"(cd {shlex.quote(str(step['cwd']))} && env -i {shlex.join([*variables, *step['argv']])})"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
