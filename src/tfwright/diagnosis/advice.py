"""What to type against a failure: commands, and lines of a recipe or of the host file.

A family has them as templates. A line whose parameters the log does not name is left out, and so is
one that a hostile log could turn into another command.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfwright.diagnosis import tables
from tfwright.diagnosis.families import Family


@dataclass(frozen=True)
class Advice:
    """Lines that can be copied as they are, or with the words in capitals replaced."""

    recipe: tuple[str, ...] = ()
    """Keys of a recipe, each as `[table] key = value`."""
    host_file: tuple[str, ...] = ()
    """Keys of the host file, in the same form; those without a table as `key = value`."""
    commands: tuple[str, ...] = ()
    """Commands of a shell, in their order."""

    def __bool__(self) -> bool:
        """Say whether there is anything to type."""
        return bool(self.recipe or self.host_file or self.commands)


def of(family: Family, parameters: Mapping[str, str]) -> Advice:
    """Return what a family advises, with the parameters of a log in place."""
    return Advice(
        recipe=_filled(family.recipe, parameters),
        host_file=_filled(family.host_file, parameters),
        commands=_filled(family.commands, parameters),
    )


def _filled(templates: Sequence[str], parameters: Mapping[str, str]) -> tuple[str, ...]:
    lines = [tables.line(template, parameters) for template in templates]
    return tuple(dict.fromkeys(line for line in lines if line))
