"""What a build needs and no source gave: all in one error, each attempt in the log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, SupplyError, TfwrightError
from tfwright.printable import printable
from tfwright.tools import files
from tfwright.tools.git.clones import Clone
from tfwright.vault.origins import Attempt, Missing

SHOWN = 12
"""Files that the message describes; the log has all of them."""


@dataclass(frozen=True)
class Shortage:
    """The files and commits that are missing."""

    recipe: str
    archives: Sequence[Missing]
    clones: Mapping[Clone, TfwrightError]

    def error(self, host_file: HostFile, log: Path) -> SupplyError:
        """Return the error that names everything which is missing.

        Every attempt is written to `log`.
        """
        # Written before the error is raised, which names this file.
        files.write(log, "".join(f"{printable(line)}\n" for line in self._report()))
        wanted = [missing.wanted.name for missing in self.archives]
        names = [*wanted, *(clone.remote for clone in self.clones)]
        # The message stays readable with a hundred of them; the log has every attempt.
        count = len(names)
        lines = list(self._summary())
        if count > SHOWN:
            lines = [*lines[:SHOWN], f"and {count - SHOWN} more, see the log"]
        tables = [line for missing in self.archives for line in missing.table()]
        noun = "input" if count == 1 else "inputs"
        return SupplyError(
            f"{count} {noun} that {self.recipe} needs could not be found: {', '.join(names)}",
            remedy=f"Copy each file, under any name, into {host_files.drop_folder(host_file)}; or "
            f"name a mirror in [mirrors] or [downloads] of {host_files.path()}; or add another "
            "source of the same bytes, or a substitute, to the recipe: [[fetch.sources]], "
            f"[fetch.substitutes]. Then run 'invoke fetch --recipe {self.recipe}'."
            + (
                " A git mirror has all but a few files of what the tables above name: add them to "
                f"the recipe, and run 'invoke pin --recipe {self.recipe}'."
                if tables
                else ""
            ),
            evidence=Evidence(lines=[*lines, *tables], log=log),
        )

    def _summary(self) -> Iterator[str]:
        """Describe each file in one line: checksum, and what the last source said."""
        for missing in self.archives:
            tried = _attempts(missing)
            # The sources go from upstream's servers to what the user put there: the
            # last one says most.
            last = tried[-1]
            more = f" ({len(tried)} sources in all)" if len(tried) > 1 else ""
            yield f"{missing.wanted.name}: {last.source}: {last.why}{more}"
        for clone, fault in self.clones.items():
            yield f"{clone.remote}: {fault.what}"

    def _report(self) -> Iterator[str]:
        """Describe each file with all attempts."""
        for missing in self.archives:
            wanted = missing.wanted
            size = f", {wanted.size:,} bytes" if wanted.size is not None else ""
            yield f"{wanted.name}: sha256 {wanted.sha256}{size}"
            for attempt in _attempts(missing):
                yield f"    {attempt.source}: {attempt.why}"
        for clone, fault in self.clones.items():
            yield f"{clone.remote}, commit {clone.commit}: {fault.what}"


def _attempts(missing: Missing) -> Sequence[Attempt]:
    """Return the attempts at a file; offline, nothing may have been asked at all."""
    unasked = [Attempt(url, "not asked, this build is offline") for url in missing.wanted.urls]
    return missing.attempts or unasked or [Attempt("no source", "it has no url")]
