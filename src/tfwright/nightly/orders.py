"""A build order of a night as a directory, which another machine carries out.

The host that runs the night writes ``order.json``, with what the build needs and a worker's
checkout lacks. The worker fills ``result`` and writes ``built.json`` last. If the order asks for
the last good wheel once more, it compares the two and writes ``rebuilt.json``.
"""

import dataclasses
import datetime as dt
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tfwright.bundle import packing as bundle
from tfwright.documents import host_file
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.errors import HostError, RecipeError
from tfwright.nightly import due, targets
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.night import BuildOrder
from tfwright.nightly.targets import FollowedCommit
from tfwright.printable import printable_lines
from tfwright.progress import Listener
from tfwright.tools import files
from tfwright.workers import supply

ORDERS = "orders"
"""The folder of orders, in the night's directory and in a worker's build_out."""
ORDER, RESULT, BUILT = "order.json", "result", "built.json"
REBUILT = "rebuilt.json"
READ = "Look at the log of the worker in build_out/workers/logs."
LAST = "last"
"""The folder of the last good wheel, for a worker that does not see the build host's files."""


class OrderDocument(BaseModel):
    """What a worker must know."""

    model_config = ConfigDict(frozen=True)

    id: str
    target: Target
    fingerprint: Mapping[str, str]
    started: dt.datetime
    followed: dict[str, str] | None = None
    """The commit and the name that the target follows."""
    last_good: NightlyBuild | None = None
    reproduce: bool = True
    """Whether the night reproduces wheels; otherwise every build runs without the cache."""
    offline: bool = False
    """Whether the build host has sent all inputs, so that the worker asks no server."""
    last_wheel: str = ""
    """A path, or a name in the order's own folder LAST."""
    again: bool = False
    """Whether that wheel is to be built again from nothing, and compared."""


class Rebuilt(BaseModel):
    """What a worker found when it built a wheel again."""

    model_config = ConfigDict(frozen=True)

    target: str
    difference: str
    """How the wheel differs; empty if it is the same."""


def write(
    folder: Path, order: BuildOrder, builder: PipelineBuilder, *, carry: bool, offline: bool = False
) -> None:
    """Write an order of a night's builder; with `carry`, the last good wheel goes with it.

    `offline` says that the worker was given all inputs.
    """
    followed = builder.followed(order.target)
    last = order.last_wheel if order.last_wheel and order.last_wheel.is_file() else None
    document = OrderDocument(
        id=order.id,
        target=order.target,
        fingerprint=dict(order.fingerprint),
        started=order.started,
        followed=dataclasses.asdict(followed) if followed else None,
        last_good=order.last_good,
        reproduce=builder.nightly.reproduce,
        offline=offline,
        last_wheel=(last.name if carry else str(last)) if last else "",
        again=order.again,
    )
    files.write(folder / ORDER, document.model_dump_json(indent=1))
    if last and carry:
        _copy(last, folder / LAST)
    lock = targets.lock_of(order.target)
    # Locks of recipes are in the worker's checkout; those of axes are the build host's own.
    if lock.parent.name == targets.LOCKS and lock.is_file():
        _copy(lock, folder / targets.LOCKS)


def _copy(file: Path, into: Path) -> None:
    into.mkdir()
    shutil.copyfile(file, into / file.name)


def carry_out(folder: Path, listener: Listener) -> NightlyBuild | Rebuilt:
    """Build an order on this machine.

    Raises RecipeError if the folder holds no order, HostError if this machine would build another
    wheel than the host that ordered it, or lacks something.
    """
    # Only data: a worker builds with the recipes and the code of its own checkout.
    document = _read(folder)
    # No command reached a lost worker, so it still has its old order.
    if folder.parent.name == ORDERS:
        files.remove_old(folder.parent, supply.LEFT_DAYS)
    # Locks of targets with axes are looked for next to nightly.toml; the order has them.
    os.environ["TFWRIGHT_NIGHTLY_FILE"] = str(folder / "nightly.toml")
    nightly = NightlyFile(directory=folder, reproduce=document.reproduce)
    settings = host_file.read()
    builder = PipelineBuilder(nightly, settings, listener, offline=document.offline)
    followed = FollowedCommit(**document.followed) if document.followed else None
    builder.follow(document.target, followed)
    _insist_on_same(document, builder)
    if document.again:
        return _again(folder, document, builder)
    result = folder / RESULT
    # A lost worker may have left a part of it in a shared directory.
    files.remove(result)
    result.mkdir(parents=True)
    build = builder.build(_order(folder, document, result))
    files.write(folder / BUILT, build.model_dump_json(indent=1))
    if build.result == "blocked" and build.broken:
        raise HostError(build.broken.cause or build.broken.line, remedy=build.broken.remedy)
    return build


