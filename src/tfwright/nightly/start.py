"""`invoke nightly`: one night of a build host."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

from tfwright.documents import host_file, nightly
from tfwright.nightly import channels, fleets, night, orders
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.night import BuildHost, NightOutcome, NightPlan
from tfwright.nightly.orders import Rebuilt
from tfwright.progress import SILENCE, Listener


def host(listener: Listener = SILENCE, hear: Callable[[str], None] = lambda _: None) -> BuildHost:
    """Return this build host, as its two files describe it."""
    # nightly.toml says what to build, the host file where and with what.
    wanted = nightly.read()
    settings = host_file.read()
    builder = PipelineBuilder(wanted, settings, listener)
    found = channels.of(wanted.notices)
    fleet = fleets.of(wanted, settings, builder, hear)
    return BuildHost(wanted, builder, hear=hear, channels=found, fleet=fleet)


def run(
    listener: Listener, hear: Callable[[str], None], *, only: str, now: bool, wait: bool
) -> NightOutcome:
    """Run one night."""
    return night.run(host(listener, hear), only=only, now=now, wait=wait)


def carry_out(folder: str, listener: Listener) -> NightlyBuild | Rebuilt:
    """Build what another host's night ordered; the folder is its order."""
    return orders.carry_out(Path(folder).absolute(), listener)


def plan(*, only: str, now: bool) -> NightPlan:
    """Say what a night would build."""
    return night.plan(host(), only=only, now=now)


def watch() -> int:
    """Send what waits, and that nights stay away or do not come to their end; build nothing."""
    # Not with `host()`: a fault in the host file keeps no notice back.
    wanted = nightly.read()
    found = channels.of(wanted.notices)
    return night.watch(wanted, dt.datetime.now(dt.UTC), found)


def page() -> str:
    """Return where the first page is, for people."""
    wanted = nightly.read()
    return wanted.url or str(wanted.directory / "site" / "index.html")
