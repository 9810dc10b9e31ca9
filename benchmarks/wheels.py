"""What official wheels really hold: brings the table of docs/lab-notes/wheels.md up to date.

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


def main(folder: Path) -> None:
    """Inspect the wheels and write the table into the page."""
    wheels = sorted(folder.glob("tensorflow*.whl"), key=age)
    if not wheels:
        sys.exit(f"{folder} holds no wheel of TensorFlow")
    reports = [tell(inspection.inspect(path)) for path in wheels]
    table = rows([HEADS, ["---"] * len(HEADS), *map(facts, reports)])
    before, _, rest = PAGE.read_text("utf-8").partition("<!-- facts -->")
    after = rest.partition("<!-- end of facts -->")[2]
    page = f"{before}<!-- facts -->\n\n{table}\n\n<!-- end of facts -->{after}"
    PAGE.write_text(page, "utf-8")


def tell(report: Inspection) -> Inspection:
    """Say on stderr which wheel is done."""
    sys.stderr.write(f"{report.file}\n")
    return report


def age(path: Path) -> tuple[object, ...]:
    """Return what sorts wheels by release, then by project and platform."""
    name, version, _, _ = parse_wheel_filename(path.name)
    return version, name, path.name


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
    names = report.summary.gpu if report.summary else ()
    return "; ".join(
        f"{kind} {', '.join(found)}"
        for kind in ("sm", "compute")
        if (found := [name.partition("_")[2] for name in names if name.startswith(kind)])
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 the program and the folder
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
