"""The command schema."""

import sys

from invoke import Context

from tfwright.options import task


@task(help={"document": "print one schema: recipe, host or nightly"})
def schema(_: Context, document: str = "") -> None:
    """Write the JSON schemas of recipe, host file and nightly file, and the key tables in docs."""
    from tfwright.errors import RecipeError
    from tfwright.schema import writing as schemas

    known = schemas.schemas()
    # Checked before anything is written.
    if document and document not in known:
        raise RecipeError(f"Unknown schema {document!r}", remedy=f"Choose {', '.join(known)}.")
    if document:
        sys.stdout.write(known[document])
        return
    for path in schemas.write():
        print(path)
