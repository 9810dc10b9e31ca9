"""A session takes no more GPU memory than allowed: by growth, and by a fraction for the process."""

import ctypes
import importlib
import json
import subprocess
import sys

from compatibility import Failed, Skipped, gpus, graphs, insist_on_gpus, major, report
from matmul import LEFT, RIGHT

DRIVERS = ("libcuda.so.1", "libcuda.dylib", "/usr/local/cuda/lib/libcuda.dylib")
FRACTION = 0.25
OVERHEAD, LIBRARIES = 0.1, 500 * 10**6
"""What CUDA and its libraries may take in addition: a share of the memory, and bytes."""


def apart(name, way):
    """Do one of WAYS in a process of its own; return its result.

    TensorFlow keeps memory that it once took until its process ends.
    """
    output = subprocess.check_output([sys.executable, __file__, name, way])
    # The last line: TensorFlow may print before it.
    return json.loads(output.decode("utf-8").strip().splitlines()[-1])


def driver():
    """Load CUDA's driver; without one the GPU is of another kind."""
    for name in DRIVERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Skipped("needs CUDA's driver, which reports how much memory is in use")


def memory(_):
    """Return the bytes of the first GPU that are in use, by whomever, and those that it has."""
    cuda = driver()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ask(cuda.cuInit, 0)
    ask(cuda.cuDeviceGet, ctypes.byref(device), 0)
    # The driver answers only in a context. By the names
    # with _v2: the old ones count in 32 bits.
    ask(cuda.cuCtxCreate_v2, ctypes.byref(context), 0, device)
    ask(cuda.cuMemGetInfo_v2, ctypes.byref(free), ctypes.byref(total))
    return total.value - free.value, total.value


def ask(function, *arguments):
    """Call CUDA's driver."""
    status = function(*arguments)
    if status != 0:
        raise Failed("CUDA's driver answers %s with error %d" % (function.__name__, status))


def in_session(name, **options):
    """Return the bytes in use while a session with these GPU options is open."""
    tf = graphs(name)
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        product = tf.matmul(tf.constant(LEFT), tf.constant(RIGHT))
        with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(**options))) as session:
            session.run(product)
            return apart(name, "memory")[0]


def in_config(name):
    """Return the bytes in use under growth, as it is asked for in TensorFlow 2."""
    module = importlib.import_module(name)
    for gpu in module.config.experimental.list_physical_devices("GPU"):
        module.config.experimental.set_memory_growth(gpu, True)
    with module.device("/gpu:0"):
        module.matmul(module.constant(LEFT), module.constant(RIGHT)).numpy()
        return apart(name, "memory")[0]


WAYS = {
    "gpus": lambda name: len(gpus(name)),
    "memory": memory,
    "growth": lambda name: in_session(name, allow_growth=True),
    "fraction": lambda name: in_session(name, per_process_gpu_memory_fraction=FRACTION),
    "growth by config": in_config,
}


def insist(way, share, total):
    """Insist that a way to ask for less memory was heard."""
    # A fraction is taken at once, growth only as far as it is needed.
    least, most = (FRACTION - OVERHEAD, FRACTION) if way == "fraction" else (0.0, 0.0)
    most += OVERHEAD + float(LIBRARIES) / total
    if not least <= share <= most:
        raise Failed(
            "with %s TensorFlow took %.0f%% of the GPU's memory, not %.0f%% to %.0f%%"
            % (way, 100 * share, 100 * least, 100 * most)
        )


def check(name):
    """Measure how much each way to ask for less takes."""
    graphs(name)
    insist_on_gpus(apart(name, "gpus"), 1)
    driver()
    # Other programs may hold memory of this GPU, which is not TensorFlow's fault.
    before, total = apart(name, "memory")
    ways = ["growth", "fraction"]
    if major(importlib.import_module(name)) >= 2:
        ways.append("growth by config")
    taken = {}
    for way in ways:
        taken[way] = float(apart(name, way) - before) / total
        insist(way, taken[way], total)
    seen = ", ".join("%s %.0f%%" % (way, 100 * share) for way, share in sorted(taken.items()))
    return "of %.1f GB were taken: %s" % (total / 1e9, seen), {"total": total, "taken": taken}


def main():
    """Be the program, or the process that it starts for one of WAYS."""
    if len(sys.argv) > 2:
        print(json.dumps(WAYS[sys.argv[2]](sys.argv[1])))
    else:
        report(check)


if __name__ == "__main__":
    main()
