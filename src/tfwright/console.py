"""What people read: a step trail while a build runs, tables, and errors in three parts."""

import json
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tfwright.errors import TfwrightError
from tfwright.progress import Progress

if TYPE_CHECKING:
    from tqdm import tqdm

    from tfwright.diagnosis.reader import Diagnosis, Match
    from tfwright.engine import Planned
    from tfwright.host.findings import Finding
    from tfwright.host.inventory import Fact
    from tfwright.host.match import Candidate, Need, Wish
    from tfwright.listing import Row
    from tfwright.stage import Job, Result, Step
    from tfwright.vault.bundle import Manifest
    from tfwright.vault.care import Inventory, Thing
    from tfwright.vault.links import Row as LinkRow
    from tfwright.vault.lock import Lock
    from tfwright.wheel.inspection import Library, Report

LINE_SECONDS = 30.0
"""How often progress is told where there is no terminal to draw a bar on."""
MOST_CAUSES = 3
"""How many possible causes of a failure are told."""


class Terminal:
    """A listener that shows one line a stage, and a live bar for long ones, on stderr."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._stage = self._why = ""
        self._bar: tqdm[Any] | None = None
        self._told = 0.0

    def started(self, stage: str, why: str) -> None:
        """Remember the stage; its line is written when it is done."""
        self._stage, self._why = stage, why
        self._told = time.monotonic()

    def kept(self, stage: str) -> None:
        """Show that a stage was skipped."""
        _tell(f"  {stage:<10} kept")

    def finished(self, stage: str, seconds: float) -> None:
        """Show a stage's time and why it ran."""
        self._close()
        _tell(f"  {stage:<10} {seconds:7.1f} s   {self._why}")

    def note(self, text: str) -> None:
        """Show a fact that the reader should know."""
        self._close()
        _tell(f"  {self._stage:<10}   - {text}")

    def progress(self, progress: Progress) -> None:
        """Draw the bar, or write a line now and then."""
        if sys.stderr.isatty():
            self._draw(progress)
        elif time.monotonic() - self._told >= LINE_SECONDS:
            self._told = time.monotonic()
            _tell(f"  {self._stage:<10} {_sentence(progress)}")

    def _draw(self, progress: Progress) -> None:
        """Move the live bar."""
        if self._bar is None:
            from tqdm import tqdm  # noqa: PLC0415 start-up is part of the product

            self._bar = tqdm(desc=f"  {self._stage}", leave=False, dynamic_ncols=True, unit=progress.unit, unit_scale=progress.unit == "B")
        self._bar.total = progress.total
        self._bar.n = progress.done
        failures = f"{progress.failures} failed, " if progress.failures else ""
        self._bar.set_postfix_str(failures + progress.doing[:60], refresh=True)

    def _close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _sentence(progress: Progress) -> str:
    """Say progress in one line of text."""
    total = f" of {progress.total:,}" if progress.total is not None else ""
    failures = f", {progress.failures} failed" if progress.failures else ""
    doing = f": {progress.doing}" if progress.doing else ""
    return f"{progress.done:,}{total} {progress.unit}{failures}{doing}"


def announce(job: "Job") -> None:
    """Say what is going to be built."""
    _tell(f"{job.recipe.name}: {job.recipe.summary}")


def conclude(job: "Job", result: "Result") -> None:
    """Say what was made: the wheel on stdout, for scripts."""
    wheel = getattr(result, "wheel", None)
    if job.until == "publish" and wheel is not None:
        _tell(f"  sha256 {wheel.sha256}, {wheel.size:,} bytes")
        print(wheel.path)
    else:
        _tell(f"  stopped after {job.until}, as asked")


@contextmanager
def ending_gently() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that a service's stop leaves nothing running."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def explain(fault: TfwrightError, resume: str = "") -> None:
    """Write an error: what happened, what to do, where to look, how to resume."""
    evidence = fault.evidence
    stage = f" in {fault.stage}" if fault.stage else ""
    _tell(f"\nFailed{stage}: {fault.what}")
    for line in evidence.lines:
        _tell(f"    | {line}")
    _tell(f"  do:     {fault.remedy}")
    if evidence.where:
        _tell(f"  where:  {evidence.where}")
    if evidence.command:
        status = f"  (status {evidence.status})" if evidence.status is not None else ""
        _tell(f"  ran:    {shlex.join(evidence.command)}{status}")
    if evidence.log:
        _tell(f"  log:    {evidence.log}")
        _suspect(evidence.log)
    if resume:
        _tell(f"  resume: {resume}")


