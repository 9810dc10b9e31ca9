"""What a wheel is, as people read it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.wheel.inspect.inspection import Inspection
    from tfwright.wheel.inspect.library import Library
    from tfwright.wheel.inspect.summary import Summary, WheelNeed

HEADS = ("library", "MB", "machine", "needs", "std::string", "CPU", "GPU code")


def show_report(report: "Inspection", *, as_json: bool) -> None:
    """Print what a wheel is: the whole, then a table of its libraries, then what its user should know."""
    if as_json:
        text.as_json(asdict(report))
        return
    print(f"{report.file}: {report.size:,} bytes, {report.unpacked:,} unpacked")
    facts = {
        "project": f"{report.project} {report.version}".strip(),
        "tags": ", ".join(report.tags),
        "python": report.requires_python,
        "built with": ", ".join(f"{name} {value}" for name, value in report.stated),
        "linked with": ", ".join(report.nvidia) or "none of NVIDIA's libraries",
        **({"signed by": f"the key with the id {report.signed_by}"} if report.signed_by else {}),
    }
    for name, value in facts.items():
        print(f"  {name:<12} {value or 'not said'}")
    for name, value in _summary(report.summary) if report.summary else ():
        print(f"  {name:<12} {value}")
    if report.libraries:
        text.table([HEADS, *_rows(report.libraries)])
    for note in report.notes:
        print(f"note: {note}")


def _summary(summary: "Summary") -> Iterator[tuple[str, str]]:
    """Return what the libraries need together, and what of it matters to whoever loads or links them."""
    for name, need in summary.needs.items():
        yield f"needs {name}" if name == "CPU" else name, _need(need)
    if summary.tensorflow:
        yield (
            "exports",
            f"{summary.tensorflow:,} in TensorFlow's namespace"
            + "".join(f", std::string {abi}" for abi in summary.strings),
        )
    yield "GPU code", " ".join(summary.architectures) or "none"
    if summary.nccl:
        yield "NCCL", ", ".join(summary.nccl)


def _need(need: "WheelNeed") -> str:
    """Return a version, and where it comes from."""
    why = "; ".join(part for part in (need.symbol, need.decided) if part)
    return f"{need.version:<8} {_short(need.library)}" + (f": {why}" if why else "")


def _rows(libraries: Sequence["Library"]) -> Iterator[tuple[str, ...]]:
    """Return the lines of the table, one for all libraries that differ in nothing but name and size."""
    alike: dict[tuple[str, ...], list[Library]] = {}
    for library in libraries:
        alike.setdefault(_facts(library), []).append(library)
    for facts, group in alike.items():
        largest = max(group, key=lambda library: library.size)
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield (
            _short(largest.path) + others,
            f"{sum(library.size for library in group) / 1e6:.1f}",
            *facts,
        )


def _facts(library: "Library") -> tuple[str, ...]:
    """Return what the table says about a library besides its name and size."""
    elf, parts = library.elf, library.parts
    needs = (
        [f"{family} {need.version}" for family, need in elf.requires.items()]
        if elf
        else [f"macOS {part.minimum}" for part in library.macho]
    )
    gpu = [
        *(name for part in parts for name in part.architectures),
        *([f"NCCL {library.text.nccl}"] if library.text.nccl else []),
    ]
    return (
        ", ".join(part.machine for part in parts),
        library.fault or ", ".join(needs),
        ", ".join(elf.symbols.strings if elf else ()),
        ", ".join(part.cpu.level for part in parts if part.cpu),
        " ".join(gpu),
    )


def _short(path: str) -> str:
    """Return a library's path as it is once installed."""
    return path.rpartition("/purelib/")[2].rpartition("/platlib/")[2]
