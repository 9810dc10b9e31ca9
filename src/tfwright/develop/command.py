"""Commands of developers: types, test, schema."""

import sys

from invoke import Context

from tfwright.options import task


@task(help={})
def types(_: Context) -> None:
    """Check the types of the whole project with mypy."""
    from tfwright.develop import checks as develop

    develop.run_tool("mypy")


@task(
    needs={"seconds": "attack", "seed": "attack", "part": "attack"},
    help={
        "everything": "run the slow and the real tests as well",
        "coverage": "measure and report coverage",
        "attack": "run the attacks instead, and print their table",
        "seconds": "how long all attacks together go on, an hour unless given",
        "seed": "decides the cases; the same seed tries the same ones",
        "part": "only readers, strangers, kills, disks or damage",
    },
)
def test(
    _: Context,
    everything: bool = False,
    coverage: bool = False,
    attack: bool = False,
    seconds: float = 3600.0,
    seed: int = 1,
    part: str = "",
) -> None:
    """Run the tests: the fast ones, unless --everything is given.

    With --attack, run the attacks on readers, builds, disks and servers instead.
    """
    from tfwright.develop import checks as develop

    if attack:
        develop.attack(seconds, seed, part)
    else:
        develop.test(everything=everything, coverage=coverage)


@task(help={"document": "print one schema: recipe, host or nightly"})
def schema(_: Context, document: str = "") -> None:
    """Write the JSON schemas of recipe, host file and nightly file, and the key tables in docs."""
    from tfwright.develop import schemas
    from tfwright.errors import RecipeError

    known = schemas.schemas()
    # Checked before anything is written.
    if document and document not in known:
        raise RecipeError(f"Unknown schema {document!r}", remedy=f"Choose {', '.join(known)}.")
    if document:
        sys.stdout.write(known[document])
        return
    for path in schemas.write():
        print(path)
