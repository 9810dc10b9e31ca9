"""The page of match: recipes that fit before the nearest others."""

from dataclasses import replace

from tests.making import Read

from tfwright.facts import gpus, wheels
from tfwright.match import official, page
from tfwright.match.official import OfficialMatch
from tfwright.match.pins import DerivedPin
from tfwright.match.ranking import Candidate
from tfwright.match.wish import Wish

WISH = Wish(system="Linux", cuda="9.2", named="the GPU of this host")
FITS = Candidate("linux-r1.8", "TensorFlow 1.8", (), elsewhere=False)
NEAR = Candidate("linux-r1.9", "1.9", ("CUDA 9.0", "no sm_30"), elsewhere=False)
FAR = Candidate("linux-r1.4", "1.4", ("CUDA 8.0",) * 3, elsewhere=False)
OTHER = OfficialMatch(wheels.official()[0], ("no GPU code",), frozenset({"GPU code"}))
NEEDS = (DerivedPin("host.cuda", "9.2", source="the tested builds"),)


def matched(
    out: Read,
    ranked: tuple[Candidate, ...],
    needs: tuple[DerivedPin, ...] = NEEDS,
    official: tuple[OfficialMatch, ...] = (OTHER,),
) -> str:
    excluded = () if needs else ("no release goes with both CUDA 9.2 and Python 3.12",)
    page.show_matches(page.MatchAnswer(WISH, official, ranked, needs, excluded))
    return out()


def test_recipes_that_fit_come_before_the_nearest_others(out: Read) -> None:
    said = matched(out, (FITS, NEAR, FAR))
    assert said.index("These recipes fit") < said.index("linux-r1.8")
    assert said.index("linux-r1.8") < said.index("The nearest others")
    assert "CUDA 9.0; no sm_30" in said
    assert "the GPU of this host" in said
    assert [line.split(None, 2) for line in said.splitlines()[-2:]] == [
        ["host.cuda", "9.2", "[1]"],
        ["[1]", "the", "tested builds"],
    ]


def test_without_a_recipe_that_fits_this_is_said(out: Read) -> None:
    assert "\nNo recipe fits\n" in matched(out, (NEAR,))
    alone = matched(out, (FITS,))
    assert "others" not in alone


def test_a_recipe_that_lacks_only_code_for_the_gpu_can_be_copied(out: Read) -> None:
    assert "invoke new --like" not in matched(out, (NEAR,))
    assert "invoke new --like" in matched(out, (replace(NEAR, copy="8.0"),))


def test_where_every_recipe_is_for_another_machine_this_is_said_first(out: Read) -> None:
    away = replace(FAR, elsewhere=True)
    assert "\nNo recipe is for Linux" in matched(out, (away,))
    # Next to a recipe for the machine, one for another is of no use.
    assert FAR.recipe not in matched(out, (NEAR, away))


def test_a_combination_that_no_release_was_made_for_has_no_new_recipe(out: Read) -> None:
    said = matched(out, (NEAR,), ())
    heading, reason = said.splitlines()[-2:]
    assert "no TensorFlow for this" in heading
    assert "CUDA 9.2 and Python 3.12" in reason


def test_an_official_wheel_that_fits_comes_first_with_the_line_for_pip(out: Read) -> None:
    found = replace(OTHER, differs=(), lacks=frozenset(), notes=("a driver",), fits=True)
    said = matched(out, (FITS,), official=(found,))
    assert "These official wheels fit\n" in said
    assert said.index(found.install) < said.index("linux-r1.8")
    assert "a driver" in said
    assert wheels.date_read() in said


def test_an_official_wheel_of_which_something_is_unknown_may_fit(out: Read) -> None:
    fitting = replace(OTHER, differs=(), lacks=frozenset())
    may = replace(
        fitting, notes=("needs a CPU with avx; which one is there is not known",), fits=None
    )
    assert "These official wheels may fit\n" in matched(out, (FITS,), official=(may,))
    does = replace(fitting, wheel=replace(OTHER.wheel, version="2.7.1"), fits=True)
    said = matched(out, (FITS,), official=(does, may))
    assert "These official wheels fit\n" in said
    assert "is not known" not in said
    newer = matched(out, (FITS,), official=(may, does))
    assert newer.index(does.install) < newer.index("These may fit as well\n")
    assert newer.index("These may fit as well\n") < newer.index(may.install)


def test_wheels_of_a_platform_that_was_not_read_may_fit_and_jetsons_have_nvidias_own(
    out: Read,
) -> None:
    jetson = Wish(system="Linux", machine="aarch64", gpu="8.7", release="2.18")
    page.show_matches(page.MatchAnswer(jetson, official.matches(jetson), (), NEEDS, ()))
    said = out()
    assert "No official wheel fits" in said
    assert said.count(gpus.JETPACK) == 1
    plain = replace(jetson, gpu="")
    page.show_matches(page.MatchAnswer(plain, official.matches(plain), (), NEEDS, ()))
    said = out()
    assert "These official wheels may fit\n" in said
    assert "Which CPU these wheels need is unknown." in said
    assert "WSL 2" not in said
    windows = Wish(system="Windows", machine="AMD64", gpu="8.9", python="3.12")
    page.show_matches(page.MatchAnswer(windows, official.matches(windows), (), NEEDS, ()))
    assert "'--os Linux' says what fits in WSL 2" in out()


def test_a_recipe_that_fits_is_not_denied_where_no_other_can_be_written(out: Read) -> None:
    said = matched(out, (FITS,), ())
    assert "Besides these recipes, tfwright's tables have no TensorFlow for this" in said


def test_without_an_official_wheel_that_fits_the_nearest_say_why(out: Read) -> None:
    near = replace(OTHER, differs=("needs a CPU with avx",), lacks=frozenset({"CPU"}))
    # Whatever lacks what a nearer one lacks is no other answer.
    far = replace(OTHER, differs=("avx", "Python 3.6"), lacks=frozenset({"CPU", "Python"}))
    said = matched(out, (FITS,), official=(near, far, OTHER))
    assert "No official wheel fits" in said
    assert "needs a CPU with avx" in said
    assert "no GPU code" in said
    assert "Python 3.6" not in said
