"""What a command returns: a model, shown as a page to people and as JSON to machines."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tfwright.errors import TfwrightError
from tfwright.printable import as_started

Model = TypeVar("Model")


@dataclass(frozen=True)
class Answer(Generic[Model]):
    """What a command found, made or did."""

    model: Model
    page: Callable[[Model], object]
    """Writes it for people."""
    data: Callable[[Model], object] | None = None
    """Returns what JSON holds, where that is more, or less, than the fields of the model."""
    status: int = 0
    """With which the command ends."""

    def show(self, *, as_json: bool = False) -> None:
        """Print it."""
        if as_json:
            print_json(self.data(self.model) if self.data else self.model)
        else:
            self.page(self.model)


Shown = Answer[Any] | None
"""What a command returns, or yields one after the other."""


def print_json(value: object) -> None:
    """Print a value, with all models that it holds, as one document."""
    print(as_started(json.dumps(json_value(value), indent=2)))


def fault_data(fault: TfwrightError, resume: str = "") -> dict[str, object]:
    """Return what JSON says of an error."""
    evidence = fault.evidence
    return {
        "what": fault.what,
        "remedy": fault.remedy,
        "stage": fault.stage,
        "evidence": {
            "where": evidence.where,
            "command": list(evidence.command),
            "status": evidence.status,
            "log": evidence.log,
            "lines": evidence.lines,
        },
        "resume": resume,
        "exit_status": fault.exit_status,
    }


def json_value(value: Any) -> Any:  # noqa: ANN401 any model
    """Return a value as JSON can hold it: models as objects of their fields, paths as texts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, TfwrightError):
        value = fault_data(value)
    # Pydantic's models; it is not imported for commands that have none.
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    elif dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): json_value(held) for name, held in value.items()}
    if isinstance(value, set | frozenset):
        return [json_value(held) for held in sorted(value)]
    if isinstance(value, Iterable):
        return [json_value(held) for held in value]
    return str(value)
