"""What `invoke toolkit` prints: each part, where it is from and where it is."""

from tfwright.terminal import text
from tfwright.toolkit.providing import Provided


def show(provided: Provided) -> None:
    """Print where a part is; what it is goes to people."""
    part = provided.part
    count = len(part.sources)
    sources = next(iter(part.sources)) if count == 1 else f"{count} packages"
    text.tell(
        f"{provided.title} {part.version} from {sources} ({part.way}), "
        f"{len(part.files):,} files{_licence(part.licence_accepted_by)}"
    )
    text.tell(f"  tree {part.tree}")
    print(provided.root)


def _licence(accepted_by: str) -> str:
    # Who accepted it stays with the toolkit: licences bind a person, not a machine.
    return f"; licence accepted by {accepted_by}" if accepted_by else ""
