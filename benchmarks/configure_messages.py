"""What TensorFlow's own configuration can print, over all releases of some git repositories.

    python benchmarks/configure_messages.py REPOSITORY... [--new tests/.../configure_messages.txt]

Every `fail`, `raise`, `sys.exit` and complaining `print` of configure, configure.py,
find_cuda_config.py and third_party/*_configure.bzl is read at every tag, and its places are filled
with plausible values. With --new, only messages of a form that the file does not hold are printed,
each with the family that explains it; a message that no family explains comes first.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tfwright.diagnosis import reader

FILES = re.compile(
    r"^(?:configure|configure\.py|.*find_cuda_config\.py|.*check_cuda_libs\.py"
    r"|.*third_party/.*(?:configure|repo|common)\.bzl|.*util/python/python_config\.sh"
    r"|.*gen_git_source\.(?:py|sh)|.*build_pip_package\.sh|.*tools/pip_package/setup\.py)$"
)
CALLS = re.compile(r"fail$|_fail$|^fail|exit$|error$|Error$|Exception$|^print$|^die$|warn\w*$")
COMPLAINTS = re.compile(
    r"(?i)error|invalid|cannot|can't|not |fail|unable|unsupported|missing|must|please|expected"
)
WORDS = {
    "version": "10.1", "path": "/usr/local/cuda", "file": "cuda.h", "name": "TF_NEED_CUDA",
    "var": "TF_CUDA_VERSION", "lib": "cudart", "python": "/usr/bin/python3", "err": "exit status 1",
}  # fmt: skip
"""What stands for a variable whose name holds the word."""
PLACE = re.compile(r"%(?:\([^)]*\))?[-+ #0]*\d*(?:\.\d+)?[sdrxf]|\{[^{}]*\}")
ECHO = re.compile(r"""^\s*(?:>&2 )?echo (?:-e )?["'](?P<text>[^"']{12,300})["']""", re.MULTILINE)
UNSPECIFIC = {"general-error", "bazel-error", "python-exception", "bazel-build-language"}
"""Families that only say that something complains."""
SHORTEST = 12
"""Characters of a message that says something."""


def main() -> None:
    """Print the messages of all repositories."""
    options = _options()
    known = options.new.read_text("utf-8").splitlines() if options.new else []
    shapes = {shape(line) for line in known}
    rows = []
    for message in sorted({line for place in options.repositories for line in messages(place)}):
        if shape(message) not in shapes:
            shapes.add(shape(message))
            rows.append((explained(message), message))
    for family, message in sorted(rows):
        print(f"{family}\t{message}" if options.new else message)
    print(f"{len(rows)} messages", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--new", type=Path)
    return parser.parse_args()


def messages(repository: Path) -> Iterator[str]:
    """Yield every message of every tag; a file that two tags share is read once."""
    seen: set[str] = set()
    for tag in git(repository, "tag").split():
        for row in git(repository, "ls-tree", "-r", tag).splitlines():
            about, _, path = row.partition("\t")
            blob = about.split()[2]
            if FILES.match(path) and blob not in seen:
                seen.add(blob)
                yield from of_file(path, git(repository, "cat-file", "blob", blob))


def git(repository: Path, *arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def of_file(path: str, text: str) -> Iterator[str]:
    """Yield the messages of one file, each as one line or several."""
    if path.endswith((".sh", "configure")):
        for echo in ECHO.finditer(text):
            if COMPLAINTS.search(echo["text"]):
                said = echo["text"].replace("\\n", "\n")
                yield from lines(re.sub(r"\$\{?\w+\}?", "/usr/bin/x", said))
        return
    try:
        # Starlark is near enough to Python for its calls to be read.
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and CALLS.search(ast.unparse(node.func)):
            message = filled(node.args[0])
            called = ast.unparse(node.func)
            if message and (called != "print" or COMPLAINTS.search(message)):
                yield from lines(with_prefix(path, called, message))


def with_prefix(path: str, called: str, message: str) -> str:
    """Return a message as its caller writes it: a rule names itself before it."""
    rule = re.search(r"/(\w+?)_configure\.bzl$", path)
    if rule and called.startswith("auto_config"):
        return f"{rule[1].title()} Configuration Error: {message}"
    if called[:1].isupper() or called.endswith("Error"):
        return f"__main__.{called}: {message}" if called != "Exception" else f"Exception: {message}"
    return message


def filled(node: ast.expr) -> str:
    """Return a text with its places filled; empty where it holds no words of its own."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return PLACE.sub(lambda place: value_of(place[0]), node.value)
    parts = parts_of(node)
    return "".join(filled(part) for part in parts) if parts else value_of(ast.unparse(node))


def parts_of(node: ast.expr) -> list[ast.expr]:
    """Return the parts that a text is put together from; none where it is a plain value."""
    if isinstance(node, ast.BinOp):
        return [node.left] if isinstance(node.op, ast.Mod) else [node.left, node.right]
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "format":
            return [node.func.value]
        if node.func.attr == "join" and node.args and isinstance(node.args[0], ast.List):
            return node.args[0].elts
    return []


def value_of(name: str) -> str:
    """Return a plausible value for a variable, or for a place in a format."""
    word = next((word for word in WORDS if word in name.lower()), "")
    return WORDS.get(word, "/usr/lib/x")


def lines(message: str) -> Iterator[str]:
    """Yield the first line of a message that says something."""
    for line in message.splitlines():
        if len(line.strip()) > SHORTEST and COMPLAINTS.search(line):
            yield line.strip()
            return


def shape(message: str) -> str:
    """Return the words of a message, without what differs from case to case."""
    return " ".join(re.findall(r"[A-Za-z]{3,}", re.sub(r"[/'\"]\S+|\S*\d\S*", " ", message)))[:60]


def explained(message: str) -> str:
    """Return the family that explains a message; it begins with a dash if none does."""
    found = reader.read(io.BytesIO(message.encode()))
    names = [match.entry.id for match in found.matches if match.explains]
    names += [match.entry.id for match in found.harmless]
    good = [name for name in names if name not in UNSPECIFIC]
    return good[-1] if good else "- " + " ".join(names)


if __name__ == "__main__":
    main()
