"""Commands of a build host: nightly, index, report, bisect."""

import sys

from invoke import Context

from tfwright.tasks.common import JSON, explained, file_of, one_of, resuming, task


@task(
    help=JSON
    | {
        "recipe": "only this recipe of nightly.toml",
        "dry-run": "show what would be built, and why; change nothing",
        "now": "build even what did not change",
        "wait": "wait for another night in the same directory",
        "watch": "only send notices: what waits, and that no night came for too long",
        "install": "write the timer that runs a night: user, system, cron or launchd",
        "uninstall": "remove the timer: user, system, cron or launchd",
        "at": "with --install: time of day",
        "yes": "do not ask before --install or --uninstall",
        "order": "on a worker: carry out the build order in this folder; nights start this",
    }
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
    json: bool = False,
) -> None:
    """Run one night of this build host: build what changed, publish it, show it on a page."""
    again = resuming("nightly", recipe=recipe, now=now, wait=wait)
    with explained(resume=again):
        from tfwright.commands import nightly
        from tfwright.terminal import console
        from tfwright.terminal import nightly as page
        from tfwright.terminal.text import tell

        one_of(install=install, uninstall=uninstall, order=order, watch=watch, dry_run=dry_run)
        # The timer itself runs `nightly` without options,
        # so these two never meet a night.
        if install or uninstall:
            sys.exit(page.schedule(install or uninstall, at, remove=bool(uninstall), yes=yes))
        if order:
            tell(page.said_of(nightly.carry_out(order, console.Terminal())))
        elif watch:
            tell(f"{nightly.watch()} notices sent")
        elif dry_run:
            page.show_plan(nightly.plan(only=recipe, now=now), as_json=json)
        else:
            outcome = nightly.run(console.Terminal(), tell, only=recipe, now=now, wait=wait)
            page.show_outcome(outcome, nightly.page(), as_json=json)


@task(
    help={
        "folder": "a folder of wheels, instead of the build host's or the wheelhouse",
        "serve": "serve it to this machine until Ctrl-C",
        "port": "of --serve, or of the configuration that --nginx prints",
        "nginx": "print the nginx configuration for this server name",
        "yank": "file name of a wheel that nothing but an exact pin may take any more",
        "unyank": "file name of a wheel to offer again",
        "reason": "with --yank: why; pip shows it",
    }
)
def index(
    _: Context,
    folder: str = "",
    serve: bool = False,
    port: int = 8080,
    nginx: str = "",
    yank: str = "",
    unyank: str = "",
    reason: str = "",
) -> None:
    """Bring the wheel index up to date; serve it, or yank a wheel."""
    with explained():
        from tfwright.commands import index
        from tfwright.terminal import index as page

        one_of(serve=serve, nginx=nginx, yank=yank, unyank=unyank)
        # The build host's, if it has a nightly.toml, else the wheelhouse.
        place = index.place(folder)
        # Printed and not installed: the web server's files belong to the administrator.
        if nginx:
            sys.stdout.write(index.nginx_configuration(place, port, nginx))
            return
        if yank or unyank:
            # A yanked wheel stays: pip still takes it for a pin of exactly its version.
            index.yank(place, yank or unyank, reason if yank else None)
            return
        update = index.refresh(place)
        page.show_update(update, str(place.folder))
        if serve:
            with index.serving(place, port) as (url, forever):
                page.show_serving(url)
                page.show_use(update, url)
                # Whoever reads through a pipe waits for the address before it asks.
                sys.stdout.flush()
                forever()


@task(
    help={
        "build": "a nightly build by identifier, directory or recipe; default: the newest",
        "html": "print the build's page instead of Markdown",
    }
)
def report(_: Context, build: str = "", html: bool = False) -> None:
    """Print a report of one nightly build for an issue: without secrets, tokens or home paths."""
    with explained():
        from tfwright.commands import report

        # Plain Markdown on standard output, to be pasted or piped into another tool.
        found = report.find(build)
        sys.stdout.write(report.html(found) if html else report.markdown(found))


@task(
    help=JSON
    | {
        "recipe": "a recipe of nightly.toml that fails",
        "good": "identifier of a good build; default: the last one before the failure",
        "bad": "identifier of a failed build; default: the newest",
    }
)
def bisect(_: Context, recipe: str, good: str = "", bad: str = "", json: bool = False) -> None:
    """Find the change that broke a nightly recipe: a table, a patch, a commit, or the lock file."""
    again = resuming("bisect", recipe=recipe, good=good, bad=bad)
    with explained(resume=again):
        from tfwright.commands import bisect
        from tfwright.terminal import bisect as page
        from tfwright.terminal import console

        wanted = bisect.prepare(recipe, good, bad)
        # Before the first trial: the user sees how many trials lie ahead, and may stop.
        page.show_start(wanted)
        outcome = bisect.bisect(wanted, page.show_trial, console.Terminal())
        page.show_outcome(wanted, outcome, as_json=json)


@task(
    positional=["wheel"],
    help=JSON
    | {
        "wheel": "path of a wheel",
        "write": "write the variant wheel into this folder",
        "label": "the variant's label; default: one made of its architectures",
    },
)
def variant(_: Context, wheel: str, write: str = "", label: str = "", json: bool = False) -> None:
    """Experimental: read off a wheel's code what a variant of PEP 825 may claim."""
    with explained():
        from pathlib import Path

        from tfwright.commands import variant
        from tfwright.terminal import variant as page

        folder = Path(write) if write else None
        found = variant.variant_of(file_of(wheel, "variant"), write=folder, label=label)
        page.show_variant(found, as_json=json)
