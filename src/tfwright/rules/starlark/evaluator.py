"""Starlark, read as far as it can be known without running it: loads, names, functions, values.

Conditions are not decided: both branches count, and where they leave a name with two values, both
are tried. Only a switch that is off, ``if name`` where that is False or None, leads nowhere. Texts
are untrusted, so that only what leaves a value readable is known here, and all work is counted.
"""

import ast
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from tfwright.rules.starlark.language import (
    Arguments,
    Either,
    ExhaustedError,
    External,
    Function,
    Later,
    MissingError,
    Module,
    Rule,
    Scope,
    UnknownError,
    Unset,
    add,
    bindings,
    defaults,
    expression_of,
    fill,
    format_text,
    loaded_labels,
    locate,
    parse,
    repeat,
)

MOST_STEPS = 1_000_000
"""Work that a tree may take; TensorFlow 2.4 takes 200,000, and no release more."""
PARSED = 16
COPIED = 256
PUT_TOGETHER = 64
"""Characters that are parsed, names that are copied, and characters or items that are put together
in the time of about one step."""
MOST_FORMS = 64
"""Combinations of alternatives in which one expression is tried."""

Result = TypeVar("Result")

Expressions = Generator[tuple[ast.stmt, ast.expr, Scope], None, Scope]
"""What `Program.walk` yields: an expression, where it stands, what is known there; in the end what
is known then."""


