"""Bazel's build event file: which files a build made, in a form that every version writes alike."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Event = Mapping[str, Any]


def outputs(events: Path) -> tuple[Path, ...]:
    """Return the default outputs of the targets that were asked for, in Bazel's order."""
    sets: dict[str, Event] = {}
    found: dict[Path, None] = {}
    for event in _events(events):
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
                    found |= dict.fromkeys(_files(group, sets))
    return tuple(found)


def _events(path: Path) -> Iterator[Event]:
    """Yield the events in order; a set of files always stands before what refers to it."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _files(group: Event, sets: Mapping[str, Event]) -> Iterator[Path]:
    """Walk down nested sets to the local files in them."""
    for inner in group.get("fileSets", ()):
        members = sets[inner["id"]]
        for file in members.get("files", ()):
            uri = urlsplit(file["uri"])
            # With a remote cache that downloads little, files may only have a
            # bytestream:// address.
            if uri.scheme == "file":
                yield Path(unquote(uri.path))
        yield from _files(members, sets)
