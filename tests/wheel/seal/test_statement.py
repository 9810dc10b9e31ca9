import datetime as dt
import json
import re
import zipfile
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from tests.making import Maker

from tfwright.wheel.seal import build_record, statement
from tfwright.wheel.seal.build_record import BuildRecord
from tfwright.wheel.seal.statement import BuildOutcome

WHEN = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
SHA256 = "5" * 64
CHECKS = [{"name": "RECORD", "passed": True, "detail": "3 files"}]


@pytest.fixture
def said(make_sealed: Maker) -> Any:  # noqa: ANN401 what JSON holds
    path = make_sealed()
    with zipfile.ZipFile(path) as wheel:
        outcome = BuildOutcome(CHECKS, WHEN, "cache off")
        return json.loads(statement.write(wheel, path.name, SHA256, outcome))


def test_the_statement_is_one_by_the_schema_of_in_toto(said: Any) -> None:  # noqa: ANN401 the same
    Statement.copy_from_pb(json_format.ParseDict(said, statement_pb2.Statement())).validate()


def test_the_predicate_is_one_by_the_schema_of_slsa(said: Any) -> None:  # noqa: ANN401 the same
    # Our own field is the only one that the schema does not know.
    metadata = said["predicate"]["runDetails"]["metadata"]
    assert metadata.pop("tfwright_cache") == "cache off"
    del metadata["tfwright_checks"]
    provenance = json_format.ParseDict(said["predicate"], provenance_pb2.Provenance())
    for dependency in provenance.build_definition.resolved_dependencies:
        ResourceDescriptor.copy_from_pb(dependency).validate()
    assert provenance.run_details.metadata.finished_on.ToDatetime(dt.UTC) == WHEN
    assert re.match(r"[a-z]+:", provenance.run_details.builder.id)
    assert re.match(r"[a-z]+:", provenance.build_definition.build_type)


def test_what_went_in_is_named_with_its_digest(said: Any) -> None:  # noqa: ANN401 the same
    found = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    inputs = {each["name"]: (each["uri"], each["digest"]) for each in found}
    commit = "0123456789" * 4
    assert inputs == {
        "source": (f"git+https://example.org/tensorflow.git@{commit}", {"gitCommit": commit}),
        "bazel": ("pkg:github/bazelbuild/bazel@0.26.1", {"sha256": "2" * 64}),
        "r1.8/0001-why.patch": (
            "pkg:generic/0001-why.patch?checksum=sha256:" + "3" * 64,
            {"sha256": "3" * 64},
        ),
        "nsync": (
            "pkg:github/google/nsync@1.20.1?checksum=sha256:" + "4" * 64,
            {"sha256": "4" * 64},
        ),
    }


@pytest.mark.medium
def test_the_container_image_and_clones_of_a_build_are_inputs(
    make_wheel: Maker, a_record: BuildRecord
) -> None:
    from tfwright.wheel.seal import bill

    clone = "https://example.org/rules.git", "7" * 40
    source = a_record.source
    image = "ubuntu", "sha256:" + "6" * 64
    own = ("small", "1.0", source.url, source.commit, 1)
    bom = bill.write(build_record.Materials(*own, {}, (), (clone,), image))
    path = make_wheel({f"small-1.0.dist-info/{build_record.BILL_NAME}": bom.decode()})
    with zipfile.ZipFile(path) as wheel:
        found = {one["name"]: one for one in statement.dependencies(a_record, wheel)}
    container, cloned = found["ubuntu"], found["rules"]
    assert container["digest"] == {"sha256": "6" * 64}
    assert str(container["uri"]).startswith("pkg:oci/ubuntu@sha256:" + "6" * 64)
    assert cloned["digest"] == {"gitCommit": "7" * 40}


def test_a_wheel_without_a_record_has_no_statement(make_wheel: Maker) -> None:
    path = make_wheel()
    with zipfile.ZipFile(path) as wheel, pytest.raises(ValueError, match="no build record"):
        statement.write(wheel, path.name, SHA256, BuildOutcome([], WHEN, "cache off"))
