"""Commands of a build host: nightly, index, report, bisect."""

import sys

from invoke import Context, task

from tfwright.tasks.common import JSON, UNTIL, explained


@task(
    help=JSON
    | {
        "recipe": "only this recipe of nightly.toml",
        "dry-run": "show what would be built, and why; change nothing",
        "now": "build even what did not change",
        "wait": "wait for another night in the same directory",
        "watch": "only send notices: what waits, and that no night came for too long",
        "install": "write the timer that runs a night: user, system, cron or launchd",
        "uninstall": "remove that timer",
        "at": "time of day for --install",
        "yes": "do not ask before --install or --uninstall",
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
    json: bool = False,
) -> None:
    """Run one night of this build host: build what changed, publish it, show it on a page."""
    with explained(resume="invoke nightly"):
        from tfwright.commands import nightly
        from tfwright.terminal import console
        from tfwright.terminal import nightly as page
        from tfwright.terminal.text import tell

        # The timer itself runs `nightly` without options,
        # so these two never meet a night.
        if install or uninstall:
            sys.exit(
                page.schedule(
                    install or uninstall,
                    at,
                    remove=bool(uninstall),
                    yes=yes,
                )
            )
        # Run by a timer of its own: a night that never starts cannot report that.
        if watch:
            tell(f"{nightly.watch()} notices sent")
        elif dry_run:
            page.show_plan(nightly.plan(only=recipe, now=now), as_json=json)
        else:
            outcome = nightly.run(
                console.Terminal(),
                tell,
                only=recipe,
                now=now,
                wait=wait,
            )
            page.show_outcome(outcome, nightly.page(), as_json=json)


@task(
    help={
        "folder": "a folder of wheels, instead of the build host's or the wheelhouse",
        "serve": "serve it to this machine until Ctrl-C",
        "port": "of --serve, or of the configuration that --nginx prints",
        "nginx": "print the nginx configuration for this server name",
        "yank": "file name of a wheel that nothing but an exact pin may take any more",
        "unyank": "file name of a wheel to offer again",
        "reason": "why, for --yank; pip shows it",
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
        page.show_update(index.refresh(place), str(place.folder))
        if serve:
            with index.serving(place, port) as (url, forever):
                page.show_serving(url)
                page.show_use(url)
                # Whoever reads through a pipe waits for the address before it asks.
                sys.stdout.flush()
                forever()


@task(
    help={
        "build": "a nightly build by identifier, directory or recipe; default: the newest",
        "html": "print the build's page instead of Markdown",
    }
)
def report(
    _: Context,
    build: str = "",
    html: bool = False,
) -> None:
    """Print a report of one nightly build for an issue: without secrets, tokens or home paths."""
    with explained():
        from tfwright.commands import report

        # Plain Markdown on standard output, to be pasted or piped into another tool.
        found = report.find(build)
        sys.stdout.write(report.html(found) if html else report.markdown(found))


@task(
    help={
        "recipe": "a recipe of nightly.toml that fails",
        "good": "identifier of a good build; default: the last one",
        "bad": "identifier of a failed build; default: the newest",
    }
)
def bisect(
    _: Context,
    recipe: str,
    good: str = "",
    bad: str = "",
) -> None:
    """Find the change that broke a nightly recipe: a table of it, a patch, or a commit."""
    with explained():
        from tfwright.commands import bisect
        from tfwright.terminal import bisect as page
        from tfwright.terminal import console
        from tfwright.terminal.text import tell

        wanted = bisect.prepare(recipe, good, bad)
        # Before the first trial: the user sees how many trials lie ahead, and may stop.
        page.show_start(wanted)
        page.show_culprits(wanted, bisect.bisect(wanted, tell, console.Terminal()))


@task(
    # invoke collects a repeated option only for parameters that are named here.
    iterable=["recipe"],
    help=JSON
    | UNTIL
    | {
        "recipe": "name of a recipe; given again for each further one, all recipes without it",
        "slurm": "submit a job array to Slurm, instead of the workers of the host file",
    },
)
def distribute(
    _: Context,
    recipe: list[str],
    until: str = "publish",
    slurm: bool = False,
    json: bool = False,
) -> None:
    """Build recipes on several machines, over OpenSSH or by Slurm; show who built what."""
    with explained():
        from tfwright.commands import distribute as workers
        from tfwright.documents import host_file
        from tfwright.documents import recipe as recipes
        from tfwright.errors import ToolError
        from tfwright.pipeline import engine
        from tfwright.terminal import distribute as page

        engine.insist(until)
        names = recipe or list(recipes.names())
        # A mistyped name is refused here, and not hours later by a worker.
        for name in names:
            recipes.find(name)
        hand_out = workers.by_slurm if slurm else workers.over_ssh
        options = ("--until", until)
        done = hand_out(host_file.read(), names, options, page.show_assignment)
        page.show_schedule(done, as_json=json)
        if any(each.state != "built" for each in done.assignments.values()):
            sys.exit(ToolError.exit_status)
