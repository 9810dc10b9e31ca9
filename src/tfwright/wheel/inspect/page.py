"""The page of inspect: what a wheel is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tfwright.printable import printable
from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.wheel.inspect.inspection import Inspection
    from tfwright.wheel.inspect.library import Library
    from tfwright.wheel.inspect.needs import Summary

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


def show_report(report: "Inspection") -> None:
    """Print what a wheel is: notes for its user first, then facts, then its libraries."""
    sizes = f": {report.size:,} bytes, {report.unpacked:,} unpacked"
    text.line(text.bold(report.file), sizes)
    # What a user has to know before installing comes before any table.
    for note in report.notes:
        text.paragraph(text.warning("note: "), printable(note), indent=6)
    facts = {
        "project": f"{report.project} {report.version}".strip(),
        "tags": ", ".join(report.tags),
        "python": report.requires_python,
        "built with": ", ".join(f"{name} {value}" for name, value in report.stated),
        "linked with": ", ".join(report.nvidia) or "none of NVIDIA's libraries",
    }
    if report.signed_by:
        facts["signed by"] = f"the key with the id {report.signed_by}"
    shown = [(name, value or "not stated") for name, value in facts.items()]
    shown += [("finds CUDA", way) for way in _ways(report)]
    shown += _summary(report.summary) if report.summary else ()
    for name, value in shown:
        # Versions, tags and library names are whatever the wheel's maker wrote.
        text.paragraph(f"  {name}", printable(value), indent=LABEL)
    if report.libraries:
        text.line()
        text.table(COLUMNS, list(_rows(report.libraries)))


def _ways(report: "Inspection") -> Iterator[str]:
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
        first = f"site-packages/nvidia/*/lib of pip's packages ({packages}), " if packages else ""
        yield (
            "TensorFlow opens CUDA's libraries by name while it runs: they must be in "
            f"{first}LD_LIBRARY_PATH or the system's loader configuration"
        )


def _summary(summary: "Summary") -> Iterator[tuple[str, str]]:
    """Return what the libraries need together, and what their users have to know."""
    for name, need in summary.needs.items():
        # A version, and which library and function need it.
        parts = [part for part in (need.symbol, need.decided) if part]
        why = f": {'; '.join(parts)}" if parts else ""
        shown = f"{need.version:<8} {_short(need.library)}{why}"
        yield (f"needs {name}" if name == "CPU" else name), shown
    if summary.tensorflow:
        strings = "".join(f", std::string {abi}" for abi in summary.strings)
        yield (
            "exports",
            f"{text.counted(summary.tensorflow, 'symbol')} in TensorFlow's namespace{strings}",
        )
    yield "GPU code", " ".join(summary.architectures) or "none"
    if summary.nccl:
        yield "NCCL", ", ".join(summary.nccl)


def _rows(libraries: Sequence["Library"]) -> Iterator[tuple[str, ...]]:
    """Return the rows of the table; libraries that differ only in name and size share one."""
    # TensorFlow's wheels hold dozens of small libraries with the same needs.
    alike: dict[tuple[str, ...], list[Library]] = {}
    for library in libraries:
        alike.setdefault(_facts(library), []).append(library)
    for facts, group in alike.items():
        largest = max(group, key=lambda library: library.size)
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        size = sum(library.size for library in group)
        name = printable(_short(largest.path))
        yield (name + others, text.as_size(size), *map(printable, facts))


def _facts(library: "Library") -> tuple[str, ...]:
    """Return what the table says about a library besides its name and size."""
    # A Mach-O file may hold several machines, an ELF file one.
    elf, parts = library.elf, library.parts
    if elf:
        needs = [f"{family} {need.version}" for family, need in elf.requires.items()]
    else:
        needs = [f"macOS {part.minimum}" for part in library.macho]
    gpu = [name for part in parts for name in part.architectures]
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
        ", ".join(elf.symbols.strings if elf else ()),
        ", ".join(levels),
        " ".join(gpu),
    )


def _short(path: str) -> str:
    """Return a library's path as it is once installed."""
    return path.rpartition("/purelib/")[2].rpartition("/platlib/")[2]