def _suspect(log: Path) -> None:
    """Add what the catalogue knows of the first error in a failed stage's log."""
    from tfwright.diagnosis import logs  # noqa: PLC0415 only a failure needs it

    if log.is_file():
        found = logs.diagnose(str(log))
        for match in [match for match in found.matches if match.explains][:1]:
            _tell_match(match, log.parent)


def _tell_match(match: "Match", place: Path) -> None:
    """Say a known failure: why, what helps, what this host shows of it, and who met it."""
    from tfwright.diagnosis import evidence  # noqa: PLC0415 only a failure needs it

    entry = match.entry
    _tell(f"  known:  {entry.id}, line {match.line}" + ("" if match.explains else ", which is not the first error"))
    _tell(f"    why:  {entry.cause}")
    _tell(f"    do:   {entry.remedy}")
    for text in evidence.of(entry, place):
        _tell(f"    here: {text}")
    _tell(f"    seen: {entry.links[0]}")


def show_diagnosis(found: "Diagnosis", report: Path | None, *, as_json: bool) -> None:
    """Say what failed in a log, the likeliest known causes, and what only looks bad."""
    if as_json:
        _print_json({"first": found.first and asdict(found.first), "matches": [*map(_said, found.matches)], "harmless": [*map(_said, found.harmless)]})
        return
    if found.first:
        _tell(f"Line {found.first.line}: {found.first.what}")
        for line in found.first.lines:
            _tell(f"    | {line}")
    else:
        _tell("Nothing in it complains.")
    for match in found.matches[:MOST_CAUSES]:
        _tell_match(match, Path.cwd())
    for match in found.harmless:
        _tell(f"  harmless: {match.entry.id}, line {match.line}: {match.entry.cause}")
    if report:
        _tell("  Nothing is known about this error. A report that can be filed as an issue:")
        print(report)


def _said(match: "Match") -> dict[str, object]:
    """Return a match as JSON can say it."""
    kept = {name: getattr(match.entry, name) for name in ("id", "stage", "retry", "cause", "remedy")}
    return {**kept, "sources": match.entry.links, "line": match.line, "text": match.text, "explains_first_error": match.explains}


def interrupted(resume: str = "") -> None:
    """Say that the user stopped the build, and that nothing is lost."""
    _tell("\nStopped; what was finished is kept.")
    if resume:
        _tell(f"  resume: {resume}")


def show_plan(plan: "Iterable[Planned]", *, as_json: bool) -> None:
    """Print a plan: per stage keep or run, why, and its commands and files."""
    if as_json:
        _print_json([{"stage": one.stage.name, "run": bool(one.why), "why": one.why, "steps": [_step(step) for step in one.steps]} for one in plan])
        return
    shown: dict[str, str] = {}
    for one in plan:
        print(f"{'run ' if one.why else 'keep'} {one.stage.name:<10} {one.why or one.stage.summary}")
        for step in one.steps if one.why else ():
            for line in _lines(step, shown):
                print(f"       {line}")
            shown = dict(getattr(step, "env", shown))


def _step(step: "Step") -> dict[str, object]:
    """Return a step as JSON can say it."""
    return {name: list(value) if isinstance(value, tuple) else dict(value) if hasattr(value, "keys") else str(value) for name, value in vars(step).items()}


def _lines(step: "Step", shown: Mapping[str, str]) -> Iterator[str]:
    """Return a step as people read it; of its environment only what is not as it was `shown` for the step before."""
    said = vars(step)
    if "argv" in said:
        yield f"$ {step}"
        yield f"    in {said['cwd']}"
        yield from (f"    {name}={value}" for name, value in sorted(said["env"].items()) if shown.get(name) != value)
        yield from (f"    without {name}" for name in sorted(shown.keys() - said["env"].keys()))
    else:
        yield f"writes {said['path']}"
        yield from (f"    {line}" for line in said["content"].splitlines())


def show_recipes(rows: "Sequence[Row]", *, as_json: bool) -> None:
    """Print the recipes as a table."""
    if as_json:
        _print_json([row.__dict__ for row in rows])
        return
    heads = tuple(rows[0].__dict__) if rows else ()
    _print_table([tuple(name.replace("_", " ") for name in heads), *(tuple(str(value) for value in row.__dict__.values()) for row in rows)])


