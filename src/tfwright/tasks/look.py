"""Commands that look at wheels, builds and logs."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.tasks.common import JSON, RECIPE, WHEEL, explained, file_of, job_of, one_of, task

if TYPE_CHECKING:
    from tfwright.wheel.inspect.leaks import HostDirectory


@task(
    help=JSON
    | WHEEL
    | {"key": "public key, in PEM, that must have signed the statement next to the wheel"}
)
def inspect(_: Context, wheel: str, key: str = "", json: bool = False) -> None:
    """Show what a wheel needs and contains, from glibc to GPU code, and whether its tags are true.

    Nothing of the wheel is run.
    """
    with explained():
        from tfwright.terminal import inspect as page
        from tfwright.wheel.inspect import inspection

        report = inspection.inspect(
            file_of(wheel, "inspect"), Path(key) if key else None, _directories
        )
        page.show_report(report, as_json=json)
        # Shown first, judged afterwards: what was found
        # helps most where a wheel is refused.
        inspection.insist(report)


def _directories() -> "Iterator[HostDirectory]":
    """Return the directories of this host that a wheel which was built here may name."""
    from tfwright.documents import host_file
    from tfwright.pipeline import host_directories

    return host_directories.of_host(host_file.read())


@task(
    positional=["first", "second"],
    help=JSON
    | {
        "first": "path of a .whl file",
        "second": "path of another one",
        "diffoscope": "let diffoscope tell more, if it is installed",
    },
)
def compare(
    _: Context, first: str, second: str, json: bool = False, diffoscope: bool = False
) -> None:
    """Compare two wheels: files, metadata, code, source, and how they are packed.

    The exit status is 0 if they are the same bytes.
    """
    with explained():
        from tfwright.terminal import compare as page
        from tfwright.tools import diffoscope as other
        from tfwright.wheel.compare import comparison

        one = file_of(first, "compare")
        two = file_of(second, "compare")
        if diffoscope:
            # diffoscope has exit statuses of its own, which are passed on.
            sys.exit(other.show(one, two, as_json=json))
        found = comparison.compare(one, two)
        page.show_comparison(found, as_json=json)
        # As cmp and diff do, for scripts.
        sys.exit(0 if found.same else 1)


@task(
    positional=["wheel"],
    iterable=["requirement"],
    help=JSON
    | WHEEL
    | {
        "python": "target Python, as 3.6 or as a path; default: what the wheel's tag says",
        "requirement": 'installed with it, as "numpy<1.17"; may be given again',
        "module": "what to import, where it is not tensorflow",
        "report": "folder for a page with the plot, and the data",
        "runs": "print a table of all wheels that were tried here instead",
    },
)
def smoke(
    _: Context,
    requirement: list[str],
    wheel: str = "",
    python: str = "",
    module: str = "tensorflow",
    report: str = "",
    runs: bool = False,
    json: bool = False,
) -> None:
    """Install a wheel in a fresh venv and run small programs with it, on the CPU and on GPUs."""
    with explained():
        from tfwright.commands import smoke as smoking
        from tfwright.documents import host_file
        from tfwright.terminal import smoke as page
        from tfwright.tools import plotting

        one_of(runs=runs, json=json)
        if runs:
            # Kept from earlier trials; nothing is run for the table.
            page.show_runs(smoking.kept(host_file.read()))
            return
        # Asked before the trial, which takes minutes: a plot
        # needs a library that may be missing.
        if report:
            plotting.require()
        file = file_of(wheel, "smoke")
        request = smoking.Request(file, host_file.read(), python, requirement, module)
        # Standard output must hold nothing but the JSON.
        hear = (lambda _: None) if json else page.show_outcome
        seen = smoking.smoke(request, hear)
        page.show_report(seen, as_json=json)
        if report:
            page.write_report(seen, Path(report))
        # Last: the report is written also of a wheel that fails.
        smoking.insist(request, seen)


@task(
    help=RECIPE
    | JSON
    | {
        "page": "write a page with a timeline of Bazel's actions into this file",
        "against": "compare with a build: 'previous', a nightly build, or the path of a profile",
    }
)
def cost(
    _: Context, recipe: str = "demo", page: str = "", against: str = "", json: bool = False
) -> None:
    """Show what a recipe's build took: time, processor time, memory, slowest actions, disk."""
    with explained(recipe):
        if page or against:
            from tfwright.commands import cost as pages
            from tfwright.terminal import cost as shown

            shown.show_page(pages.write(job_of(recipe), page, against))
            return
        from tfwright.pipeline import cost as costs
        from tfwright.pipeline.stages import PIPELINE
        from tfwright.terminal import cost as shown

        shown.show_cost(costs.of(job_of(recipe), PIPELINE), as_json=json)


@task(
    positional=["log"],
    help=JSON
    | {
        "log": "a log of any stage, plain or packed with gzip; - for standard input",
        "learn": "make an entry for the catalogue of the root error, and a test fixture",
    },
)
def diagnose(_: Context, log: str, json: bool = False, learn: bool = False) -> None:
    """Find the root error in a log, its cause, and what helps.

    The exit status is 0 if the error is known.
    """
    with explained():
        from tfwright.diagnosis import learn as learning
        from tfwright.diagnosis import logs, report
        from tfwright.documents import host_file
        from tfwright.terminal import console
        from tfwright.terminal import diagnose as page

        found = logs.diagnose(str(file_of(log, "diagnose")), console.Terminal())
        reports = host_file.read().build_out / "reports"
        if learn:
            # For maintainers: the entry is written for the
            # catalogue, not for this reader.
            page.show_lesson(*learning.write(found, log, reports), as_json=json)
            return
        written = report.write(found, log, reports)
        page.show_diagnosis(found, written, as_json=json)
        # So that a script can tell known failures from new ones.
        sys.exit(0 if found.recognised else 1)


@task(
    help=JSON
    | RECIPE
    | {
        "wheel": (
            "path of a wheel of ours, whose build record names the recipe; without it the one in "
            "the wheelhouse"
        ),
        "cached": "let the build cache take part: faster, and proves less",
        "control": "on a difference, build again at fixed addresses to tell why",
    }
)
def reproduce(
    _: Context,
    wheel: str = "",
    recipe: str = "",
    cached: bool = False,
    control: bool = True,
    json: bool = False,
) -> None:
    """Build a wheel again from nothing in another directory, and compare the two.

    The exit status is 0 if they are the same bytes; if not, the cause is looked for.
    """
    with explained(recipe):
        from tfwright.commands import reproduce as reproduction
        from tfwright.terminal import compare as page

        # A wheel of ours names its recipe.
        job = job_of(recipe or reproduction.recipe_named(wheel))
        original = Path(wheel) if wheel else reproduction.published(job)
        # Refused before hours of building: another recipe cannot give the same wheel.
        reproduction.insist(job, original)
        found = reproduction.reproduce(job, original, cached=cached, control=control)
        page.show_reproduction(found, as_json=json)
        sys.exit(0 if found.comparison.same else 1)
