"""The pages of inspect and compare: what a wheel is, and what differs between two."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.terminal import text
from tfwright.terminal.text import Column
from tfwright.wheel.inspect import cuda
from tfwright.wheel.inspect.library import Library, installed_path

if TYPE_CHECKING:
    from tfwright.wheel.compare.comparison import Comparison, Difference
    from tfwright.wheel.inspect.inspection import Inspection


MOST = 12
"""Differences of a group that are shown; JSON has all."""


def show_comparison(comparison: "Comparison") -> None:
    """Print what two wheels are, and their differences by group."""
    first, second = comparison.first, comparison.second
    # One digest says it all: the same bytes have no differences to list.
    if comparison.same:
        same = text.good("the same")
        text.line(same, f" {first.size:,} bytes, sha256 {first.sha256}")
        return
    text.line(text.bad("the wheels differ"))
    for label, side in (("first", first), ("second", second)):
        known = (
            f"{side.file}: {side.size:,} bytes, {side.members:,} files "
            f"of {side.unpacked:,} bytes, sha256 {side.sha256[:12]}…"
        )
        text.paragraph(label, known, indent=8)
    # The comparison yields each group as a whole, which groupby relies on.
    for group, differences in groupby(comparison.differences, key=lambda found: found.group):
        show_group(group, list(differences))


def show_group(group: str, differences: "Sequence[Difference]") -> None:
    """Print the differences of one group; files that differ alike share a line."""
    files = sum(bool(difference.member) for difference in differences)
    text.line()
    text.line(text.bold(group), f": {files:,} files" if files > 1 else "")
    # A changed version shows in every file of a wheel; one line says it for all.
    alike = dict[tuple[str, tuple[str, ...]], list[str]]()
    for difference in differences:
        alike.setdefault((difference.what, difference.lines), []).append(difference.member)
    for (what, lines), members in islice(alike.items(), MOST):
        others = f" (and {len(members) - 1:,} more files, alike)" if members[1:] else ""
        # A difference of the whole wheel, such as its tags, is of no file.
        where = f"{members[0]}{others}: " if members[0] else ""
        # Names in a wheel are chosen by whoever made it.
        text.paragraph("", printable(where + what), indent=2)
        for row in lines:
            text.line(text.detail(f"      {printable(row)}"))
    if len(alike) > MOST:
        text.line(f"  and {len(alike) - MOST:,} more differences; --json lists all")


COLUMNS = (
    Column("library", cut="middle", least=24),
    Column("size", rank=2, right=True),
    Column("machine", rank=4, cut="end", least=6),
    Column("needs", rank=1, cut="end", least=12),
    Column("std::string", rank=5, cut="end", least=6),
    Column("CPU", rank=3, cut="end", least=8),
    Column("GPU code", cut="end", least=12),
)
LABEL = 14
"""Characters in front of a fact."""
LONGEST_SYMBOL = 60
"""Characters of the name that a compiler gives to a C++ function."""


def show_report(report: "Inspection") -> None:
    """Print what a wheel is: notes for its user first, then facts, then its libraries."""
    sizes = f": {report.size:,} bytes, {report.unpacked:,} unpacked"
    text.line(text.bold(report.file), sizes)
    # What a user has to know before installing comes before any table.
    for note in report.notes:
        text.paragraph(text.warning("note: "), printable(note), indent=6)
    # Nothing is known of what could not be unpacked.
    if not report.unpacked:
        return
    facts = {
        "project": f"{report.project} {report.version}".strip(),
        "tags": ", ".join(report.tags),
        "python": report.requires_python,
        "built with": ", ".join(f"{name} {value}" for name, value in report.stated),
        "linked with": "not read"
        if report.for_windows
        else ", ".join(report.nvidia) or "none of NVIDIA's libraries",
    }
    if report.outside:
        facts["needs also"] = ", ".join(report.outside)
    if report.signed_by:
        facts["signed by"] = f"the key with the id {report.signed_by}"
    shown = [(name, value or "not stated") for name, value in facts.items()]
    shown += [("finds CUDA", way) for way in _cuda_sources(report)]
    shown += _summary(report)
    for name, value in shown:
        # Versions, tags and library names are whatever the wheel's maker wrote.
        text.paragraph(f"  {name}", printable(value), indent=LABEL)
    if report.libraries:
        text.line()
        text.table(COLUMNS, list(_rows(report.libraries)))


def _cuda_sources(report: "Inspection") -> Iterator[str]:
    """Say how the wheel will find NVIDIA's libraries once it is installed."""
    for source in report.cuda:
        yield f"{', '.join(source.libraries)}: {source.how}"
    # Newer releases open CUDA at run time, so no library names it as needed.
    built = dict(report.stated)
    linked = any("cudart" in name for name in report.nvidia)
    # Releases differ in which of the two they state.
    with_cuda = built.get("is_cuda_build", built.get("cuda_version"))
    if not linked and with_cuda not in {None, "False"}:
        packages = ", ".join(report.cuda_in_reach)
        path = "PATH" if report.for_windows else cuda.SYSTEM
        first = f"site-packages/nvidia/*/lib of pip's packages ({packages}), " if packages else ""
        yield (
            "TensorFlow opens CUDA's libraries by name while it runs: they must be in "
            f"{first}{path}"
        )


