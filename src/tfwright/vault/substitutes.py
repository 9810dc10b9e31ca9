"""Substitutes: other bytes for an archive whose servers are gone, and the rule rewritten."""

import ast
import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate

from tfwright.documents.recipe import SubstituteTable
from tfwright.errors import RecipeError
from tfwright.rules import repositories
from tfwright.rules.model import Reference, Repository, Rules
from tfwright.rules.modules import OVERRIDES
from tfwright.rules.patched_tree import WORKSPACE
from tfwright.rules.recognisers import callee_name
from tfwright.tools.git import archive as archives
from tfwright.tools.git.archive import Form, Pack
from tfwright.tools.git.patching import HunkPlace
from tfwright.vault.origins import WantedArchive, substitute_head

BY_PATCH = "Replace this archive by a patch of the tree instead."
"""The remedy where a rule cannot be rewritten."""


def wanted_archive(name: str, table: SubstituteTable, replaced: Repository) -> WantedArchive:
    """Return the file that replaces an archive, to be obtained like any other."""
    if table.git is None or table.commit is None:
        return WantedArchive(name, table.sha256, table.urls, substitute=True)
    folder = table.prefix if table.prefix is not None else replaced.strip_prefix
    # Bazel chooses how to unpack by the first url's ending, or by what the rule says instead.
    ending = f".{replaced.form}" if replaced.form else (*replaced.urls, "")[0]
    if other := re.search(r"\.(tar\.zst|tzst|deb|ar|7z)$", ending):
        raise RecipeError(
            f"fetch.substitutes.{name}: Bazel unpacks it as {other[0]}, and git packs no such form",
            remedy=BY_PATCH,
            where=f"{replaced.file}:{replaced.line}",
        )
    form: Form = archives.form_of(ending) or "tar.gz"
    prefix = f"{folder}/" if folder else ""
    return WantedArchive(
        name,
        table.sha256,
        (),
        pack=Pack(table.git, table.commit, prefix, table.exclude, form, stored=form == "zip"),
        substitute=True,
    )


def check_replaced(tables: Mapping[str, SubstituteTable], found: Sequence[Repository]) -> None:
    """Raise RecipeError unless each substitute names the archive that the tree pins.

    All faults at once.

    A recipe that was copied for another release would replace other versions without a word.
    """
    pinned = {name: replaced_archive(name, found) for name in tables}
    wrong = [name for name in tables if not _fits(tables[name], pinned[name])]
    if not wrong:
        return
    lines = []
    for name in wrong:
        rule = pinned[name]
        # The last url is the author's own.
        url = f" {rule.urls[-1]}" if rule.urls else ""
        # Ready to be copied into the recipe.
        lines.append(f"{substitute_head(name)}  # {rule.file}:{rule.line}{url}")
        lines.append(f'replaces = "{_replaces_value(rule)}"')
    raise RecipeError(
        f"fetch.substitutes: 'replaces' is not the archive that the tree pins: {', '.join(wrong)}",
        remedy=(
            "Check that each substitute is the version which the tree pins now, then write its "
            "'replaces' as above."
        ),
        lines=lines,
    )


def fitting_tables(
    tables: Mapping[str, SubstituteTable], found: Sequence[Repository]
) -> dict[str, SubstituteTable]:
    """Return the substitutes that name the archive which the tree pins."""
    kept = {}
    for name, table in tables.items():
        # A substitute of an archive that the tree does not pin fits as little.
        with suppress(RecipeError):
            if _fits(table, replaced_archive(name, found)):
                kept[name] = table
    return kept


def _fits(table: SubstituteTable, replaced: Repository) -> bool:
    """Say whether a substitute states `replaced`, the archive that the tree names."""
    stated = table.sha256 if table.pins else table.replaces
    return stated == replaced.sha256


def _replaces_value(repository: Repository) -> str:
    """Return what a substitute states as `replaces`."""
    return repository.sha256 or repository.urls[-1]


