"""Bazel's execution log: each action with its arguments, variables and inputs, and their digests.

A log is a row of SpawnExec messages, each after its length; old and new Bazels write the same.
https://github.com/bazelbuild/bazel/blob/master/src/main/protobuf/spawn.proto
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import Evidence, HostError
from tfwright.tools.cache import messages
from tfwright.tools.cache.messages import MalformedMessageError

ARGUMENT, VARIABLE, INPUT, LISTED_OUTPUT, MNEMONIC, HIT = 1, 2, 4, 5, 10, 13
"""Fields of a SpawnExec."""
CONFIGURATION = re.compile(r"(bazel-out)/[^/]+/")
FLAGS = ("execution_log_binary_file", "experimental_execution_log_file")
"""Names of the flag that asks for the log, the newer first."""


@dataclass(frozen=True)
class LoggedAction:
    """An action as Bazel ran it, or took it from the cache."""

    mnemonic: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    inputs: Mapping[str, str]
    """Path = digest."""
    outputs: tuple[str, ...]
    hit: bool
    """Whether the cache had it."""

    @property
    def name(self) -> str:
        """What identifies the action in every build of the same tree."""
        # Bazel sorts the outputs, and a list of dependencies (.d) says less than the object file.
        made = sorted(self.outputs, key=lambda path: path.endswith(".d"))
        return plain(made[0] if made else " ".join(self.arguments[:2]))


def plain(text: str) -> str:
    """Return a path or an argument without the folder of a configuration.

    That folder changes with the flags that a comparison is to find.
    """
    return CONFIGURATION.sub(r"\1/", text)


def read(path: Path) -> Iterator[LoggedAction]:
    """Yield the actions of a log. Raises HostError if it cannot be read or is not a log."""
    try:
        with path.open("rb") as stream:
            while message := messages.delimited(stream):
                yield _action(message)
    except OSError as fault:
        raise HostError(
            f"The execution log {path} cannot be read: {fault.strerror}",
            remedy="'invoke cache' lists the logs that are kept.",
        ) from fault
    except MalformedMessageError as fault:
        raise _not_a_log(path, fault) from fault


def _not_a_log(path: Path, fault: MalformedMessageError) -> HostError:
    return HostError(
        f"{path} is not an execution log of Bazel, or it is cut off: {fault}",
        remedy="Build the recipe again with [cache] logs = true in the host file.",
        evidence=Evidence(where=str(path)),
    )


def _action(message: bytes) -> LoggedAction:
    arguments: list[str] = []
    variables: dict[str, str] = {}
    inputs: dict[str, str] = {}
    outputs: list[str] = []
    mnemonic, hit = "", False
    for number, value in messages.fields(message):
        if number == ARGUMENT:
            arguments.append(messages.text(value))
        elif number == VARIABLE:
            variables |= _variable(messages.content(value))
        elif number == INPUT:
            inputs |= _input(messages.content(value))
        elif number == LISTED_OUTPUT:
            outputs.append(messages.text(value))
        elif number == MNEMONIC:
            mnemonic = messages.text(value)
        elif number == HIT:
            hit = bool(value)
    return LoggedAction(mnemonic, tuple(arguments), variables, inputs, tuple(outputs), hit)


def _variable(message: bytes) -> dict[str, str]:
    found = {number: messages.text(value) for number, value in messages.fields(message)}
    return {found.get(1, ""): found.get(2, "")}


def _input(message: bytes) -> dict[str, str]:
    path, digest = "", ""
    for number, value in messages.fields(message):
        if number == 1:
            path = messages.text(value)
        elif number == 2:  # noqa: PLR2004 the digest, whose first field is its hex
            inner = dict(messages.fields(messages.content(value)))
            digest = messages.text(inner.get(1, b""))
    return {path: digest}
