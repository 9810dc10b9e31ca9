"""The words that people type: the CPU levels, and the known word nearest to an unknown one.

`invoke inspect` needs the levels and not the recipe, whose model takes half of its start-up.
"""

from collections.abc import Iterable
from typing import Literal

CpuLevel = Literal["x86-64", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "avx512"]
"""What a wheel may need of an x86-64 CPU, least first."""


LONGEST = 100
"""Characters that are compared: the time grows with the square of the length."""
SIMILAR = 0.6
"""Share of equal characters from which two words are alike."""


def nearest(word: str, known: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the known word that is most like another; empty if none is."""
    # Every command imports this module, and few meet a word that is not known.
    from difflib import get_close_matches

    near = get_close_matches(word[:LONGEST], list(known), n=1, cutoff=similar)
    return near[0] if near else ""


def guess(word: str, known: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the end of a sentence about an unknown word: the question for the nearest one."""
    near = nearest(word, known, similar)
    return f"; did you mean {near!r}?" if near else ""