def with_checksums(found: Rules, tables: Mapping[str, SubstituteTable]) -> Rules:
    """Return rules that have the checksums which a recipe gives to archives without one.

    Such an archive is then one that the tree pins, for the lock file as for the vault.
    """
    made = []
    for rule in found.repositories:
        table = tables.get(rule.name)
        bare = _is_replaceable(rule) and not rule.lockable
        if table and bare and table.replaces in rule.urls:
            rule = replace(rule, sha256=table.sha256, urls=table.urls or rule.urls)  # noqa: PLW2901
        made.append(rule)
    return replace(found, repositories=tuple(made))


def _is_replaceable(repository: Repository) -> bool:
    """Say whether a rule has, or may have, the checksum of a file."""
    return repository.lockable or (repository.by_url and bool(repository.urls))


def table_lines(repository: Repository) -> list[str]:
    """Return the lines that pin an archive without a checksum in a recipe; none if none can.

    The checksum is left to `invoke pin`.
    """
    named = repository.name and repository.of_tree
    if not named or not _is_replaceable(repository):
        return []
    # JSON's texts are TOML's as well, whatever the tree wrote into a url.
    url = json.dumps(_replaces_value(repository))
    reason = json.dumps(f"{repository.file} names no checksum")
    return [
        substitute_head(repository.name),
        f"reason = {reason}",
        f"replaces = {url}",
        f"urls = [{url}]",
    ]


def check_loads(
    tables: Mapping[str, SubstituteTable], found: Rules, unread: Iterable[Reference]
) -> None:
    """Raise RecipeError for a substitute without a file that Bazel loads from it.

    `unread` are the loads whose file was not found. What such a file declares would be missed.
    """
    made = {
        repository.name
        for repository in found.repositories
        # A patch of the tree may add the file.
        if not repository.patches
    }
    lacking = [load for load in unread if load.archive in tables and load.archive in made]
    if not lacking:
        return
    lines = [f"{load.file}:{load.line} loads @{load.archive}//{load.path}" for load in lacking]
    names = ", ".join(dict.fromkeys(load.archive for load in lacking))
    raise RecipeError(
        f"fetch.substitutes: the substitute has no file that Bazel loads from it: {names}",
        remedy="Correct strip_prefix (for a packed commit: prefix), or name an archive that has "
        "the file.",
        lines=lines,
    )


def check_patches(unfit: Iterable[tuple[str, str, HunkPlace]]) -> Iterator[str]:
    """Raise RecipeError for substitutes that a patch of the tree cannot be applied to.

    Yields a sentence for what Bazel 7 and GNU patch apply, and git does not. `unfit` are the
    hunks, as `reach` has them.
    """
    faults = dict[str, list[str]]()
    for name, patch, place in unfit:
        misfit = f"{patch}: {place.describe('the substitute')}"
        if place.fit.verdict == "fuzz":
            yield f"{name}: not every program applies a patch with other lines around it: {misfit}"
        else:
            faults.setdefault(name, []).append(misfit)
    if faults:
        raise RecipeError(
            "fetch.substitutes: a patch of the tree does not fit the substitute: "
            f"{', '.join(faults)}",
            remedy="Name an archive that it fits. Or add a patch to source.patches that corrects "
            "it, or takes it out of the rule where the substitute does without.",
            lines=[f"{name}: {line}" for name, lines in faults.items() for line in lines],
        )


def replaced_archive(name: str, found: Sequence[Repository]) -> Repository:
    """Return the archive of the tree that a substitute replaces.

    Raises RecipeError if the tree does not name it, or names more than one file by that name.
    """
    return _declarations(name, found)[0]