class Program:
    """The texts of one repository, by path."""

    def __init__(
        self,
        texts: Mapping[str, str],
        own: Sequence[str] = ("",),
        folders: Mapping[str, str] | None = None,
    ) -> None:
        """Take the texts, and the names by which the repository calls itself.

        `folders` are those of its folders that are repositories, too, by their names.
        """
        self._texts = texts
        self._own = own
        self._folders = folders or {}
        self._modules: dict[str, Module] = {}
        self._globals: dict[Module, Scope] = {}
        self._steps = 0
        self._choose()

    def spend(self, steps: int = 1) -> None:
        """Count work; raises ExhaustedError once it is too much."""
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise ExhaustedError(f"takes more than {MOST_STEPS:,} steps to read")

    def text(self, path: str) -> str:
        """Return a file as it is; empty if there is none."""
        return self._texts.get(path, "")

    def module(self, path: str) -> Module:
        """Parse a file, once. Raises UnknownError if there is none, or it is not readable."""
        if path not in self._modules:
            self.spend(len(self._texts.get(path, "")) // PARSED)
            self._modules[path] = Module(path, parse(path, self._texts))
        return self._modules[path]

    def modules(self) -> Sequence[Module]:
        """Return the files that were parsed so far."""
        return list(self._modules.values())

    def globals(self, module: Module) -> Scope:
        """Return what the functions of a module can see."""
        if module not in self._globals:
            # Empty at first: a function of the module may be called while its globals
            # are being read.
            self._globals[module] = Scope(module)
            walk = self.walk(module.body, Scope(module))
            while True:
                try:
                    next(walk)
                except StopIteration as end:
                    self._globals[module] = end.value
                    break
        return self._globals[module]

    def walk(self, body: Sequence[ast.stmt], scope: Scope) -> Expressions:
        """Yield every expression of `body`, in all branches, each with what is known there."""
        for statement in body:
            # A statement that binds a name copies all of them.
            self.spend(1 + len(scope.names) // COPIED)
            if expression := expression_of(statement):
                yield statement, expression, scope
            # Only these two recurse, and they do so here: an `elif` is an `if` in the `else`
            # branch, so another call for each level would halve the longest readable chain.
            match statement:
                case ast.If() if self._is_off(statement.test, scope):
                    scope = yield from self.walk(statement.orelse, scope)
                case ast.If():
                    taken = yield from self.walk(statement.body, scope)
                    other = yield from self.walk(statement.orelse, scope)
                    self.spend(len(other.names) // COPIED)
                    # Where the branches leave a name with two values, it may have either.
                    either = {
                        name: Either((thing, other.names[name]))
                        for name, thing in taken.names.items()
                        if other.names.get(name, thing) is not thing
                    }
                    scope = Scope(taken.module, {**taken.names, **other.names, **either})
                case ast.For():
                    for turn in self._turn_scopes(statement, scope):
                        scope = yield from self.walk(statement.body, turn)
                case _:
                    scope = self._scope_after(statement, scope)
        return scope

    def _is_off(self, test: object, scope: Scope) -> bool:
        """Say whether a condition needs a name that is nothing but False or None."""
        self.spend()
        match test:
            case ast.BoolOp(op=ast.And(), values=[first, *_]):
                return self._is_off(first, scope)
            case ast.Name(id=name) if name in scope.names:
                return self._is_off(scope.names[name], scope)
            case Later():
                return self._is_off(test.node, test.scope)
            case Either():
                return all(self._is_off(thing, scope) for thing in test.things)
            case ast.Constant(value=False | None):
                return True
        return False

    def _scope_after(self, statement: ast.stmt, scope: Scope) -> Scope:
        """Return what is known after a statement that has no branches."""
        match statement:
            case ast.FunctionDef():
                function = Function(statement, scope.module)
                return scope.bind(**{statement.name: function})
            case ast.Expr(value=ast.Call(func=ast.Name(id="load")) as call):
                return scope.bind(**self._loaded_symbols(call, scope.module))
            case ast.Assign(targets=[target, *_], value=value):
                return scope.bind(**bindings(target, Later(value, scope)))
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                # `x += y` is `x = x + y`, with the line of the statement for reports.
                addition = ast.BinOp(ast.Name(name, ast.Load()), statement.op, value)
                total = ast.copy_location(addition, statement)
                return scope.bind(**{name: Later(total, scope)})
        return scope

    def calls(self, expression: ast.expr, scope: Scope) -> Iterator[tuple[ast.Call, Scope]]:
        """Yield the calls in an expression."""
        nodes = list(ast.walk(expression))
        self.spend(len(nodes))
        for node in nodes:
            if isinstance(node, ast.comprehension):
                self.spend(len(scope.names) // COPIED)
                # The variable hides a name of the module, whose value would be the wrong one.
                unset = Unset(UnknownError("differs from turn to turn"))
                scope = scope.bind(**bindings(node.target, unset))
        yield from ((node, scope) for node in nodes if isinstance(node, ast.Call))

    def call_scope(self, function: Function, arguments: Arguments, missing: UnknownError) -> Scope:
        """Return what a function knows when it is called.

        A parameter without a value is `missing`.
        """
        outer = self.globals(function.module)
        parameters = function.node.args
        names = [
            parameter.arg
            for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
        ]
        # The order matters: a default replaces "missing", and what is passed replaces a default.
        bound: dict[str, object] = dict.fromkeys(names, Unset(missing))
        for name, default in defaults(parameters):
            bound[name] = Later(default, outer)
        bound.update(zip(names, arguments.positional, strict=False))
        bound.update({name: thing for name, thing in arguments.named.items() if name in names})
        if parameters.kwarg:
            bound[parameters.kwarg.arg] = {
                name: thing for name, thing in arguments.named.items() if name not in names
            }
        return outer.bind(**bound)

    def arguments(self, call: ast.Call, scope: Scope) -> Arguments:
        """Return what a call passes, its ``**`` opened.

        Raises UnknownError if that cannot be known.
        """
        named: dict[str, object] = {}
        for keyword in call.keywords:
            if keyword.arg:
                named[keyword.arg] = Later(keyword.value, scope)
            elif isinstance(more := self.evaluate(keyword.value, scope), dict):
                named.update(more)
        return Arguments(tuple(Later(argument, scope) for argument in call.args), named)

    def results_by_form(self, work: Callable[[], Result]) -> list[Result]:
        """Return what `work` gives in each combination of the alternatives that it meets.

        Raises UnknownError if there are more than MOST_FORMS.
        """
        made: list[Result] = []
        self._choose()
        while len(made) < MOST_FORMS:
            made.append(work())
            # Count on to the next combination, as an odometer does: the last wheel turns first.
            while self._picks and self._picks[-1][0] + 1 == self._picks[-1][1]:
                self._picks.pop()
            if not self._picks:
                self._choose()
                return made
            index, count = self._picks.pop()
            self._choose([*self._picks, (index + 1, count)])
        self._choose()
        raise UnknownError(f"has more than {MOST_FORMS} forms")

    def _choose(self, picks: Sequence[tuple[int, int]] = ()) -> None:
        """Forget what was worked out, and choose alternatives: `picks`, then the first ones."""
        self._known: dict[object, object] = {}
        self._picks, self._picked = list(picks), 0

    def force(self, thing: object) -> object:
        """Work out what is still to be worked out.

        Raises UnknownError if only running would tell.
        """
        match thing:
            case Unset():
                raise thing.fault
            case Later() | Either():
                # Within one form a name must not take two of its values, so each is kept.
                if thing not in self._known:
                    self._known[thing] = (
                        self.evaluate(thing.node, thing.scope)
                        if isinstance(thing, Later)
                        else self._alternative(thing.things)
                    )
                return self._known[thing]
            case list():
                self.spend(len(thing))
                return [self.force(item) for item in thing]
        return thing

    def _alternative(self, things: Sequence[object]) -> object:
        """Return the alternative that is due in this form."""
        if len(things) == 1:
            return self.force(things[0])
        if self._picked == len(self._picks):
            self._picks.append((0, len(things)))
        self._picked += 1
        return self.force(things[self._picks[self._picked - 1][0]])

    def evaluate(self, node: ast.expr, scope: Scope) -> object:
        """Return the value of an expression. Raises UnknownError if only running would tell."""
        self.spend()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._look_up(node.id, scope)
            case ast.List() | ast.Tuple():
                return [self.evaluate(element, scope) for element in node.elts]
            case ast.Dict():
                # Values stay unread: a rule may pass a large dictionary and use one item of it.
                keys = [self.evaluate(key, scope) if key else None for key in node.keys]
                return {
                    key: Later(value, scope)
                    for key, value in zip(keys, node.values, strict=True)
                    if isinstance(key, str)
                }
        return self._evaluate_compound(node, scope)

    def _evaluate_compound(self, node: ast.expr, scope: Scope) -> object:
        """Return the value of an expression that puts others together."""
        match node:
            case ast.Subscript():
                return self._item(self.evaluate(node.value, scope), node.slice, scope)
            case ast.IfExp():
                return self._alternative((Later(node.body, scope), Later(node.orelse, scope)))
            case ast.BinOp(op=ast.Add()):
                left = self.evaluate(node.left, scope)
                return self._counted(add(left, self.evaluate(node.right, scope)))
            case ast.BinOp(op=ast.Mult()):
                left = self.evaluate(node.left, scope)
                return self._counted(repeat(left, self.evaluate(node.right, scope)))
            case ast.BinOp(op=ast.Mod()):
                left = self.evaluate(node.left, scope)
                return self._counted(fill(left, self.evaluate(node.right, scope)))
            case ast.Call():
                return self._call_result(node, scope)
            case ast.Attribute():
                # What it is an attribute of knows best why it is not known.
                self.evaluate(node.value, scope)
        raise UnknownError("is not made of constants")

    def _counted(self, value: str | list[object]) -> str | list[object]:
        """Count the work behind a text or list that was put together."""
        self.spend(len(value) // PUT_TOGETHER)
        return value

    def _look_up(self, name: str, scope: Scope) -> object:
        """Return the value of a name, here or in the module."""
        # Functions see the module as it is at its end, as in Python: they run after it was read.
        for names in (scope.names, self.globals(scope.module).names):
            if name in names:
                return self.force(names[name])
        raise UnknownError(f"{name[:80]} is not a constant")

    def _item(self, whole: object, index: ast.expr, scope: Scope) -> object:
        """Return an item or a part of a text, a list or a dictionary."""
        if isinstance(index, ast.Slice) and isinstance(whole, str | list) and not index.step:
            lower, upper = (
                self.evaluate(bound, scope) if bound else None
                for bound in (index.lower, index.upper)
            )
            if isinstance(lower, int | None) and isinstance(upper, int | None):
                return whole[lower:upper]
        elif isinstance(whole, dict):
            key = self.evaluate(index, scope)
            if isinstance(key, str) and key in whole:
                return self.force(whole[key])
        elif isinstance(whole, list):
            key = self.evaluate(index, scope)
            if isinstance(key, int) and -len(whole) <= key < len(whole):
                return self.force(whole[key])
        raise UnknownError("takes an item that is not known")

    def _call_result(self, call: ast.Call, scope: Scope) -> object:
        """Return what a call gives, if it is one of the few that leave a value readable."""
        match call.func, call.args:
            # A label is read as its text, by which `load` and the rules name files.
            case ast.Name(id="str" | "Label"), [argument]:
                return self.evaluate(argument, scope)
            case ast.Name(id="repository_rule"), _:
                return self._repository_rule(call, scope)
            case ast.Name(id="module_extension"), _:
                return self._repository_rule(call, scope).implementation
            case ast.Attribute(attr="split", value=text), [mark]:
                whole, parted = self.evaluate(text, scope), self.evaluate(mark, scope)
                if isinstance(whole, str) and isinstance(parted, str) and parted:
                    return self._counted([*whole.split(parted)])
            case ast.Attribute(attr="format", value=text), _:
                passed = self.arguments(call, scope)
                named = {name: self.force(thing) for name, thing in passed.named.items()}
                template = self.evaluate(text, scope)
                positional = [self.force(thing) for thing in passed.positional]
                return self._counted(format_text(template, positional, named))
        function = self.evaluate(call.func, scope)
        if not isinstance(function, Function):
            raise UnknownError("calls what only running would know")
        inner = self.call_scope(
            function, self.arguments(call, scope), UnknownError("is not passed")
        )
        return_values = []
        for statement, value, there in self.walk(function.node.body, inner):
            if isinstance(statement, ast.Return):
                return_values.append(Later(value, there))
        # A function without a return gives None, in Starlark as in Python.
        return self._alternative(return_values) if return_values else None

    def _repository_rule(self, call: ast.Call, scope: Scope) -> Rule:
        """Return the rule that ``repository_rule`` makes."""
        arguments = self.arguments(call, scope)
        code = arguments.named.get("implementation") or next(iter(arguments.positional), None)
        try:
            attributes = self.force(arguments.named.get("attrs", {}))
        except UnknownError:
            # Without them the rule is still one: its code may download what it names itself.
            attributes = {}
        names = attributes if isinstance(attributes, dict) else {}
        return Rule(self.force(code), frozenset(map(str, names)))

    def _turn_scopes(self, loop: ast.For, scope: Scope) -> Iterator[Scope]:
        """Return what is known in each turn of a loop.

        Where that is unknown, one turn stands for all.
        """
        try:
            items = self.evaluate(loop.iter, scope)
        except UnknownError as fault:
            yield scope.bind(**bindings(loop.target, Unset(fault)))
            return
        if not isinstance(items, list | dict):
            items = [Unset(UnknownError("is not a list"))]
        for item in items:
            self.spend(1 + len(scope.names) // COPIED)
            yield scope.bind(**bindings(loop.target, item))

    def _loaded_symbols(self, call: ast.Call, module: Module) -> dict[str, object]:
        """Return the names that a ``load`` brings."""
        # load("label", "symbol", own_name = "symbol"): the keywords follow the plain symbols.
        passed = [*call.args, *(keyword.value for keyword in call.keywords)]
        texts = [str(node.value) for node in passed if isinstance(node, ast.Constant)]
        label = texts[0] if texts else ""
        symbols = texts[1:]
        names = [*symbols[: len(call.args) - 1], *(str(keyword.arg) for keyword in call.keywords)]
        return {
            name: self._symbol(label, symbol, module)
            for name, symbol in zip(names, symbols, strict=False)
        }

    def loads(self, path: str) -> Iterator[tuple[str, int, str, str]]:
        """Yield the loads of other repositories that a file leads to, through its own ones.

        Each is file and line of the load, repository and path of what is loaded.
        """
        waiting, seen = [path], set[str]()
        while waiting:
            here = waiting.pop(0)
            if here in seen:
                continue
            seen.add(here)
            # What is wrong with a file is reported where it is read.
            with suppress(UnknownError):
                for line, label in loaded_labels(self.module(here).body):
                    self.spend()
                    with suppress(UnknownError):
                        repository, there = self.locate(label, here)
                        if repository is None:
                            waiting.append(there)
                        else:
                            yield here, line, repository, there

    def locate(self, label: str, seen_from: str) -> tuple[str | None, str]:
        """Return repository and path of a label; None for the repository of these texts."""
        home = self.home_folder(seen_from)
        repository, path = locate(label, seen_from.removeprefix(home))
        if repository is None:
            return None, home + path
        if repository in self._folders:
            return None, f"{self._folders[repository]}/{path}"
        # A name of the own repository leads back into these texts, as a bare path does.
        return (None if repository in self._own else repository), path

    def home_folder(self, path: str) -> str:
        """Return the folder with a slash behind it that is the repository of a file, or ""."""
        around = (f"{folder}/" for folder in self._folders.values())
        return max((folder for folder in around if path.startswith(folder)), key=len, default="")

    def has_folder(self, folder: str) -> bool:
        """Say whether any of the texts is in a folder."""
        self.spend(len(self._texts) // COPIED)
        return any(path.startswith(f"{folder}/") for path in self._texts)

    def _symbol(self, label: str, symbol: str, module: Module) -> object:
        """Return what a label and a symbol in it stand for, seen from a module."""
        try:
            repository, path = self.locate(label, module.path)
            if repository is not None:
                return External(repository, path, symbol)
            return Later(ast.Name(symbol, ast.Load()), self.globals(self.module(path)))
        except UnknownError as fault:
            return Unset(MissingError(f"{label[:80]!r}: {fault}"))