def _again(folder: Path, document: OrderDocument, builder: PipelineBuilder) -> Rebuilt:
    """Build the last good wheel again from nothing, and write down how it differs."""
    # Offline it is built from this machine's vault, which may have none of its inputs yet.
    bundle.fetched(builder.job(document.target))
    wheel = folder / LAST / document.last_wheel
    difference = builder.reproduce(document.target, wheel)
    found = Rebuilt(target=document.target.name, difference=difference)
    files.write(folder / REBUILT, found.model_dump_json())
    return found


def difference(folder: Path) -> str:
    """Return how the wheel differs that a worker built again.

    Raises HostError if the worker left no result.
    """
    try:
        found = Rebuilt.model_validate_json(files.content(folder / REBUILT))
    except (OSError, ValidationError) as fault:
        raise HostError("The worker left no result", remedy=READ) from fault
    return printable_lines(found.difference)


def take(folder: Path, work: Path) -> NightlyBuild:
    """Move the result of an order into the night's own directory; return the build.

    Raises HostError if the worker left no result, or one of another order.
    """
    try:
        build = NightlyBuild.model_validate_json(files.content(folder / BUILT))
    except (OSError, ValidationError) as fault:
        raise HostError("The worker left no result", remedy=READ) from fault
    # The identifier and the wheel become paths of the site.
    if build.id != work.name or build.wheel != Path(build.wheel).name:
        raise HostError(
            f"The worker left the result of another order: {build.id}",
            remedy=f"Keep whatever else writes to {folder} away from it, and build again.",
        )
    result = folder / RESULT
    if not result.is_dir():
        raise HostError("The worker left no result", remedy=READ)
    if build.wheel:
        _insist_on_wheel(result / build.wheel, build.sha256)
    files.remove(work)
    result.rename(work)
    return build


def _insist_on_wheel(wheel: Path, sha256: str) -> None:
    """Raise HostError if a wheel is not the one that a worker built."""
    found = files.existing(wheel)
    if found and files.sha256(found) == sha256:
        return
    what = "came with other bytes than it was built" if found else "did not come"
    raise HostError(
        f"{wheel.name} {what}", remedy="Build it again; look at the disks of both machines."
    )


def _read(folder: Path) -> OrderDocument:
    try:
        return OrderDocument.model_validate_json(files.content(folder / ORDER))
    except (OSError, ValidationError) as fault:
        raise RecipeError(
            f"{folder} holds no build order",
            remedy="'invoke nightly' on the build host writes and starts orders by itself.",
        ) from fault


def _insist_on_same(document: OrderDocument, builder: PipelineBuilder) -> None:
    """Refuse an order where this machine's recipe, patches or compiler are others."""
    differing = due.differing(document.fingerprint, builder.decides(document.target))
    if differing:
        raise HostError(
            f"This machine would build another wheel: it differs in {', '.join(differing)}",
            remedy="Update its checkout of tfwright; build in a container if systems differ.",
        )


def _order(folder: Path, document: OrderDocument, result: Path) -> BuildOrder:
    # A path from the build host is absolute, and joining it leaves it as it is.
    last = folder / LAST / document.last_wheel if document.last_wheel else None
    return BuildOrder(
        document.id,
        document.target,
        document.fingerprint,
        result,
        document.started,
        document.last_good,
        last,
    )
