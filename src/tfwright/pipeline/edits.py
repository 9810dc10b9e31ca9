"""What a person edited in a recipe's tree."""

from contextlib import suppress
from itertools import count

from tfwright.configure import program
from tfwright.errors import TfwrightError
from tfwright.pipeline import stamps
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, Tree
from tfwright.printable import shell_word
from tfwright.tools import files
from tfwright.tools.git.work_tree import WorkTree


def configure_output(job: Job) -> frozenset[str]:
    """Return the files of a recipe's tree that hold what ./configure wrote, which is no edit."""
    made = stamps.last_result(job, "configure", Configured)
    # A directory that was moved may have left a link.
    tree = job.places.tree.resolve()
    written = ((each.path.resolve(), each.sha256) for each in (made.written if made else ()))
    return program.EDITED_FILES.union(
        str(path.relative_to(tree))
        for path, sha256 in written
        if path.is_relative_to(tree) and path.is_file() and files.sha256(path) == sha256
    )


def save(job: Job) -> None:
    """Put the edits that are in no patch into a file, before the tree is made again or removed."""
    tree = WorkTree(job.places.tree)
    if not tree.exists():
        return
    # Of a repository that is damaged, git cannot say what was edited.
    with suppress(TfwrightError):
        # A checkout that was interrupted lacks files.
        if not stamps.last_result(job, "source", Tree) and tree.fields(
            "ls-files", "--deleted", "-z"
        ):
            return
        if diff := tree.difference(context=3, but=configure_output(job)):
            names = (job.places.own / f"edits-{number}.patch" for number in count(1))
            place = next(name for name in names if not name.exists())
            files.write(place, diff.encode("utf-8", "surrogateescape"))
            argument = shell_word(str(place))
            job.listener.note(
                f"The tree held edits that are in no patch: they are in {place} now. "
                f"'invoke patch --recipe {job.argument} --add {argument}' makes a patch of them"
            )
