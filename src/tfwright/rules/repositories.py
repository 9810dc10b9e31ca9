"""What a TensorFlow tree downloads: its repository rules, read as text. Nothing is executed.

Reading starts where Bazel starts, at WORKSPACE, and follows macros and the code of rules. What
comes from another repository can be read once that is there (`follow`); what cannot be read without
running it is reported with file and line.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

from tfwright.rules import listings, modules, patched_tree
from tfwright.rules.model import (
    BAZELS_PLACE,
    Component,
    Linked,
    Listed,
    Reference,
    Repository,
    Rules,
    Unreadable,
)
from tfwright.rules.recognisers import (
    DOWNLOADS,
    NAME,
    TELLING,
    as_list,
    callee_name,
    changes_only_files,
    declares_download,
    digest_of,
    files_of,
    line_of,
    name_of,
    names_dictionary,
    names_url,
    tells_origin,
    urls_of,
)
from tfwright.rules.starlark.evaluator import PUT_TOGETHER, Program
from tfwright.rules.starlark.language import (
    Arguments,
    ExhaustedError,
    External,
    Function,
    GivenError,
    Later,
    MissingError,
    Rule,
    Scope,
    UnknownError,
)

PLACES = ("tensorflow/workspace", "third_party/", "tensorflow/third_party/")
"""Where a tree keeps its repository rules: .bzl files whose path starts so are read whole, reached
or not."""
OWN_NAMES = ("", "org_tensorflow")
"""Names by which TensorFlow calls its own repository in labels."""
LONGEST_REASON = 300
"""Characters of a text's own words in a report: a macro may be read, and reported, often."""
BAZELS_OWN = "bazel_tools"
"""The repository that is part of Bazel: its rules download only what their arguments name."""

MOST_ROUNDS = 4
"""Times that a tree is read: a folder that is a repository may declare another one."""

Finding = Repository | Unreadable | Reference | Linked | Listed | Component
UNREADABLE = (UnknownError, ExhaustedError, RecursionError)
"""What reading a text may end in; a name that stands for itself is followed without an end."""


def read(texts: Mapping[str, str], starts: Sequence[str] = (patched_tree.WORKSPACE,)) -> Rules:
    """Read the repository rules of a tree, given its relevant files by path.

    `starts` are the files that Bazel begins with. Rules that they do not lead to are read too, and
    marked as not reached.
    """
    folders: Mapping[str, str] = {}
    packages = tuple(listings.pip_packages(texts))
    for _ in range(MOST_ROUNDS):
        reading = _Reading(Program(texts, OWN_NAMES, folders), place="")
        with reading.reporting_excess(starts[0]):
            # What these lead to is read first: a later finding that repeats it is dropped.
            for start in starts:
                reading.read_start(start)
                reading.note_loads(start)
            if reading.folders.keys() - folders.keys():
                # Files of these were taken for those of an archive.
                folders = {**folders, **reading.folders}
                continue
            reading.note_listed()
            reading.reached = False
            for path in sorted(texts):
                if path.startswith(PLACES):
                    reading.read_leftovers(path)
        break
    found = reading.rules() + Rules((), (), listed=packages)
    return found + modules.read_lock(texts.get(patched_tree.LOCK, "")) if reading.modules else found


def read_bazel(texts: Mapping[str, str]) -> Rules:
    """Read what Bazel itself declares, given the WORKSPACE texts that it brings along, by path.

    Only rules of languages count as reached. The rest is JDKs and tools for all platforms,
    gigabytes of which a TensorFlow takes little or nothing: what that is, a lock knows.
    """
    found = Rules((), ())
    for path in sorted(texts):
        # Each text is a WORKSPACE of its own: Bazel puts one before and one after the tree's.
        reading = _Reading(Program({path: texts[path]}), place=BAZELS_PLACE)
        with reading.reporting_excess(path):
            reading.read_start(path)
            reading.note_loads(path)
        found += reading.rules()
    # rules_cc from Bazel 0.29 on, rules_java from 2.0: these it downloads for every build.
    marked = (
        replace(repository, reached=repository.name.startswith("rules_"))
        for repository in found.repositories
    )
    return replace(found, repositories=tuple(marked))


def follow(reference: Reference, texts: Mapping[str, str]) -> Rules | None:
    """Read what is behind a call or a load, given the .bzl files of its repository by path.

    None if the repository does not have the file that is loaded.
    """
    if not reference.symbol and reference.path not in texts:
        return None
    reading = _Reading(Program(texts, ("", reference.archive)), place=f"@{reference.archive}//")
    with reading.reporting_excess(reference.path):
        if reference.symbol:
            reading.follow(reference.path, reference.symbol)
        else:
            reading.note_loads(reference.path)
    return reading.rules()


