"""The program `tfwright` that pip installs: the commands of a checkout, under their own name."""

import atexit
import gc
import os
import sys

from tfwright import let_interrupts_end_it


def main() -> None:
    """Run the command that was typed; without one, list all."""
    let_interrupts_end_it()
    # As in tasks.py, which says why.
    gc.set_threshold(100000)
    atexit.register(gc.freeze)
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

    from invoke import Program

    from tfwright import __version__, tasks
    from tfwright.documents.filesystem import SHIPPED
    from tfwright.terminal import program

    program.install(tasks.names(installed=True), tasks.REPLACED, "tfwright", f"{SHIPPED}/docs/")
    commands = tasks.collection(installed=True)
    started = Program(__version__, commands, name="tfwright", binary_names=["tfwright"])
    started.run(["tfwright", *(sys.argv[1:] or ["--list"])])


if __name__ == "__main__":
    main()
