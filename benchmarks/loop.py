"""What tfwright costs in the loop of a maintainer: one line of one patch changed, and built again.

    python benchmarks/loop.py RECIPE FILE [ROUNDS]

FILE is a C++ source of the recipe's tree, which was built before until `compile`. A copy of the
recipe gets one more patch, with one more line at the end of FILE. Each round gives that line
another text, twice: first `invoke build --until compile` builds it; then `git apply` undoes and
applies it in the same tree, and Bazel's own command builds it, with the same output base, flags,
environment and server. Both therefore compile FILE and link what holds it. Neither may take results
from a cache. Printed are the medians by the clock, and their ratio.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfwright.documents import recipe as recipes

INVOKE = (sys.executable, "-m", "invoke", f"--search-root={recipes.ROOT}")
PATCH = """Why: measured.
Upstream: none; a benchmark.
Drop when: never.

diff --git a/{file} b/{file}
--- a/{file}
+++ b/{file}
@@ -{line} +{line},2 @@
 {last}
+static const int tfwright_loop = {number};
"""


def main(name: str, file: str, rounds: int) -> None:
    """Measure both ways in turn."""
    with tempfile.TemporaryDirectory(prefix="tfwright-loop-") as room:
        # Next to the recipe's own, so that tree, output base and Bazel's server are a copy's.
        loop = Loop(Path(room), name, file)
        loop.prepare()
        ours, plain = [], []
        for number in range(1, rounds + 1):
            ours.append(loop.tfwright(2 * number))
            plain.append(loop.bare(2 * number, 2 * number + 1))
            print(f"round {number}: {ours[-1]:.1f} s, {plain[-1]:.1f} s", flush=True)
        first, second = statistics.median(ours), statistics.median(plain)
        print(f"invoke build {first:.1f} s, git apply and Bazel {second:.1f} s")
        print(f"ratio {first / second:.3f}")


class Loop:
    """A recipe whose last patch changes."""

    def __init__(self, room: Path, name: str, file: str) -> None:
        """Copy the recipe, with its packages and patches."""
        source = recipes.find(name)
        self.recipe = Path(shutil.copy(source, room / "loop.toml"))
        if source.with_suffix(".pins").is_file():
            shutil.copy(source.with_suffix(".pins"), room / "loop.pins")
        self.file, self.patches = file, recipes.read(name).source.patches
        for patch in self.patches:
            target = room / "patches" / patch
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(recipes.read(name).source.file(patch), target)
        folder = Path(self.patches[0]).parent if self.patches else Path("loop")
        self.name = str(folder / "9999-loop.patch")
        self.patch = room / "patches" / self.name

    def build(self, until: str) -> None:
        """Run `invoke build`."""
        words = ("build", f"--recipe={self.recipe}", f"--until={until}", "--no-cache")
        subprocess.run([*INVOKE, *words], check=True, capture_output=True)

    def prepare(self) -> None:
        """Build once with the patch, and learn Bazel's command."""
        from tfwright.tools import toml_editing

        self.build("source")
        words = (*INVOKE, "plan", f"--recipe={self.recipe}", "--until=compile", "--json")
        plan = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
        (steps,) = (each["steps"] for each in plan if each["stage"] == "compile")
        (command,) = (step for step in steps if "build" in step.get("argv", ()))
        # As with --no-cache.
        self.argv = [word for word in command["argv"] if not word.startswith("--disk_cache")]
        self.tree, self.environment = Path(command["cwd"]), command["env"]
        lines = (self.tree / self.file).read_text("utf-8").splitlines()
        self.line, self.last = len(lines), lines[-1]
        self.write(0)
        toml_editing.put(self.recipe, ("source", "patches"), [*self.patches, self.name])
        self.build("compile")

    def write(self, number: int) -> None:
        """Write the patch, whose line holds a number."""
        self.patch.parent.mkdir(parents=True, exist_ok=True)
        text = PATCH.format(file=self.file, line=self.line, last=self.last, number=number)
        self.patch.write_text(text, "utf-8")

    def tfwright(self, number: int) -> float:
        """Return the seconds of `invoke build` after a change."""
        self.write(number)
        began = time.monotonic()
        self.build("compile")
        return time.monotonic() - began

    def bare(self, before: int, number: int) -> float:
        """Return the seconds of git and Bazel after a change."""
        self.write(before)
        old = self.patch.read_bytes()
        self.write(number)
        began = time.monotonic()
        apply = ["git", "apply", "--unidiff-zero"]
        subprocess.run([*apply, "-R", "-"], cwd=self.tree, input=old, check=True)
        subprocess.run([*apply, str(self.patch)], cwd=self.tree, check=True)
        subprocess.run(
            self.argv, cwd=self.tree, env=self.environment, check=True, capture_output=True
        )
        return time.monotonic() - began


if __name__ == "__main__":
    recipe, source, *given = sys.argv[1:]
    main(recipe, source, int(given[0]) if given else 3)
