"""Two GPUs share A^n + B^n, and take so long for it, against one."""

from compatibility import gpus, graphs, insist_on_gpus, report
from powers import EXPONENT, SIZE, add_powers, insist


def check(name):
    """Compute one power on each GPU."""
    tf = graphs(name)
    both = gpus(name)[:2]
    insist_on_gpus(len(both), 2)
    # The same work on one GPU first: only the comparison shows that both took part.
    total, one = add_powers(tf, both[:1])
    insist(total, both[0])
    total, two = add_powers(tf, both)
    insist(total, " and ".join(both))
    numbers = {"size": SIZE, "exponent": EXPONENT, "one_seconds": one, "two_seconds": two}
    return "one GPU %.3g s, two GPUs %.3g s" % (one, two), numbers


if __name__ == "__main__":
    report(check)
