"""Describes the wheel to setuptools; run by build_pip_package."""

from setuptools import Distribution, setup


class PlatformDistribution(Distribution):
    """A distribution with machine code in it, though setuptools compiled none."""

    def has_ext_modules(self):
        return True


setup(
    name="tfwright-demo-cuda",
    version="1.0.0",
    description="A matrix product with a CUDA kernel",
    license="Apache-2.0",
    packages=["tensorflow_demo_cuda"],
    package_data={"tensorflow_demo_cuda": ["*.so"]},
    distclass=PlatformDistribution,
    zip_safe=False,
)
