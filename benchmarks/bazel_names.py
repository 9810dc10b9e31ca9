"""Which Bazel has which option, symbol, attribute and method: the table that diagnosis reads.

    python benchmarks/bazel_names.py BAZEL... > src/tfwright/diagnosis/bazel_names.toml

Every BAZEL is asked itself: `help flags-as-proto` names its options, `info build-language` its
rules and attributes, and small .bzl files print what is defined and which members it has. A name
that all these versions share tells them apart from older and newer ones only; it is kept, too.
Debian's Bazels 3.5.1 and 4.2.3 are built without Android's rules and options: for those names they
count as what 2.1.0 has.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

GLOBALS = """\
    AnalysisFailureInfo AnalysisTestResultInfo CcInfo CcToolchainConfigInfo CompilationModeInfo
    CcToolchainInfo DebugPackageInfo DefaultInfo ExecutionInfo FeatureFlagInfo FileType Globals
    InstrumentedFilesInfo JavaInfo JavaPluginInfo JavaRuntimeInfo JavaToolchainInfo Label
    OutputGroupInfo PackageSpecificationInfo ProtoInfo PyInfo PyRuntimeInfo RunEnvironmentInfo
    XcodeVersionConfig actions_struct analysis_test_transition android_common apple_common aspect
    attr cc_common cc_proto_aspect config config_common configuration_field coverage_common depset
    exec_group exec_transition generated_file_test hasattr getattr java_common java_proto_common
    js_common json macro materializer_rule module_extension native package_name PACKAGE_NAME
    partial platform_common proto proto_common proto_common_do_not_use provider py_transitions
    repository_ctx REPOSITORY_NAME repository_name repository_rule rule select set struct subrule
    tag_class testing transition visibility use_extension
"""
"""Global names of .bzl files that builds of TensorFlow and its rule sets have used."""
SYMBOLS = tuple(GLOBALS.split())
VALUES = {
    "string": '""',
    "list": "[]",
    "dict": "{}",
    "depset": "depset([])",
    "Label": 'Label("//:x")',
}
"""Values whose methods changed."""
RULE = """
def _in_a_rule(ctx):
    print("TABLE ctx " + ",".join(dir(ctx)))
    print("TABLE actions " + ",".join(dir(ctx.actions)))
in_a_rule = rule(implementation = _in_a_rule)
"""
REPOSITORY = """
def _in_a_repository(repository_ctx):
    print("TABLE repository_ctx " + ",".join(dir(repository_ctx)))
    repository_ctx.file("BUILD", "")
