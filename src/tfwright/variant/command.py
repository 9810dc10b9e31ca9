"""The command variant."""

from pathlib import Path

from invoke import Context

from tfwright.options import JSON, file_of, task
from tfwright.terminal.answer import Answer, Shown


@task(
    positional=["wheel"],
    help=JSON
    | {
        "wheel": "path of a wheel",
        "write": "write the variant wheel into this folder",
        "label": "the variant's label; default: one made of its architectures",
    },
)
def variant(_: Context, wheel: str, write: str = "", label: str = "") -> Shown:
    """Experimental: read off a wheel's code what a variant of PEP 825 may claim."""
    from tfwright.variant import page
    from tfwright.variant import variants as variant

    folder = Path(write) if write else None
    found = variant.variant_of(file_of(wheel, "variant"), write=folder, label=label)
    return Answer(found, page.show_variant)
