"""Which TensorFlow can still be built: where the archives of each release can still be had, by digest.

    PYTHONPATH=. python benchmarks/archives_left.py MIRROR [--record F] [--urls]

MIRROR is a bare repository with TensorFlow's tags; of each release from 1.4 on the last tag counts.
The archives are those that its own WORKSPACE leads to. Each is made or downloaded from one kind of
source after the other until one gives the pinned bytes: the git mirrors of the host file, the
package index, the sources that the bundled recipes name, and with --urls first its own addresses.
An archive that was recorded is not asked for again.
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import FetchTable
from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import TfwrightError
from tfwright.rules import patched_tree, repositories
from tfwright.tools import files
from tfwright.tools.git.repository import GitRepository
from tfwright.tools.http import downloads
from tfwright.vault import reach
from tfwright.vault.origins import GIT, INDEX, RECIPE, URL, Origins, WantedArchive

FIRST = Release(1, 4)
WAYS = (URL, GIT, INDEX, RECIPE)
FORGE, ELSEWHERE = "left: GitHub", "left: elsewhere"
"""What no source here gave, by where its addresses lead; the servers were not asked."""


def main() -> None:
    """Ask what is not recorded yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--record", type=Path, default=Path("archives_left.jsonl"))
    parser.add_argument("--urls", action="store_true")
    options = parser.parse_args()
    wanted = {line: _wanted(options.mirror, tag) for line, tag in _tags(options.mirror).items()}
    known = dict(_recorded(options.record))
    asked = {one.sha256: one for several in wanted.values() for one in several}
    settings = host_file.read()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        documents = [recipes.read(name) for name in recipes.names()]
        sources = [source for each in documents for source in each.fetch.sources]
        fetch = FetchTable(sources=tuple(dict.fromkeys(sources)))
        origins = Origins(settings, Path(folder), offline=False, fetch=fetch)
        waiting = [one for one in asked.values() if one.sha256 not in known]
        found = pool.map(lambda one: _way(one, origins, urls=options.urls), waiting)
        with options.record.open("a") as file:
            for one, way in zip(waiting, found, strict=True):
                known[one.sha256] = way
                file.write(json.dumps([one.sha256, one.name, way]) + "\n")
                file.flush()
    _print(
        {line: Counter(known[one.sha256] for one in several) for line, several in wanted.items()}
    )
    left = {one.name: one for one in asked.values() if known[one.sha256] not in WAYS}
    for name in sorted(left):
        print(known[left[name].sha256], name, *left[name].urls[-1:])


def _tags(mirror: Path) -> dict[Release, str]:
    """Return the last release of each line."""
    git = ["git", "-C", str(mirror), "tag", "-l", "v*"]
    listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split()
    tags = [tag for tag in listed if not ExactRelease.parse(tag).candidate]
    tags.sort(key=lambda tag: ExactRelease.parse(tag).rank)
    return {line: tag for tag in tags if (line := ExactRelease.parse(tag).line) >= FIRST}


def _wanted(mirror: Path, tag: str) -> Sequence[WantedArchive]:
    texts = GitRepository(mirror).texts(tag, patched_tree.is_relevant)
    return reach.wanted_archives(repositories.read(texts), {}, None)


def _recorded(path: Path) -> Iterator[tuple[str, str]]:
    if path.exists():
        lines = map(json.loads, path.read_text().splitlines())
        yield from ((sha256, way) for sha256, _, way in lines)


def _way(wanted: WantedArchive, origins: Origins, *, urls: bool) -> str:
    """Return the first kind of source that gives the pinned bytes."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "file")
        for url in origins.urls(wanted) if urls else ():
            try:
                if downloads.download(url, target, pauses=()) == wanted.sha256:
                    return URL
            except TfwrightError:
                continue
        for source in origins.other_sources(wanted):
            # A repository that is not on this host is on the server whose addresses were not asked.
            if source.remote and source.way == GIT:
                continue
            try:
                source.fill(target)
            except TfwrightError:
                continue
            if files.sha256(target) == wanted.sha256:
                return source.way
    return FORGE if any("github.com/" in url for url in wanted.urls) else ELSEWHERE


def _print(counts: dict[Release, Counter[str]]) -> None:
    columns = (*WAYS, FORGE, ELSEWHERE)
    print("| release | archives |", " | ".join(columns), "|")
    print("|" + "---|" * (len(columns) + 2))
    for line in sorted(counts):
        count = counts[line]
        numbers = [count.total(), *(count[column] for column in columns)]
        print(f"| {line} |", " | ".join(map(str, numbers)), "|")


if __name__ == "__main__":
    main()