def join_rules(found: Rules, followed: Mapping[Reference, Rules]) -> Rules:
    """Put what nested calls and loads were found to lead to, to the rest.

    The calls that were not followed stay nested.
    """
    whole = sum(followed.values(), start=found)
    left = tuple(
        reference
        for reference in whole.references
        if not reference.symbol or reference not in followed
    )
    whole = replace(whole, references=left)
    # Two calls may lead to the same declaration; the order of the first of them is kept.
    return Rules(*(tuple(dict.fromkeys(getattr(whole, part.name))) for part in fields(whole)))


def resolved_pins(text: str) -> dict[str, str]:
    """Return the repositories that Bazel made, by name, each with its digest or commit if any.

    The text is that of ``--experimental_repository_resolved_file``. One name may be declared
    several times, with different digests: Bazel tells which it took.
    """
    program = Program({"resolved.bzl": text})
    entries = None
    # It is Starlark, ``resolved = [...]``, read here and not run.
    with suppress(*UNREADABLE):
        module = program.module("resolved.bzl")
        entries = program.evaluate(ast.Name("resolved", ast.Load()), Scope(module))
    pinned = {}
    for entry in entries if isinstance(entries, list) else ():
        # What cannot be read says nothing about a repository.
        with suppress(*UNREADABLE):
            # The original attributes are those of WORKSPACE; Bazel adds resolved ones next to them.
            known = (
                program.force(entry.get("original_attributes")) if isinstance(entry, dict) else 0
            )
            if isinstance(known, dict) and "name" in known:
                pin = known.get("sha256") or known.get("commit") or ""
                name = modules.apparent_name(str(program.force(known["name"])))
                pinned[name] = str(program.force(pin))
    return pinned


