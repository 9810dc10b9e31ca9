"""How fast matrices of growing size are multiplied, on CPU and GPU."""

from compatibility import gpus, graphs, report, timed

SIZES = [2**exponent for exponent in range(5, 14)]
ENOUGH = 1.0
"""Seconds that one product may take; larger ones are not tried on that device."""
SPAN = 0.2
"""Seconds that are measured at least, product after product."""


def multiplier(tf, session, size):
    """Return a function that multiplies two random matrices of the device.

    It returns one number of the product: whoever waits for it knows that the GPU did its work.
    """
    left, right = [tf.Variable(tf.random_uniform([size, size])) for _ in range(2)]
    # Bringing the whole product back would time the bus as well.
    corner = tf.slice(tf.matmul(left, right), [0, 0], [1, 1])
    session.run([left.initializer, right.initializer])
    return lambda: session.run(corner)


def seconds_of(tf, device, size):
    """Return the seconds of one product, the best of as many as fit into the span."""
    with tf.Graph().as_default(), tf.device(device):
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            multiply = multiplier(tf, session, size)
            multiply()
            times = [timed(multiply)[1]]
            while sum(times) < SPAN:
                times.append(timed(multiply)[1])
    return min(times)


def curve(tf, device):
    """Return points of size, seconds and GFLOP/s, from small to large.

    The largest size is what the device can hold, and multiply in time.
    """
    points = []
    for size in SIZES:
        try:
            seconds = seconds_of(tf, device, size)
        except tf.errors.ResourceExhaustedError:
            # A small GPU: what fits into its memory was measured.
            break
        points.append({"size": size, "seconds": seconds, "gflops": 2.0 * size**3 / seconds / 1e9})
        # The next size is twice as large, and takes eight times as many operations.
        if 8 * seconds > ENOUGH:
            break
    return points


def check(name):
    """Measure the CPU, and the first GPU where there is one."""
    tf = graphs(name)
    curves = {"cpu": curve(tf, "/cpu:0")}
    for gpu in gpus(name)[:1]:
        curves["gpu"] = curve(tf, gpu)
    best = [
        "%s %.3g GFLOP/s" % (device.upper(), max(point["gflops"] for point in points))
        for device, points in sorted(curves.items())
    ]
    return "%s at best%s" % (
        ", ".join(best),
        "" if "gpu" in curves else "; no GPU to compare it with",
    ), {"curves": curves}


if __name__ == "__main__":
    report(check)
