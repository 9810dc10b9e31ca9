"""The command index."""

import sys
from collections.abc import Iterator
from functools import partial

from invoke import Context

from tfwright.options import JSON, check_exclusive, task
from tfwright.terminal.answer import Answer, Shown


@task(
    needs={"reason": "yank"},
    help=JSON
    | {
        "folder": "a folder of wheels, instead of the build host's or the wheelhouse",
        "serve": "serve it to this machine until Ctrl-C",
        "port": "of --serve, or of the configuration that --nginx prints",
        "nginx": "print the nginx configuration for this server name",
        "yank": "file name of a wheel to withdraw: only an exact pin takes it then",
        "unyank": "file name of a wheel to offer again",
        "reason": "why; pip shows it",
    },
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
    json: bool = False,
) -> Iterator[Shown]:
    """Update the wheel index; serve it, or yank a wheel."""
    from tfwright.index import page
    from tfwright.index import serving as index
    from tfwright.nightly import site
    from tfwright.terminal import text

    check_exclusive(serve=serve, nginx=nginx, yank=yank, unyank=unyank)
    # The build host's, if it has a nightly.toml, else the wheelhouse.
    place = index.find_index(folder)
    # Printed and not installed: the web server's files belong to the administrator.
    if nginx:
        yield Answer(index.nginx_configuration(place, port, nginx), sys.stdout.write)
    elif yank or unyank:
        host = place.build_host()
        # A yanked wheel stays: pip still takes it for a pin of exactly its version.
        site.yank(host.directory, yank or unyank, reason if yank else None)
        # The yank is stored before the index is written: a kill in between loses nothing.
        site.refresh(host)
        yield Answer({"wheel": yank or unyank, "yanked": bool(yank)}, page.show_yank)
    else:
        update = site.refresh(place.nightly) if place.nightly else index.refresh(place)
        yield Answer(update, partial(page.show_update, folder=place.folder))
        if serve:
            with index.serving(place, port) as (url, forever):
                text.tell(f"Serving {url} to this machine; Ctrl-C ends it")
                if not json:
                    page.show_use(update, url)
                # Whoever reads through a pipe waits for the address before it asks.
                sys.stdout.flush()
                forever()
