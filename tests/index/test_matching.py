"""Which wheel of an index fits a machine."""

import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.failing import fails
from tests.nightly.wheels import write_wheel

from tfwright.errors import SupplyError
from tfwright.index import matching, write
from tfwright.match.wish import Wish
from tfwright.tools.http import server

Needs = tuple[tuple[str, str], ...]


def written(folder: Path, needs: Needs = (), **wheel: Any) -> bytes:  # noqa: ANN401 as `write_wheel` takes them
    """Write a wheel and the index of its folder; return the document that says which wheels fit."""
    made = write_wheel(folder / "packages", **wheel)
    write.refresh(folder, {made.name: {"needs": needs}} if needs else None)
    return (folder / matching.FILE).read_bytes()


def test_match_names_the_wheel_that_fits_first(tmp_path: Path) -> None:
    old = write_wheel(tmp_path / "packages", tag="cp36-cp36m-linux_x86_64")
    new = write_wheel(tmp_path / "packages", version="2.0", tag="cp36-cp36m-linux_x86_64")
    needs = {old.name: ("glibc", "2.17"), new.name: ("glibc", "2.31")}
    notes = {name: {"needs": (need,)} for name, need in needs.items()}
    write.refresh(tmp_path, notes)
    text = (tmp_path / matching.FILE).read_bytes()
    wish = Wish(system="Linux", machine="x86_64", python="3.6", glibc="2.27")
    found = matching.rank_wheels(text, wish)
    assert [(row.entry.version, row.differs) for row in found] == [
        ("1.0", ()),
        ("2.0", ("needs glibc 2.31; 2.27 is there",)),
    ]


NATIVE_3_6 = {"tag": "cp36-cp36m-linux_x86_64"}
CUDA = (("cuda", "9.2"), ("gpu", "sm_70,compute_70"))
AVX = (("cpu", "avx"),)
NEEDS_3_9 = {"requires_python": ">=3.9"}


@pytest.mark.parametrize(
    ("needs", "wheel", "wish", "differs"),
    [
        (CUDA, NATIVE_3_6, Wish(release="2.0"), ("another release",)),
        (CUDA, NATIVE_3_6, Wish(release="1.0"), ()),
        (CUDA, NATIVE_3_6, Wish(python="3.7"), ("for Python 3.6",)),
        (CUDA, NATIVE_3_6, Wish(system="Darwin"), ("for linux_x86_64",)),
        (CUDA, NATIVE_3_6, Wish(cuda="9.2"), ()),
        (CUDA, NATIVE_3_6, Wish(cuda="11.8"), ("made with CUDA 9.2",)),
        (CUDA, NATIVE_3_6, Wish(gpu="7.0"), ()),
        (CUDA, NATIVE_3_6, Wish(gpu="7.5"), ()),
        (CUDA, NATIVE_3_6, Wish(gpu="3.0"), ("code for 7.0 only",)),
        # PTX is left out: whether a driver compiles it depends on the driver.
        (
            CUDA,
            NATIVE_3_6,
            Wish(gpu="8.0"),
            ("code for 7.0 only, and PTX, which may fail: CUDA 9.2 does not know 8.0",),
        ),
        (AVX, NATIVE_3_6, Wish(system="Linux", cpu="avx2"), ()),
        (AVX, NATIVE_3_6, Wish(system="Linux", cpu="avx"), ()),
        (
            AVX,
            NATIVE_3_6,
            Wish(system="Linux", cpu="sse4.2"),
            ("needs a CPU with avx; sse4.2 is there",),
        ),
        (AVX, NATIVE_3_6, Wish(system="Linux"), ()),
        ((), NEEDS_3_9, Wish(python="3.8"), ("its metadata requires Python >=3.9",)),
        ((), NEEDS_3_9, Wish(python="3.9"), ()),
        # For any machine, and without CUDA.
        ((), {}, Wish(system="Linux", machine="x86_64", cuda="9.2", gpu="7.0"), ("no GPU code",)),
    ],
    ids=str,
)
def test_everything_in_which_a_wheel_differs_is_said(
    needs: Needs, wheel: dict[str, str], wish: Wish, differs: tuple[str, ...], tmp_path: Path
) -> None:
    (found,) = matching.rank_wheels(written(tmp_path, needs, **wheel), wish)
    assert found.differs == differs


