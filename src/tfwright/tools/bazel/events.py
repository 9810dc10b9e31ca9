"""Bazel's build event file: which files a build made, in a form that every version writes alike."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tfwright.errors import ToolError
from tfwright.tools import json_text

Event = Mapping[str, Any]


def outputs(events: Path) -> tuple[Path, ...]:
    """Return the default outputs of the targets that were asked for, in Bazel's order."""
    sets: dict[str, Event] = {}
    seen: set[str] = set()
    found: dict[Path, None] = {}
    try:
        with events.open(encoding="utf-8") as lines:
            # A set of files always stands before what refers to it.
            for event in map(json_text.parsed, lines):
                # Bazel reports each set of files once, and lets later events refer to it by a
                # number.
                if named := event["id"].get("namedSet"):
                    sets[named["id"]] = event["namedSetOfFiles"]
                elif "targetCompleted" in event["id"]:
                    # The event of a target that failed may have no "completed".
                    for group in event.get("completed", {}).get("outputGroup", ()):
                        # Other groups hold validation and coverage files, which the user did
                        # not ask for.
                        if group["name"] == "default":
                            found |= dict.fromkeys(_files(group, sets, seen))
    except (ValueError, LookupError, TypeError, AttributeError) as fault:
        raise ToolError(
            f"Bazel's list of what it built, {events}, cannot be read: {fault!r}",
            remedy="Make room on the disk if it is full, then build again.",
        ) from fault
    return tuple(found)


def _files(group: Event, sets: Mapping[str, Event], seen: set[str]) -> Iterator[Path]:
    """Walk down nested sets to the local files in them, into each set once.

    Sets share parts, so that there can be far more ways down than sets.
    """
    waiting = list(group.get("fileSets", ()))[::-1]
    while waiting:
        name = waiting.pop()["id"]
        if name in seen:
            continue
        seen.add(name)
        members = sets[name]
        for file in members.get("files", ()):
            uri = urlsplit(file["uri"])
            # With a remote cache that downloads little, files may only have a
            # bytestream:// address.
            if uri.scheme == "file":
                yield Path(unquote(uri.path))
        waiting += list(members.get("fileSets", ()))[::-1]
