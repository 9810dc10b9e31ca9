"""The CPU's product is right, and the GPU's is the same; without a GPU, says why it is left out."""

import tensorflow_demo_cuda as demo

LEFT = [[float(row * 7 % 5 + column) for column in range(40)] for row in range(33)]
RIGHT = [[float(row - column * 3 % 4) for column in range(17)] for row in range(40)]
# Small whole numbers: every product and sum is exact in a float.
EXPECTED = [
    [sum(value * other for value, other in zip(row, column)) for column in zip(*RIGHT)]
    for row in LEFT
]

left, right = demo.constant(LEFT), demo.constant(RIGHT)
assert demo.matmul(left, right).tolist() == EXPECTED

try:
    on_gpu = demo.matmul(left, right, gpu=True).tolist()
except demo.GpuError as fault:
    print("CPU right; GPU skipped: %s" % fault)
else:
    assert on_gpu == EXPECTED
    print("CPU and GPU right")
