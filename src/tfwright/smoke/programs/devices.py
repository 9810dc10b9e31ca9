"""The devices that TensorFlow can use are listed."""

import importlib
import os

from compatibility import Failed, graphs, local_devices, report

DRIVER = "/proc/driver/nvidia/version"
"""There on a Linux whose kernel drives an NVIDIA GPU."""
HIDDEN = ("", "-1")
"""Values of CUDA_VISIBLE_DEVICES by which a user hides all GPUs."""


def check(name):
    """List the devices; fail if the wheel is made for the machine's GPU and does not list it."""
    graphs(name)
    devices = local_devices(name)
    kinds = [device.device_type for device in devices]
    if "CPU" not in kinds:
        raise Failed("TensorFlow lists %s, but no CPU" % ", ".join(kinds))
    # With CUDA_VISIBLE_DEVICES empty or -1, a list
    # without GPUs is what the user asked for.
    cuda = bool(importlib.import_module(name).test.is_built_with_cuda())
    driven = os.path.exists(DRIVER) and os.environ.get("CUDA_VISIBLE_DEVICES", "all") not in HIDDEN
    if cuda and driven and "GPU" not in kinds:
        raise Failed(
            "the wheel is built with CUDA and this machine has an NVIDIA driver, but TensorFlow "
            "lists no GPU; its log says which library it did not find"
        )
    listed = [
        {
            "name": device.name,
            "kind": device.device_type,
            "memory": device.memory_limit,
            "is": device.physical_device_desc,
        }
        for device in devices
    ]
    built = "built with CUDA" if cuda else "built without CUDA"
    return "%s; %s" % (", ".join(device.name for device in devices), built), {
        "devices": listed,
        "cuda": cuda,
    }


if __name__ == "__main__":
    report(check)
