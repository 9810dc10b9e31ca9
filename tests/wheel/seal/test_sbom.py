import dataclasses
import json

import pytest

from tfwright.documents import recipe
from tfwright.vault import lock
from tfwright.wheel.seal.build_record import ArchiveComponent, Materials, SubstituteComponent

pytestmark = pytest.mark.medium

SHA256 = "a" * 64
MATERIALS = Materials(
    project="tensorflow",
    version="1.8.0",
    url="https://github.com/tensorflow/tensorflow.git",
    commit="93bc2e2072e0daccbcff7a90d397b704a9e8f778",
    epoch=1_524_000_000,
    files={"r1.8/0001-why.patch": "b" * 64},
    archives=(
        ArchiveComponent(
            ("gif", "gif_too"),
            ("https://example.org/gif.tar.gz",),
            SHA256,
            SubstituteComponent("c" * 64, "https://example.org/git at 12", "It is gone"),
        ),
    ),
)


def made_of(materials: Materials) -> dict[str, object]:
    # They take seconds, in every process that collects the tests.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    from tfwright.wheel.seal import bill

    text = bill.write(materials).decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    made: dict[str, object] = json.loads(text)
    return made


def test_a_bill_fits_the_public_schema_and_names_the_source() -> None:
    made = str(made_of(MATERIALS)["components"])
    assert f"pkg:github/tensorflow/tensorflow@{MATERIALS.commit}" in made
    assert "Stands in for the pinned archive: It is gone" in made


def test_the_same_materials_give_the_same_bytes_and_others_another_serial_number() -> None:
    from tfwright.wheel.seal import bill

    assert bill.write(MATERIALS) == bill.write(dataclasses.replace(MATERIALS))
    other = dataclasses.replace(MATERIALS, commit="0" * 40)
    assert made_of(other)["serialNumber"] != made_of(MATERIALS)["serialNumber"]


def test_what_rules_clone_is_in_the_bill_by_its_commit_and_in_its_number() -> None:
    clone = ("https://github.com/bazelbuild/rules_docker.git", "d" * 40)
    made = made_of(dataclasses.replace(MATERIALS, clones=(clone,)))
    assert f"pkg:github/bazelbuild/rules_docker@{'d' * 40}" in str(made["components"])
    assert made["serialNumber"] != made_of(MATERIALS)["serialNumber"]


@pytest.mark.slow
def test_the_bill_of_a_real_lock_fits_the_schema() -> None:
    known = lock.read(recipe.RECIPES / "linux-r1.8-cpu.lock")
    archives = tuple(
        ArchiveComponent(archive.names, archive.urls, archive.sha256) for archive in known.archives
    )
    made = made_of(dataclasses.replace(MATERIALS, archives=archives))
    assert isinstance(made["components"], list)
    assert len(made["components"]) == len(archives) + 2


@pytest.mark.parametrize(
    ("url", "purl"),
    [
        ("https://github.com/Google/nsync/archive/1.20.1.tar.gz", "github/google/nsync@1.20.1?SUM"),
        (
            "https://mirror.bazel.build/github.com/google/re2/archive/2018-04-01.zip",
            "github/google/re2@2018-04-01?SUM",
        ),
        ("https://github.com/a/b/archive/refs/tags/v1.tar.gz", "github/a/b@v1?SUM"),
        ("https://github.com/a/b/releases/download/v1.0/b.tar.gz", "github/a/b@v1.0?SUM"),
        ("https://codeload.github.com/a/b/tar.gz/v1.0", "github/a/b@v1.0?SUM"),
        ("pkg:maven/args4j/args4j@2.0.26", "maven/args4j/args4j@2.0.26"),
        ("http://example.org/x.zip", "generic/x?SUM&download_url=http://example.org/x.zip"),
        ("", f"generic/{SHA256}?SUM"),
    ],
)
def test_a_file_is_named_by_where_it_comes_from_or_else_by_its_digest(url: str, purl: str) -> None:
    from tfwright.wheel.seal.bill import package_url

    found = package_url(["x"], [url], SHA256) if url else package_url([], [], SHA256)
    assert found.to_string() == f"pkg:{purl}".replace("SUM", f"checksum=sha256:{SHA256}")
