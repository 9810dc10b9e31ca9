"""A missing GPU stops a program, unless soft placement is on; then another device takes over."""

import importlib

from compatibility import Failed, gpus, graphs, major, report
from matmul import LEFT, PRODUCT, RIGHT


def multiply_in_session(tf, device, soft):
    """Multiply on a device as in TensorFlow 1."""
    with tf.Graph().as_default():
        with tf.device(device):
            product = tf.matmul(tf.constant(LEFT), tf.constant(RIGHT))
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=soft)) as session:
            return session.run(product).tolist()


def multiply_in_function(module, device, soft):
    """Multiply on a device as in TensorFlow 2: in a function, where 2.1 and later replace it."""
    module.config.set_soft_device_placement(soft)

    def multiply():
        with module.device(device):
            return module.matmul(module.constant(LEFT), module.constant(RIGHT))

    return module.function(multiply)().numpy().tolist()


def insist(multiply, api, device):
    """Insist that a missing device is refused, and made up for where that is asked for."""
    try:
        multiply(api, device, False)
    # Which one depends on the release and on who notices first.
    except (api.errors.InvalidArgumentError, RuntimeError, ValueError):
        pass
    else:
        raise Failed("%s is not there, and was used without soft placement" % device)
    product = multiply(api, device, True)
    if product != PRODUCT:
        raise Failed("the product is %s, not %s" % (product, PRODUCT))


def check(name):
    """Ask for a second GPU, or for one more than there are."""
    tf, module = graphs(name), importlib.import_module(name)
    count = len(gpus(name))
    # gpu:0 exists wherever there is a GPU, so on a
    # machine without one gpu:1 is asked for.
    missing = "/gpu:%d" % max(count, 1)
    insist(multiply_in_session, tf, missing)
    ways = ["session"]
    # The official wheel of 2.0 refuses a missing device in functions, whatever was set.
    if major(module) >= 2 and not module.__version__.startswith("2.0."):
        insist(multiply_in_function, module, missing)
        ways.append("function")
    return "%s is missing: refused, with soft placement replaced" % missing, {
        "gpus": count,
        "missing": missing,
        "ways": ways,
    }


if __name__ == "__main__":
    report(check)
