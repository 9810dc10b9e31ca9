"""What Bazel's server can print when a build fails, read out of the classes of real Bazels.

    python benchmarks/bazel_messages.py BAZEL... [--show]

Every BAZEL is a released binary, which holds the server as A-server.jar (for Debian's Bazel, pack
/usr/share/bazel/A-server.jar into a zip file). A message is a text that a method
of the server's own packages hands to an exception, to an error event or to an error of a rule; what
the method puts into it becomes a plausible value. Each message is written as Bazel prints it, and
diagnosed. The table counts, for each part of the server, the messages, how many of them a family
knows, and how many a family of another tool claims. --show lists what is not known or claimed.
"""

import argparse
import io
import re
import struct
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from tfwright.diagnosis import families, reader

SERVER = re.compile(r"(?:^|/)A-server\.jar$")
OWN = "com/google/devtools/"
PARTS: Mapping[str, tuple[str, ...]] = {
    "loading": ("packages", "syntax", "skylark", "cmdline", "pkgcache", "events"),
    "analysis": ("analysis", "skyframe", "rules", "bazel/rules"),
    "fetching": ("bazel/repository", "rules/repository", "bazel/bzlmod"),
    "execution": (
        "actions",
        "exec",
        "sandbox",
        "shell",
        "worker",
        "remote",
        "unix",
        "vfs",
        "standalone",
        "dynamic",
        "windows",
    ),
    "commands": ("runtime", "buildtool", "server", "bazel", "profiler"),
}
"""The packages below ``lib`` of each part; of several that fit, the longest counts."""
UNUSED = re.compile(
    r"/(?:android|objc|java|apple|query2|test|ninja|python|debug|skydoc|config/feature"
    r"|skylarkdebug\w*|skylarkinterface|serialization|buildeventstream\w*|coverage|metrics)(?:/|$)"
)
"""Packages that a build of TensorFlow for Linux or macOS does not use."""
INTERNAL = re.compile(
    r"(?:Illegal(?:State|Argument)|NullPointer|Assertion|UnsupportedOperation|IndexOutOfBounds"
    r"|Verify|NoSuchElement|Interrupted|ClassCast)\w*$"
)
"""Exceptions of faults in Bazel's own code: their texts are for its authors."""
RULE = {"ruleError", "throwWithRuleError"}
ATTRIBUTE = {"attributeError", "throwWithAttributeError"}
LANGUAGE = "EvalException"
"""The exception of the build language, which Bazel prints with the place in the file."""
EVENT = {"error", "errorf", "addError", "reportError", "fail"}
"""Methods that take the text of an error."""
HOLE = "\x01"
"""Stands in a text for what Bazel puts there; the Java compiler writes it so, too."""
FORMAT = re.compile(r"%(?:\d+\$)?[-+ #0,(]*\d*(?:\.\d+)?[sdxfcbS]")
VALUES = (
    (re.compile(r"(?:target|label|rule|dependency|toolchain|aspect|prerequisite)s? ['\"(]?$"), "//pkg:name"),
    (re.compile(r"(?:package|directory|folder|path) ['\"(]?$"), "pkg/dir"),
    (re.compile(r"(?:file|artifact|output|input|symlink|archive|from|to) ['\"(]?$"), "pkg/file.txt"),
    (re.compile(r"repository(?: named)? ['\"(@]?$"), "@repo"),
    (re.compile(r"(?:option|flag):? ['\"(]?$"), "--jobs"),
    (re.compile(r"(?:Checksum was|but wanted) $"), 64 * "0"),
)  # fmt: skip
"""What is put in after some words; ``value`` elsewhere."""
SENTENCE = re.compile(r"[a-z]{2,}[,:']? ['(]?[A-Za-z]{2,}['),:.]* |[A-Za-z]{2,} [a-z]{2,}[.:]?$")
"""What a text holds that says something, and is no name, path or option."""
LENGTHS = {
    **dict.fromkeys((0x10, 0x12, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9, 0xBC), 2),
    **dict.fromkeys((0x11, 0x13, 0x14, 0x84, *range(0x99, 0xA9), *range(0xB2, 0xB9)), 3),
    **dict.fromkeys((0xBB, 0xBD, 0xC0, 0xC1, 0xC6, 0xC7), 3),
    **dict.fromkeys((0xB9, 0xBA, 0xC8, 0xC9), 5),
    0xC5: 4,
}  # fmt: skip
"""Bytes of an instruction of Java; 1 where nothing else is said."""
LDC, LDC_W, TABLESWITCH, LOOKUPSWITCH, WIDE, IINC = (0x12, 0x13, 0xAA, 0xAB, 0xC4, 0x84)
INVOKE = range(0xB6, 0xBA)
INVOKEDYNAMIC = 0xBA
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 16: 2, 19: 2, 20: 2, 15: 3}
"""Bytes of a constant, by its tag; 4 for a pair of numbers."""
UTF8, STRING, CLASS, DYNAMIC = 1, 8, 7, 18
TWO_PLACES = (5, 6)
"""Tags of constants that take two places."""