def show_lock(path: Path, lock: "Lock") -> None:
    """Say what was locked, and what could not be; the file's name on stdout, for scripts."""
    needed = [one for one in lock.archives if one.needed]
    known = f", {len(needed)} of them wanted by the target" if needed else ""
    _tell(f"  {len(lock.archives)} archives{known}; {len(lock.requirements)} packages, {len(lock.files)} patches and assets")
    for one in lock.substitutes:
        _tell(f"  not the pinned bytes: {one.source}: {one.reason}")
    if lock.unlockable:
        _tell(f"  {len(lock.unlockable)} downloads that no digest holds; the lock names them")
    print(path)


def show_links(rows: "Sequence[LinkRow]", *, as_json: bool) -> None:
    """Print, per archive, how many of its sources still have it, and the ones that do not."""
    if as_json:
        _print_json([{**vars(row), "left": row.left, "links": [vars(link) for link in row.links]} for row in rows])
        return
    lines = [("archive", "left", "vault", "sources")]
    for row in sorted(rows, key=lambda row: row.left):
        told = [f"{link.where}: {link.state}{f' ({link.why})' if link.why else ''}" for link in row.links] or ["no source"]
        lines.append((row.name.partition(",")[0], f"{row.left} of {len(row.links)}", "yes" if row.kept else "no", told[0]))
        lines.extend(("", "", "", text) for text in told[1:])
    _print_table(lines)
    counts = [sum(row.left == 0 for row in rows), sum(row.left == 1 for row in rows)]
    _tell(f"  {len(rows)} archives: {counts[0]} have no source left, {counts[1]} have one, {len(rows) - sum(counts)} more")


def show_report(report: "Report", *, as_json: bool) -> None:
    """Print what a wheel is: the whole, then a table of its libraries, then what its user should know."""
    if as_json:
        _print_json(asdict(report))
        return
    print(f"{report.file}: {report.size:,} bytes, {report.unpacked:,} unpacked")
    facts = {
        "project": f"{report.project} {report.version}".strip(),
        "tags": ", ".join(report.tags),
        "python": report.requires_python,
        "built with": ", ".join(f"{name} {value}" for name, value in report.stated),
        "linked with": ", ".join(report.nvidia),
    }
    for name, value in facts.items():
        print(f"  {name:<12} {value or 'not said'}")
    if report.libraries:
        _print_table([("library", "MB", "machine", "needs", "std::string", "GPU code"), *map(_library_row, report.libraries)])
    for note in report.notes:
        print(f"note: {note}")


def _library_row(library: "Library") -> tuple[str, ...]:
    """Return a library's line in the table."""
    elf = library.elf
    machines = [elf.machine] if elf else [part.machine for part in library.macho]
    needs = [f"{family} {need.version}" for family, need in elf.requires.items()] if elf else [f"macOS {part.minimum}" for part in library.macho]
    gpu = [*(elf.architectures if elf else ()), *([f"NCCL {library.text.nccl}"] if library.text.nccl else [])]
    strings = ", ".join(elf.strings) if elf else ""
    return library.path.rpartition("/purelib/")[2], f"{library.size / 1e6:.1f}", ", ".join(machines), library.fault or ", ".join(needs), strings, " ".join(gpu)


