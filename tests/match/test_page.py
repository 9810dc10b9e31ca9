"""The page of match: recipes that fit before the nearest others."""

import pytest

from tfwright.match import page
from tfwright.match.ranking import Candidate, Need, Wish

WISH = Wish(system="Linux", cuda="9.2", named="the GPU of this host")
FITS = Candidate("linux-r1.8", "TensorFlow 1.8", (), elsewhere=False)
NEAR = Candidate("linux-r1.9", "1.9", ("CUDA 9.0", "no sm_30"), elsewhere=False)
FAR = Candidate("linux-r1.4", "1.4", ("CUDA 8.0",) * 3, elsewhere=False)
NEEDS = (Need("host.cuda", "9.2", "the tested builds"),)


def matched(
    capsys: pytest.CaptureFixture[str],
    ranked: tuple[Candidate, ...],
    needs: tuple[Need, ...] = NEEDS,
) -> str:
    page.show_matches(WISH, ranked, needs, 1)
    return capsys.readouterr().out


def test_recipes_that_fit_come_before_the_nearest_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = matched(capsys, (FITS, NEAR, FAR))
    assert said.index("These recipes fit") < said.index("linux-r1.8")
    assert said.index("linux-r1.8") < said.index("The nearest others")
    assert "CUDA 9.0; no sm_30" in said
    # One of the others is asked for.
    assert "linux-r1.4" not in said
    assert "the GPU of this host" in said
    assert [line.split(None, 2) for line in said.splitlines()[-2:]] == [
        ["host.cuda", "9.2", "[1]"],
        ["[1]", "the", "tested builds"],
    ]


def test_without_a_recipe_that_fits_this_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\nNo recipe fits\n" in matched(capsys, (NEAR,))
    alone = matched(capsys, (FITS,))
    assert "others" not in alone


def test_a_combination_that_no_release_was_made_for_has_no_new_recipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = matched(capsys, (NEAR,), ())
    assert said.splitlines()[-1] == ("No TensorFlow release was made for this combination")
