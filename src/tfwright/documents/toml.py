"""TOML documents as frozen models; a fault is reported with file, line and remedy."""

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tfwright.documents import filesystem
from tfwright.documents.faults import document_faults, syntax_fault
from tfwright.errors import Evidence, RecipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfwright.documents.faults import DocumentFault

# tomllib has no limits of its own: it takes quadratic time for some keys, and recurses on brackets.
LARGEST = 2**19
"""Bytes of a document; the largest lock file of ours has an eighth of that."""
LONGEST_NUMBER = 100
"""Digits of one number; Python refuses to read more than 4,300."""
DEEPEST = 32
"""Brackets within brackets, and parts of one dotted key."""
# A string without an end goes as far as the text: a pattern that failed there would try again at
# each of its quotes.
_STRINGS = re.compile(
    r'"""(?:[^\\]|\\.?)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.?)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*",
    re.DOTALL,
)


class DocumentError(RecipeError):
    """A document does not fit its model."""

    def __init__(
        self, what: str, remedy: str, faults: "Sequence[DocumentFault]", evidence: Evidence
    ) -> None:
        """Keep each fault with its own line and remedy."""
        super().__init__(what, remedy=remedy, evidence=evidence)
        self.faults = tuple(faults)


class Table(BaseModel):
    """A table of a TOML document: frozen, and closed to keys that it does not know."""

    # Most commands read few of the tables, so pydantic compiles a validator at its first use.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, defer_build=True)
    REMEDIES: ClassVar["Mapping[str, str]"] = {}
    """What to do about a key that is missing, where more can be said than to add it."""
    PAGE: ClassVar[str] = "docs/recipe.md"
    """The page that describes every key of the document."""

    @classmethod
    def defaults(cls) -> Self:
        """Return the table of a document that does not have it."""
        # An ordinary call would compile a validator of its own for each of these tables, which
        # takes longer than reading a recipe.
        return cls.model_construct()  # type: ignore[return-value]  # the plugin says Table

    def changed(self, **values: object) -> Self:
        """Return the same table with other values, which are not validated."""
        return self.model_copy(update=values)


Document = TypeVar("Document", bound=Table)


def load(
    path: Path,
    model: type[Document],
    extra: "Mapping[str, object] | None" = None,
    complete: "Callable[[dict[str, Any]], None] | None" = None,
) -> Document:
    """Read `path` as a `model`, with the values of `extra` added to the file's own.

    `complete` may put values in the place of missing ones first.

    Raises RecipeError, naming every faulty line at once, if the file cannot be read, is not
    TOML, or does not fit the model. Hostile documents are refused in bounded time.
    """
    text = _read_text(path)
    values = _parse_toml(path, text)
    if complete:
        complete(values)
    added = extra or {}
    try:
        return model.model_validate({**values, **added})
    except ValidationError as fault:
        found = fault.errors(include_url=False)
        # What was added is not in the file, so no line of it can be at fault.
        outside = [error for error in found if error["loc"][:1] in {(key,) for key in added}]
        if outside:
            raise RecipeError(
                f"{path}: the {outside[0]['loc'][0]} of this file "
                f"{outside[0]['msg'].removeprefix('Value error, ')}",
                remedy="Rename the file.",
            ) from fault
        faults, total = document_faults(text, values, model, found)
        # All at once: a person who writes a recipe corrects it in one go.
        first = faults[0]
        what = f"{path}:{first.line}: {first.what}"
        if len(faults) > 1:
            listed = [f"  {path}:{fault.line}: {fault.what}" for fault in faults]
            if total > len(faults):
                listed.append(f"  and {total - len(faults):,} more")
            what = "\n".join([f"{path} has {total} faults:", *listed])
        remedies = dict.fromkeys(fault.remedy for fault in faults)
        where = Evidence(where=f"{path}:{first.line}")
        raise DocumentError(what, "\n".join(remedies), faults, where) from fault


def values_of(path: Path) -> dict[str, Any]:
    """Return what a document says, whatever it should say. Raises RecipeError if it is not TOML."""
    return _parse_toml(path, _read_text(path))


def _read_text(path: Path) -> str:
    """Read a document as UTF-8."""
    # One byte more than allowed shows that a file is too large, without reading all of it.
    try:
        with filesystem.open_file(path) as stream:
            content = stream.read(LARGEST + 1)
    except OSError as fault:
        raise RecipeError(
            f"{path} cannot be read: {fault.strerror}", remedy="Check the path and its permissions."
        ) from fault
    if len(content) > LARGEST:
        raise RecipeError(
            f"{path} is larger than {LARGEST:,} bytes", remedy="Check that this is the right file."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        where = f"{path}:{line}"
        raise RecipeError(
            f"{where}: not UTF-8 text", remedy="Save the file as UTF-8.", where=where
        ) from fault


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Parse a document whose text cannot keep the parser busy."""
    # Editors on Windows write it, and the parser's own message would show nothing.
    if text.startswith("\ufeff"):
        raise _toml_error(f"{path}:1", "a byte order mark", "Save the file as UTF-8 without it.")
    # It can keep tomllib busy for minutes.
    if excess := _excess(text):
        position, why = excess
        line = text.count("\n", 0, position) + 1
        raise _toml_error(f"{path}:{line}", why, "Shorten that line.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        found = syntax_fault(text, str(fault))
        where = f"{path}:{found.line}"
        raise _toml_error(where, found.what, found.remedy) from fault
    # Neither is a TOMLDecodeError: numbers beyond Python's limit, and deep nesting.
    except (ValueError, RecursionError) as fault:
        raise _toml_error(str(path), str(fault), "Correct the file.") from fault


def _toml_error(where: str, why: str, remedy: str) -> RecipeError:
    return RecipeError(f"{where}: not valid TOML: {why}", remedy=remedy, where=where)


def _excess(text: str) -> tuple[int, str] | None:
    """Return place and name of what would take tomllib too long, or overflow its stack."""
    # With strings and comments blanked, brackets, dots and digits are what they seem to be.
    skeleton = _STRINGS.sub(lambda found: re.sub("[^\n]", " ", found[0]), text)
    # Python converts a long number in quadratic time.
    if number := re.search(rf"[0-9A-Fa-f_]{{{LONGEST_NUMBER},}}", skeleton):
        return number.start(), f"a number of more than {LONGEST_NUMBER} digits"
    # tomllib calls itself for each bracket.
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", skeleton):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEEPEST:
            return bracket.start(), f"more than {DEEPEST} brackets within brackets"
    # Each piece is looked at once: a pattern that counts dots would try again at each character.
    for piece in re.finditer(r"[^\n=,\[\]{}]+", skeleton):
        if piece[0].count(".") >= DEEPEST:
            return piece.start(), f"a key of more than {DEEPEST} parts"
    return None
