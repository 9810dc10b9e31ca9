"""Versions as they are written on hosts: compared number by number, as far as both are written."""

import re

LONGEST = 18
"""Digits of a number that count."""


def numbers(version: str) -> tuple[int, ...]:
    """Return a version's leading numbers: ``10.1.243`` is (10, 1, 243)."""
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    # Cut: Python reads no number of more than 4,300 digits, and a recipe may have one.
    parts = found[0].split(".") if found else []
    return tuple(int(part[:LONGEST]) for part in parts)


def is_of(version: str, line: str) -> bool:
    """Say whether a version belongs to a line: 10.1.243 is of 10.1, and 10 of 10.0.

    No version is of no line.
    """
    # Not strict: the shorter of the two decides how far they are compared.
    pairs = zip(numbers(version), numbers(line), strict=False)
    return bool(version) and all(mine == its for mine, its in pairs)


def older(version: str, least: str) -> bool:
    """Say whether a version is before another."""
    return numbers(version) < numbers(least)


def newer(version: str, most: str) -> bool:
    """Say whether a version is past a line: gcc 7.5 is not past 7, gcc 8.1 is."""
    last = numbers(most)
    return numbers(version)[: len(last)] > last


def within(version: str, least: str, most: str) -> bool:
    """Say whether a version lies between two, both included; an empty bound is none."""
    return not (least and older(version, least)) and not (most and newer(version, most))


def span(least: str, most: str) -> str:
    """Say a range; one that ends with its own major version has no end yet."""
    return f"{least} or later" if is_of(least, most) else f"{least} to {most}"
