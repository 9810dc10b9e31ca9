"""All messages of errors and findings, once: tests/messages.txt, which a person reads as a change shows it.

Tests check the class of an error and the values that it names. Its words are checked here, by reading
them: run this module with --write after a change of a message, and look at the difference.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/tfwright"
GOLDEN = ROOT / "tests/messages.txt"


def text_of(node: ast.expr) -> str:
    """Return what an expression says, with each value that it inserts in braces."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(text_of, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="invoke"), args=[command])):
            return f"invoke {text_of(command)} --recipe {{recipe}}"
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
    return f"{{{ast.unparse(node)}}}"


def messages() -> Iterator[str]:
    """Yield each call that gives a remedy: its class, what it says, and what to do."""
    for path in SOURCE.rglob("*.py"):
        if "demo" in path.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                given = {word.arg: word.value for word in node.keywords}
                if "remedy" in given:
                    what, remedy = text_of(node.args[0]), text_of(given["remedy"])
                    yield f"{ast.unparse(node.func)}: {what}\n    do: {remedy}\n"


def rendered() -> str:
    """Return the golden file as the source has it now."""
    return "\n".join(sorted(set(messages())))


if __name__ == "__main__":
    if "--write" in sys.argv:
        GOLDEN.write_text(rendered(), "utf-8")
    else:
        sys.stdout.write(rendered())
