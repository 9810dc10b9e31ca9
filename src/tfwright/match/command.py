"""The command match."""

from collections.abc import Mapping
from functools import partial

from invoke import Context

from tfwright.options import JSON, MACHINE, task
from tfwright.terminal.answer import Answer, Shown


@task(
    help=JSON
    | MACHINE
    | {
        "release": "TensorFlow release, such as 2.6, 2.11.0 or v1.12.0-rc0",
        "index": "address of a tfwright index: name its wheels that fit, without a download",
    }
)
def match(_: Context, machine: Mapping[str, str], release: str = "", index: str = "") -> Shown:
    """Find the official wheels and recipes that fit, and what a new recipe would pin.

    Without options the machine is this one. The exit status is 3 if neither a wheel nor a recipe
    fits.
    """
    from tfwright.build import verified
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.errors import HostError
    from tfwright.host import probes
    from tfwright.match import official, page, pins, ranking, releases
    from tfwright.match import wish as wishes

    # What cannot be changed about this host completes the wish: its system and its GPU.
    host = probes.this_host()
    wanted = wishes.wish_of_options(machine, host, release)
    for_wheels = wanted if machine["host"] else wishes.wish_of_wheels(wanted, host)
    if index:
        from tfwright.index import matching
        from tfwright.index import page as index_page

        # An index states what its wheels need, so the answer costs no download of wheels.
        found = matching.query_index(index, for_wheels)
        return Answer(found, partial(index_page.show_matches, url=index), index_page.matches_data)
    answer = page.MatchAnswer(
        wanted,
        official.matches(for_wheels),
        ranking.rank(recipes.readable_recipes(), wanted, host, host_file.read(), verified.stale),
        pins.new_recipe_pins(wanted),
        releases.exclusions(wanted),
    )
    status = 0 if answer.fits else HostError.exit_status
    return Answer(answer, page.show_matches, page.matches_data, status)
