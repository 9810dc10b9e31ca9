"""Numbers and names as the pages write them."""

import pytest

from tfwright.documents import account
from tfwright.nightly import pages as words
from tfwright.nightly.pages.log import redacted


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (131_849_591, "132 MB"),
        (2_870_000_000, "2.9 GB"),
        (5_000_000_000_000, "5000 GB"),
    ],
)
def test_a_size_has_two_to_four_digits(count: int, written: str) -> None:
    assert words.size(count) == written


@pytest.mark.parametrize(
    ("before", "now", "written"),
    [(100, 103.1, "+3.1 %"), (100, 90, "\N{MINUS SIGN}10.0 %"), (100, 100.05, ""), (0, 5, "")],
)
def test_a_change_is_written_if_there_is_one(before: float, now: float, written: str) -> None:
    assert words.change(before, now) == written


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ("annabel", "built by user in /srv/user/x, not annabelle"),
        ("root", "built by annabel in /srv/annabel/x, not annabelle"),
        ("1000", "built by annabel in /srv/annabel/x, not annabelle"),
    ],
)
def test_the_name_of_who_built_it_is_not_published(
    user: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "name", lambda: user)
    assert redacted("built by annabel in /srv/annabel/x, not annabelle") == shown
