"""The commands of tfwright for invoke. Run as a script, it sets itself up first.

The commands themselves are in src/tfwright/<subject>/command.py; tfwright/tasks.py lists them.
This file is also read by Python 2.7 and by every Python 3, to say which one is needed.
"""

import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(ROOT, "src"))

# A venv of another checkout has imported that one's: this one's commands change this one's files.
sys.modules.pop("tfwright", None)
import tfwright

tfwright.let_interrupts_end_it()

if sys.version_info < (3, 11):
    # Python 2.7 would leave compiled files among the sources.
    sys.dont_write_bytecode = True
    from tfwright import old_python

    sys.stderr.write(old_python.message(sys.argv) + "\n")
    # The status of a host that lacks something.
    sys.exit(3)

if __name__ == "__main__":
    from tfwright import bootstrap

    bootstrap.hand_over(ROOT, sys.argv[1:])

import atexit
import gc

# A twentieth of a short command went into looking for garbage among modules that stay, and a fifth
# into doing so when Python ends. Everything that is frozen is left out of it.
gc.set_threshold(100000)
atexit.register(gc.freeze)

# pydantic would read the metadata of every installed package to find plugins, and run those.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

# Invoke keeps Python from writing bytecode, which suits a small collection; without bytecode,
# every command would compile all of tfwright. Before the first import, or that would be compiled.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)

from tfwright import tasks
from tfwright.terminal import program

program.install(tasks.names(), tasks.REPLACED, os.environ.get(tfwright.STARTED_AS, "invoke"))
namespace = tasks.collection()
