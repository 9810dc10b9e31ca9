import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker

from tfwright.errors import WheelError
from tfwright.tools import files, signing
from tfwright.wheel.inspect import inspection
from tfwright.wheel.seal import statement


def next_to(wheel: Path, suffix: str) -> Path:
    return wheel.with_name(wheel.name + suffix)


@pytest.fixture
def public(make_sealed: Maker, keys: Callable[..., tuple[Path, Path]]) -> tuple[Path, Path]:
    """Return a wheel with a statement and its envelope beside it, and the key that verifies it."""
    wheel, (private, public) = make_sealed(), keys()
    subject = {"name": wheel.name, "digest": {"sha256": files.sha256(wheel)}}
    said = json.dumps({"subject": [subject]}).encode()
    next_to(wheel, statement.SUFFIX).write_bytes(said)
    next_to(wheel, statement.SIGNED_SUFFIX).write_bytes(statement.sign(said, private))
    return wheel, public


def test_a_signed_wheel_is_reported_with_the_id_of_its_key(public: tuple[Path, Path]) -> None:
    wheel, key = public
    report = inspection.inspect(wheel, key)
    assert report.faults == ()
    assert report.signed_by == statement.verify_signed(wheel, key) != ""
    assert inspection.inspect(wheel).signed_by == ""


def test_the_plain_statement_need_not_be_there(public: tuple[Path, Path]) -> None:
    wheel, key = public
    next_to(wheel, statement.SUFFIX).unlink()
    assert statement.verify_signed(wheel, key)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda wheel: wheel.write_bytes(wheel.read_bytes() + b"\0"), "SHA-256"),
        (lambda wheel: next_to(wheel, statement.SUFFIX).write_text("{}", "utf-8"), ".intoto.json"),
        (lambda wheel: next_to(wheel, statement.SIGNED_SUFFIX).unlink(), ".intoto.jsonl"),
    ],
    ids=["a changed wheel", "a changed statement", "no signature"],
)
def test_what_is_not_as_it_was_signed_is_refused(
    public: tuple[Path, Path], change: Callable[[Path], object], named: str
) -> None:
    wheel, key = public
    change(wheel)
    with fails(WheelError, wheel.name, named):
        inspection.inspect(wheel, key)


@pytest.mark.parametrize(
    "said",
    [b"", b"[]", b"{}", b'{"subject": [1]}', b'{"subject": [{"digest": {}}]}', b"[" * 100_000],
)
def test_what_is_signed_has_to_be_a_statement(
    make_sealed: Maker, keys: Callable[..., tuple[Path, Path]], said: bytes
) -> None:
    wheel, (private, key) = make_sealed(), keys()
    next_to(wheel, statement.SIGNED_SUFFIX).write_bytes(
        signing.sign(said, statement.PAYLOAD_TYPE, private)
    )
    with fails(WheelError, "in-toto"):
        statement.verify_signed(wheel, key)