def test_gpu_code_that_no_nvcc_makes_fits_no_gpu(tmp_path: Path) -> None:
    text = written(tmp_path, (("gpu", "later,kind 9 for 70"),))
    (found,) = matching.rank_wheels(text, Wish(gpu="7.0"))
    assert len(found.differs) == 1


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        # It would be another argument of pip, or a command of a shell.
        (b'"project":"demo"', b'"project":"demo -r evil"', "demo -r evil"),
        (b'"filename":"demo-1.0', b'"filename":"$(reboot)-1.0', "reboot"),
    ],
)
def test_a_document_whose_names_are_not_of_wheels_is_refused(
    before: bytes, after: bytes, named: str, tmp_path: Path
) -> None:
    text = written(tmp_path)
    assert before in text
    with fails(SupplyError, "match.json", named):
        matching.rank_wheels(text.replace(before, after), Wish())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"format": 2, "wheels": []}',
        b'{"format": 1, "wheels": [{"filename": "a\\u001b[31m.whl"}]}',
        b"[" * 100_000,
    ],
)
def test_a_match_document_from_a_server_is_read_with_suspicion(text: bytes) -> None:
    with fails(SupplyError, "match.json"):
        matching.rank_wheels(text, Wish())


def test_an_index_is_asked_over_http_which_wheel_fits(tmp_path: Path) -> None:
    write_wheel(tmp_path / "packages", version="1.0+cpu")
    write.refresh(tmp_path)
    with server.listening(tmp_path) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"http://{server.LOOPBACK}:{listener.server_address[1]}"
        try:
            (found,) = matching.query_index(f"{url}/simple/", Wish(python="3.6"))
            with fails(SupplyError, 404):
                matching.query_index(f"{url}/absent", Wish())
        finally:
            listener.shutdown()
    assert (found.entry.version, found.differs) == ("1.0+cpu", ())


def test_only_web_addresses_are_asked() -> None:
    with fails(SupplyError, "http"):
        matching.query_index("file:///etc", Wish())


NATIVE = "cp36-cp36m-macosx_10_13_x86_64"
LIBRARY = b"\xcf\xfa\xed\xfe" + struct.pack(
    "<6I4x4I", 0x01000007, 0, 6, 1, 16, 0, 0x24, 16, 10 << 16 | 13 << 8, 0
)


def test_a_wheel_is_inspected_when_it_enters_the_index_and_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / "packages", tag=NATIVE, files={"demo/a.dylib": LIBRARY})
    (first,) = write.refresh(tmp_path).wheels
    assert dict(first.needs) == {"macos": "10.13"}
    monkeypatch.delattr("tfwright.wheel.inspect.inspection.inspect")
    assert write.refresh(tmp_path).wheels == (first,)


def test_a_wheel_that_was_not_read_is_unknown_and_does_not_fit(tmp_path: Path) -> None:
    text = written(tmp_path, tag=NATIVE, files={"demo/a.dylib": LIBRARY})
    text = text.replace(b'{"macos":"10.13"}', b"{}")
    (found,) = matching.rank_wheels(text, Wish(system="Darwin", cpu="avx"))
    assert found.differs
    assert "not known" in found.differs[0]


def test_a_strange_value_in_one_wheel_does_not_keep_clients_from_the_others(tmp_path: Path) -> None:
    info = b"build_info = {'cuda_version': '12\\n$(reboot)'}\n"
    files = {"demo/a.dylib": LIBRARY, "tensorflow/python/platform/build_info.py": info}
    (found,) = matching.rank_wheels(written(tmp_path, tag=NATIVE, files=files), Wish())
    assert found.entry.needs == {"macos": "10.13"}
    (found,) = matching.rank_wheels(written(tmp_path / "other", requires_python="===a/b"), Wish())
    assert not found.entry.requires_python