def _declarations(name: str, found: Sequence[Repository]) -> list[Repository]:
    """Return every declaration in the tree of the archive that a substitute replaces."""
    named = [repository for repository in found if repository.name == name]
    own = [one for one in named if one.of_tree and _is_replaceable(one)]
    # XLA's WORKSPACE, to which TensorFlow's does not lead, may name another version.
    counts = [repository for repository in own if repository.reached] or own
    # One rule may stand in two branches of an `if`, with the same archive in both.
    if len({repository.sha256 for repository in counts}) != 1:
        why = "names several files so"
        remedy = BY_PATCH
        if not own:
            why = "declares no archive of that name"
            remedy = (
                "Write the name as the rule in the tree spells it. What Bazel or the macro of an "
                "archive declares, or a rule clones, needs a patch that declares it in the tree as "
                "an archive."
            )
        where = f"{named[0].file}:{named[0].line}" if named else ""
        raise RecipeError(f"fetch.substitutes.{name}: the tree {why}", remedy=remedy, where=where)
    return [repository for repository in own if repository.sha256 == counts[0].sha256]


def rewrite_rules(
    texts: Mapping[str, str],
    tables: Mapping[str, SubstituteTable],
    rules: Rules | None = None,
    starts: Sequence[str] = (WORKSPACE,),
) -> dict[str, str]:
    """Return the files of a tree whose rules ask for something else now, whole, by path.

    `rules` are those of the texts, from `starts`, where they were read already. Each rule's sha256
    is replaced, and its urls and strip_prefix where the substitute has its own; then the result is
    read again. Raises RecipeError for a rule that does not come out as it should.
    """
    changed: dict[str, str] = {}
    found = with_checksums(rules or repositories.read(texts, starts), tables).repositories
    places = {(one.file, one.line, name) for name in tables for one in _declarations(name, found)}
    others = {
        (one.name, one.sha256) for one in found if (one.file, one.line, one.name) not in places
    }
    # From below, since an edit moves what is under it.
    for path, line, name in sorted(places, reverse=True):
        changed[path] = _edit_rule(changed.get(path, texts[path]), path, line, name, tables[name])
    # Read again by the same reader: an edit that Bazel would misread must not get into a build.
    for rule in repositories.read({**texts, **changed}, starts).repositories:
        table = tables.get(rule.name)
        if table and (rule.name, rule.sha256) not in others:
            strips = table.strip_prefix in {None, rule.strip_prefix}
            if rule.sha256 != table.sha256 or not strips or not {*table.urls} <= {*rule.urls}:
                raise RecipeError(
                    f"fetch.substitutes.{rule.name}: the rule cannot be made to ask for it",
                    remedy=BY_PATCH,
                    where=f"{rule.file}:{rule.line}",
                )
    return changed


