"""A family says of a message at least what an entry of the catalogue would say."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.diagnosis.reading import explaining

from tfwright.diagnosis import families
from tfwright.diagnosis.families import Family, refinements
from tfwright.diagnosis.reader import Match

MESSAGES = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))["message"]
PRINTED = tomllib.loads(Path(__file__).with_name("messages.toml").read_text("utf-8"))
FACT = re.compile(r"[\w./=-]*(?:\d|--|_|[a-z]/|[a-z][A-Z])[\w./=-]*")
"""What a sentence names: versions, options, files, variables."""


def said(match: Match) -> str:
    return f"{match.cause} {match.remedy}"


def facts(match: Match) -> set[str]:
    return {fact.strip(".") for fact in FACT.findall(said(match))}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda case: str(case["says"]))
def test_the_family_says_what_is_known_of_this_message(message: dict[str, str]) -> None:
    first = explaining(message["log"])[0]
    assert first.entry.id == message["family"]
    assert message["says"] in said(first)


@pytest.mark.parametrize(
    "message",
    [
        *PRINTED["caused"],
        *PRINTED["message"],
        *(pytest.param(row, marks=pytest.mark.medium) for row in PRINTED["printed"]),
    ],
    ids=lambda row: str(row["cause"]),
)
def test_a_cause_follows_from_what_a_tool_prints(message: dict[str, str]) -> None:
    first = explaining(f"{message['log']}\n")[0]
    assert first.entry.id == message["family"]
    assert message["cause"] in first.cause


def test_a_package_that_pip_compiles_is_named_next_to_what_the_compiler_says() -> None:
    log = "    a.c:1:2: fatal error: hdf5.h: No such file or directory\n"
    matches = explaining(f"{log}ERROR: Failed building wheel for h5py\n")
    assert [match.entry.id for match in matches] == ["host-header-missing", "pip-build-failed"]


@pytest.mark.parametrize("message", PRINTED["caused"], ids=lambda row: str(row["cause"]))
def test_the_gaps_that_missing_names_leave_are_closed(message: dict[str, str]) -> None:
    cause = explaining(f"{message['log']}\n")[0].cause
    assert not re.search(r" \.(?!\w)|\( | \)|:\.|\.:", cause)


@pytest.mark.parametrize("family", refinements(), ids=lambda family: family.id)
def test_no_refinement_names_less_than_the_family_below_it(family: Family) -> None:
    matches = explaining(family.sample)
    if not matches or matches[-1].entry.sample:
        # No family explains it, too.
        return
    first, general = matches[0], matches[-1]
    own = (family.certain, family.needs, family.retry, family.commands)
    assert (
        facts(first) - facts(general)
        or own != (general.entry.certain, (), general.entry.retry, ())
        or not facts(general)
    )


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("Read timed out and referenced by '//a:b'", "Read timed out"),
        ("no such file, and was referenced by '//a:b'.", "no such file"),
        ("9.3.0.", "9.3.0"),
        ("github.com,", "github.com"),
        ("for '//a:b':.", "for '//a:b'"),
        ("-L...", "-L..."),
    ],
)
def test_a_parameter_has_no_end_of_a_sentence(value: str, plain: str) -> None:
    assert families._without_stop(value) == plain


def test_a_status_of_cuda_is_no_crash_of_a_compiler() -> None:
    log = "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: forward compatibility was attempted\n"
    assert [match.entry.id for match in explaining(log)] == ["gpu-driver-too-old"]
