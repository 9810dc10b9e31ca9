"""A small convolutional network learns to tell horizontal bars from vertical ones.

It measures the time on CPU and GPU. numpy comes with TensorFlow and is imported where it is used:
a module that is not TensorFlow is skipped before numpy is missed.
"""

from compatibility import Failed, compared, gpus, graphs, report, timed

SIZE, IMAGES, FILTERS, STEPS = 16, 256, 8, 60
RATE = 0.3


def images():
    """Make noisy images with one bar each, and say which ones stand."""
    from numpy.random import RandomState

    random = RandomState(0)
    pixels = random.normal(0, 0.3, (IMAGES, SIZE, SIZE, 1)).astype("float32")
    standing = random.randint(0, 2, IMAGES)
    for image, stands, place in zip(pixels, standing, random.randint(1, SIZE - 2, IMAGES)):
        image[(slice(None), place) if stands else (place, slice(None))] += 1
    return pixels, standing.astype("int32")


def network(tf, pixels):
    """Return the scores of both answers: convolution, rectifier, pooling, one dense layer."""
    from numpy.random import RandomState

    random = RandomState(1)
    filters = tf.Variable(random.normal(0, 0.3, (5, 5, 1, FILTERS)).astype("float32"))
    inner = (SIZE // 4) ** 2 * FILTERS
    weights = tf.Variable(random.normal(0, 0.05, (inner, 2)).astype("float32"))
    convolved = tf.nn.relu(tf.nn.conv2d(pixels, filters, [1, 1, 1, 1], "SAME"))
    pooled = tf.nn.max_pool(convolved, [1, 4, 4, 1], [1, 4, 4, 1], "SAME")
    return tf.matmul(tf.reshape(pooled, [-1, inner]), weights)


def train(tf, device):
    """Train on a device; return the losses, the share of right answers and the seconds.

    The first step is not timed, since it also prepares the device.
    """
    pixels, standing = images()
    with tf.Graph().as_default(), tf.device(device):
        # Fed, as a user would: constants would be part of the graph.
        given = tf.placeholder(tf.float32, pixels.shape)
        wanted = tf.placeholder(tf.int32, standing.shape)
        fed = {given: pixels, wanted: standing}
        scores = network(tf, given)
        loss = mean_loss(tf, scores, wanted)
        step = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        # Renamed with 0.12.
        start = getattr(tf, "global_variables_initializer", None) or tf.initialize_all_variables
        # Some releases have no GPU kernel for one of these operations.
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:

            def learn():
                return float(session.run([loss, step], fed)[0])

            session.run(start())
            losses = [learn()]
            more, seconds = timed(lambda: [learn() for _ in range(STEPS - 1)])
            right = float((session.run(scores, fed).argmax(1) == standing).mean())
    return losses + more, right, seconds


def mean_loss(tf, scores, wanted):
    """Return the mean cross entropy; the arguments are named, since their order has changed."""
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=scores, labels=wanted)
    return tf.reduce_mean(each)


def insist(device, losses, right):
    """Insist that something was learned."""
    # Written so that a loss of nan does not pass.
    if not losses[-1] < 0.5 * losses[0]:
        raise Failed(
            "on %s the loss went from %.3g to %.3g in %d steps"
            % (device, losses[0], losses[-1], STEPS)
        )
    if right < 0.9:
        raise Failed("on %s only %.0f%% of the answers are right" % (device, 100 * right))


def check(name):
    """Train on the CPU, and on the first GPU where there is one."""
    tf = graphs(name)
    times = {}
    # One GPU is enough: placement.py tries each of them.
    for device in ["/cpu:0"] + gpus(name)[:1]:
        losses, right, times[device] = train(tf, device)
        insist(device, losses, right)
    cpu, gpu = times["/cpu:0"], times.get("/gpu:0")
    numbers = {
        "steps": STEPS,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "right": right,
        "cpu_seconds": cpu,
        "gpu_seconds": gpu,
    }
    return "loss %.3g to %.3g, %.0f%% right; %s" % (
        losses[0],
        losses[-1],
        100 * right,
        compared(cpu, gpu),
    ), numbers


if __name__ == "__main__":
    report(check)
