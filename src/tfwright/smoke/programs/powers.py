"""A^n + B^n is the same on CPU and GPU, and takes so long on each.

numpy comes with TensorFlow and is imported where it is used: a module that is not TensorFlow is
skipped before numpy is missed.
"""

from compatibility import Failed, compared, gpus, graphs, report, timed

SIZE, EXPONENT = 1000, 10
TOLERANCE = 0.01
"""Relative. Recent GPUs multiply float32 with ten bits of mantissa."""


def matrices():
    """Return two matrices whose powers neither vanish nor overflow.

    Their largest eigenvalue is about 1.
    """
    import numpy

    # A fixed seed: CPU and GPU have to get the same matrices.
    random = numpy.random.RandomState(0)
    return [random.uniform(0, 2.0 / SIZE, (SIZE, SIZE)).astype("float32") for _ in "AB"]


def power(tf, matrix, exponent):
    """Return a matrix to the power of a positive number, one product after the other."""
    result = matrix
    for _ in range(exponent - 1):
        result = tf.matmul(result, matrix)
    return result


def add_powers(tf, devices):
    """Compute A^n and B^n on the devices in turn, and their sum on the first.

    Return the sum with the seconds of a second run: the first one also prepares the devices.
    """
    with tf.Graph().as_default():
        fed, powers = {}, []
        for number, matrix in enumerate(matrices()):
            with tf.device(devices[number % len(devices)]):
                place = tf.placeholder(tf.float32, matrix.shape)
                powers.append(power(tf, place, EXPONENT))
            fed[place] = matrix
        # The sum is made where the first power is, so only one matrix crosses the bus.
        with tf.device(devices[0]):
            total = tf.add_n(powers)
        with tf.Session() as session:
            session.run(total, fed)
            return timed(lambda: session.run(total, fed))


def insist(total, device):
    """Insist that a sum is what numpy makes of it in double precision."""
    from numpy.linalg import matrix_power

    right = sum(matrix_power(matrix.astype("float64"), EXPONENT) for matrix in matrices())
    error = float(abs(total - right).max() / abs(right).max())
    # Written so that a sum with nan in it does not pass.
    if not error < TOLERANCE:
        raise Failed("the sum of %s is wrong by %.2g of the largest value" % (device, error))
    return error


def check(name):
    """Compute the sum on the CPU, and on the first GPU where there is one."""
    tf = graphs(name)
    total, cpu = add_powers(tf, ["/cpu:0"])
    numbers = {
        "size": SIZE,
        "exponent": EXPONENT,
        "cpu_seconds": cpu,
        "gpu_seconds": None,
        "cpu_error": insist(total, "/cpu:0"),
    }
    for gpu in gpus(name)[:1]:
        total, numbers["gpu_seconds"] = add_powers(tf, [gpu])
        numbers["gpu_error"] = insist(total, gpu)
    return "n = %d, %d x %d: %s" % (
        EXPONENT,
        SIZE,
        SIZE,
        compared(cpu, numbers["gpu_seconds"]),
    ), numbers


if __name__ == "__main__":
    report(check)
