"""Two matrices are multiplied by the module's own interface, be it TensorFlow or the demo."""

import importlib

from compatibility import Failed, report

LEFT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
RIGHT = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
PRODUCT = [[22.0, 28.0], [49.0, 64.0]]


def evaluate(module, tensor):
    """Return a tensor's rows, through a session if the module has sessions."""
    if hasattr(module, "Session"):
        # TensorFlow 1 returns a node of a graph, TensorFlow 2 and the demo a value.
        return module.Session().run(tensor).tolist()
    return getattr(tensor, "numpy", lambda: tensor)().tolist()


def check(name):
    """Multiply; the product is known."""
    module = importlib.import_module(name)
    product = evaluate(module, module.matmul(module.constant(LEFT), module.constant(RIGHT)))
    if product != PRODUCT:
        raise Failed("the product is %s, not %s" % (product, PRODUCT))
    return "the product is %s" % product, {"product": product}


if __name__ == "__main__":
    report(check)
