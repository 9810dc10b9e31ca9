"""Checks out the pinned commit with the recipe's assets, patches and substitutes."""

from collections.abc import Mapping, Sequence
from functools import partial

from tfwright.documents.recipe import FetchTable, SourceTable
from tfwright.errors import ToolError
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Inputs, Tree
from tfwright.pipeline.stage import Step, Writes
from tfwright.tools.git.work_tree import WorkTree

REVISION = 1


def run(job: Job, table: SourceTable, fetch: FetchTable, inputs: Inputs) -> Tree:
    """Make the tree; of one that is there only the files that differ are written.

    The content is made in a scratch tree without files, so that a patch that does not fit leaves
    the tree as it was. The fetch stage has applied the same patches there, to read the rules.
    """
    from tfwright.rules.patched_tree import PatchedTree

    tree = job.places.tree
    scratch = job.places.patched
    table = inputs.used_source(table, fetch)
    patched = PatchedTree(scratch, table, inputs.mirror, inputs.commit)
    content = patched.apply_all(job.listener.note)
    fetch = inputs.used_substitutes(fetch)
    if fetch.substitutes:
        change = partial(_substituted_files, job, table, fetch, inputs.starts)
        key = (
            f"{REVISION} {' '.join(inputs.starts)} {fetch.model_dump_json(include={'substitutes'})}"
        )
        content = patched.replace_files(key, change)
    WorkTree(tree).bring_to(WorkTree(scratch), content, table.exclude)
    return Tree(
        path=tree, commit=inputs.commit, epoch=inputs.epoch, release=table.release, content=content
    )


def _substituted_files(
    job: Job, table: SourceTable, fetch: FetchTable, starts: Sequence[str], content: str
) -> Mapping[str, str]:
    """Return the files whose rules ask for the substitutes, whole, by path."""
    from tfwright.pipeline import external
    from tfwright.rules import patched_tree
    from tfwright.rules.patched_tree import Readings
    from tfwright.vault import substitutes

    scratch = job.places.patched
    readings = Readings(job.places.readings)
    found = external.rules_of(readings, scratch, table, content, starts)
    texts = patched_tree.rule_texts(scratch, table, content)
    return substitutes.rewrite_rules(texts, fetch.substitutes, found, starts)


def inputs(table: SourceTable) -> Mapping[str, str]:
    """Return the digest of each patch and asset."""
    from tfwright.rules import patched_tree

    return {f"patches/{file}": digest for file, digest in patched_tree.file_digests(table).items()}


def steps(job: Job, table: SourceTable) -> Sequence[Step]:
    """Return the git commands, and the assets among the files that they write."""
    from tfwright.tools.git import patching

    tree = WorkTree(job.places.tree)
    return (
        *tree.preparing_commands(table.commit),
        *(Writes(tree.place / path) for path in table.assets),
        *(patching.apply_command(tree, table.file(patch)) for patch in table.patches),
        tree.check_out_command("(the patched tree)"),
    )


def damage(table: SourceTable, tree: Tree) -> str | None:
    """Name a file of the commit that was changed after this stage.

    What configure edits is not one. No flag in git's index hides a change.
    """
    kept = WorkTree(tree.path)
    if not kept.exists():
        return f"{tree.path.name} is gone"
    if not kept.is_plain():
        return f"{kept.path.name}/info/attributes changed"
    try:
        changed = [
            *kept.changed_files(),
            *kept.staged_files(tree.content),
            *kept.unwatched_files(table.exclude),
        ]
    except ToolError:
        return f"{kept.path.name} is damaged"
    if not changed:
        return None
    # A build with nothing to do starts sooner without it.
    from tfwright.configure import program

    own = [name for name in changed if name not in program.EDITED_FILES]
    return f"{own[0]} changed in the tree" if own else None
