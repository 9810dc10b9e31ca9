"""Texts and lists of Starlark, and what is left unknown."""

import ast
from collections.abc import Callable

import pytest

from tfwright.rules.starlark import language
from tfwright.rules.starlark.language import UnknownError


def test_texts_and_lists_are_put_together() -> None:
    assert language.add("a", "b") == "ab"
    assert language.add(["a"], ["b"]) == ["a", "b"]
    assert language.repeat("ab", 2) == "abab"
    assert language.repeat(2, ["a"]) == ["a", "a"]
    assert language.repeat("ab", -(10**30)) == ""
    assert language.repeat([], 10**30) == []
    assert language.fill("%s-%d%%", ["a", 1]) == "a-1%"
    assert language.format_text("{}-{1}-{name}", ["a", "b"], {"name": 3}) == "a-b-3"


@pytest.mark.parametrize(
    "make",
    [
        lambda: language.add("a", ["b"]),
        lambda: language.add(1, 2),
        lambda: language.add(["a"] * language.LONGEST, ["b"]),
        lambda: language.add("a" * language.LONGEST, "b"),
        lambda: language.repeat("a", language.LONGEST + 1),
        lambda: language.repeat(10**100, ["a"]),
        lambda: language.repeat(2, 3),
        lambda: language.repeat("a", "b"),
        lambda: language.fill("%5s", ["a"]),
        lambda: language.fill("%s", []),
        lambda: language.fill(None, ["a"]),
        lambda: language.format_text(None, [], {}),
        lambda: language.format_text("{:99999999}", ["a"], {}),
        lambda: language.format_text("{0!r}", ["a"], {}),
        lambda: language.format_text("{missing}", [], {}),
        lambda: language.format_text("{", [], {}),
        lambda: language.format_text("{0}{0}", ["a" * language.LONGEST], {}),
        lambda: language.format_text("{}", [None], {}),
        lambda: language.format_text("{}", [10**18], {}),
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
    assert set(language.bindings(whole.targets[0], "thing")) == {"a", "b", "c"}
    single = statement("a = e")
    assert isinstance(single, ast.Assign)
    assert language.bindings(single.targets[0], "thing") == {"a": "thing"}
    part = statement("a.b = e")
    assert isinstance(part, ast.Assign)
    assert language.bindings(part.targets[0], "thing") == {}


def test_parameters_with_defaults_are_found_wherever_they_stand() -> None:
    macro = statement("def f(a, b = 1, *, c, d = 2): pass")
    assert isinstance(macro, ast.FunctionDef)
    found = {name: ast.unparse(given) for name, given in language.defaults(macro.args)}
    assert found == {"b": "1", "d": "2"}
