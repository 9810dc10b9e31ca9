"""The command variant."""

from invoke import Context

from tfwright.options import JSON, explained, file_of, task


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

        from tfwright.variant import page
        from tfwright.variant import variants as variant

        folder = Path(write) if write else None
        found = variant.variant_of(file_of(wheel, "variant"), write=folder, label=label)
        page.show_variant(found, as_json=json)
