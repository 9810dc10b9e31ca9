"""The command match."""

from functools import partial

from invoke import Context

from tfwright.options import JSON, MACHINE, task
from tfwright.terminal.answer import Answer, Shown


@task(
    needs={"cpu": "index"},
    help=JSON
    | MACHINE
    | {
        "glibc": "the oldest version that the wheel must load on",
        "release": "of TensorFlow, as 2.6 or v1.12.0-rc0",
        "cpu": "the most that an x86-64 CPU has: sse4.2, avx, avx2",
        "index": "address of a tfwright index: name its wheels that fit, without a download",
    },
)
def match(
    _: Context,
    gpu: str = "",
    python: str = "",
    glibc: str = "",
    cuda: str = "",
    os: str = "",
    release: str = "",
    cpu: str = "",
    index: str = "",
) -> Shown:
    """Find the recipes for a machine: those that fit, the nearest others, what a new one would pin.

    Without options the machine is this one.
    """
    from tfwright.documents import recipe as recipes
    from tfwright.host import probes
    from tfwright.match import ranking as match

    # What cannot be changed about this host completes
    # the wish: its system and its GPU.
    host = probes.here()
    wanted = match.wish(
        host, gpu=gpu, python=python, glibc=glibc, cuda=cuda, system=os, release=release
    )
    if index:
        from tfwright.index import matching
        from tfwright.index import page as index_page

        # An index states what its wheels need, so the answer costs no download of wheels.
        found = matching.asked(index, match.of_wheels(wanted, host, cpu))
        return Answer(found, partial(index_page.show_matches, url=index), index_page.matches_data)
    from tfwright.match import page

    ranked = match.rank([recipes.read(name) for name in recipes.names()], wanted, host)
    needs = match.needs(wanted)
    show = partial(page.show_matches, wanted, needs=needs, nearest=match.NEAREST)
    return Answer(ranked, show, lambda ranked: {"wanted": wanted, "recipes": ranked, "new": needs})
