import zipfile
from pathlib import Path

from tests.making import Maker

from tfwright.wheel import archive, record


def rewritten(path: Path, change: dict[str, bytes | None]) -> zipfile.ZipFile:
    """Copy a wheel with some members changed, added or (None) left out."""
    changed = path.with_name("changed.whl")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        content = {**{name: old.read(name) for name in old.namelist()}, **change}
        for name, data in content.items():
            if data is not None:
                new.writestr(name, data)
    return zipfile.ZipFile(changed)


def test_a_true_record_has_no_faults(make_wheel: Maker) -> None:
    with zipfile.ZipFile(make_wheel({"one.py": "x", "empty.py": ""})) as wheel:
        assert record.faults(wheel) == []


def test_every_difference_is_named(make_wheel: Maker) -> None:
    path = make_wheel({"kept.py": "1", "changed.py": "2", "lost.py": "3"})
    with rewritten(path, {"changed.py": b"4", "lost.py": None, "new.py": b"5"}) as wheel:
        assert record.faults(wheel) == [
            "lost.py is listed and missing",
            "new.py is not listed",
            "changed.py is not as listed",
        ]


def test_a_wheel_without_record_lists_nothing(make_wheel: Maker) -> None:
    with rewritten(make_wheel(), {"small-1.0.dist-info/RECORD": None}) as wheel:
        assert "small.py is not listed" in record.faults(wheel)


def test_what_is_rendered_reads_back(make_wheel: Maker) -> None:
    own = "small-1.0.dist-info/RECORD"
    rows = (('a, "b".py', "sha256=x", "1"), (own, "", ""))
    entries = [record.RecordEntry(*row) for row in rows]
    with rewritten(make_wheel(), {own: record.render(entries).encode()}) as wheel:
        assert record.read(wheel) == entries


def test_a_large_file_is_compared_with_its_line_as_well(make_wheel: Maker) -> None:
    large = "x" * (archive.CHUNK + 1)
    path = make_wheel({"large.py": large})
    with zipfile.ZipFile(path) as wheel:
        assert record.faults(wheel) == []
    with rewritten(path, {"large.py": large.encode()[:-1] + b"y"}) as wheel:
        assert record.faults(wheel) == ["large.py is not as listed"]
