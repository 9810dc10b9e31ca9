"""What the cache did for a build, in figures."""

import threading
from collections import Counter

from pydantic import BaseModel, ConfigDict


class CacheUse(BaseModel):
    """How the cache took part in a build."""

    # Every build imports this, and few read or write one.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    toolchain: str
    """The digest that keeps entries of other toolchains apart."""
    lookups: int = 0
    """Actions that Bazel asked for."""
    hits: int = 0
    """Actions that the cache answered, with all their files verified."""
    stored: int = 0
    """Actions whose results were added."""
    faults: dict[str, int] = {}
    """What went wrong, and became a miss: what happened = how often."""

    def plus(self, later: "CacheUse") -> "CacheUse":
        """Return the use of two runs of one build together."""
        return CacheUse(
            toolchain=later.toolchain,
            lookups=self.lookups + later.lookups,
            hits=self.hits + later.hits,
            stored=self.stored + later.stored,
            faults=dict(Counter(self.faults) + Counter(later.faults)),
        )


class Tally:
    """Counts while several threads work."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    def count(self, name: str) -> None:
        """Count a lookup, hit or stored entry."""
        with self._lock:
            self._counts[name] += 1

    def fault(self, what: str) -> None:
        """Count something that went wrong."""
        with self._lock:
            self._faults[what] += 1

    def use(self, toolchain: str) -> CacheUse:
        """Return the figures so far."""
        with self._lock:
            counts = {name: self._counts[name] for name in ("lookups", "hits", "stored")}
            faults = dict(sorted(self._faults.items()))
        return CacheUse(toolchain=toolchain, faults=faults, **counts)
