"""Puts the wheel into the wheelhouse, with a provenance statement, signed if the host has a key."""

import datetime as dt
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tfwright.errors import HostError, WheelError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built, Published, Verdict
from tfwright.pipeline.stage import Artefact
from tfwright.tools import files

REVISION = 5


def run(job: Job, built: Built, verdict: Verdict) -> Published:
    """Copy the verified wheel, and list it in the wheelhouse's index.

    The copy is renamed into place, so a reader of the wheelhouse sees the old wheel or the new one.
    """
    from tfwright.index import write as index
    from tfwright.pipeline import caching
    from tfwright.tools.process import file_lock
    from tfwright.wheel.seal import statement

    wheel, wheelhouse = verdict.wheel, job.places.wheelhouse
    # Signed before anything is copied: a key that fails leaves the wheelhouse as it was.
    contents = statements(job, wheel.path, wheel.sha256, verdict, built)
    place = wheelhouse / wheel.path.name
    stated = place.with_name(place.name + statement.SUFFIX)
    enveloped = place.with_name(place.name + statement.SIGNED_SUFFIX)
    # Before the wheel changes: no signature is better than one about other bytes.
    files.remove(enveloped)
    before = files.sha256(place) if place.exists() else ""
    if before != wheel.sha256:
        if before:
            job.listener.note(
                f"{place.name} in the wheelhouse had other bytes (sha256 {before[:12]}…) and is "
                f"replaced (by {wheel.sha256[:12]}…)"
            )
        with files.replacing(place) as temporary:
            shutil.copyfile(wheel.path, temporary)
            # Programs of the wheel ran since it was read, and could write to it.
            if files.sha256(temporary) != wheel.sha256:
                raise WheelError(
                    f"{place.name} changed after it was sealed: nothing is published",
                    remedy="Build again; if it happens again, a program of the wheel writes to it.",
                    where=wheel.path,
                )
            # The rename follows when the block ends.
            files.remove(stated)
    for suffix, content in contents.items():
        files.write(place.with_name(place.name + suffix), content)
    # Builds of several recipes share the wheelhouse, and each rewrites the whole index.
    doing = f"invoke build --recipe {job.name}"
    with file_lock.locked(wheelhouse / ".lock", doing, wait=True):
        index.drop_other_metadata(place)
        notes = {place.name: {"recipe": job.name}}
        update = index.refresh(wheelhouse, notes, packages="")
    # A fault of another wheel there stops no build.
    for fault in update.refused:
        job.listener.note(fault.what)
    metadata = index.metadata_of(place)
    # Only now it is known that what the cache gave and took made a good wheel.
    caching.push_entries(job, built)
    return Published(
        wheel=Artefact.of(place),
        statement=Artefact.of(stated),
        envelope=Artefact.of(enveloped) if statement.SIGNED_SUFFIX in contents else None,
        metadata=Artefact.of(metadata) if metadata.is_file() else None,
        listed=_is_listed(job, place.name, wheel.sha256),
    )


def damage(job: Job, published: Published) -> str | None:
    """Say whether the index does not list the wheel by its checksum any more."""
    wheel = published.wheel
    if not published.listed or _is_listed(job, wheel.path.name, wheel.sha256):
        return None
    return "the index does not list it any more"


def _is_listed(job: Job, wheel: str, sha256: str) -> bool:
    """Say whether both pages of a wheel's project name it with this checksum."""
    # By the text: to read the index as one takes a tenth of a build with nothing to do.
    project = re.sub(r"[-_.]+", "-", wheel.partition("-")[0]).lower()
    for page in ("index.html", "index.json"):
        try:
            text = files.text(job.places.wheelhouse / "simple" / project / page)
        except OSError:
            return False
        if quote(wheel) not in text or sha256 not in text:
            return False
    return True


def inputs(job: Job) -> Mapping[str, str]:
    """Return the id of the key that signs."""
    from tfwright.tools import signing

    if not job.host_file.sign:
        return {}
    try:
        return {"the key that signs": signing.signer(job.host_file.sign.key).public_key.keyid}
    # The first stage refuses such a key, and says why.
    except HostError:
        return {"the key that signs": "none"}


def statements(
    job: Job, wheel: Path, sha256: str, verdict: Verdict, built: Built
) -> dict[str, bytes]:
    """Return the files that describe a wheel next to it, by the ends of their names.

    They are its provenance, with all that verify saw it do, and the same signed if the host file
    names a key. `wheel` is the one that passed, or the same under another version. Raises HostError
    if the key cannot sign.
    """
    from tfwright.pipeline import caching
    from tfwright.wheel import archive
    from tfwright.wheel.seal import statement
    from tfwright.wheel.seal.statement import BuildOutcome

    # The time is only in the statement: in the wheel it would change the bytes.
    checks = [check.model_dump() for check in verdict.checks]
    finished = dt.datetime.now(dt.UTC)
    cache = caching.summary(built)
    outcome = BuildOutcome(checks, finished, cache)
    with archive.open_wheel(wheel) as content:
        made = {statement.SUFFIX: statement.write(content, wheel.name, sha256, outcome)}
    if job.host_file.sign:
        key = job.host_file.sign.key
        made[statement.SIGNED_SUFFIX] = statement.sign(made[statement.SUFFIX], key)
    return made
