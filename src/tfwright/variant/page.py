"""What `invoke variant` prints."""

from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.variant.variants import WheelVariant


def show_variant(found: "WheelVariant") -> None:
    """Print what the code proves, and what was written."""
    text.tell("Experimental: PEP 825 is a draft, and pip and uv ignore variant wheels.")
    for namespace, features in found.proved.items():
        for feature, values in features.items():
            for value in values:
                text.line(f"{namespace} :: {feature} :: {value}")
    if not found.proved:
        text.line("The wheel has no machine code whose needs a variant could state.")
    if found.claimed is not None:
        text.line("Its code proves all that its variant.json claims.")
    if found.written:
        text.line(f"written: {found.written}")
