"""A build's own page: what changed and what broke on top, then times, sizes and the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.nightly.builds import Breakage, NightlyBuild
from tfwright.nightly.pages import drawing, log, timeline, words
from tfwright.nightly.pages.redaction import redacted
from tfwright.tools.render import render

PAGE = "index.html"
MOST_LOGS = 2
"""Logs that a page shows; the others are linked."""

AROUND = 15
"""Lines of a log that a report shows before and after the one that broke."""


@dataclass(frozen=True)
class MeasuredRow:
    """A line of a table with a bar: a stage's time, a file's size."""

    name: str
    value: str
    change: str
    """Against the last good build."""
    bar: float
    """Width of the bar in hundredths."""


@dataclass(frozen=True)
class TimelineView:
    """Bazel's actions, and how they differ from the last good build's."""

    svg: str
    """How many actions ran at once."""
    lanes: str
    """When each action ran."""
    seconds: str
    actions: int
    longest: tuple[MeasuredRow, ...]
    differences: tuple[MeasuredRow, ...]


def page(build: NightlyBuild, folder: Path, last_good: NightlyBuild | None, home: Path) -> str:
    """Return the page of a build whose files lie in `folder`.

    `home` holds the directories of the other builds.
    """
    stages = last_good.stages if last_good else {}
    sizes = last_good.sizes if last_good else {}
    architectures = last_good.architectures if last_good else {}
    values: dict[str, object] = {
        "build": build,
        "words": words,
        "stages": measured(build.stages, stages, seconds=True),
        "sizes": measured(build.sizes, sizes, seconds=False),
        "architectures": measured(build.architectures, architectures, seconds=False),
        "sweep": drawing.sweep(build.sweep),
        "timeline": _timeline(build, folder, last_good, home),
        "logs": shown_logs(build, folder),
        "clean": log.clean,
        "last_good": last_good,
        "extras": _extras(build, folder),
    }
    return render("nightly_build.html.j2", values)


def measured(
    now: Mapping[str, float], before: Mapping[str, float], *, seconds: bool
) -> list[MeasuredRow]:
    """Return a table with bars: sizes with the largest first, stages in their order."""
    # Stages follow one another; of files a reader looks for the largest.
    names = list(now) if seconds else sorted(now, key=lambda name: -now[name])
    said = words.duration if seconds else words.size
    widths = drawing.bars([now[name] for name in names])
    rows = []
    for name, width in zip(names, widths, strict=True):
        change = words.change(before[name], now[name]) if name in before else ""
        rows.append(MeasuredRow(name, said(now[name]), change, width))
    return rows


def shown_logs(build: NightlyBuild, folder: Path) -> list[log.ShownLog]:
    """Return the logs that a page shows: the one with the broken line, or the last ones."""
    broken = build.broken
    if broken is None:
        return []
    # One log with the reason is enough: the others would bury it.
    if broken.log:
        return [log.read(folder, broken.log, broken.number)]
    return [log.read(folder, name) for name in build.logs[-MOST_LOGS:]]


def _timeline(
    build: NightlyBuild, folder: Path, last_good: NightlyBuild | None, home: Path
) -> TimelineView | None:
    """Return the view of Bazel's actions; None without a profile."""
    if not build.profile:
        return None
    earlier = None
    if last_good and last_good.profile:
        earlier = home / last_good.id / last_good.profile
    return compared(folder / build.profile, earlier)


def compared(profile: Path, earlier: Path | None) -> TimelineView | None:
    """Return the view of one profile, and of its difference from an earlier one."""
    now = timeline.read(profile)
    if not now.actions:
        return None
    before = timeline.read(earlier) if earlier else None
    longest = now.longest()
    widths = drawing.bars([action.seconds for action in longest])
    rows = []
    for action, width in zip(longest, widths, strict=True):
        rows.append(MeasuredRow(action.name, words.duration(action.seconds), "", width))
    return TimelineView(
        svg=timeline.drawn(now, before),
        # An earlier build without actions would show every action as new.
        lanes=timeline.lanes(now, before if before and before.actions else None),
        seconds=words.duration(now.seconds),
        actions=len(now.actions),
        longest=tuple(rows),
        differences=tuple(_changes(before, now)) if before and before.actions else (),
    )


def _changes(before: timeline.Timeline, now: timeline.Timeline) -> list[MeasuredRow]:
    """Return the actions whose time changed most, with what happened to each."""
    found = timeline.difference(before, now)
    widths = drawing.bars([abs(change.seconds) for change in found])
    return list(map(_row, found, widths))


