"""How well `invoke diagnose` explains failures that it has not seen, class by class.

    python benchmarks/failures.py FAILURES [--first N | --last N] [--harmless FOLDER] [--show]
        [--verdicts FILE] [--before FOLDER]

FAILURES is a TOML file with tables [[failure]]: `id`, `class`, `sample` (the log as it was pasted),
`root` (its root line), `cause` and `remedy` (what helped). --harmless names a folder of logs in
which nothing failed. The script counts recognition, the place of the root line and false alarms.
A program cannot count whether a stated cause is right: --show prints both texts for a reader, with
the digest of what was said. A reader's verdicts are a TOML file with a table [verdicts], of lines
`ID = "right DIGEST"`, `general` or `wrong`; --verdicts counts them, and those whose digest is
another one today as stale. --before names the `src` folder of an earlier version, which is asked for the
same counts.
"""

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis, Match

Failure = Mapping[str, str]
COLUMNS = ("failures", "recognised", "root first", "root shown", "certain", "general only")


VERDICTS = ("right", "general", "wrong")
DIGEST = 8
"""Characters of a digest."""


def main() -> None:
    """Read the failures, diagnose each, and print a line for every class."""
    options = _options()
    failures = _chosen(options)
    table: dict[str, list[int]] = defaultdict(lambda: [0] * len(COLUMNS))
    judged: dict[str, list[int]] = defaultdict(lambda: [0] * (len(VERDICTS) + 2))
    verdicts = _verdicts(options.verdicts)
    for failure in failures:
        found = reader.read(io.BytesIO(failure["sample"].encode()))
        row = [1, *_judged(failure, found)]
        for name in (failure["class"], "all"):
            table[name] = _sum(table[name], row)
            judged[name] = _sum(judged[name], _read(verdicts.get(failure["id"], ""), found))
        if options.show:
            print("\n".join(_shown(failure, found)))
    if options.json:
        print(json.dumps(table))
        return
    before = _before(options) if options.before else {}
    _print(table, before)
    if verdicts:
        _print_verdicts(judged)
    if options.harmless:
        _print_alarms(options.harmless)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("failures", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=0)
    parser.add_argument("--harmless", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--verdicts", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _sum(some: Sequence[int], others: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(some, others, strict=True)]


def _verdicts(file: Path | None) -> Mapping[str, str]:
    """Return what a reader judged of each failure; nothing if no file is named."""
    if file is None:
        return {}
    read: Mapping[str, str] = tomllib.loads(file.read_text("utf-8"))["verdicts"]
    return read


def _before(options: argparse.Namespace) -> Mapping[str, Sequence[int]]:
    """Return the counts of an earlier version, which a process of its own imports."""
    part = [f"--first={options.first}", f"--last={options.last}"]
    done = subprocess.run(
        [sys.executable, __file__, str(options.failures), "--json", *part],
        env={**os.environ, "PYTHONPATH": str(options.before)},
        stdout=subprocess.PIPE,
        check=True,
    )
    counts: Mapping[str, Sequence[int]] = json.loads(done.stdout)
    return counts


def _said(found: Diagnosis) -> str:
    """Return a digest of the first cause and remedy, and of how sure they are."""
    first = next((match for match in found.matches if match.explains), None)
    said = (first.cause, first.remedy, first.certain) if first else ()
    return hashlib.sha256(repr(said).encode()).hexdigest()[:DIGEST]


def _read(verdict: str, found: Diagnosis) -> list[int]:
    """Count one verdict: right, general, wrong, wrong though certain, stale."""
    word, _, digest = verdict.partition(" ")
    certain = any(_certain(match) for match in found.matches if match.explains)
    counts = [int(word == each) for each in VERDICTS]
    stale = bool(verdict) and digest != _said(found)
    return [*counts, int(word == "wrong" and certain), int(stale)]


def _chosen(options: argparse.Namespace) -> Sequence[Failure]:
    """Return the failures that are asked for: all, or one part of them."""
    failures: list[Failure] = tomllib.loads(options.failures.read_text("utf-8"))["failure"]
    if options.first:
        return failures[: options.first]
    return failures[-options.last :] if options.last else failures


def _judged(failure: Failure, found: Diagnosis) -> Sequence[int]:
    """Say of one failure what can be counted."""
    explaining = [match for match in found.matches if match.explains]
    shown = [*found.first.lines, *getattr(found.first, "before", ())] if found.first else []
    return (
        int(bool(explaining)),
        int(bool(found.first) and _same(failure["root"], found.first.what if found.first else "")),
        int(any(_same(failure["root"], line) for line in shown)),
        int(any(_certain(match) for match in explaining)),
        int(bool(explaining) and not getattr(explaining[0].entry, "sample", "")),
    )


def _certain(match: Match) -> bool:
    """Say whether a match is shown as known; no version from before the families says so."""
    return bool(getattr(match, "certain", False))


def _same(root: str, line: str) -> bool:
    """Say whether two texts are the same line; one of them may be shortened."""
    wanted, given = " ".join(root.split())[:300], " ".join(line.split())
    return bool(given) and (wanted in given or given.removesuffix(" …") in wanted)


def _shown(failure: Failure, found: Diagnosis) -> Iterator[str]:
    """Yield what is known of one failure, and what was said of it."""
    right = found.first and _same(failure["root"], found.first.what)
    yield f"\n## {failure['id']} ({failure['class']}) {_said(found)}" + (
        "" if right else "   ROOT DIFFERS"
    )
    if not right:
        yield f"   root:  {failure['root']}"
        yield f"   found: {found.first.what if found.first else None}"
    yield f"   cause: {failure['cause']}\n   help:  {failure['remedy']}"
    for match in [match for match in found.matches if match.explains] or found.harmless:
        mark = "certain" if match.certain else "possible"
        yield f"   - {match.entry.id} ({mark})\n     why: {match.cause}\n     do:  {match.remedy}"


def _print(table: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> None:
    """Print the counts, in percent of the failures of each class."""
    print(f"{'class':<16}" + "".join(f"{column:>14}" for column in COLUMNS))
    for name in _ordered(table):
        count, *others = table[name]
        earlier = before.get(name, [])[1:]
        shares = [f"{100 * value / count:.0f}%" for value in others]
        for place, value in enumerate(earlier[: len(shares)]):
            shares[place] = f"{100 * value / count:.0f}% -> {shares[place]}"
        print(f"{name:<16}{count:>14}" + "".join(f"{share:>14}" for share in shares))


def _print_verdicts(judged: Mapping[str, Sequence[int]]) -> None:
    """Print how many causes a reader called right, and what became of them since."""
    columns = (*VERDICTS, "certain, wrong", "stale")
    print(f"\n{'class':<16}" + "".join(f"{column:>15}" for column in columns))
    for name in _ordered(judged):
        print(f"{name:<16}" + "".join(f"{count:>15}" for count in judged[name]))


def _ordered(table: Mapping[str, object]) -> list[str]:
    return sorted(table, key=lambda name: (name == "all", name))


def _print_alarms(folder: Path) -> None:
    """Print the harmless logs in which something is called an error."""
    logs = sorted(path for path in folder.rglob("*") if path.is_file())
    alarms = 0
    for path in logs:
        with path.open("rb") as log:
            found = reader.read(log)
        if found.first:
            alarms += 1
            print(f"false alarm: {path.name}, line {found.first.line}: {found.first.what[:150]}")
    print(f"{alarms} false alarms in {len(logs)} harmless logs")


if __name__ == "__main__":
    main()
