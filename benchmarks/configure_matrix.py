"""The real ./configure of each release of TensorFlow, against what tfwright renders.

    PYTHONPATH=. python benchmarks/configure_matrix.py MIRROR[@REVISION]... [--only 2.1] [--record F]

Of a bare repository all tags v* count, with @REVISION that tag or commit. Each tree is configured once
for each set of answers of `tests/real/test_configure.py` that its release knows, typed and by the
environment, on a real pty, with a simulated CUDA. Printed are, by release, the runs that agreed.
A run that was recorded is not made again. TFWRIGHT_PYTHONS is as for that test.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.real.configured.site import Site
from tests.real.configured.versions import OTHERS, RELEASES, Pinned
from tests.real.test_configure import SCENARIOS, Scenario

from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import TfwrightError
from tfwright.rules import tree_files
from tfwright.tools.git.repository import GitRepository

PYTHONS = (((1, 13), "3.6"), ((2, 2), "3.7"), ((2, 9), "3.8"), ((2, 16), "3.9"), ((2, 18), "3.11"))
"""The first release that another Python suits, and the one of those before it."""
NEWEST_PYTHON = "3.12"
OLDEST_BAZEL = "0.1.5"
"""For trees that state none: their ./configure does not ask for its version."""
AGREES, REFUSED, DIFFERS = "agrees", "refused", "differs"


class Case(NamedTuple):
    """One tree."""

    mirror: str
    commit: str
    version: str


class Run(NamedTuple):
    """What became of one set of answers of one tree."""

    commit: str
    scenario: str
    by: str
    version: str
    state: str
    why: str


def main() -> None:
    """Run what is not recorded yet, until the time is over, and print the table."""
    options = _options()
    cases = [case for given in options.repositories for case in _cases(given)]
    cases = [case for case in cases if case.version.startswith(options.only)]
    runs = list(_recorded(options.record))
    known = {run[:3] for run in runs}
    end = time.monotonic() + options.minutes * 60
    with ProcessPoolExecutor(options.jobs) as pool, options.record.open("a") as file:
        waiting = [pool.submit(_runs, case, known, end) for case in cases]
        for done in as_completed(waiting):
            runs += done.result()
            file.writelines(json.dumps(run) + "\n" for run in done.result())
            file.flush()
    trees = {case.commit for case in cases}
    _print([run for run in runs if run.commit in trees])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("repositories", nargs="+")
    parser.add_argument("--only", default="", help="the beginning of the versions to run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--record", type=Path, default=Path("configure_matrix.jsonl"))
    return parser.parse_args()


def _recorded(path: Path) -> Iterator[Run]:
    if path.exists():
        yield from (Run(*json.loads(line)) for line in path.read_text().splitlines())


def _cases(given: str) -> Iterator[Case]:
    mirror, _, revision = given.partition("@")
    git = ["git", "-C", mirror]
    tags = [revision]
    if not revision:
        listed = subprocess.run([*git, "tag", "-l", "v*"], check=True, capture_output=True)
        tags = sorted(listed.stdout.decode().split(), key=ExactRelease.parse, reverse=True)
    for tag in tags:
        named = subprocess.run(
            [*git, "rev-parse", f"{tag}^{{commit}}"], check=True, capture_output=True
        )
        commit = named.stdout.decode().strip()
        yield Case(mirror, commit, tag if tag.startswith("v") else _stated(mirror, commit))


def _stated(mirror: str, commit: str) -> str:
    texts = GitRepository(Path(mirror)).texts_at(commit, tree_files.RELEASES)
    return f"v{tree_files.release_of(texts)}.0"


def _pinned(case: Case) -> Pinned:
    """Return what the tree's ./configure accepts."""
    exact = ExactRelease.parse(case.version)
    python = next(
        (python for first, python in PYTHONS if exact.line < Release(*first)), NEWEST_PYTHON
    )
    stated = tree_files.bazel_of(
        GitRepository(Path(case.mirror)).texts_at(case.commit, tree_files.BAZELS)
    )
    known = [one for one in (*RELEASES.values(), *OTHERS.values()) if one.exact.line == exact.line]
    bazel = stated.exact or stated.least if stated else known[0].bazel if known else OLDEST_BAZEL
    return Pinned(case.commit, case.version.removeprefix("v"), bazel, python)


def _runs(case: Case, known: Collection[tuple[str, ...]], end: float) -> list[Run]:
    """Run the sets of answers of one tree that are not known yet."""
    os.environ["TFWRIGHT_TENSORFLOW_MIRRORS"] = case.mirror
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        site = None
        for scenario, by in itertools.product(SCENARIOS, ("dialogue", "environment")):
            key = (case.commit, scenario.__name__, by)
            if key in known or time.monotonic() > end:
                continue
            try:
                # A script of old releases edits files of its tree.
                site = _clean(site) if site else Site(_pinned(case), Path(scratch))
            except pytest.skip.Exception as skipped:
                print(f"{case.version} did not run: {skipped}", flush=True)
                break
            state, why = _run(site, scenario, by)
            if state:
                made.append(Run(*key, case.version, state, why))
    return made


def _clean(site: Site) -> Site:
    git = ["git", "-C", str(site.tree)]
    for command in (["checkout", "-q", "-f", "."], ["clean", "-fdxq"]):
        subprocess.run([*git, *command], check=True)
    for path in site.folder.iterdir():
        if path.name not in {"tree", "tree.git", "cuda"}:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return site


def _run(site: Site, scenario: Scenario, by: str) -> tuple[str, str]:
    """Return what became of a run, and why; two empty texts where the release has no such choice."""
    try:
        chosen = scenario(site)
        if chosen is None or (site.release <= Release(0, 11) and by == "environment"):
            return "", ""
        answers, cuda = chosen
        site.run(answers, by, cuda=cuda)
    except TfwrightError as fault:
        ran = site.bazelrc.exists() or list(site.folder.glob("build_out/real/logs/*"))
        return (DIFFERS if ran else REFUSED), f"{fault.what} {' '.join(fault.evidence.lines[:4])}"
    except pytest.skip.Exception as skipped:
        return "", str(skipped)
    # A fault of the program: counted, and the other runs go on.
    except Exception as fault:  # noqa: BLE001
        return DIFFERS, f"{type(fault).__name__}: {fault}"
    return AGREES, ""


def _print(runs: Sequence[Run]) -> None:
    print(f"{'release':8} {'trees':>5} {'agree':>6} of runs")
    lines = {run.version: ExactRelease.parse(run.version).line for run in runs}
    for line in [*sorted(set(lines.values())), None]:
        here = [run for run in runs if line in {None, lines[run.version]}]
        agreed = sum(run.state == AGREES for run in here)
        trees = len({run.commit for run in here})
        print(f"{line or 'all'!s:8} {trees:5} {agreed:6} of {len(here)}")
    for run in sorted(runs):
        if run.state != AGREES:
            print(f"{run.version} {run.scenario} by {run.by}: {run.state}: {run.why[:300]}")


if __name__ == "__main__":
    main()
