"""What a wheel is, as people read it."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from tfwright.pages import text

if TYPE_CHECKING:
    from tfwright.wheel.inspection import Library, Report


def show_report(report: "Report", *, as_json: bool) -> None:
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
        "linked with": ", ".join(report.nvidia),
    }
    for name, value in facts.items():
        print(f"  {name:<12} {value or 'not said'}")
    if report.libraries:
        text.table([("library", "MB", "machine", "needs", "std::string", "GPU code"), *map(_library_row, report.libraries)])
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
