"""What `tfwright init` prints."""

from tfwright.init.making import Made
from tfwright.terminal import text


def show(made: Made) -> None:
    """Show what was made, and what comes next."""
    text.line(f"{made.directory} is ready")
    for path in made.written:
        text.line(f"  {path.relative_to(made.directory)}", text.detail("  made"))
    text.then("invoke recipes", "invoke new --like demo --name mine", "invoke build --recipe mine")
