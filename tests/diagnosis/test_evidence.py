from pathlib import Path

import pytest

from tfwright.diagnosis import evidence
from tfwright.diagnosis.families import Fact, everything

ASKS_FOR_CUDA = next(
    family for family in everything() if "cuda" in family.evidence
)
ASKS_FOR_DISK = next(
    family for family in everything() if "disk" in family.evidence
)


def test_a_cuda_home_that_cannot_be_looked_at_is_no_evidence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A name of more than 255 bytes: the system refuses to look, also for root.
    monkeypatch.setenv("CUDA_HOME", f"/{'x' * 300}")

    seen = evidence.of(ASKS_FOR_CUDA, tmp_path)

    assert not any("xxx" in text for text in seen)


def test_a_place_that_is_gone_is_no_evidence(tmp_path: Path) -> None:
    seen = evidence.of(ASKS_FOR_DISK, tmp_path / "gone")

    assert not any("GiB are free on the disk" in text for text in seen)


@pytest.mark.parametrize("fact", evidence._LOOK)
def test_every_fact_is_one_sentence_or_nothing(
    fact: Fact, tmp_path: Path
) -> None:
    assert "\n" not in evidence._LOOK[fact](tmp_path)
