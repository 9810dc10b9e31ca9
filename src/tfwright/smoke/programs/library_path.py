"""The variable with the directories of libraries reaches the process."""

import os
import subprocess
import sys

from compatibility import Failed, report

VARIABLE = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
TELL = "import os; print(os.environ.get('%s', ''))" % VARIABLE


def child_sees(directory, *launcher):
    """Tell whether a Python that is started with the variable set finds it set."""
    environment = dict(os.environ)
    environment[VARIABLE] = directory
    output = subprocess.check_output(list(launcher) + [sys.executable, "-c", TELL], env=environment)
    return output.decode("utf-8").strip() == directory


def check(_):
    """Set the variable for this same Python, directly and through a program of the system.

    Report which of the two still see it.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    if not child_sees(here):
        # System Integrity Protection takes DYLD_* from programs under /usr/bin and /bin, Apple's
        # own Python among them.
        raise Failed(
            "%s is taken from %s when it starts, as SIP does on macOS; use a Python from elsewhere"
            % (VARIABLE, sys.executable)
        )
    kept = child_sees(here, "/usr/bin/env")
    directories = [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    missing = [path for path in directories if not os.path.isdir(path)]
    if missing:
        raise Failed("%s names %s, which is not a directory" % (VARIABLE, missing[0]))
    reason = (
        "%s holds %s" % (VARIABLE, os.pathsep.join(directories))
        if directories
        else "%s is not set, and would be seen" % VARIABLE
    )
    note = (
        "" if kept else "; started by a program of the system, as Jupyter may be, it is lost (SIP)"
    )
    return reason + note, {
        "variable": VARIABLE,
        "directories": directories,
        "kept_through_system_programs": kept,
    }


if __name__ == "__main__":
    report(check)
