"""What a build needs and no source gave: all in one error, each attempt in the log."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tfwright.documents import host_file as host_files
from tfwright.documents.host_file import HostFile
from tfwright.errors import Evidence, SupplyError, TfwrightError
from tfwright.printable import first_few, printable
from tfwright.tools import files
from tfwright.tools.git.clones import Clone
from tfwright.vault.origins import Attempt, Missing

SHOWN = 12
"""Files that the message describes; the log has all of them."""


def error(
    recipe: str,
    archives: Sequence[Missing],
    clones: Mapping[Clone, TfwrightError],
    host_file: HostFile,
    log: Path,
) -> SupplyError:
    """Return the error that names every file and commit which is missing.

    Every attempt is written to `log`.
    """
    lines, report = list[str](), list[str]()
    names = [missing.wanted.name for missing in archives] + [clone.remote for clone in clones]
    for missing in archives:
        wanted = missing.wanted
        # A rule with a file for each platform gives several of one name.
        several = wanted.urls and names.count(wanted.name) > 1
        name = f"{wanted.name} ({Path(wanted.urls[-1]).name})" if several else wanted.name
        # Offline, nothing may have been asked at all.
        unasked = [Attempt(url, "not asked, this build is offline") for url in wanted.urls]
        tried = missing.attempts or unasked or [Attempt("no source", "it has no url")]
        last = missing.main_attempt or tried[-1]
        more = f" ({len(tried)} sources in all)" if len(tried) > 1 else ""
        lines.append(f"{name}: {last.source}: {last.why}{more}")
        size = f", {wanted.size:,} bytes" if wanted.size is not None else ""
        report.append(f"{name}: sha256 {wanted.sha256}{size}")
        report += [f"    {attempt.source}: {attempt.why}" for attempt in tried]
    for clone, fault in clones.items():
        lines.append(f"{clone.remote}: {fault.what}")
        report.append(f"{clone.remote}, commit {clone.commit}: {fault.what}")
    # Written before the error is raised, which names this file.
    files.write(log, "".join(f"{printable(line)}\n" for line in report))
    tables = [line for missing in archives for line in missing.table_lines()]
    return SupplyError(
        f"Inputs that {recipe} needs could not be found: {', '.join(dict.fromkeys(names))}",
        remedy=f"Copy each file, under any name, into {host_files.drop_folder(host_file)}; or "
        f"name a mirror in [mirrors] or [downloads] of {host_files.path()}; or add another "
        "source of the same bytes, or a substitute, to the recipe: [[fetch.sources]], "
        f"[fetch.substitutes]. Then run 'invoke fetch --recipe {recipe}'."
        + (
            " A git mirror has the commit of what the tables above name, or most of it: if the "
            "build needs no more, add them to the recipe, and run "
            f"'invoke pin --recipe {recipe}'."
            if tables
            else ""
        ),
        # The message stays readable with a hundred of them; the log has every attempt.
        evidence=Evidence(lines=[*first_few(lines, SHOWN), *tables], log=log),
    )