def _print_table(cells: "Sequence[tuple[str, ...]]") -> None:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for cell in cells:
        print("  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip())


def show_bundle(manifest: "Manifest") -> None:
    """Print what a bundle holds, what it does not, and the digest to compare on the other host."""
    for kind, count in Counter(member.kind for member in manifest.members).items():
        size = sum(member.size for member in manifest.members if member.kind == kind)
        print(f"  {kind:<8} {count:>4}  {size:>14,} bytes")
    for absent in manifest.absent:
        print(f"  without {absent.name}" + "".join(f"\n    {sha256}  {path}" for path, sha256 in absent.files.items()))
    print(f"  for {manifest.platform}, tfwright {manifest.tfwright} on Python {manifest.python}; manifest sha256 {manifest.sha256}")


def show_vault(inventory: "Inventory") -> None:
    """Print what the vault holds by kind, what each recipe needs of it, what they share, and what nobody needs."""
    users = {thing: inventory.users(thing) for thing in inventory.things}
    sizes = {thing: thing.size for thing in inventory.things}
    for kind, count in Counter(thing.kind for thing in sizes).items():
        print(f"{kind:<10} {count:>5}  {sum(size for thing, size in sizes.items() if thing.kind == kind):>16,} bytes")
    for need in inventory.needs:
        own = [thing for thing in sizes if need.recipe in users[thing]]
        others = sorted({user for thing in own for user in users[thing]} - {need.recipe})
        shared = sum(sizes[thing] for thing in own if len(users[thing]) > 1)
        print(f"  {need.recipe}: {sum(sizes[thing] for thing in own):,} bytes" + (f", {shared:,} of them shared with {', '.join(others)}" if others else ""))
    if inventory.undecided:
        print(f"{len(inventory.undecided)} archives stay: what they need is not known of {', '.join(inventory.unknown)} ('invoke lock' finds out)")
    show_garbage(inventory.garbage)


def show_garbage(things: "Sequence[Thing]") -> None:
    """Print what nobody needs, with the total."""
    for thing in things:
        print(f"  {thing.size:>16,}  {thing.kind} {thing.name}")
    print(f"{sum(thing.size for thing in things):,} bytes in {len(things)} things that no recipe and no lock needs")


def show_sound(things: "Sequence[Thing]") -> None:
    """Say that everything is what it was."""
    print(f"{len(things)} files, {sum(thing.size for thing in things):,} bytes: each is what its digest says")


def show_examination(recipe: str, facts: "Sequence[Fact]", findings: "Sequence[Finding]", *, as_json: bool) -> None:
    """Print what a host has, what is amiss for a recipe, the worst first, and what follows."""
    if as_json:
        said = [{"name": fact.name.strip(), "value": fact.seen.value, "by": fact.seen.by, "decides": fact.decides} for fact in facts]
        amiss = [{**vars(finding), "remedy": finding.remedy.splitlines()} for finding in findings]
        _print_json({"recipe": recipe, "may_start": not any(finding.blocks for finding in findings), "facts": said, "findings": amiss})
        return
    print(f"{recipe}\n")
    for fact in facts:
        print(f"{'*' if fact.decides and fact.seen else ' '} {fact.name:<21} {fact.seen.value or '-':<52} {fact.seen.by if fact.seen else ''}".rstrip())
    print("\n* can change the wheel's bytes\n")
    for number, finding in enumerate(findings, 1):
        print("\n".join(_finding(number, finding)) + "\n")
    print(_verdict(findings))


def _finding(number: int, finding: "Finding") -> Iterator[str]:
    """Return a finding as people read it, its commands one a line."""
    yield f"{number}. {finding.found}"
    yield f"   wanted  {finding.wanted}"
    if finding.why:
        yield f"   why     {finding.why}"
    first, *rest = finding.remedy.splitlines()
    yield f"   do      {first}"
    yield from (f"           {line}" for line in rest)
    yield f"   stops   {finding.blocks or 'nothing'}"


def _verdict(findings: "Sequence[Finding]") -> str:
    """Say whether a build may start; the worst finding comes first."""
    worst = next((finding.blocks for finding in findings if finding.blocks), "")
    if not worst:
        return "The build may start."
    return "The build cannot start." if worst == "check" else f"The build would stop before '{worst}'."


def show_matches(wanted: "Wish", ranked: "Sequence[Candidate]", needs: "Sequence[Need]", nearest: int, *, as_json: bool) -> None:
    """Print which recipes fit, how the nearest others differ, and what a new one would pin."""
    if as_json:
        _print_json({"wanted": vars(wanted), "recipes": [vars(one) for one in ranked], "new": [vars(need) for need in needs]})
        return
    fitting = [one for one in ranked if not one.differs]
    print(f"wanted: {wanted}\n\nfits:")
    for one in fitting:
        print(f"  {one.recipe:<30} {one.summary}")
    print("" if fitting else "  no recipe yet\n", end="")
    print("\nnearest:")
    for one in ranked[len(fitting) : len(fitting) + nearest]:
        print(f"  {one.recipe:<30} {'; '.join(one.differs)}")
    print("\na new recipe would pin:" if needs else "\nno TensorFlow was made for this together.")
    for need in needs:
        print(f"  {need.name:<20} {need.value:<42} {need.source}".rstrip())


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


def _tell(text: str) -> None:
    """Write a line for people, on stderr."""
    sys.stderr.write(text.replace(str(Path.cwd()) + "/", "") + "\n")