in_a_repository = repository_rule(implementation = _in_a_repository)
"""
LIMIT = 400
"""Seconds that one command of Bazel may take on a busy machine."""
WIDEST = 100
"""Characters of a line of the table."""
FIRST, SECOND = 1, 2
"""Numbers of the fields that are read: a name first, then its attributes."""
VARINT, FIXED64, BYTES = 0, 1, 2
"""How a field of a protocol buffer is written."""
MORE = 0x80
"""The bit of a byte that says that the number goes on."""
_TABLE = re.compile(r"TABLE (?P<name>\w+) (?P<members>[\w,]*)")

Names = Mapping[str, set[str]]
"""What one Bazel has: the kind of a name, and the names."""


def main(bazels: Sequence[str]) -> None:
    """Ask every Bazel, the oldest first, and print the table."""
    known: dict[str, Names] = {}
    for bazel in bazels:
        with tempfile.TemporaryDirectory(prefix="tfwright-names-") as place:
            version, names = asked(bazel, Path(place))
        print(version, {kind: len(values) for kind, values in names.items()}, file=sys.stderr)
        known[version] = names
    print("\n".join(table(known)))


def asked(bazel: str, place: Path) -> tuple[str, Names]:
    """Return the version of a Bazel, and every name it has."""
    tree = place / "tree"
    write_probes(tree)
    command = [str(Path(bazel).resolve()), f"--output_user_root={place}/out", "--max_idle_secs=60"]
    names: dict[str, set[str]] = defaultdict(set)
    names["option"] = set(options(said([*command, "help", "flags-as-proto"], tree)))
    for rule, attributes in rules(said([*command, "info", "build-language"], tree)):
        names["rule"].add(rule)
        names["attribute"] |= {f"{rule}.{attribute}" for attribute in attributes}
    build = [*command, "build", "--nobuild", "--keep_going", "//...", "@probed//..."]
    for found in _TABLE.finditer(said(build, tree).decode("utf-8", "replace")):
        if found["name"] in SYMBOLS:
            names["symbol"].add(found["name"])
        members = filter(None, found["members"].split(","))
        names["member"] |= {f"{found['name']}.{member}" for member in members}
    version = re.search(rb"release ([\d.]+)", said([*command, "info", "release"], tree))
    said([*command, "shutdown"], tree)
    # Bazel writes its installation without the right to write, and cleaning up needs it.
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    return version[1].decode() if version else Path(bazel).parent.name, names


def write_probes(tree: Path) -> None:
    """Write a package for every symbol, so that one that is not defined stops only its own."""
    probes = {name: f'print("TABLE {name} " + ",".join(dir({name})))' for name in SYMBOLS} | {
        f"of_{name}": f'print("TABLE {name} " + ",".join(dir({of})))' for name, of in VALUES.items()
    }
    for name, line in probes.items():
        folder = tree / "probes" / name
        folder.mkdir(parents=True)
        (folder / "probe.bzl").write_text(f"{line}\nloaded = True\n", "utf-8")
        (folder / "BUILD").write_text('load(":probe.bzl", "loaded")\n', "utf-8")
    (tree / "rule.bzl").write_text(RULE, "utf-8")
    (tree / "BUILD").write_text('load(":rule.bzl", "in_a_rule")\nin_a_rule(name = "x")\n', "utf-8")
    (tree / "repository.bzl").write_text(REPOSITORY, "utf-8")
    (tree / "WORKSPACE").write_text(
        'load("//:repository.bzl", "in_a_repository")\nin_a_repository(name = "probed")\n', "utf-8"
    )


def said(command: Sequence[str], tree: Path) -> bytes:
    """Return all that a command writes; it may fail, as probes of missing names do."""
    done = subprocess.run(
        command,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT,
        check=False,
    )
    return done.stdout


def options(text: bytes) -> Iterator[str]:
    """Yield the options in a FlagCollection, which is written in base64 between other lines."""
    longest = max(text.split(b"\n"), key=len).strip()
    for number, flag in fields(base64.b64decode(longest + b"=" * (-len(longest) % 4))):
        if number == FIRST:
            yield next(value for field, value in fields(flag) if field == FIRST).decode()


def rules(text: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield every rule of a BuildLanguage, with its attributes.

    Java's warnings may stand before the message; what does not parse as a rule is left out.
    """
    start = text.find(b"\n", text.rfind(b"WARNING: ")) + 1 if b"WARNING: " in text else 0
    # The message itself begins with a line feed: that is how its first field is written.
    for number, rule in fields(text[start:]):
        if number != FIRST:
            continue
        parts = list(fields(rule))
        name = next((value for field, value in parts if field == FIRST), b"").decode(
            "ascii", "replace"
        )
        attributes = []
        for field, value in parts:
            if field == SECOND:
                named = next((each for part, each in fields(value) if part == FIRST), b"")
                attributes.append(named.decode("ascii", "replace"))
        if re.fullmatch(r"\w+", name):
            yield (name, [each for each in attributes if re.fullmatch(r"\w+", each)])


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protocol buffer: number, and content."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == VARINT:
            start = at
            _, at = varint(message, at)
            yield key >> 3, message[start:at]
        elif kind == BYTES:
            size, at = varint(message, at)
            yield key >> 3, message[at : at + size]
            at += size
        else:
            at += 8 if kind == FIXED64 else 4


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where the next field begins."""
    value = shift = 0
    while at < len(message):
        value |= (message[at] & (MORE - 1)) << shift
        at += 1
        shift += 7
        if message[at - 1] < MORE:
            break
    return value, at


def table(known: Mapping[str, Names]) -> Iterator[str]:
    """Yield the table as TOML: for every kind the names, by the first and the last Bazel."""
    versions = list(known)
    yield "# Written by benchmarks/bazel_names.py from what these Bazels say of themselves."
    yield "# A key is the first and the last of them that has the names below it."
    yield 'versions = """'
    yield from wrapped(versions)
    yield '"""'
    for kind in ("option", "rule", "attribute", "symbol", "member"):
        spans: dict[str, list[str]] = defaultdict(list)
        for name in sorted({name for names in known.values() for name in names[kind]}):
            having = [name in known[version][kind] for version in versions]
            for first, last in runs(having) if kind == "option" else [ends(having)]:
                spans[f"{versions[first]} {versions[last]}"].append(name)
        yield f"\n[{kind}]"
        for span in sorted(spans, key=lambda span: [versions.index(end) for end in span.split()]):
            yield f'"{span}" = """'
            yield from wrapped(spans[span])
            yield '"""'


def ends(having: Sequence[bool]) -> tuple[int, int]:
    """Return the first and the last place of a name.

    Rules come and go with the flags of a version: what lies between counts as there.
    """
    return having.index(True), len(having) - 1 - having[::-1].index(True)


def runs(having: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of every run: an option may go, and come back."""
    for there, group in groupby(enumerate(having), key=itemgetter(1)):
        places = [place for place, _ in group]
        if there:
            yield places[0], places[-1]


def wrapped(names: Sequence[str]) -> Iterator[str]:
    """Yield names in lines of at most 100 characters."""
    line = ""
    for name in names:
        if line and len(line) + 1 + len(name) > WIDEST:
            yield line
            line = ""
        line = f"{line} {name}".strip()
    if line:
        yield line


if __name__ == "__main__":
    main(sys.argv[1:])
