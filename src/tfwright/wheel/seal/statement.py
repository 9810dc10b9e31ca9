"""The statement about a wheel: SLSA provenance v1 in an in-toto statement v1, as JSON.

https://slsa.dev/spec/v1.0/provenance and https://github.com/in-toto/attestation/blob/main/spec/v1.
It repeats the wheel's own build record for programs that know these formats, and adds what came
after the sealing: what the wheel did when it was run, and when. Its signed form is an envelope.
"""

import datetime as dt
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import WheelError
from tfwright.tools import files, json_text, signing
from tfwright.wheel import archive
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import BuildRecord

SUFFIX = ".intoto.json"
"""After the whole name of the wheel's file."""
STATEMENT = "https://in-toto.io/Statement/v1"
PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:tfwright:build:1"
"""What the parameters mean: they are those of the build record, format 1."""
BUILDER = "urn:tfwright"


@dataclass(frozen=True)
class BuildOutcome:
    """What came after the sealing."""

    checks: Sequence[Mapping[str, object]]
    """What verify found, each with name, passed and detail."""
    finished: dt.datetime
    cache: str
    """Whether the build cache took part, and what came from it."""


def write(wheel: zipfile.ZipFile, name: str, sha256: str, outcome: BuildOutcome) -> bytes:
    """Return the statement about a wheel with a build record, given its name and digest."""
    record = build_record.read(wheel)
    if record is None:
        raise ValueError(f"{name} has no build record")
    # The record as it is in the wheel: the two must never say different things.
    content, sealer = record.model_dump(mode="json"), record.sealer
    internal = ("build", "found", "lock", "source", "stubs", "substitutions")
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": PROVENANCE,
        "predicate": {
            # What was asked for, what the builder chose, and what went in.
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"recipe": content["recipe"]},
                "internalParameters": {key: content[key] for key in internal},
                "resolvedDependencies": list(dependencies(record, wheel)),
            },
            # Who built it, and what came of it; our own fields carry our name, as SLSA asks.
            "runDetails": {
                "builder": {
                    "id": BUILDER,
                    "version": {"tfwright": sealer.version, "deflate": sealer.deflate},
                },
                "metadata": {
                    # RFC 3339 in UTC, as SLSA's schema asks; it is in the statement, since the
                    # wheel has no clock.
                    "finishedOn": outcome.finished.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "tfwright_checks": list(outcome.checks),
                    "tfwright_cache": outcome.cache,
                },
            },
        },
    }
    return build_record.canonical(statement, indent=1)


def dependencies(record: BuildRecord, wheel: zipfile.ZipFile) -> Iterator[dict[str, object]]:
    """Yield source and Bazel, and the rest of the wheel's bill of materials."""
    source, bazel = record.source, record.bazel
    yield {
        "name": "source",
        "uri": f"git+{source.url}@{source.commit}",
        "digest": {"gitCommit": source.commit},
    }
    yield {
        "name": "bazel",
        "uri": f"pkg:github/bazelbuild/bazel@{bazel.version}",
        "digest": {"sha256": bazel.sha256},
    }
    bill = json_text.parse(
        wheel.read(f"{archive.metadata_directory(wheel)}/{build_record.BILL_NAME}")
    )
    for component in bill["components"]:
        # It is named above already, with its commit.
        if component["bom-ref"] == "source":
            continue
        # CycloneDX writes "SHA-256" where in-toto writes "sha256".
        digests = {
            entry["alg"].replace("-", "").lower(): entry["content"] for entry in component["hashes"]
        }
        # A clone has no digest but its commit, which covers all of its files.
        if "sha256" not in digests:
            digests = {"gitCommit": component["version"]}
        yield {"name": component["name"], "uri": component["purl"], "digest": digests}


SIGNED_SUFFIX = ".intoto.jsonl"
"""After the whole name of the wheel's file."""
PAYLOAD_TYPE = "application/vnd.in-toto+json"
FORGED = "Do not trust the wheel. Download it again, with the files next to it, from its source."


def sign(payload: bytes, key: Path) -> bytes:
    """Return the envelope of a statement, signed with a private key.

    Raises HostError if the key cannot sign.
    """
    return signing.sign(payload, PAYLOAD_TYPE, key)


def verify_signed(wheel: Path, key: Path) -> str:
    """Insist that a key's holder signed the statement about exactly this wheel; return its id.

    Raises HostError if the key cannot be used, WheelError if the envelope next to the wheel is
    missing or not signed with it, is about another wheel, or says something else than the plain
    statement, where that is next to it.
    """
    payload, keyid = signing.verified_payload(
        wheel.with_name(wheel.name + SIGNED_SUFFIX), PAYLOAD_TYPE, key
    )
    try:
        # A statement may be about several files; even a trusted signer may write nonsense.
        subjects = [subject["digest"]["sha256"] for subject in json_text.parse(payload)["subject"]]
    except (ValueError, LookupError, TypeError) as fault:
        raise WheelError(
            "What was signed is not an in-toto statement about a file",
            remedy="Ask whoever signed it.",
        ) from fault
    # A valid signature alone proves little: it may be about another wheel.
    if files.sha256(wheel) not in subjects:
        raise WheelError(
            f"{wheel.name} is not the wheel that was signed: its SHA-256 is another one",
            remedy=FORGED,
        )
    # Tools that do not know envelopes read the plain file, so the two must agree.
    plain = wheel.with_name(wheel.name + SUFFIX)
    if plain.is_file() and plain.read_bytes() != payload:
        raise WheelError(f"{plain.name} is not the statement that was signed", remedy=FORGED)
    return keyid
