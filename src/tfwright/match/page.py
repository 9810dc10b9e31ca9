"""The page of match: what to install or build for a machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfwright.facts import gpus, wheels
from tfwright.match.official import covers_platform
from tfwright.printable import printable
from tfwright.terminal import text
from tfwright.terminal.text import Column

if TYPE_CHECKING:
    from tfwright.match.fit import FitVerdict
    from tfwright.match.official import OfficialMatch
    from tfwright.match.pins import DerivedPin
    from tfwright.match.ranking import Candidate
    from tfwright.match.wish import Wish
    from tfwright.wheel.inspect.inspection import Inspection

PIN_COLUMNS = (Column(""), Column("", rank=1, cut="end", least=16), Column("", rank=2))
COMMAND = 50
"""The longest command that has something behind it on its line."""
NEAREST = 3
"""Wheels and recipes that are shown although they do not fit, or next to the newest that fits."""


@dataclass(frozen=True)
class MatchAnswer:
    """What fits a wish, the nearest others, and what a new recipe would pin."""

    wanted: "Wish"
    official: "Sequence[OfficialMatch]"
    recipes: "Sequence[Candidate]"
    new: "Sequence[DerivedPin]"
    excluded: Sequence[str]
    """Why no TensorFlow can be built for the wish; empty if one can."""

    @property
    def fits(self) -> bool:
        """Whether there is a wheel to install, or a recipe to build."""
        return self.recipes_fit or any(not found.differs for found in self.official)

    @property
    def recipes_fit(self) -> bool:
        """Whether there is a recipe to build."""
        return any(not candidate.differs for candidate in self.recipes)


def matches_data(answer: MatchAnswer) -> object:
    """Return what JSON says of a match."""
    official = [
        {
            "install": found.install,
            "project": found.wheel.project,
            "version": found.wheel.version,
            "fits": found.fits,
            "differs": found.differs,
            "notes": found.notes,
        }
        for found in answer.official
    ]
    return {**vars(answer), "official": official}


def show_matches(answer: MatchAnswer) -> None:
    """Print official wheels and recipes that fit, the nearest others, what a new one would pin."""
    text.paragraph("wanted: ", str(answer.wanted), indent=8)
    _show_official(answer)
    _show_recipes(answer)
    if answer.excluded:
        besides = "Besides these recipes, " if answer.recipes_fit else ""
        text.heading(f"{besides}tfwright's tables have no TensorFlow for this")
        for reason in answer.excluded:
            text.paragraph("  - ", reason, indent=4)
        return
    text.heading("A new recipe would pin (by 'invoke new')")
    # The sources stand below, each once and whole.
    named = [pin.source for pin in answer.new if pin.source]
    sources = {source: f"[{number}]" for number, source in enumerate(dict.fromkeys(named), 1)}
    rows = [(f"  {pin.name}", str(pin), sources.get(pin.source, "")) for pin in answer.new]
    text.table(PIN_COLUMNS, rows)
    for source, mark in sources.items():
        text.paragraph(f"  {mark}", source, indent=6)


def _show_recipes(answer: MatchAnswer) -> None:
    fitting = [candidate for candidate in answer.recipes if not candidate.differs]
    # Ranked by the number of differences, so those that fit come first.
    differing = [candidate for candidate in answer.recipes if candidate.differs]
    here = [candidate for candidate in differing if not candidate.elsewhere]
    nearest: dict[tuple[str, ...], Candidate] = {}
    for candidate in here or differing:
        # All that differ in the same are one answer.
        nearest.setdefault(candidate.differs, candidate)
    others = list(nearest.values())[:NEAREST]
    if fitting:
        text.heading("These recipes fit", text.GOOD)
    elif differing and not here:
        text.heading(f"No recipe is for {answer.wanted.system} {answer.wanted.machine}".rstrip())
    else:
        text.heading("No recipe fits")
    names = [candidate.recipe for candidate in (*fitting, *others)]
    indent = 4 + max(map(len, names), default=0)
    for candidate in fitting:
        since = f"stale: {candidate.stale}; " if candidate.stale else ""
        until = candidate.verified
        verified = f"{since}verified until {until}" if until else "never run"
        text.paragraph(f"  {candidate.recipe}", f"{verified}: {candidate.summary}", indent=indent)
    if others:
        text.heading("The nearest others, and how they differ")
    for candidate in others:
        text.paragraph(f"  {candidate.recipe}", "; ".join(candidate.differs), indent=indent)
    if any(candidate.copy for candidate in others):
        text.line("  'invoke new --like RECIPE --name NAME' makes a copy to change.")


MARKS = {True: ("yes", text.GOOD), False: ("no", text.BAD), None: ("?", text.WARNING)}


def show_verdict(
    found: "tuple[FitVerdict, Inspection]", then: "Callable[[Inspection], object]"
) -> None:
    """Print whether a wheel runs on a machine, with what to do, then what the wheel is."""
    verdict, report = found
    runs = {True: "runs on", False: "does not run on", None: "may run on"}[verdict.runs]
    runs = "runs on the CPU, and not on the GPU, of" if verdict.on_the_cpu else runs
    text.heading(f"{report.file} {runs} {verdict.machine}", MARKS[verdict.runs][1])
    for judgement in verdict.judgements:
        start = f"  {MARKS[judgement.holds][0]:<4}{judgement.what:<10} "
        text.paragraph(start, printable(judgement.says), indent=len(start))
        if judgement.remedy:
            text.paragraph("      do: ", printable(judgement.remedy), indent=10)
    text.line()
    then(report)


def verdict_data(found: "tuple[FitVerdict, Inspection]") -> object:
    """Return what JSON says of a wheel with a verdict: the report, and the verdict in it."""
    verdict, report = found
    return {**vars(report), "verdict": {"runs": verdict.runs, **vars(verdict)}}


def _nearest_wheels(found: "Sequence[OfficialMatch]") -> "list[OfficialMatch]":
    """Return the nearest that do not fit, without those that lack what a nearer one lacks."""
    nearest: list[OfficialMatch] = []
    # Another platform's wheel is no help to anyone.
    for one in [one for one in found if "platform" not in one.lacks] or found:
        if not any(nearer.lacks <= one.lacks for nearer in nearest):
            nearest.append(one)
    return nearest[:NEAREST]


def _show_installs(shown: "Sequence[OfficialMatch]") -> None:
    longest = max(len(found.install) for found in shown)
    # What is behind a long command stands below it.
    before, indent = ("\n", 6) if longest > COMMAND else ("", 4 + longest)
    for found in shown:
        details = "; ".join(found.differs or found.notes)
        text.paragraph(f"  {found.install}", details and before + details, indent=indent)


def _show_official(answer: MatchAnswer) -> None:
    official, wanted = answer.official, answer.wanted
    fitting = [found for found in official if not found.differs]
    # Those that may fit are no answer next to one that does.
    certain = [found for found in fitting if found.fits]
    if certain:
        text.heading("These official wheels fit", text.GOOD)
        _show_installs(certain[:NEAREST])
    # Those that may fit are no answer next to one that does, unless it is older.
    possible = fitting[: fitting.index(certain[0])] if certain else fitting
    if possible:
        heading = "These may fit as well" if certain else "These official wheels may fit"
        text.heading(heading, text.WARNING)
        _show_installs(possible[:NEAREST])
    if not fitting:
        text.heading("No official wheel fits; the nearest, and how they differ")
        _show_installs(_nearest_wheels(official))
    if fitting and not covers_platform(wanted):
        text.paragraph("  ", "Which CPU these wheels need is unknown.", indent=2)
    if gpus.is_jetson_only(wanted.gpu):
        note = (
            f"NVIDIA has wheels for Jetsons, each for one JetPack: {gpus.JETPACK}; "
            "JetPack 7 (Thor) has Python 3.12 and CUDA 13, JetPack 6 has 3.10 and 12, "
            "JetPack 5 has 3.8 and 11.4, JetPack 4 has 3.6 and 10.2."
        )
        text.paragraph("  ", note, indent=2)
    if wanted.system == "Windows" and (wanted.gpu or not fitting):
        note = "Wheels for Windows have GPU code up to 2.10; '--os Linux' says what fits in WSL 2."
        text.paragraph("  ", note, indent=2)
    text.paragraph("  ", f"The package index was read on {wheels.date_read()}.", indent=2)
    if wanted.named:
        text.paragraph("  ", f"{wanted.named}.", indent=2)
