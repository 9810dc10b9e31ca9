"""The command port."""

from collections import defaultdict
from typing import TYPE_CHECKING

from invoke import Context

from tfwright.options import JSON, RECIPE, job_of, task
from tfwright.printable import shell_word
from tfwright.terminal import text
from tfwright.terminal.answer import Answer, Shown
from tfwright.terminal.text import Style, Styled

if TYPE_CHECKING:
    from tfwright.port.porting import Port

COLOURS: dict[str, Style] = {"change": text.BAD, "look": text.WARNING, "fits": text.GOOD}


@task(
    help=RECIPE | JSON | {"to": "tag or branch of the other release, as v1.12.0, or v1.12.0@COMMIT"}
)
def port(_: Context, to: str, recipe: str = "demo") -> Shown:
    """Port a recipe to another release: write a new one, and report what no longer fits."""
    from tfwright.documents import recipe as recipes
    from tfwright.port import porting

    # The original stays as it is: the new release gets a file of its own.
    return Answer(porting.port(job_of(recipe), recipes.find_editable(recipe), to), show_port)


def show_port(port: "Port") -> None:
    """Print the verdict about each pin, what must change first; the new file on stdout."""
    # What must change comes first: it is the maintainer's list of work.
    same = defaultdict[tuple[str, str, str], list[str]](list)
    for pin in sorted(port.pins, key=lambda pin: [*COLOURS].index(pin.state)):
        same[pin.state, pin.kind, pin.says].append(pin.name)
    for (state, kind, says), names in same.items():
        text.line(
            # Filled up, so that the names stand below each other.
            Styled(f"  {state:<7}", COLOURS[state]),
            text.bold(f" {kind} {', '.join(names)}"),
            f": {says}",
            hang=10,
        )
    changes = sum(pin.state == "change" for pin in port.pins)
    if changes:
        text.tell(f"{text.counted(changes, 'pin')} must change before it can be built")
    else:
        text.tell("Nothing has to change before it can be built")
    argument = shell_word(str(port.path))
    text.next_commands(f"invoke build --recipe {argument} --until configure")
    print(port.path)
