"""Multiplies two matrices with the module that is named: TensorFlow 0.11 to 2.x, or the demo."""

from __future__ import print_function

import importlib
import json
import sys

LEFT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
RIGHT = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
PRODUCT = [[22.0, 28.0], [49.0, 64.0]]


def evaluate(module, tensor):
    """Return a tensor's rows: through a session where there are sessions, as it is where there are none."""
    if hasattr(module, "Session"):
        return module.Session().run(tensor).tolist()
    return getattr(tensor, "numpy", lambda: tensor)().tolist()


def main():
    """Print one line of JSON; exit with 1 if the product is wrong."""
    module = importlib.import_module(sys.argv[1])
    product = evaluate(module, module.matmul(module.constant(LEFT), module.constant(RIGHT)))
    print(json.dumps({"module": module.__name__, "version": module.__version__, "product": product}, sort_keys=True))
    return 0 if product == PRODUCT else 1


if __name__ == "__main__":
    sys.exit(main())
