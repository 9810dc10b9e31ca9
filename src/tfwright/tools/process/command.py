"""A program to run, as plans show it and stages run it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tfwright.tools.process import environment


@dataclass(frozen=True)
class Command:
    """A program to run: `invoke plan` shows the same object that the stage then runs."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment; nothing is inherited."""
    here: bool = False
    """Whether it runs on the host also while a container is open."""
    brief: bool = False
    """Whether it ends by itself in seconds, so that nothing has to end it when we are killed."""

    @classmethod
    def of_system(cls, *argv: str, here: bool = False) -> Self:
        """Return a program that depends on no directory of the caller and on no variable."""
        root = Path("/")
        return cls(argv, root, environment.clean(root), here)

    def __str__(self) -> str:
        return shlex.join(self.argv)
