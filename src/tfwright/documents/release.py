"""A TensorFlow release line: what its rules are looked up by."""

import re
from typing import Any, NamedTuple, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

_PATTERN = re.compile(r"r?(\d+)\.(\d+)")


class Release(NamedTuple):
    """Major and minor version of TensorFlow, ordered: ``Release(1, 8) < Release(1, 10)``."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``1.8``, or a branch such as ``r1.8`` or ``r1.15.5+nv22.09``.

        Raises ValueError for anything else.
        """
        found = _PATTERN.match(text)
        if not found:
            message = f"{text!r} is not a TensorFlow release such as '1.8'"
            raise ValueError(message)
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def __get_pydantic_core_schema__(
        cls,
        _source: Any,  # noqa: ANN401 pydantic's own signature
        _handler: GetCoreSchemaHandler,
    ) -> core_schema.CoreSchema:
        """Let documents spell a release as a string."""
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