def _row(change: timeline.TimeChange, width: float) -> MeasuredRow:
    # The sign that is as wide as a plus: the values stand below each other.
    sign = "+" if change.seconds > 0 else "\N{MINUS SIGN}"
    value = f"{sign}{words.duration(abs(change.seconds))}"
    return MeasuredRow(change.name, value, _happened(change), width)


def _happened(change: timeline.TimeChange) -> str:
    """Say whether an action is in one build only."""
    if change.before is None:
        return "new"
    # Bazel's profile does not list an action whose result came from a cache.
    return "gone or cached" if change.now is None else ""


def _extras(build: NightlyBuild, folder: Path) -> Sequence[str]:
    """Return the files of a build that its page links, beyond wheel and logs."""
    # What the page links elsewhere.
    known = {build.wheel, PAGE, *build.logs}
    found = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    return [name for name in found if name not in known and not name.startswith(".")]


def markdown(build: NightlyBuild, folder: Path) -> str:
    """Return the same report as Markdown: for mail, a job summary, or an issue.

    Secrets, tokens and home paths are taken out.
    """
    return redacted("\n".join(_markdown(build, folder)) + "\n")


def _markdown(build: NightlyBuild, folder: Path) -> list[str]:
    verdict = build.tested if build.result == "built" else build.result
    lines = [f"## {_inline(build.target)}: {verdict}", ""]
    lines += [f"Build `{build.id}`, {words.minute(build.started)}, {words.duration(build.seconds)}"]
    if build.broken:
        lines += _broken(build, folder)
    if build.unpublished:
        lines += ["", f"Not in the index: {_inline(build.unpublished)}"]
    lines += _listed("Changed since the last good build", [*build.changed])
    commits = [f"{line.commit[:12]} {line.subject}" for line in build.commits]
    lines += _listed("Commits", commits)
    failed = [line for line in build.smoke if line.status == "failed"]
    programs = [f"{line.program}: {line.detail}" for line in failed]
    lines += _listed("Smoke programs that failed", programs)
    if build.wheel:
        lines += ["", f"Wheel `{build.wheel}`, {words.size(build.size)}, sha256 `{build.sha256}`"]
    stages = [f"{name}: {words.duration(seconds)}" for name, seconds in build.stages.items()]
    lines += _listed("Stages", stages)
    host = [f"worker: {build.worker}"] if build.worker else []
    host += [f"{name}: {value}" for name, value in build.host.items()]
    lines += _listed("Host", host)
    return lines


def _log_around(folder: Path, broken: Breakage) -> list[str]:
    """Return the lines of a log next to the one that broke; the last ones where it is unknown."""
    near = log.read(folder, broken.log, broken.number).lines
    number = broken.number or (near[-1].number if near else 0)
    return [entry.text for entry in near if abs(entry.number - number) <= AROUND]


def _broken(build: NightlyBuild, folder: Path) -> list[str]:
    """Return what broke, with the log around it."""
    broken = build.broken
    if broken is None:
        return []
    lines = ["", f"**Broke in {_inline(broken.stage)}**", "", *_fenced([log.clean(broken.line)])]
    # An error of tfwright's own states its cause in the line.
    if broken.cause not in {"", broken.line}:
        lines += ["", f"Cause: {_inline(broken.cause)}"]
    if broken.remedy:
        lines += ["", f"What helps: {_inline(broken.remedy)}"]
    # Folded up: an issue or a mail is read for the line above.
    if broken.log:
        around = _log_around(folder, broken)
        lines += ["", f"<details><summary>{broken.log.replace('<', '')}</summary>", ""]
        lines += [*_fenced(around), "", "</details>"]
    return lines


def _listed(title: str, entries: Sequence[str]) -> list[str]:
    """Return a list with its heading; nothing for an empty one."""
    if not entries:
        return []
    return ["", f"**{title}**", "", *(f"- {_inline(entry)}" for entry in entries)]


def _fenced(lines: Sequence[str]) -> list[str]:
    """Return a block of code; its fence is longer than any run of backticks in the text."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [fence, *lines, fence]


def _inline(text: str) -> str:
    """Return text on one line in which nothing is markup: no link, no mention, no image."""
    plain = log.clean(" ".join(text.split()))
    escaped = "".join(f"\\{sign}" if sign in r"\`*_[]<>#|!~" else sign for sign in plain)
    # An @ would notify whoever has that name.
    return escaped.replace("@", "@\N{ZERO WIDTH SPACE}")
