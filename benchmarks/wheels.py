"""What official wheels really hold: brings the tables of docs/lab-notes/wheels.md up to date.

    python benchmarks/wheels.py FOLDER

FOLDER holds the wheels, as ``pip download --no-deps --only-binary=:all: --platform P
--python-version V PROJECT==RELEASE`` leaves them. Each is read by the same code as
`invoke inspect`; nothing in it is run.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.utils import parse_wheel_filename

from tfwright.wheel.inspect import inspection, tags
from tfwright.wheel.inspect.inspection import Inspection

PAGE = Path(__file__).parents[1] / "docs/lab-notes/wheels.md"
HEADS = (
    "wheel",
    "MB",
    "unpacked",
    "Python",
    "promises",
    "needs",
    "GLIBCXX",
    "std::string",
    "CPU",
    "CUDA, cuDNN, NCCL",
    "GPU code",
)
LONGEST = 110


def main(folder: Path) -> None:
    """Inspect the wheels and write both tables into the page."""
    reports = [
        tell(inspection.inspect(path)) for path in sorted(folder.glob("tensorflow*.whl"), key=age)
    ]
    text = PAGE.read_text("utf-8")
    text = replaced(text, "facts", rows([HEADS, ["---"] * len(HEADS), *map(facts, reports)]))
    text = replaced(
        text, "faults", "\n".join(line for report in reports for line in remarks(report))
    )
    PAGE.write_text(text, "utf-8")


def tell(report: Inspection) -> Inspection:
    """Say on stderr which wheel is done."""
    sys.stderr.write(f"{report.file}\n")
    return report


def age(path: Path) -> tuple[object, ...]:
    """Return what sorts wheels by release, then by project and platform."""
    name, version, _, _ = parse_wheel_filename(path.name)
    return version, name, path.name


def replaced(page: str, name: str, content: str) -> str:
    """Return the page with what stands between a pair of marks replaced."""
    before, rest = page.split(f"<!-- {name} -->")
    _, after = rest.split(f"<!-- end of {name} -->")
    return f"{before}<!-- {name} -->\n\n{content}\n\n<!-- end of {name} -->{after}"


def rows(cells: Iterable[Iterable[str]]) -> str:
    """Return rows of cells as Markdown has them."""
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def facts(report: Inspection) -> tuple[str, ...]:
    """Return a wheel's row."""
    needs = report.summary.needs if report.summary else {}
    needed = [
        f"{shown} {needs[name].version}"
        for name, shown in (("GLIBC", "glibc"), ("macOS", "macOS"))
        if name in needs
    ]
    return (
        f"{report.project} {report.version}" + (" (macOS)" if "macOS" in needs else ""),
        f"{report.size / 1e6:.0f}",
        f"{report.unpacked / 1e6:.0f}",
        ", ".join(sorted({tag.partition("-")[0] for tag in report.tags})),
        ", ".join(sorted(set(promises(report)))),
        ", ".join(needed),
        needs["GLIBCXX"].version if "GLIBCXX" in needs else "",
        ", ".join(report.summary.strings) if report.summary else "",
        needs["CPU"].version if "CPU" in needs else "",
        ", ".join(nvidia(report)),
        architectures(report),
    )


def promises(report: Inspection) -> Iterator[str]:
    """Return the systems that the wheel's tags promise to be enough."""
    for platform in {tag.rpartition("-")[2] for tag in report.tags}:
        mac = re.match(r"macosx_(\d+)_(\d+)_", platform)
        linux = re.match(r"(manylinux\d+|manylinux_(\d+)_(\d+))_", platform)
        if mac:
            yield f"macOS {mac[1]}.{mac[2]}"
        elif linux:
            yield "glibc " + (f"{linux[2]}.{linux[3]}" if linux[2] else tags.LEGACY[linux[1]])


def nvidia(report: Inspection) -> Iterator[str]:
    """Return the versions that the wheel is linked with, or says that it was built with."""
    stated = dict(report.stated)
    linked = " ".join(report.nvidia)
    for shown, library, keys in (
        ("CUDA", "cudart", ("cuda_version", "cuda_version_number")),
        ("cuDNN", "cudnn", ("cudnn_version", "cudnn_version_number")),
    ):
        name = re.search(rf"lib{library}\.(?:so\.)?(\d[\d.]*\d|\d)", linked)
        said = next((stated[key] for key in keys if key in stated), "")
        if name or said:
            yield f"{shown} {name[1]} linked" if name else f"{shown} {said}"
    if report.summary:
        yield from (f"NCCL {version.partition('+')[0]}" for version in report.summary.nccl)


def architectures(report: Inspection) -> str:
    """Return the GPU code, as short as it goes."""
    names = report.summary.architectures if report.summary else ()
    return "; ".join(
        f"{kind} {', '.join(found)}"
        for kind in ("sm", "compute")
        if (found := [name.partition("_")[2] for name in names if name.startswith(kind)])
    )


def remarks(report: Inspection) -> Iterator[str]:
    """Return a wheel's faults and notes as a list."""
    name = report.file.removesuffix(".whl")
    said = [*(f"**{cut(fault)}**" for fault in report.faults), *map(cut, report.notes)]
    yield f"- `{name}`: " + (
        "; ".join(said[:SHOWN]) + (f"; and {len(said) - SHOWN} more" if len(said) > SHOWN else "")
        if said
        else "nothing"
    )


SHOWN = 8


def cut(text: str) -> str:
    """Return a remark with installed paths, and not longer than can be read."""
    text = (
        re.sub(r"\S+/(?:purelib|platlib)/", "", text)
        .replace("<", "&lt;")
        .replace("|", "\\|")
        .replace("*", "\\*")
        .replace("_", "\\_")
    )
    return text if len(text) <= LONGEST * 2 else text[: LONGEST * 2] + " …"


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 the program and the folder
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
