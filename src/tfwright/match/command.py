"""The command match."""

from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, MACHINE, explained, task

if TYPE_CHECKING:
    from tfwright.match.ranking import Wish


@task(
    help=JSON
    | MACHINE
    | {
        "glibc": "the oldest version that the wheel must load on",
        "release": "of TensorFlow, as 2.6 or v1.12.0-rc0",
        "cpu": "the most that an x86-64 CPU has, for --index: sse4.2, avx, avx2",
        "index": "address of a tfwright index: name its wheels that fit, without a download",
    }
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
    json: bool = False,
) -> None:
    """Find the recipes for a machine: those that fit, the nearest others, what a new one would pin.

    Without options the machine is this one.
    """
    with explained():
        from tfwright.doctor import page
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
            _match_wheels(index, match.of_wheels(wanted, host, cpu), as_json=json)
            return
        ranked = match.rank([recipes.read(name) for name in recipes.names()], wanted, host)
        page.show_matches(wanted, ranked, match.needs(wanted), match.NEAREST, as_json=json)


def _match_wheels(index: str, wanted: "Wish", *, as_json: bool) -> None:
    from tfwright.index import matching, page

    # An index states what its wheels need, so the answer costs no download of wheels.
    page.show_matches(matching.asked(index, wanted), index, as_json=as_json)