class _Reading:
    """One pass over the texts of a repository, and what it found."""

    def __init__(self, program: Program, place: str) -> None:
        self._program = program
        self._place = place
        self._found: dict[Finding, None] = {}
        self._by_dictionary: list[Unreadable] = []
        """Downloads in the code of rules that are handed dictionaries of files."""
        self._seen: set[ast.FunctionDef] = set()
        self._active: list[ast.FunctionDef] = []
        self._declared: tuple[tuple[str, str], ...] = ()
        """Name and digest of the declarations whose macros are being read: those repeat them."""
        self._rule: Rule | None = None
        """The rule whose code is being read, and the name of its first use."""
        self._name = ""
        self.reached = True
        self.modules = False
        """Whether the texts name a module of a registry."""
        self.folders: dict[str, str] = {}
        """The folders of these texts that rules make a repository of, by its name."""

    def rules(self) -> Rules:
        """Return what was found, in the order in which Bazel would come to it."""
        if self.reached:
            self.note_listed()
        if not any(isinstance(finding, Listed) for finding in self._found):
            # No dictionary says what the code of these rules downloads.
            self._found.update(dict.fromkeys(self._by_dictionary))
        # A dictionary keeps the order in which its keys came.
        parts: list[Any] = [
            tuple(finding for finding in self._found if isinstance(finding, kind))
            for kind in (Repository, Unreadable, Reference, Linked, Listed, Component)
        ]
        return Rules(*parts)

    def note_listed(self) -> None:
        """Note the dictionaries of files in everything that was read so far."""
        for module in self._program.modules():
            for entry in listings.listed_files(self._place + module.path, module.body):
                self._record(entry)

    @contextmanager
    def reporting_excess(self, path: str) -> Iterator[None]:
        """Stop at texts that ask for too much, and say so."""
        try:
            yield
        except ExhaustedError as fault:
            self._report_unreadable(path, 1, f"{fault}; what was found is not all")

    def read_start(self, path: str) -> None:
        """Read what a file does when Bazel loads it."""
        with self._reporting_unknown(path, 1):
            module = self._program.module(path)
            self._read_calls(module.body, Scope(module))

    def note_loads(self, path: str) -> None:
        """Note the files of other repositories that Bazel reads together with a file."""
        for file, line, repository, there in self._program.loads(path):
            if repository != BAZELS_OWN:
                self._record(Reference(repository, there, self._place + file, line))

    def read_leftovers(self, path: str) -> None:
        """Read the functions of a file that nothing led to."""
        with self._reporting_unknown(path, 1):
            module = self._program.module(path)
            for function in module.body:
                if isinstance(function, ast.FunctionDef) and function not in self._seen:
                    missing = GivenError("is up to callers, and there are none")
                    self._read_function(Function(function, module), Arguments((), {}), missing)

    def follow(self, path: str, symbol: str) -> None:
        """Read what a symbol of a file does when it is called."""
        with self._reporting_unknown(path, 1):
            scope = self._program.globals(self._program.module(path))
            callee = self._program.evaluate(ast.Name(symbol, ast.Load()), scope)
            self._read_callee(callee, Arguments((), {}), path, 1)

    def _read_calls(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Read all calls of a function, or of a file."""
        for _, expression, there in self._program.walk(body, scope):
            for call, inner in self._program.calls(expression, there):
                with self._reporting_unknown(
                    inner.module.path, call.lineno, callee_name(call.func)
                ):
                    self._read_call(call, inner)

    def _read_call(self, call: ast.Call, scope: Scope) -> None:
        """Read one call: what it declares, and what is behind it."""
        path, line = scope.module.path, call.lineno
        # `ctx.download_and_extract(...)` in the code of a rule.
        if isinstance(call.func, ast.Attribute) and call.func.attr in DOWNLOADS:
            download = partial(self._downloaded_file, call, scope)
            self._record_forms(path, line, call.func.attr, download)
            return
        if self._rule and callee_name(call.func) == "symlink":
            self._note_link(call, scope)
        rule, callee, arguments = self._resolve(call, scope)
        if rule == "use_extension":
            self._read_extension(arguments, path)
            return
        if rule == "include":
            label = self._known_text(next(iter(arguments.positional), ""))
            self.read_start(self._program.locate(label, path)[1])
            return
        self.modules |= rule == "bazel_dep"
        if rule in modules.OVERRIDES:
            named = {"name": arguments.named.get("module_name"), **arguments.named}
            arguments = Arguments(arguments.positional, named)
            if not declares_download(named):
                self._check_commands(rule, path, line, named)
        self._note_folder(arguments.named, path)
        made: list[Repository] = []
        # A rule's own code cannot declare repositories: what looks so there is a helper's call.
        if self._rule is None and declares_download(arguments.named):
            declaration = partial(self._declared_files, rule, path, line, arguments.named)
            made = self._record_forms(path, line, rule, declaration)
        if made and isinstance(callee, External):
            # Another repository's rule, like Bazel's own, downloads what its arguments say.
            return
        outer = self._declared
        # A macro's code repeats what its call says.
        again = ((repository.name, repository.sha256) for repository in made)
        self._declared = (*outer, *again)
        try:
            self._read_callee(callee, arguments, path, line)
        finally:
            self._declared = outer

    def _read_extension(self, arguments: Arguments, path: str) -> None:
        """Read what a module extension of these texts does.

        One of another module only Bazel runs.
        """
        label, symbol = (*map(self._known_text, arguments.positional), "", "")[:2]
        repository, there = self._program.locate(label, path)
        if repository is None:
            self.follow(there, symbol)
        # Where Bazel ran it, the lock may say what came of it.
        elif f"//{label.partition('//')[2]}%{symbol}" not in self._program.text(patched_tree.LOCK):
            raise UnknownError(f"{symbol} of {label} is an extension of another module")

    def _note_folder(self, named: Mapping[str, object], file: str) -> None:
        """Note that a rule makes a repository of a folder of these texts.

        So do ``local_repository(name, path)`` and TensorFlow's ``tf_vendored(name, relpath)``.
        """
        folder = self._known_text(named.get("relpath")) or self._known_text(named.get("path"))
        name = self._known_text(named.get("name"))
        if self.reached and name and folder:
            folder = posixpath.normpath(folder)
            # TensorFlow's rule starts at its own repository, Bazel's at the whole tree.
            for whole in (self._program.home_folder(file) + folder, folder):
                if self._program.has_folder(whole):
                    self.folders.setdefault(name, whole)
                    if not self._place:
                        self._record(Linked(name, "", whole))

    def _resolve(self, call: ast.Call, scope: Scope) -> tuple[str, object, Arguments]:
        """Return the name of what is called, what it is (None if unknown), and with what."""
        arguments = self._program.arguments(call, scope)
        callee = self._callee(call.func, scope)
        name = callee_name(call.func)
        if isinstance(callee, External) and callee.symbol == "maybe" and call.args:
            # Bazel's own macro `maybe(rule, name = …)` calls the rule unless the name is taken.
            callee = self._callee(call.args[0], scope)
            name = callee_name(call.args[0])
            positional = dict(zip(("name",), arguments.positional[1:], strict=False))
            named = positional | dict(arguments.named)
            arguments = Arguments(arguments.positional[2:], named)
        return (callee.symbol if isinstance(callee, External) else name, callee, arguments)

    def _callee(self, callee: ast.expr, scope: Scope) -> object:
        """Return what a call calls, as far as that is known; Bazel's own rules are not."""
        try:
            return self._program.evaluate(callee, scope)
        except MissingError:
            if self.reached:
                raise
        except UnknownError:
            pass
        return None

    def _read_callee(self, callee: object, arguments: Arguments, path: str, line: int) -> None:
        """Read what a macro or a rule does, or note that another repository knows."""
        match callee:
            case Function():
                self._read_function(callee, arguments, UnknownError("is not passed"))
            case Rule(implementation=Function() as code) if code.node not in self._seen:
                outer = self._rule, self._name
                self._rule = callee
                self._name = self._known_text(arguments.named.get("name"))
                try:
                    missing = UnknownError("is known only when the rule runs")
                    self._read_function(code, Arguments((), {}), missing)
                finally:
                    self._rule, self._name = outer
            case External() if self.reached and callee.repository != BAZELS_OWN:
                place = self._place + path
                self._record(Reference(callee.repository, callee.file, place, line, callee.symbol))

    def _read_function(
        self, function: Function, arguments: Arguments, missing: UnknownError
    ) -> None:
        """Read the body of a function.

        Starlark has no recursion, so one that is being read is not entered.
        """
        # Untrusted texts may recurse all the same, and this reader would never end.
        if function.node in self._active:
            return
        self._seen.add(function.node)
        self._active.append(function.node)
        try:
            self._read_calls(
                function.node.body, self._program.call_scope(function, arguments, missing)
            )
        finally:
            self._active.pop()

    def _declared_files(
        self, rule: str, path: str, line: int, named: Mapping[str, object]
    ) -> Iterator[Repository]:
        """Make a repository of each file that the arguments of a rule name."""
        known = {
            name: self._known_value(thing)
            for name, thing in named.items()
            if tells_origin(name) or name in TELLING
        }
        strip_prefix = self._known_text(named.get("strip_prefix"))
        # TensorFlow's own rule spells it `patch_file`, with one label; Bazel's takes a list.
        labels = (
            *self._known_texts(named.get("patch_file")),
            *self._known_texts(named.get("patches")),
        )
        located = (self._program.locate(label, path) for label in labels)
        patches = tuple(f"@{other}//{at}" if other else self._place + at for other, at in located)
        self._check_commands(rule, path, line, named)
        commit = known.get("commit") or known.get("tag") or known.get("digest") or ""
        for urls, sha256 in files_of(known):
            yield Repository(
                name=name_of(known["name"]),
                rule=rule,
                file=self._place + path,
                line=line,
                urls=urls,
                sha256=sha256,
                strip_prefix=strip_prefix,
                form=self._known_text(named.get("type")),
                patches=patches,
                commit=line_of(commit),
                reached=self.reached,
                by_url=names_url(known),
            )

    def _check_commands(self, rule: str, path: str, line: int, named: Mapping[str, object]) -> None:
        """Report commands that run after unpacking, unless they work on the files alone."""
        try:
            commands = filter(None, as_list(self._counted_value(named.get("patch_cmds"))))
            harmless = all(map(changes_only_files, commands))
        except UnknownError:
            harmless = False
        if not harmless:
            why = f"{rule}: its patch_cmds may download, or change what is read here"
            self._report_unreadable(path, line, why, name_of(self._counted_value(named["name"])))

    def _downloaded_file(self, call: ast.Call, scope: Scope) -> Iterator[Repository]:
        """Make a repository of a download in a rule's own code."""
        named: dict[str | None, ast.expr] = dict(
            zip(("url", "output", "sha256"), call.args, strict=False)
        )
        named.update({keyword.arg: keyword.value for keyword in call.keywords})
        if "url" not in named:
            raise UnknownError("does not say what it downloads")
        sha256 = (
            digest_of(self._program.evaluate(named["sha256"], scope)) if "sha256" in named else ""
        )
        urls = urls_of(self._counted_value(self._program.evaluate(named["url"], scope)))
        if not urls:
            # In a branch that does not come here the address may be None.
            raise UnknownError("does not say what it downloads")
        yield Repository(
            self._name,
            callee_name(call.func),
            self._place + scope.module.path,
            call.lineno,
            urls,
            sha256,
            reached=self.reached,
        )

    def _note_link(self, call: ast.Call, scope: Scope) -> None:
        """Note that a rule's own code makes its whole repository a link to a folder."""
        match call.args:
            case [source, ast.Constant(value="" | ".")]:
                label = self._label(source, scope)
            case _:
                return
        # In a file of another repository, a label without a name means that repository.
        if label.startswith("//"):
            label = self._place.removesuffix("//") + label
        if found := re.fullmatch(rf"@({NAME})//(.*)", label):
            self._record(Linked(self._name, found[1], found[3].strip("/")))

    def _label(self, node: ast.expr | None, scope: Scope) -> str:
        """Return the label of what a rule's code names: ``ctx.path(Label("…")).dirname``.

        Empty if it names nothing by a label. The colon becomes a slash.
        """
        match node:
            case ast.Name(id=name) if isinstance(later := scope.names.get(name), Later):
                return self._label(later.node, later.scope)
            case ast.Attribute(attr="dirname", value=inner):
                return self._label(inner, scope).rpartition("/")[0]
            case ast.Call(func=ast.Attribute(attr="path"), args=[label]):
                text = self._known_text(Later(label, scope))
                return text.replace(":", "/") if "//" in text else ""
        return ""

    def _record_forms(
        self, path: str, line: int, what: str, work: Callable[[], Iterable[Repository]]
    ) -> list[Repository]:
        """Record what `work` makes in each form that it can take.

        Those that cannot be read are reported.
        """
        made: list[Repository] = []

        def attempt() -> None:
            with self._reporting_unknown(path, line, what):
                made.extend(work())

        with self._reporting_unknown(path, line, what):
            self._program.results_by_form(attempt)
        for repository in made:
            self._record(repository)
        return made

    def _known_value(self, thing: object) -> object:
        """Return a value that must be known, that of a dictionary too."""
        value = self._program.force(thing)
        if isinstance(value, dict):
            return {key: self._counted_value(item) for key, item in value.items()}
        return self._counted_value(value)

    def _counted_value(self, thing: object) -> object:
        """Work a value out, and count what it costs to look at all of it and to keep it."""
        value = self._program.force(thing)
        for item in as_list(value):
            length = len(item) if isinstance(item, str) else 0
            self._program.spend(1 + length // PUT_TOGETHER)
        return value

    def _known_text(self, thing: object) -> str:
        """Return a text that is good to know; empty if it cannot be known."""
        return next(iter(self._known_texts(thing)), "")

    def _known_texts(self, thing: object) -> tuple[str, ...]:
        """Return one text, or the texts of a list, that are good to know."""
        try:
            value = self._counted_value(thing)
        except UnknownError:
            return ()
        return tuple(
            text for text in as_list(value) if isinstance(text, str) and text.isprintable()
        )

    @contextmanager
    def _reporting_unknown(self, path: str, line: int, what: str = "") -> Iterator[None]:
        """Report what cannot be read, unless callers would tell, who are read themselves."""
        try:
            yield
        except GivenError:
            return
        except UnknownError as fault:
            # The declarations of such a rule name what its code downloads, and they are read.
            if self._rule and any(map(tells_origin, self._rule.attributes)):
                return
            why = str(fault)[:LONGEST_REASON]
            place = self._place + path
            why = f"{what[:80]}: {why}" if what else why
            # The code of a rule runs only where something wants its repository.
            found = Unreadable(place, line, why, self.reached, self._name if self._rule else "")
            if self._rule and any(map(names_dictionary, self._rule.attributes)):
                self._by_dictionary.append(found)
            else:
                self._record(found)
        except RecursionError:
            # An expression of thousands of terms: Python's own stack is the limit here.
            self._report_unreadable(path, line, "is nested too deeply")

    def _report_unreadable(self, path: str, line: int, why: str, name: str = "") -> None:
        self._record(Unreadable(self._place + path, line, why, self.reached, name))

    def _record(self, finding: Finding) -> None:
        """Keep a finding, unless it repeats one that is reached, or the declaration being read."""
        if isinstance(finding, Repository):
            repeats = (finding.name, finding.sha256) in self._declared
            if repeats or replace(finding, reached=True) in self._found:
                return
        self._found[finding] = None