def _rule_on_line(tree: ast.Module, line: int, table: SubstituteTable) -> ast.Call | None:
    """Return the call on a line that names a sha256, or that a pin can add one to."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.lineno != line:
            continue
        keywords = {keyword.arg for keyword in node.keywords}
        # What `**` brings along may be a sha256 as well.
        bare = table.pins and None not in keywords
        if keywords & {"sha256", "integrity"} or (bare and keywords & {"url", "urls"}):
            return node
    return None


def _edit_rule(text: str, path: str, line: int, name: str, table: SubstituteTable) -> str:
    """Return a file in which one rule asks for the substitute."""
    # Edited as text and not written from the tree: comments and lines of the file must stay.
    tree = ast.parse(text)
    call = _rule_on_line(tree, line, table)
    if call is None:
        raise RecipeError(
            f"fetch.substitutes.{name}: the sha256 of the rule is not written where the rule is",
            remedy=BY_PATCH,
            where=f"{path}:{line}",
        )
    keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
    which = next((key for key in ("urls", "url") if key in keywords), "")
    # Starlark reads JSON's texts as its own.
    pin, digest = "sha256", table.sha256
    # The override of a module takes no other.
    if pin not in keywords and ("integrity" in keywords or callee_name(call.func) in OVERRIDES):
        pin = "integrity"
        digest = f"sha256-{base64.b64encode(bytes.fromhex(digest)).decode()}"
    wanted = {pin: json.dumps(digest)}
    # Addresses that are written elsewhere stay, which `_verify` refuses.
    if table.urls and which:
        urls = list(table.urls)
        parts = (part.value for part in ast.walk(keywords[which]) if isinstance(part, ast.Constant))
        before = str(next(parts, ""))
        # TensorFlow's own rules insist on their mirror as the first.
        mirror = next(filter(before.startswith, _mirror_prefixes(tree)), None)
        if mirror and not urls[0].startswith(mirror):
            urls.insert(0, mirror + urls[0].partition("://")[2])
        wanted[which] = json.dumps(urls if which == "urls" else table.urls[0])
        match keywords[which]:
            # tf_mirror_urls("https://…") adds the mirror by itself.
            case ast.Call(func=ast.Name(id=function), args=[ast.Constant()]) if len(urls) == 1:
                wanted[which] = f"{function}({json.dumps(urls[0])})"
    if table.strip_prefix is not None:
        wanted["strip_prefix"] = json.dumps(table.strip_prefix)
    # ast counts columns in bytes of UTF-8, not in characters.
    content = text.encode()
    lines = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
    edits = []
    for key, value in wanted.items():
        node = keywords.get(key) or keywords.get(pin) or keywords[which]
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        edits.append((start, end, value) if key in keywords else (end, end, f", {key} = {value}"))
    # From behind, since an edit moves what follows it.
    for start, end, value in sorted(edits, reverse=True):
        content = content[:start] + value.encode() + content[end:]
    return content.decode()


def _mirror_prefixes(tree: ast.Module) -> list[str]:
    """Return the prefixes of mirrors in a file's lists of urls.

    That is ``https://m/`` for ``https://m/host/path``.
    """
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.List):
            continue
        urls = list(filter(None, map(_url_text, node.elts)))
        # A mirror comes first, and its path repeats the url that it mirrors, without a scheme.
        for other in urls[1:]:
            mirrored = other.partition("://")[2]
            if mirrored and urls[0].endswith(mirrored):
                found.append(urls[0].removesuffix(mirrored))
    return list(dict.fromkeys(found))


def _url_text(node: ast.expr) -> str:
    """Return the text of a url, also of one that ``format`` completes; empty for other things."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return text
    return ""


def unpinned_error(
    recipe: str, found: Sequence[Repository], *, locked: bool = False
) -> RecipeError:
    """Return the error that names every download of a build without a checksum.

    `recipe` is named as the command line takes it; `locked` says whether it has a lock file.
    """
    names = list(dict.fromkeys(entry.name for entry in found))
    tables = {entry.name for entry in found if table_lines(entry)}
    return RecipeError(
        f"{recipe} needs downloads without a checksum: {', '.join(names)}",
        remedy=pinning_remedy(recipe, names, tables, locked=locked),
        lines=[line for entry in found for line in declaration_lines(entry)],
    )


def declaration_lines(entry: Repository) -> Iterator[str]:
    """Yield where a download is declared, and the table that pins it where one can."""
    yield f"{entry.file}:{entry.line}: {entry.name}: {_why_unpinned(entry)}"
    yield from table_lines(entry)


def pinning_remedy(
    recipe: str, names: Sequence[str], tables: Collection[str], *, locked: bool
) -> str:
    """Say how to pin downloads: those of `tables` in the recipe, the others by a patch."""
    steps = []
    if tables:
        steps.append(
            "Add the tables above to the recipe, then run "
            f"'invoke pin --recipe {recipe}', which writes each sha256."
        )
    if others := [name for name in names if name not in tables]:
        steps.append(
            f"Pin {', '.join(others)} by a patch of the tree: a sha256, or the whole commit id."
        )
    if locked:
        # The one that is there lists what was not pinned then.
        steps.append(f"Write the lock file again afterwards: 'invoke lock --recipe {recipe}'.")
    return " ".join(steps)


def _why_unpinned(entry: Repository) -> str:
    if entry.by_url:
        return f"{entry.rule} names no sha256"
    if entry.commit:
        return f"{entry.rule} takes {entry.commit}, which may move, and no whole commit id"
    # A branch, or what a rule downloads in code of its own.
    return f"{entry.rule} names neither a sha256 nor a whole commit id"
