"""Describes the wheel to setuptools; run by build_pip_package."""

import sys

from setuptools import Distribution, find_packages, setup

VERSION = "1.12.0"


class PlatformDistribution(Distribution):
    """A distribution with machine code in it, though setuptools compiled none."""

    def has_ext_modules(self):
        return True


def project_name():
    """Take --project_name and its value, which setuptools does not know, off the command line."""
    if "--project_name" not in sys.argv:
        return "tfwright_demo"
    place = sys.argv.index("--project_name")
    name = sys.argv[place + 1]
    del sys.argv[place : place + 2]
    return name


setup(
    name=project_name().replace("_", "-"),
    version=VERSION,
    description="Two matrix operations behind TensorFlow's build interface",
    license="Apache-2.0",
    packages=find_packages(),
    package_data={"tensorflow_demo": ["*.so"], "tensorflow_demo.contrib.nccl": ["python/ops/*.so"]},
    distclass=PlatformDistribution,
    zip_safe=False,
)
