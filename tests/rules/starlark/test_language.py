"""Texts and lists of Starlark, and what is left unknown."""

import ast
from collections.abc import Callable

import pytest

from tfwright.rules.starlark import language
from tfwright.rules.starlark.language import UnknownError


def test_texts_and_lists_are_put_together() -> None:
    assert language.added("a", "b") == "ab"
    assert language.added(["a"], ["b"]) == ["a", "b"]
    assert language.filled("%s-%d%%", ["a", 1]) == "a-1%"
    assert language.formatted("{}-{1}-{name}", ["a", "b"], {"name": 3}) == "a-b-3"


@pytest.mark.parametrize(
    "make",
    [
        lambda: language.added("a", ["b"]),
        lambda: language.added(1, 2),
        lambda: language.added(["a"] * language.LONGEST, ["b"]),
        lambda: language.added("a" * language.LONGEST, "b"),
        lambda: language.filled("%5s", ["a"]),
        lambda: language.filled("%s", []),
        lambda: language.filled(None, ["a"]),
        lambda: language.formatted(None, [], {}),
        lambda: language.formatted("{:99999999}", ["a"], {}),
        lambda: language.formatted("{0!r}", ["a"], {}),
        lambda: language.formatted("{missing}", [], {}),
        lambda: language.formatted("{", [], {}),
        lambda: language.formatted("{0}{0}", ["a" * language.LONGEST], {}),
        lambda: language.formatted("{}", [None], {}),
        lambda: language.formatted("{}", [10**18], {}),
    ],
)
def test_what_could_ask_for_gigabytes_or_is_not_text_is_unknown(make: Callable[[], object]) -> None:
    with pytest.raises(UnknownError):
        make()


def statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


@pytest.mark.parametrize(
    ("text", "evaluates"),
    [
        ("a = b", "b"),
        ("a += b", "b"),
        ("a.b += c", None),
        ("f(a)", "f(a)"),
        ("load('//a:b.bzl', 'c')", None),
        ("if a: pass", "a"),
        ("for a in b: pass", "b"),
        ("return a", "a"),
        ("return", None),
        ("pass", None),
    ],
)
def test_each_statement_evaluates_one_expression_or_none(text: str, evaluates: str | None) -> None:
    found = language.expression_of(statement(text))
    assert (ast.unparse(found) if found else None) == evaluates


def test_where_a_value_is_taken_apart_its_names_are_unknown() -> None:
    whole = statement("(a, [b, c.d]) = e")
    assert isinstance(whole, ast.Assign)
    assert set(language.assigned(whole.targets[0], "thing")) == {"a", "b", "c"}
    single = statement("a = e")
    assert isinstance(single, ast.Assign)
    assert language.assigned(single.targets[0], "thing") == {"a": "thing"}
    part = statement("a.b = e")
    assert isinstance(part, ast.Assign)
    assert language.assigned(part.targets[0], "thing") == {}


def test_parameters_with_defaults_are_found_wherever_they_stand() -> None:
    macro = statement("def f(a, b = 1, *, c, d = 2): pass")
    assert isinstance(macro, ast.FunctionDef)
    found = {name: ast.unparse(given) for name, given in language.defaults(macro.args)}
    assert found == {"b": "1", "d": "2"}