def _summary(report: "Inspection") -> Iterator[tuple[str, str]]:
    """Return what the libraries need together, and what their users have to know."""
    if (summary := report.summary) is None:
        return
    for name, need in summary.needs.items():
        # A version, and which library and function need it; --json has the whole of a name of C++.
        parts = [part for part in (printable(need.symbol, LONGEST_SYMBOL), need.decided) if part]
        why = f": {'; '.join(parts)}" if parts else ""
        shown = f"{need.version:<8} {installed_path(need.library)}{why}"
        yield (f"needs {name}" if name == "CPU" else name), shown
    if summary.tensorflow:
        strings = "".join(f", std::string {abi}" for abi in summary.strings)
        yield (
            "exports",
            f"{text.counted(summary.tensorflow, 'symbol')} in TensorFlow's namespace{strings}",
        )
    none = "not read: for GPUs of AMD" if report.for_amd else "none"
    yield "GPU code", " ".join(summary.gpu) or none
    if summary.nccl:
        yield "NCCL", ", ".join(summary.nccl)


def _rows(libraries: Sequence[Library]) -> Iterator[tuple[str, ...]]:
    """Return the rows of the table; libraries that differ only in name and size share one."""
    # TensorFlow's wheels hold dozens of small libraries with the same needs.
    alike: dict[tuple[str, ...], list[Library]] = {}
    for library in libraries:
        alike.setdefault(_facts(library), []).append(library)
    for facts, group in alike.items():
        largest = max(group, key=lambda library: library.size)
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        size = sum(library.size for library in group)
        name = printable(installed_path(largest.path))
        yield (name + others, text.as_size(size), *map(printable, facts))


def _facts(library: Library) -> tuple[str, ...]:
    """Return what the table says about a library besides its name and size."""
    parts = library.parts
    needs = [f"{name} {need.version}" for part in parts for name, need in part.requires.items()]
    gpu = [name for part in parts for name in part.gpu]
    # NCCL is often linked in, and then shows only in the library's texts.
    if library.nccl:
        gpu.append(f"NCCL {library.nccl}")
    levels = []
    for cpu in (part.cpu for part in parts if part.cpu):
        more = f", or {cpu.unknown[0].extension}: unknown" if cpu.unknown else ""
        levels.append(cpu.level + more)
    return (
        ", ".join(part.machine for part in parts),
        library.fault or ", ".join(needs),
        ", ".join(kind for part in parts for kind in part.symbols.strings),
        ", ".join(levels),
        " ".join(gpu),
    )
