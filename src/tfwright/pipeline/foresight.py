"""What the next build tells Bazel in another way than the last one did, before it runs."""

import re

from tfwright.configure import bazelrc, expected
from tfwright.configure.bazelrc import BazelrcDifference
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.pipeline import questions
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Configured, HostFacts, Tree
from tfwright.tools import files
from tfwright.tools.python import venv

_ENVIRONMENT = re.compile(r"--action_env=(\w+)=(.*)", re.DOTALL)
_PYTHON = "PYTHON_BIN_PATH"
_LIBRARY = "PYTHON_LIB_PATH"


def compiled_again(
    job: Job, recipe: Recipe, host: HostFacts, tree: Tree, configured: Configured
) -> str:
    """Say which of Bazel's settings make it compile again; empty if none is known to.

    `tree` and `configured` are those of the last build.
    """
    before = _text(configured)
    after = _rendered(job, recipe, host, tree)
    # A guess would be worse than silence: the compile stage shows what runs.
    if not before or not after:
        return ""
    return _sentence(bazelrc.compare(after, before))


def _text(configured: Configured) -> str:
    """Return what the last ./configure left; nothing if somebody has changed it since."""
    path = configured.bazelrc.path
    try:
        if files.sha256(path) != configured.bazelrc.sha256:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _rendered(job: Job, recipe: Recipe, host: HostFacts, tree: Tree) -> str:
    """Return the file of the next build; nothing if the recipe cannot be configured."""
    python = _python(job, recipe, host)
    scripts = questions.scripts_of_last(recipe, tree)
    try:
        interview = questions.on_host(job, recipe, host, python, scripts)
        expected.insist_on_answers(interview)
        return expected.render(interview, recipe.configure) or ""
    except RecipeError:
        # The configure stage says it better.
        return ""


def _python(job: Job, recipe: Recipe, host: HostFacts) -> dict[str, str]:
    """Return where the target Python and its packages will lie."""
    home = venv.place(host.interpreter, host.python, recipe.host.requirements, job.places.stores)
    version = ".".join(host.python.split(".")[:2])
    packages = home / f"lib/python{version}/site-packages"
    return {_PYTHON: str(home / "bin/python"), _LIBRARY: str(packages)}


def _sentence(difference: BazelrcDifference) -> str:
    """Name the settings that reach every action, or else the other ones of the build."""
    changed = {*difference.only_rendered, *difference.only_written}
    flags = sorted({setting.flag for setting in changed if setting.command == "build"})
    # --action_env is a part of the key of every action; other flags reach some of them.
    found = [_ENVIRONMENT.fullmatch(flag) for flag in flags]
    names = list(dict.fromkeys(match[1] for match in found if match))
    if names:
        cause = " and ".join(names[:3]) + (", ..." if names[3:] else "")
        verb = "changes" if len(names) == 1 else "change"
        why = " with the packages or the version of [host] Python"
        return f"every action runs again, since {cause} {verb}{why if _PYTHON in names else ''}"
    if flags:
        return f"flags of Bazel change: {' '.join(flags[:5])}"
    return ""
