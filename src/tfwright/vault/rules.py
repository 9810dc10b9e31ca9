"""What a TensorFlow tree downloads: its repository rules, read as text. Nothing is executed.

Starlark is close enough to Python that Python's own parser reads it. Calls that declare an external
repository are recognised by their arguments, so that a macro of a later release needs no change
here; what cannot be read without running it is reported with file and line.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PLACES = ("WORKSPACE", "tensorflow/workspace", "third_party/", "tensorflow/third_party/")
"""Where repository rules stand: these paths, and what starts with them and ends in .bzl."""
ADDRESSES = ("urls", "url", "remote", "artifact", "jar_urls")
"""Arguments that say where a repository comes from."""
DOWNLOADS = {"download", "download_and_extract"}
"""Methods through which a rule's own implementation downloads."""
WRAPPERS = {"clean_dep", "Label", "str", "_clean_dep"}
"""Functions that return their argument, as far as a digest or an address goes."""
MIRROR = "https://storage.googleapis.com/mirror.tensorflow.org/"


@dataclass(frozen=True)
class Repository:
    """An external repository, as a rule declares it."""

    name: str
    rule: str
    file: str
    line: int
    urls: tuple[str, ...] = ()
    sha256: str = ""
    """Empty if the rule has none: then nothing can be locked."""
    strip_prefix: str = ""
    patches: tuple[str, ...] = ()
    """Labels of the patches that the rule applies after unpacking."""
    commit: str = ""
    """For rules that clone: the commit, or the tag, that they check out."""

    @property
    def lockable(self) -> bool:
        """Tell whether the rule pins the bytes that it downloads."""
        return bool(self.sha256)


@dataclass(frozen=True)
class Unreadable:
    """A place that declares a download which only running it would reveal."""

    file: str
    line: int
    why: str


@dataclass(frozen=True)
class Rules:
    """Everything that a tree was found to download."""

    repositories: tuple[Repository, ...]
    unreadable: tuple[Unreadable, ...]


def relevant(path: str) -> bool:
    """Tell whether a file of a tree can hold repository rules."""
    return path == "WORKSPACE" or (path.endswith(".bzl") and path.startswith(PLACES))


def read(texts: Mapping[str, str]) -> Rules:
    """Read the repository rules of a tree, given its relevant files by path."""
    found: list[Repository | Unreadable] = []
    for path, text in sorted(texts.items()):
        found.extend(_read_file(path, text))
    return Rules(
        tuple(one for one in found if isinstance(one, Repository)),
        tuple(one for one in found if isinstance(one, Unreadable)),
    )


def _read_file(path: str, text: str) -> Iterator[Repository | Unreadable]:
    """Read the rules of one file."""
    try:
        module = ast.parse(text)
    except SyntaxError as fault:
        yield Unreadable(path, fault.lineno or 1, f"not readable as Starlark: {fault.msg}")
        return
    yield from _walk(module, path, {})


def _walk(node: ast.AST, path: str, outer: Mapping[str, object]) -> Iterator[Repository | Unreadable]:
    """Read the rules below a module or function, with the constants that its scope knows."""
    known = {**outer, **_constants(node, outer)}
    for child in _within(node):
        if isinstance(child, ast.FunctionDef):
            yield from _walk(child, path, known)
        elif isinstance(child, ast.Call):
            yield from _read_call(child, path, known)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Walk below `node`, stopping at functions, whose constants are their own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef):
            yield from _within(child)


def _constants(node: ast.AST, outer: Mapping[str, object]) -> dict[str, object]:
    """Return the names of a scope that are given a constant, and given it once."""
    values: dict[str, list[ast.expr]] = {}
    for child in _within(node):
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            values.setdefault(child.targets[0].id, []).append(child.value)
    known = dict(outer)
    for name, given in values.items():
        try:
            if len(given) == 1:
                known[name] = _value(given[0], known)
        except ValueError:
            continue
    return known


def _read_call(call: ast.Call, path: str, known: Mapping[str, object]) -> Iterator[Repository | Unreadable]:
    """Read one call, if it declares a repository or downloads by itself."""
    rule = _called(call)
    arguments = {one.arg: one.value for one in call.keywords if one.arg}
    if rule in DOWNLOADS and isinstance(call.func, ast.Attribute):
        yield Unreadable(path, call.lineno, f"the rule's own code calls {rule}; what it downloads depends on its arguments")
    elif "name" in arguments and any(name in arguments for name in ADDRESSES):
        try:
            yield _repository(rule, path, call.lineno, {name: _value(value, known) for name, value in arguments.items() if name in _READ})
        except ValueError as fault:
            yield Unreadable(path, call.lineno, f"{rule}: {fault}")


_READ = {"name", "sha256", "jar_sha256", "strip_prefix", "patch_file", "patches", "commit", "tag", *ADDRESSES}


def _repository(rule: str, path: str, line: int, said: Mapping[str, object]) -> Repository:
    """Make a repository of the arguments of its rule."""
    return Repository(
        name=str(said["name"]),
        rule=rule,
        file=path,
        line=line,
        urls=tuple(url for name in ADDRESSES for url in _texts(said.get(name))),
        sha256=str(said.get("sha256") or said.get("jar_sha256") or ""),
        strip_prefix=str(said.get("strip_prefix") or ""),
        patches=(*_texts(said.get("patch_file")), *_texts(said.get("patches"))),
        commit=str(said.get("commit") or said.get("tag") or ""),
    )


def _texts(value: object) -> tuple[str, ...]:
    """Return one text or a list of them as a tuple; nothing as an empty one."""
    if isinstance(value, list):
        return tuple(str(one) for one in value)
    return (str(value),) if value else ()


def _called(call: ast.Call) -> str:
    """Return the name of what is called, without what it is an attribute of."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def _value(node: ast.expr, known: Mapping[str, object]) -> object:
    """Return the value of an expression made of constants; raise ValueError for any other."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in known:
            return known[node.id]
        case ast.List() | ast.Tuple():
            return [_value(one, known) for one in node.elts]
        case ast.BinOp(op=ast.Add()):
            return _sum(_value(node.left, known), _value(node.right, known))
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
            right = _value(node.right, known)
            return text % (tuple(right) if isinstance(right, list) else right)
        case ast.Call():
            return _result(node, known)
    raise ValueError(f"{ast.unparse(node)} is not constant")


def _sum(left: object, right: object) -> object:
    """Add two texts or two lists, as Starlark does."""
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    raise ValueError("adds what is neither two texts nor two lists")


def _result(call: ast.Call, known: Mapping[str, object]) -> object:
    """Return what one of the few functions gives that leave a value readable."""
    name = _called(call)
    values = [_value(one, known) for one in call.args]
    if name in WRAPPERS and len(values) == 1:
        return values[0]
    if name == "tf_mirror_urls" and len(values) == 1:
        url = str(values[0])
        return [MIRROR + url.partition("://")[2], url]
    if name == "format" and isinstance(call.func, ast.Attribute):
        text = str(_value(call.func.value, known))
        return text.format(*values, **{one.arg: _value(one.value, known) for one in call.keywords if one.arg})
    raise ValueError(f"{ast.unparse(call)} cannot be known without running it")
