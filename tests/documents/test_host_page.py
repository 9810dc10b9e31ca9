"""The page of the host file: it has every key, and its examples are valid."""

import re
import tomllib
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel

from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.documents.recipe import ROOT

PAGE = ROOT / "docs/host.md"


def examples() -> list[str]:
    """Return the indented blocks of the page."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if block.strip()]


def test_the_page_has_every_key() -> None:
    text = PAGE.read_text("utf-8")
    missing = [key for key in HostFile.model_fields if not re.search(rf"[`\[ ]{key}[`\] ]", text)]
    assert missing == []


def test_every_example_is_valid() -> None:
    values = tomllib.loads("\n".join(examples()))
    HostFile.model_validate(values)


def tables(document: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models of a document's tables, also those within others."""
    for field in document.model_fields.values():
        kinds = [field.annotation]
        for kind in kinds:
            kinds += get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield kind
                yield from tables(kind)


def test_every_key_of_a_table_has_an_example() -> None:
    text = "\n".join(examples())
    found = list(tables(HostFile))
    assert len(found) > 4
    for table in found:
        keys = [key for key in table.model_fields if f"\n{key} = " not in text]
        assert keys == [], table.__name__


def test_every_key_of_the_nightly_file_is_on_its_page() -> None:
    page = (ROOT / "docs/build-host.md").read_text("utf-8")
    code = "\n".join(re.findall(r"`[^`]+`|^    .*$", page, re.MULTILINE))
    found: list[type[BaseModel]] = [NightlyFile, *tables(NightlyFile)]
    for table in found:
        missing = [key for key in table.model_fields if not re.search(rf"\b{key}\b", code)]
        assert missing == [], table.__name__


def test_the_examples_of_single_keys_are_valid() -> None:
    lines = re.findall(
        r"\| `((?:build_out|jobs|drop|cuda|cudnn|compiler|debian) = [^`]*)` \|",
        PAGE.read_text("utf-8"),
    )
    assert len(lines) == 7
    HostFile.model_validate(tomllib.loads("\n".join(lines)))
