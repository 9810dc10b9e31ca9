"""What every program here needs: TensorFlow's graph interface, and a result in one line of JSON.

The graph interface is the same from TensorFlow 0.11 to 2.x. A program is run as
``python PROGRAM.py MODULE``. The last line that it prints is its result: ``status`` (passed,
skipped or failed), ``reason`` (what was seen, in a sentence) and ``numbers``. It exits with 1 if it
failed.
"""

import importlib
import json
import re
import sys
import time
import traceback


class Skipped(Exception):
    """What the program needs, and this machine or this wheel has not."""


class Failed(Exception):
    """What is not as it should be."""


def report(check):
    """Run a check of the module that is named on the command line; print its result and exit.

    The check returns a sentence and a dictionary of numbers, or raises.
    """
    name = sys.argv[1]
    try:
        reason, numbers = check(name)
        status = "passed"
    except Skipped as fault:
        status, reason, numbers = "skipped", str(fault), {}
    except Failed as fault:
        status, reason, numbers = "failed", str(fault), {}
    # Anything: a wheel that is broken may raise whatever its libraries raise.
    except Exception as fault:
        traceback.print_exc()
        status, reason, numbers = "failed", cause(fault), {}
    # What TensorFlow writes on stderr must not end up in the middle of the line.
    sys.stderr.flush()
    print(json.dumps({"status": status, "reason": reason, "numbers": numbers}, sort_keys=True))
    sys.exit(1 if status == "failed" else 0)


def cause(fault):
    """Return an exception in one line."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()] or ["no message"]
    if lines[0].startswith("Traceback"):
        # TensorFlow 1 says that it does not import with the traceback of why as its message.
        lines = [line for line in lines if re.match(r"\w+Error: ", line)][-1:] or lines
    if re.match(r"\w+Error: ", lines[0]):
        return lines[0]
    return "%s: %s" % (type(fault).__name__, lines[0])


def major(module):
    """Return the first number of a module's version."""
    return int(module.__version__.split(".")[0])


def graphs(name):
    """Return the graph interface: the whole module up to 1.x, its compat.v1 from 2.0 on."""
    module = importlib.import_module(name)
    api = module.compat.v1 if major(module) >= 2 else module
    if not hasattr(api, "Session"):
        raise Skipped("%s has no sessions: it is not TensorFlow" % name)
    return api


def local_devices(name):
    """Return the devices that TensorFlow lists, the doubles that XLA makes of them left out."""
    library = importlib.import_module(name + ".python.client.device_lib")
    return [
        device
        for device in library.list_local_devices()
        if not device.device_type.startswith("XLA")
    ]


def gpus(name):
    """Return the names of the GPUs that TensorFlow can use, in the form of all releases: /gpu:0."""
    count = len([device for device in local_devices(name) if device.device_type == "GPU"])
    return ["/gpu:%d" % number for number in range(count)]


def insist_on_gpus(found, count):
    """Skip the program if there are fewer GPUs than it needs."""
    if found < count:
        raise Skipped("needs %s, TensorFlow finds %s here" % (counted(count), counted(found)))


def counted(count):
    """Return a number of GPUs in words."""
    return {0: "no GPU", 1: "a GPU"}.get(count, "%d GPUs" % count)


def timed(function):
    """Return what a function returns, and the seconds that it took."""
    # time.monotonic is missing in Python 2.7.
    start = time.time()
    value = function()
    return value, time.time() - start


def compared(cpu, gpu):
    """Say how long something took on the CPU and, where there is one, on the GPU."""
    if gpu is None:
        return "CPU %.3g s; no GPU to compare it with" % cpu
    return "CPU %.3g s, GPU %.3g s: %.1f times as fast" % (cpu, gpu, cpu / gpu)
