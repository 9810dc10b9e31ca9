"""What `invoke bisect` prints."""

from typing import TYPE_CHECKING

from tfwright.nightly import halving
from tfwright.printable import printable
from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.commands.bisect import Bisection, BisectStep
    from tfwright.nightly.halving import Culprits


def show_start(wanted: "Bisection") -> None:
    """Say what lies between the two builds, and about how long it takes to tell them apart."""
    count = len(wanted.steps)
    # One more: first the good build is tried again, to see that the host still can.
    trials = halving.expected_trials(count) + 1
    text.tell(f"{wanted.good.id} is good, {wanted.bad.id} fails in {wanted.stage}")
    text.tell(f"{count} changes in between: about {trials} trials up to {wanted.stage}")
    for part in wanted.host_changes:
        text.tell(f"  changed as well, and cannot be taken back: {part}")


def show_culprits(wanted: "Bisection", found: "Culprits[BisectStep] | None") -> None:
    """Say what did it."""
    # The good build was tried first, and failed: no change of ours explains that.
    if found is None:
        changed = ", ".join(wanted.host_changes) or "something that tfwright does not record"
        print(f"What was good fails now as well: this host changed ({changed}).")
        return
    if len(found.suspects) == 1:
        print(f"Broken by {printable(found.first_bad.said)}")
    else:
        print("Broken by one of these; the others could not be tried:")
        for step in found.suspects:
            print(f"  {printable(step.said)}")
    print(f"{found.trials + 1} trials")
