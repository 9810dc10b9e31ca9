"""How tests expect an error: by its class, and by the values that it must name, never by its words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from tfwright.errors import TfwrightError

Fault = TypeVar("Fault", bound=TfwrightError)


@contextmanager
def fails(kind: type[Fault], *values: object) -> Iterator[pytest.ExceptionInfo[Fault]]:
    """Expect exactly this class of error, naming each value in its message, remedy or evidence.

    The exception is in `.value` of what the block gets, once the block has ended.
    """
    with pytest.raises(kind) as caught:
        yield caught
    fault = caught.value
    assert fault.remedy.strip(), "an error says what to do"
    evidence = fault.evidence
    text = "\n".join(
        [
            fault.what,
            fault.remedy,
            evidence.where,
            *evidence.command,
            str(evidence.log or ""),
            *evidence.lines,
        ]
    )
    for value in values:
        assert str(value) in text, f"{value!s} is not named in:\n{text}"
