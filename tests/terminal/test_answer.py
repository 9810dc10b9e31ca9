"""What JSON holds of a model."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from tfwright.errors import Evidence, WheelError
from tfwright.terminal.answer import json_value


class Wheel(BaseModel):
    path: Path
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    wheel: Wheel
    names: frozenset[str]
    sizes: dict[Path, int | None]

    @property
    def computed(self) -> int:
        return 1


def test_models_are_objects_of_their_fields_however_deep() -> None:
    found = Found(Wheel(path=Path("a.whl"), tags=("any",)), frozenset("ba"), {Path("x"): None})
    assert json_value([found]) == [
        {"wheel": {"path": "a.whl", "tags": ["any"]}, "names": ["a", "b"], "sizes": {"x": None}}
    ]


def test_an_error_within_a_model_says_what_to_do() -> None:
    fault = WheelError("not a wheel", remedy="Build it.", evidence=Evidence(log=Path("a.log")))
    (shown,) = json_value((fault,))
    assert (shown["remedy"], shown["evidence"]["log"]) == ("Build it.", "a.log")
    assert shown["exit_status"] == 6
