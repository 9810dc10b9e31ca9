"""How well `invoke diagnose` explains failures that it has not seen, class by class.

    python benchmarks/failures.py FAILURES [--first N | --last N] [--harmless FOLDER] [--show]

FAILURES is a TOML file with tables [[failure]]: `id`, `class`, `sample` (the log as it was pasted),
`root` (its root line), `cause` and `remedy` (what helped). --harmless names a folder of logs in
which nothing failed. The script counts recognition, the place of the root line and false alarms.
A program cannot count whether a stated cause is right: --show prints both texts for a reader.
"""

import argparse
import io
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis

Failure = Mapping[str, str]
COLUMNS = (
    "failures",
    "recognised",
    "root first",
    "root shown",
    "certain",
    "general only",
)


def main() -> None:
    """Read the failures, diagnose each, and print a line for every class."""
    options = _options()
    failures = _chosen(options)
    table: dict[str, list[int]] = defaultdict(lambda: [0] * len(COLUMNS))
    for failure in failures:
        found = reader.read(io.BytesIO(failure["sample"].encode()))
        row = [1, *_judged(failure, found)]
        for name in (failure["class"], "all"):
            table[name] = [
                sum(pair) for pair in zip(table[name], row, strict=True)
            ]
        if options.show:
            print("\n".join(_shown(failure, found)))
    _print(table)
    if options.harmless:
        _print_alarms(options.harmless)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("failures", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=0)
    parser.add_argument("--harmless", type=Path)
    parser.add_argument("--show", action="store_true")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> Sequence[Failure]:
    """Return the failures that are asked for: all, or one part of them."""
    failures: list[Failure] = tomllib.loads(options.failures.read_text("utf-8"))[
        "failure"
    ]
    if options.first:
        return failures[: options.first]
    return failures[-options.last :] if options.last else failures


def _judged(failure: Failure, found: Diagnosis) -> Sequence[int]:
    """Say of one failure what can be counted."""
    explaining = [match for match in found.matches if match.explains]
    shown = [*found.first.lines, *found.first.before] if found.first else []
    return (
        int(bool(explaining)),
        int(
            bool(found.first)
            and _same(failure["root"], found.first.what if found.first else "")
        ),
        int(any(_same(failure["root"], line) for line in shown)),
        int(any(match.certain for match in explaining)),
        int(bool(explaining) and not explaining[0].entry.sample),
    )


def _same(root: str, line: str) -> bool:
    """Say whether two texts are the same line; one of them may be shortened."""
    wanted, given = " ".join(root.split())[:300], " ".join(line.split())
    return bool(given) and (wanted in given or given.removesuffix(" …") in wanted)


def _shown(failure: Failure, found: Diagnosis) -> Iterator[str]:
    """Yield what is known of one failure, and what was said of it."""
    right = found.first and _same(failure["root"], found.first.what)
    yield f"\n## {failure['id']} ({failure['class']})" + (
        "" if right else "   ROOT DIFFERS"
    )
    if not right:
        yield f"   root:  {failure['root']}"
        yield f"   found: {found.first.what if found.first else None}"
    yield f"   cause: {failure['cause']}\n   help:  {failure['remedy']}"
    for match in [
        match for match in found.matches if match.explains
    ] or found.harmless:
        mark = "certain" if match.certain else "possible"
        yield f"   - {match.entry.id} ({mark})\n     why: {match.cause}\n     do:  {match.remedy}"


def _print(table: Mapping[str, Sequence[int]]) -> None:
    """Print the counts, in percent of the failures of each class."""
    print(f"{'class':<16}" + "".join(f"{column:>14}" for column in COLUMNS))
    for name in sorted(table, key=lambda name: (name == "all", name)):
        count, *others = table[name]
        shares = "".join(f"{100 * value / count:>13.0f}%" for value in others)
        print(f"{name:<16}{count:>14}{shares}")


def _print_alarms(folder: Path) -> None:
    """Print the harmless logs in which something is called an error."""
    logs = sorted(path for path in folder.rglob("*") if path.is_file())
    alarms = 0
    for path in logs:
        with path.open("rb") as log:
            found = reader.read(log)
        if found.first:
            alarms += 1
            print(
                f"false alarm: {path.name}, line {found.first.line}: {found.first.what[:150]}"
            )
    print(f"{alarms} false alarms in {len(logs)} harmless logs")


if __name__ == "__main__":
    main()
