"""The page of the host file: it has every key, and its examples are valid."""

import re
import tomllib

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT

PAGE = ROOT / "docs/host.md"


def examples() -> list[str]:
    """Return the indented blocks of the page."""
    blocks = re.findall(
        r"(?:^    .*\n|^\n)+", PAGE.read_text("utf-8"), re.MULTILINE
    )
    return [
        re.sub(r"^    ", "", block, flags=re.MULTILINE)
        for block in blocks
        if block.strip()
    ]


def test_the_page_has_every_key() -> None:
    text = PAGE.read_text("utf-8")
    missing = [
        key
        for key in HostFile.model_fields
        if not re.search(rf"[`\[ ]{key}[`\] ]", text)
    ]
    assert missing == []


def test_every_example_is_valid() -> None:
    values = tomllib.loads("\n".join(examples()))
    HostFile.model_validate(values)


def test_every_key_of_a_table_has_an_example() -> None:
    text = "\n".join(examples())
    for table in ("cache", "container", "slurm", "sign"):
        field = HostFile.model_fields[table].annotation
        model = next(
            kind
            for kind in (field, *getattr(field, "__args__", ()))
            if hasattr(kind, "model_fields")
        )
        keys = [key for key in model.model_fields if f"\n{key} = " not in text]
        assert keys == [], table


def test_the_examples_of_single_keys_are_valid() -> None:
    lines = re.findall(
        r"\| `((?:build_out|jobs|drop|cuda|cudnn|compiler|debian) = [^`]*)` \|",
        PAGE.read_text("utf-8"),
    )
    assert len(lines) == 7
    HostFile.model_validate(tomllib.loads("\n".join(lines)))
