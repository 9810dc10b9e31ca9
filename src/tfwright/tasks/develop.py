"""Commands that check this project itself."""

from invoke import Context, task

from tfwright.tasks.common import explained


@task
def lint(_: Context) -> None:
    """Check the recipes and their patches, and the code's style and imports."""
    with explained():
        from tfwright.commands import develop
        from tfwright.commands import recipes as listing

        listing.lint()
        develop.run("ruff", "check")
        develop.run("ruff", "format", "--check")
        develop.run("lint-imports")


@task
def types(_: Context) -> None:
    """Check the types of the whole project with mypy."""
    with explained():
        from tfwright.commands import develop

        develop.run("mypy")


@task(
    help={
        "everything": "run the slow and the real tests as well",
        "coverage": "measure and report coverage",
    },
)
def test(_: Context, everything: bool = False, coverage: bool = False) -> None:
    """Run the tests: the fast ones, unless --everything is given."""
    with explained():
        from tfwright.commands import develop

        develop.test(everything=everything, coverage=coverage)
