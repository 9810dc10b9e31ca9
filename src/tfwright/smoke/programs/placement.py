"""A product is computed on the device that was asked for, and on the GPU if none was."""

from compatibility import Failed, gpus, graphs, report
from matmul import LEFT, PRODUCT, RIGHT


def multiply(tf, device):
    """Multiply on a device, or on TensorFlow's choice for None.

    Return the product and the device that computed it.
    """
    with tf.Graph().as_default(), tf.device(device):
        # Fed and not constant: a product of constants is computed beforehand, on the CPU.
        left = tf.placeholder(tf.float32, [2, 3])
        right = tf.placeholder(tf.float32, [3, 2])
        product = tf.matmul(left, right, name="product")
        # Not FULL_TRACE, which asks for CUPTI, a library that TensorFlow works without.
        options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
        metadata = tf.RunMetadata()
        with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
            rows = session.run(
                product, {left: LEFT, right: RIGHT}, options=options, run_metadata=metadata
            ).tolist()
    ran = [
        device.device
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
        if node.node_name == "product"
    ]
    return rows, ran[0] if ran else "an unknown device"


def check(name):
    """Multiply on each device, and without a wish."""
    tf = graphs(name)
    found = gpus(name)
    wishes = [("/cpu:0", "cpu:0")]
    wishes += [(gpu, gpu[1:]) for gpu in found]
    # Without a wish, TensorFlow prefers a GPU for whatever has a kernel there.
    wishes.append((None, "gpu:0" if found else "cpu:0"))
    seen = []
    for wish, expected in wishes:
        product, device = multiply(tf, wish)
        if product != PRODUCT:
            raise Failed("the product on %s is %s, not %s" % (device, product, PRODUCT))
        if not device.lower().endswith(expected):
            raise Failed(
                "asked for %s, the product was computed on %s" % (wish or "no device", device)
            )
        seen.append("%s: %s" % (wish or "no wish", device.rpartition("/")[2]))
    return "%s; %s" % (PRODUCT, ", ".join(seen)), {"product": PRODUCT, "placed": seen}


if __name__ == "__main__":
    report(check)
