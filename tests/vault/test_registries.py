"""Files of package registries."""

import re

import pytest

from tfwright.vault import registries

NAMED = {
    "https://example.org/packages/source/s/six/six-1.10.0.tar.gz": "pkg:pypi/six@1.10.0",
    (
        "https://mirror.example.org/index.example.org/"
        "packages/5c/78/ff794fcae2ce/backports.weakref-1.0rc1.tar.gz"
    ): "pkg:pypi/backports.weakref@1.0rc1",
    (
        "https://example.org/maven2/com/google/dagger/dagger/2.9/dagger-2.9.jar"
    ): "pkg:maven/com.google.dagger/dagger@2.9",
    (
        "http://mirror.example.org/repo.example.org/maven2/"
        "args4j/args4j/2.0.26/args4j-2.0.26-sources.jar"
    ): "pkg:maven/args4j/args4j@2.0.26?classifier=sources",
    (
        "http://example.org/debian/pool/main/libp/libpng/libpng12-0_1.2.50-2+deb8u2_amd64.deb"
    ): "pkg:deb/debian/libpng12-0@1.2.50-2%2Bdeb8u2?arch=amd64",
    (
        "https://example.org/maven2/com/google/errorprone/ep/2.0/ep-2.0.pom"
    ): "pkg:maven/com.google.errorprone/ep@2.0?type=pom",
    "https://example.org/@types/node/-/node-8.0.1.tgz": "pkg:npm/%40types/node@8.0.1",
}


@pytest.mark.parametrize(("url", "name"), NAMED.items())
def test_a_file_of_a_registry_goes_by_its_package_url_whatever_the_host(
    url: str, name: str
) -> None:
    assert registries.package_url(url) == name
    assert re.fullmatch(registries.PATTERN, name)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a/b/archive/93bc2e.tar.gz",
        "https://example.org/maven2/",
        "file:///packages/source/s/six/six-1.0.tar.gz",
    ],
)
def test_any_other_url_stays_as_it_is(url: str) -> None:
    assert registries.package_url(url) == url


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "libcudart11.0_11.8.89~11.8.0-5~deb12u1_amd64.deb",
            "pkg:deb/debian/libcudart11.0@11.8.89~11.8.0-5~deb12u1?arch=amd64",
        ),
        (
            "nvidia_cudnn_cu11-8.7.0.84-py3-none-manylinux1_x86_64.whl",
            "pkg:pypi/nvidia-cudnn-cu11@8.7.0.84",
        ),
        ("https://example.org/cudnn.tgz", "https://example.org/cudnn.tgz"),
    ],
)
def test_a_package_of_a_toolkit_has_a_package_url(name: str, expected: str) -> None:
    assert registries.package_url_of_file(name) == expected
