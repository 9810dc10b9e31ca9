"""A year of nights on a simulated clock; every state on the page equals what was done to it."""

import errno
import json
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.failing import fails
from tests.nightly.fake import FakeBuilder, PlayedHost, host_with

from tfwright.errors import HostError
from tfwright.nightly import night
from tfwright.nightly.builds import Breakage

pytestmark = pytest.mark.medium

NAMES = ("a", "b", "c", "d")


@dataclass
class Expected:
    """What a page has to say of one recipe, kept by rules of its own."""

    built: str = ""
    """The recipe's revision that was built well last."""
    failing: bool = False
    bad_nights: int = 0
    word: str = "never run"

    def after(self, fate: str, revision: str) -> None:
        """Let one night pass over it."""
        before = self.failing
        # A disk that is full stops what is built, and nothing else.
        if fate == "full":
            fate = "blocked" if revision != self.built or before else "fine"
        if fate == "blocked":
            self.bad_nights += 1
            self.word = "blocked"
        elif fate == "broken" and (revision != self.built or before):
            self.bad_nights += 1
            self.word = "still failing" if before else "newly failing"
            self.failing = True
        elif revision == self.built and not before:
            self.word, self.bad_nights = "good-unchanged", 0
        else:
            self.word = "newly fixed" if before else "good"
            self.built, self.failing, self.bad_nights = revision, False, 0


@dataclass
class Year:
    """The dice, and what they did."""

    host: PlayedHost
    dice: random.Random
    revisions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    expected: dict[str, Expected] = field(default_factory=dict)
    fates: dict[str, str] = field(default_factory=dict)
    kills: int = 0
    """Nights in which the machine died."""
    refused: int = 0
    """Times that a second host came while a night ran, and went away."""
    waited: int = 0
    """Times that it waited, and then ran a night of its own."""

    @property
    def builder(self) -> FakeBuilder:
        return self.host.fake

    def throw(self) -> None:
        """Let commits arrive, servers vanish and compilers change."""
        for name in NAMES:
            if self.dice.random() < 0.15:
                self.revisions[name] += 1
            fate = self.fates.get(name, "fine")
            if self.dice.random() < 0.2:
                fate = self.dice.choice(["fine", "fine", "broken", "blocked", "full"])
            self.fates[name] = fate
            revision = str(self.revisions[name])
            self.builder.parts[name] = {"recipe": revision, "the commit": "a" * 40}
        broken = Breakage(stage="compile", line="error: broken", log="compile.log", number=2)
        self.builder.broken = {name: broken for name in NAMES if self.fates[name] == "broken"}
        self.builder.unreachable = {name for name in NAMES if self.fates[name] == "blocked"}
        self.builder.raises = {
            name: OSError(errno.ENOSPC, "No space left on device")
            for name in NAMES
            if self.fates[name] == "full"
        }

    def run(self) -> None:
        """Run a night; in some of them a second host starts one in the same directory."""
        rival = self.dice.random()
        if rival < 0.1:
            self.run_with_one_that_waits()
        elif rival < 0.3:
            self.builder.meanwhile = self.refuse
            self.run_alone()
        else:
            self.run_alone()
        self.builder.meanwhile = None

    def refuse(self) -> None:
        """Let another host start a night in the middle of this one."""
        with fails(HostError, self.host.directory):
            night.run(self.host)
        self.refused += 1

    def run_with_one_that_waits(self) -> None:
        """Run a night while another host waits for its end, and then runs the next one."""
        other = threading.Thread(target=night.run, args=(self.host,), kwargs={"wait": True})
        self.builder.meanwhile = other.start
        night.run(self.host)
        # Without a build there was no middle in which it could have come.
        if other.ident is not None:
            other.join()
            self.waited += 1
            self.expect()

    def run_alone(self) -> None:
        """Run a night; in some of them the machine dies while a recipe is built."""
        fated = dict(self.builder.raises)
        if self.dice.random() < 0.2:
            self.builder.raises[self.dice.choice(NAMES)] = KeyboardInterrupt()
        try:
            night.run(self.host)
        except KeyboardInterrupt:
            # Whatever this recipe's fate was, the next start meets it.
            self.builder.raises = fated
            self.kills += 1
            night.run(self.host)

    def compare(self) -> None:
        """Read the page's states, and hold them against the rules."""
        page = json.loads(self.host.page("latest.json"))
        seen = {target["name"]: target["state"] for target in page["targets"]}
        self.expect()
        wanted = {name: self.expected[name].word for name in NAMES}
        assert seen == wanted, f"on {self.host.clock()}: {self.fates}"

    def expect(self) -> None:
        """Let one night pass over what is expected."""
        for name in NAMES:
            known = self.expected.setdefault(name, Expected())
            known.after(self.fates[name], str(self.revisions[name]))


def play(folder: Path, nights: int, seed: int) -> None:
    host = host_with(folder, *NAMES, notices={"stale_nights": 3}, retention={"hidden_days": 3})
    year = Year(host, random.Random(seed))
    for _ in range(nights):
        year.throw()
        year.run()
        year.compare()
        year.builder.clock.next_night()
    assert min(year.kills, year.refused, year.waited) > 0


def test_three_weeks_of_nights_are_shown_as_they_were(tmp_path: Path) -> None:
    play(tmp_path, 21, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_a_year_of_nights_is_shown_as_it_was(tmp_path: Path, seed: int) -> None:
    play(tmp_path, 365, seed)