@dataclass(frozen=True)
class Message:
    """A text that the server prints when something fails."""

    part: str
    line: str
    """As it stands in a log."""


@dataclass
class Texts:
    """The texts that a method has at hand while its instructions are followed."""

    whole: list[str] = field(default_factory=list)
    builders: list[list[str]] = field(default_factory=list)


class Class:
    """A class file: its constants, and the instructions of its methods."""

    def __init__(self, data: bytes) -> None:
        """Read the constants of the class that `data` holds."""
        self.data = data
        self.tags: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        count = self._u2(8)
        at, number = 10, 1
        while number < count:
            tag = data[at]
            self.tags[number], self.starts[number] = tag, at + 1
            at += 3 + self._u2(at + 1) if tag == UTF8 else 1 + SIZES.get(tag, 4)
            number += 2 if tag in TWO_PLACES else 1
        self.end_of_constants = at

    def _u2(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + 2], "big")

    def _u4(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + 4], "big")

    def text(self, number: int) -> str:
        """Return a text of the constants."""
        start = self.starts[number]
        raw = self.data[start + 2 : start + 2 + self._u2(start)]
        return raw.decode("utf-8", "replace")

    def string(self, number: int) -> str | None:
        """Return the text of a string constant; None of another one."""
        if self.tags.get(number) != STRING:
            return None
        return self.text(self._u2(self.starts[number]))

    def called(self, number: int) -> tuple[str, str]:
        """Return class and name of a method that is called."""
        start = self.starts[number]
        owner = self.text(self._u2(self.starts[self._u2(start)]))
        return owner, self.text(self._u2(self.starts[self._u2(start + 2)]))

    def recipe(self, number: int) -> str | None:
        """Return the text that a dynamic call puts together (Java 9 and later); else None."""
        at = self._bootstrap_methods + 2
        for _ in range(self._u2(self.starts[number])):
            at += 4 + 2 * self._u2(at + 2)
        return self.string(self._u2(at + 4)) if self._u2(at + 2) else None

    @cached_property
    def _bootstrap_methods(self) -> int:
        """Where the table of dynamic calls stands; a class that has such calls has it."""
        return dict(self._attributes(self._after_members()))["BootstrapMethods"]

    def methods(self) -> Iterator[tuple[int, int]]:
        """Yield where the instructions of each method begin and end."""
        for member in self._members(self._after_fields()):
            for name, at in self._attributes(member):
                start, end = at + 8, at + 8 + self._u4(at + 4)
                # Most methods load no constant, and are not followed.
                if name == "Code" and re.search(b"[\x12\x13]", self.data[start:end]):
                    yield start, end

    def _after_fields(self) -> int:
        at = self.end_of_constants + 6
        at += 2 + 2 * self._u2(at)
        return self._skipped(at)

    def _after_members(self) -> int:
        return self._skipped(self._after_fields())

    def _members(self, at: int) -> Iterator[int]:
        """Yield where the attributes of each field, or of each method, begin."""
        count, at = self._u2(at), at + 2
        for _ in range(count):
            yield at + 6
            at = self._end_of_attributes(at + 6)

    def _skipped(self, at: int) -> int:
        count, at = self._u2(at), at + 2
        for _ in range(count):
            at = self._end_of_attributes(at + 6)
        return at

    def _attributes(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield name and content of each attribute."""
        count, at = self._u2(at), at + 2
        for _ in range(count):
            yield self.text(self._u2(at)), at + 6
            at += 6 + self._u4(at + 2)

    def _end_of_attributes(self, at: int) -> int:
        count, at = self._u2(at), at + 2
        for _ in range(count):
            at += 6 + self._u4(at + 2)
        return at

    def instructions(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield each instruction of a method: its code, and where it stands."""
        at = start
        while at < end:
            code = self.data[at]
            yield code, at
            if code in {TABLESWITCH, LOOKUPSWITCH}:
                at = self._after_switch(code, start, at)
            elif code == WIDE:
                at += 6 if self.data[at + 1] == IINC else 4
            else:
                at += LENGTHS.get(code, 1)

    def _after_switch(self, code: int, start: int, at: int) -> int:
        table = at + 4 - (at - start) % 4
        if code == LOOKUPSWITCH:
            return table + 8 + 8 * self._u4(table + 4)
        low, high = struct.unpack(">ii", self.data[table + 4 : table + 12])
        return int(table + 12 + 4 * (high - low + 1))


def main() -> None:
    """Print the table, and with --show what no family of Bazel's knows."""
    options = _options()
    for binary in options.binaries:
        found = sorted(messages(binary), key=lambda message: (message.part, message.line))
        judged = [(message, family_of(message.line)) for message in found]
        print(f"{binary.name}: {len(found)} messages")
        for part in [*PARTS, "all"]:
            _print_row(part, [row for row in judged if part in {row[0].part, "all"}])
        if options.show:
            for message, family in judged:
                if not right(family):
                    print(f"{message.part}\t{family or '-'}\t{message.line}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("binaries", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true")
    return parser.parse_args()


def _print_row(part: str, judged: Sequence[tuple[Message, str]]) -> None:
    known = sum(right(family) for _, family in judged)
    claimed = sum(foreign(family) for _, family in judged)
    share = 100 * known / (len(judged) or 1)
    print(
        f"  {part:<10}{len(judged):>6}{known:>7} known{share:>5.0f} %{claimed:>5} by another tool"
    )


def messages(binary: Path) -> set[Message]:
    """Return the messages of the server that a Bazel holds.

    Raises KeyError if the file holds no server.
    """
    found: set[Message] = set()
    with zipfile.ZipFile(binary) as bazel:
        name = next((each for each in bazel.namelist() if SERVER.search(each)), "A-server.jar")
        with zipfile.ZipFile(io.BytesIO(bazel.read(name))) as server:
            for each in server.namelist():
                part = part_of(each)
                if part:
                    found.update(of_class(part, server.read(each)))
    return found


def part_of(path: str) -> str:
    """Return the part of the server that a class belongs to; empty for all other classes."""
    package = path.rpartition("/")[0]
    if not path.endswith(".class") or not package.startswith(OWN) or UNUSED.search(package):
        return ""
    if package.startswith(OWN + "common/options"):
        return "commands"
    below = package.removeprefix(OWN + "build/lib/") + "/"
    places = [(place, part) for part, named in PARTS.items() for place in named]
    fitting = [(len(place), part) for place, part in places if below.startswith(place + "/")]
    return max(fitting)[1] if fitting else ""


def of_class(part: str, data: bytes) -> Iterator[Message]:
    """Yield the messages of one class."""
    read = Class(data)
    for start, end in read.methods():
        for taker, text in handed_over(read, start, end):
            if SENTENCE.search(text):
                yield Message(part, as_printed(taker, filled(text)))


def handed_over(read: Class, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield each text of a method with what takes it as the text of an error.

    The instructions are followed as they stand, whatever jumps between them: of a text that depends
    on a condition, one form is found.
    """
    texts = Texts()
    for code, at in read.instructions(start, end):
        operand = int.from_bytes(read.data[at + 1 : at + 3], "big")
        if code in {LDC, LDC_W}:
            string = read.string(read.data[at + 1] if code == LDC else operand)
            if string is not None:
                texts.whole.append(string)
        elif code == INVOKEDYNAMIC:
            recipe = read.recipe(operand)
            if recipe is not None and HOLE in recipe:
                texts.whole.append(recipe)
        elif code in INVOKE:
            owner, name = read.called(operand)
            if taker := taker_of(owner, name):
                if texts.whole:
                    yield taker, texts.whole[-1]
                texts = Texts()
            else:
                assemble(texts, owner, name)


def taker_of(owner: str, name: str) -> str:
    """Return the name of what takes a text as an error; empty where nothing does."""
    if name == "<init>":
        fault = owner.endswith(("Exception", "Error")) and not INTERNAL.search(owner)
        return owner.rpartition("/")[2] if fault else ""
    return name if name in RULE | ATTRIBUTE | EVENT else ""


def assemble(texts: Texts, owner: str, name: str) -> None:
    """Follow a call that puts a text together."""
    if owner == "java/lang/StringBuilder":
        if name == "<init>":
            texts.builders.append([])
        elif name == "append" and texts.builders:
            # A constant that was loaded just before is what is appended; else something unknown.
            texts.builders[-1].append(texts.whole.pop() if texts.whole else HOLE)
        elif name == "toString" and texts.builders:
            texts.whole.append("".join(texts.builders.pop()))
    elif name in {"format", "formatted"} and texts.whole:
        formats = [text for text in texts.whole if FORMAT.search(text)]
        if formats:
            texts.whole = [FORMAT.sub(HOLE, formats[-1]).replace("%n", "\n").replace("%%", "%")]


def filled(text: str) -> str:
    """Return a text with plausible values in its places."""
    parts = FORMAT.sub(HOLE, text).split(HOLE)
    made = parts[0]
    for part in parts[1:]:
        value = next((given for before, given in VALUES if before.search(made)), "value")
        made += value + part
    return " ".join(made.split("\n", 1)[0].split())


def as_printed(taker: str, text: str) -> str:
    """Return a message as the line of a log."""
    place = "ERROR: /src/pkg/BUILD:3:1: "
    if taker in RULE:
        return f"{place}in cc_library rule //pkg:name: {text}"
    if taker in ATTRIBUTE:
        return f"{place}in srcs attribute of cc_library rule //pkg:name: {text}"
    return f"{place}{text}" if taker == LANGUAGE else f"ERROR: {text}"


def family_of(line: str) -> str:
    """Return the family that explains a line best; empty where none does, or only a general one."""
    found = reader.read(io.BytesIO(line.encode()))
    names = [match.entry.id for match in found.matches if match.explains]
    names += [match.entry.id for match in found.harmless]
    good = [name for name in names if name not in in_files("general")]
    return good[0] if good else ""


@cache
def in_files(*names: str) -> frozenset[str]:
    """Return the families of some files of grammars."""
    texts = [(families.FOLDER / f"{name}.toml").read_text("utf-8") for name in names]
    return frozenset(family["id"] for text in texts for family in tomllib.loads(text)["family"])


def right(family: str) -> bool:
    """Say whether a family speaks of what Bazel itself says."""
    return bool(family) and not foreign(family)


def foreign(family: str) -> bool:
    """Say whether a family speaks of a tool that Bazel's server is not."""
    return family in in_files("nvcc", "host", "link", "load", "pip", "python", "gpu")


if __name__ == "__main__":
    main()
