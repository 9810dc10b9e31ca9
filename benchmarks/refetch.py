"""What a build costs after one changed patch or substitute: the stages fetch and source.

    python benchmarks/refetch.py RECIPE [ROUNDS]

The recipe, its lock and its patches are copied. After one build until `source`, each round changes
the last patch (a line of its header, which git does not read), then the reason of a substitute,
and builds again without a network. The seconds are those of the stamps: of the clock, and of the
processor with all programs that the stage ran, the median of the rounds.

What the recipe needs has to be in the vault, so that the host's own settings file is used.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes

STAGES = ("fetch", "source")
COPY = """
import sys
from pathlib import Path
from tfwright.documents import recipe
recipe.PATCHES = Path(sys.argv.pop(1))
from invoke.main import program
sys.argv[0] = "invoke"
program.run()
"""
"""Runs a command with another folder of patches."""


class Bench:
    """A copy of a recipe, which is changed and built."""

    def __init__(self, name: str, folder: Path) -> None:
        """Copy the recipe, with its lock and all patches, into a folder."""
        original = recipes.RECIPES / f"{name}.toml"
        self.recipe = folder / f"refetch-{name}.toml"
        shutil.copy(original, self.recipe)
        if original.with_suffix(".lock").is_file():
            shutil.copy(original.with_suffix(".lock"), self.recipe.with_suffix(".lock"))
        self.patches = folder / "patches"
        shutil.copytree(recipes.PATCHES, self.patches)
        self.own = host_file.read().build_out / self.recipe.stem
        named = recipes.read(str(original)).source.patches
        self.last = self.patches / named[-1]

    def build(self) -> None:
        """Run the stages up to `source`, offline."""
        # Up to source alone, a build would leave the archives out.
        for stage in ("fetch", "source"):
            self.run("build", "--recipe", str(self.recipe), "--until", stage, "--offline")

    def run(self, *words: str) -> None:
        """Run a command of tfwright on the copied patches."""
        done = subprocess.run(
            [sys.executable, "-c", COPY, str(self.patches), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=recipes.ROOT,
            env={**os.environ, "PYTHONPATH": str(recipes.ROOT / "src")},
        )
        if done.returncode:
            sys.exit(done.stderr)

    def change_patch(self) -> None:
        """Change the header of the last patch."""
        text = self.last.read_text("utf-8")
        self.last.write_text(text.replace("Why:", "Why: again:", 1), "utf-8")

    def change_substitute(self) -> None:
        """Change the reason of the first substitute."""
        text = self.recipe.read_text("utf-8")
        self.recipe.write_text(re.sub('reason = "', 'reason = "Again: ', text, count=1), "utf-8")

    def took(self, stage: str) -> tuple[float, float]:
        """Return the seconds of the clock and of the processor that a stage took."""
        stamp = json.loads((self.own / "stamps" / f"{stage}.json").read_text("utf-8"))
        return stamp["seconds"], stamp["cpu"]


def main(name: str, rounds: int) -> None:
    """Measure both changes, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(name, Path(folder))
        try:
            bench.build()
            print(f"{'after':<24} {'stage':<8} {'seconds':>9} {'processor':>10}")
            measure(bench, "a changed patch", bench.change_patch, rounds)
            if "[fetch.substitutes" in bench.recipe.read_text("utf-8"):
                measure(bench, "a changed substitute", bench.change_substitute, rounds)
        finally:
            shutil.rmtree(bench.own, ignore_errors=True)


def measure(bench: Bench, what: str, change: Callable[[], None], rounds: int) -> None:
    """Change and build in rounds, and print the medians."""
    times: dict[str, list[tuple[float, float]]] = {stage: [] for stage in STAGES}
    for _ in range(rounds):
        change()
        bench.build()
        for stage in STAGES:
            times[stage].append(bench.took(stage))
    for stage, taken in times.items():
        clock, processor = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"{what:<24} {stage:<8} {clock:8.2f}s {processor:9.2f}s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)  # noqa: PLR2004 the second
