"""What `invoke toolkit` prints: each part, where it is from and where it is."""

from collections.abc import Iterable

from tfwright.terminal import text
from tfwright.toolkit.providing import Provided


def show(parts: Iterable[Provided]) -> None:
    """Print where each part is; what it is goes to people."""
    for provided in parts:
        part = provided.part
        sources = f"{len(part.sources)} packages"
        if len(part.sources) == 1:
            sources = next(iter(part.sources))
        # Who accepted it stays with the toolkit: licences bind a person, not a machine.
        by = part.licence_accepted_by
        text.tell(
            f"{provided.title} {part.version} from {sources} ({part.way}), "
            f"{len(part.files):,} files{f'; licence accepted by {by}' if by else ''}"
        )
        text.tell(f"  tree {part.tree}")
        print(provided.root)
