"""Commands of the build host: nightly, report."""

import datetime as dt
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from invoke import Context

from tfwright.options import JSON, check_exclusive, task
from tfwright.terminal.answer import Answer, Shown


@task(
    needs={"at": "install", "image": "adapter"},
    resumes=("recipe", "now", "wait"),
    help=JSON
    | {
        "recipe": "only this recipe of nightly.toml",
        "dry-run": "show what would be built, and why; change nothing",
        "now": "build even what did not change",
        "wait": "wait for another night in the same directory",
        "watch": "only send notices: what waits, and that no night came for too long",
        "install": "write the timer that runs a night: user, system, cron or launchd",
        "uninstall": "remove the timer: user, system, cron or launchd",
        "at": "time of day",
        "yes": "do not ask before --install or --uninstall",
        "order": "on a worker: carry out the build order in this folder; nights start this. With "
        "--recipe, write an order for that recipe first",
        "adapter": "print a job that builds --recipe: kubernetes, gitlab, github or buildkite; "
        "schema prints the JSON schemas of an order and its result",
        "image": "of the container that the job runs in",
    },
)
def nightly(
    _: Context,
    recipe: str = "",
    dry_run: bool = False,
    now: bool = False,
    wait: bool = False,
    watch: bool = False,
    install: str = "",
    uninstall: str = "",
    at: str = "02:00",
    yes: bool = False,
    order: str = "",
    adapter: str = "",
    image: str = "",
    json: bool = False,
) -> Shown:
    """Run one night of this build host: build what changed, publish it, show it on a page."""
    from tfwright.documents import nightly as document
    from tfwright.nightly import fleets, night, notices, page
    from tfwright.terminal.console import Terminal
    from tfwright.terminal.text import tell

    check_exclusive(
        install=install,
        uninstall=uninstall,
        adapter=adapter,
        order=order,
        watch=watch,
        dry_run=dry_run,
    )
    # The timer itself runs `nightly` without options, so these two never meet a night.
    if install or uninstall:
        check_exclusive(install=install, uninstall=uninstall, json=json)
        sys.exit(page.schedule(install or uninstall, at, remove=bool(uninstall), yes=yes))
    if adapter:
        text = page.adapter(adapter, recipe or "demo", image or page.IMAGE)
        return Answer({"adapter": text}, lambda _: sys.stdout.write(text))
    if order:
        if recipe:
            fleets.write_recipe_order(Path(order), recipe)
        built = fleets.carry_out(Path(order), Terminal())
        # Who sent the order reads what came of it; who builds a recipe has only the status.
        failed = bool(recipe) and built.result == "failed"
        return Answer(built, page.show_order, status=int(failed))
    if watch:
        # Without the host file: a fault in it keeps no notice back.
        nightly_file = document.read()
        channels = notices.channels_of(nightly_file.notices)
        sent = night.watch(nightly_file, dt.datetime.now(dt.UTC), channels, tell)
        return Answer(f"{sent} notices sent", tell, lambda _: {"notices": sent})
    if dry_run:
        planned = night.plan(fleets.build_host(), only=recipe, now=now)
        return Answer(planned, page.show_plan, page.plan_data)
    host = fleets.build_host(Terminal(), tell)
    if host.nightly.bisect and not host.fleet:
        from tfwright.bisect import bisection

        host = replace(host, bisect=partial(bisection.find_nightly_culprit, note=tell))
    outcome = night.run(host, only=recipe, now=now, wait=wait)
    first = host.nightly.url or str(host.site / "index.html")
    return Answer(outcome, partial(page.show_outcome, address=first))


@task(
    help={
        "build": "a nightly build by identifier, directory or recipe; default: the newest",
        "html": "print the build's page instead of Markdown",
    }
)
def report(_: Context, build: str = "", html: bool = False) -> None:
    """Print a report of one nightly build for an issue: without secrets, tokens or home paths."""
    from tfwright.nightly.pages import build as pages

    # Plain Markdown on standard output, to be pasted or piped into another tool.
    found, folder = pages.find(build)
    sys.stdout.write((pages.html if html else pages.markdown)(found, folder))
