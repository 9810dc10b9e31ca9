"""diffoscope: lays two files side by side down to what disassemblers say of them."""

import os
import shutil
from pathlib import Path

from tfwright.errors import HostError
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command


def show(first: Path, second: Path, *, as_json: bool) -> int:
    """Let diffoscope show on the user's own terminal how two files differ.

    Return its exit status: 1 if they differ.


    Raises HostError where there is none.
    """
    program = shutil.which("diffoscope")
    if program is None:
        raise HostError(
            "diffoscope is not installed",
            remedy=(
                "Install it: 'apt-get install diffoscope-minimal', 'brew install diffoscope' or "
                "'pip install diffoscope'."
            ),
        )
    # The files are named by their full paths: none of them can be taken for an option.
    argv = (
        program,
        *(("--json", "-") if as_json else ()),
        str(first.resolve()),
        str(second.resolve()),
    )
    return runner.show(Command(argv, Path.cwd(), dict(os.environ)))
