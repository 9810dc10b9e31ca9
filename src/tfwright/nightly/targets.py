"""A target as a recipe and a job.

The axes are applied, and a followed commit replaces the pinned one.
"""

import functools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tfwright import __version__
from tfwright.build.verified import DESCRIBING
from tfwright.documents import composing, faults, nightly, recipe
from tfwright.documents.filesystem import SHIPPED
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import Target
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError, TfwrightError
from tfwright.host import cuda, nvidia, probes, pythons
from tfwright.host.cuda import capabilities_variable
from tfwright.host.place import NOTHING
from tfwright.nightly.builds import CommitLine, FollowedCommit
from tfwright.pipeline import host_facts
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stages import PIPELINE
from tfwright.progress import SILENCE, Listener
from tfwright.tools import files, json_text
from tfwright.tools.git.mirror import Origin
from tfwright.tools.git.remote import Remote
from tfwright.tools.git.repository import GitRepository
from tfwright.wheel.seal import sealing

LOCKS = "locks"
"""The folder of the locks of targets with axes, next to ``nightly.toml``."""
PROGRAMS = {
    "the compiler": "compiler",
    "glibc": "glibc",
    "the target Python": "python",
    "CUDA": "cuda",
    "cuDNN": "cudnn",
}
"""The host's programs that take part in a build, and what the build record calls them."""
OF_HOST = (*PROGRAMS, "tfwright")
"""The parts of a fingerprint that no recipe decides."""


def recipe_of(target: Target, followed: FollowedCommit | None = None) -> Recipe:
    """Return the recipe of a target; raise RecipeError if an axis does not fit it."""
    base = recipe.read(target.recipe)
    if not (target.python or target.capabilities or followed):
        return base.changed(name=target.name)
    # Changed as plain values and validated again, so an axis meets the recipe's own rules.
    content = base.model_dump()
    content["name"] = target.name
    if target.python:
        composing.set_python(content, target.python)
    if target.capabilities:
        _set_capabilities(content, target.capabilities)
    if followed:
        content["source"] |= {"commit": followed.commit, "branch": followed.name}
    # The dump of a release is not what its table is written as, so the value itself is passed.
    content["source"]["release"] = base.source.release
    try:
        found = Recipe.model_validate(content)
    except ValidationError as fault:
        raise RecipeError(
            f"{target.name}: {faults.first_line(fault)}",
            remedy="Correct python, capabilities or follow of this recipe in nightly.toml.",
        ) from fault
    # The dump has no folder, and a recipe may lie next to patches of its own.
    source = found.source.located(recipe.find(target.recipe).resolve().parent)
    return found.changed(source=source)


def _set_capabilities(content: dict[str, Any], capabilities: str) -> None:
    """Put other compute capabilities into the answers, the flags and the checks of a recipe."""
    answers = content["configure"]["answers"]
    name = capabilities_variable(answers)
    composing.set_flag(content, name, str(answers.get(name, "")), capabilities)
    answers[name] = capabilities
    names = capabilities.replace(".", "").split(",")
    # A plain 7.5 makes machine code, as sm_75 does.
    found = [name if "_" in name else f"sm_{name}" for name in names]
    # A recipe that insists on PTX means that of its newest capability, for GPUs to come.
    before = content["verify"]["architectures"] or ()
    ptx = [any(one.startswith("compute_") for one in names) for names in (before, found)]
    if ptx == [True, False]:
        found.append(found[-1].replace("sm_", "compute_"))
    content["verify"]["architectures"] = tuple(found)


def resolve(target: Target, host_file: HostFile) -> FollowedCommit | None:
    """Ask the server what a followed name stands for now; None for a pinned target."""
    if target.follow is None:
        return None
    server = _remote_of(recipe.read(target.recipe).source.url, host_file)
    if branch := target.follow.branch:
        return FollowedCommit(server.head(branch), branch)
    # Without a branch there are tags: nightly.toml names one of the two.
    tag, commit = server.newest_tag(str(target.follow.tags))
    return FollowedCommit(commit, tag)


def commits(url: str, before: str, now: str, host_file: HostFile) -> tuple[CommitLine, ...]:
    """Return the commits after `before` up to `now`, newest first; none without a path to there."""
    found = _remote_of(url, host_file).commits(before, now)
    return tuple(CommitLine(**one._asdict()) for one in found)


def _remote_of(url: str, host_file: HostFile) -> Remote:
    """Return who is asked for a repository: this host may name a mirror."""
    store = host_file.build_out / "git"
    store.mkdir(parents=True, exist_ok=True)
    return Remote(store, Origin.of(host_file.mirror_of(url) or url).address)


def job_of(
    target: Target,
    host_file: HostFile,
    followed: FollowedCommit | None = None,
    listener: Listener = SILENCE,
) -> RecipeJob:
    """Return the job that builds a target."""
    found = recipe_of(target, followed)
    return RecipeJob(
        recipe=found,
        host_file=host_file.of(found),
        listener=listener,
        locked=files.path_or_none(lock_of(target)),
    )


def lock_of(target: Target) -> Path:
    """Return where the lock file of a target is.

    It is next to the recipe, unless the target differs from the recipe.
    """
    # An axis or another commit needs other packages, which the recipe's lock file does not pin.
    if target.python or target.capabilities or target.follow:
        return nightly.path().parent / LOCKS / f"{target.name}.lock"
    return recipe.find(target.recipe).with_suffix(".lock")


def fingerprint(job: RecipeJob, followed: FollowedCommit | None = None) -> dict[str, str]:
    """Return what decides a target's wheel, by names that a reader knows."""
    content = job.recipe.model_dump(mode="json", exclude_defaults=True, exclude=DESCRIBING)
    if followed:
        # The commit is a part of its own below, so that a page can name it as what changed.
        content["source"].pop("commit", None)
        content["source"].pop("branch", None)
    source = job.recipe.source
    parts = {f"the recipe's [{name}]": json_text.digest(content[name])[:16] for name in content}
    parts |= {
        f"patches/{path}": files.sha256(source.file(path))[:16] for path in source.named_files
    }
    if job.locked:
        parts["the lock"] = files.sha256(job.locked)[:16]
    parts["the commit"] = source.commit
    # A stage's revision is raised when it would make something else from the same inputs.
    revisions = ".".join(str(stage.revision) for stage in PIPELINE)
    sealer = f"{__version__}, deflate {sealing.this_sealer().deflate}, stages {revisions}"
    # As text, so that the page can show them.
    return {**parts, **_program_versions(job), "tfwright": sealer}


def _program_versions(job: RecipeJob) -> Mapping[str, str]:
    """Return the versions of the host's programs that take part."""
    recipe, settings = job.recipe, job.host_file
    if recipe.host.image:
        # Only the CUDA is the host's: the rest is in the image, whose digest is in [host].
        if not (settings.cuda and cuda.needs_toolkit(recipe)):
            return {}
        place = probes.this_host().place
        (toolkit, *_) = nvidia.cuda(place, settings.cuda) or (NOTHING,)
        library = nvidia.library(place, "cudnn", cuda.CudaPlaces(recipe, settings).prefixes)
        return {"CUDA": toolkit.value, "cuDNN": library.value}
    interpreter = pythons.find(recipe.host.python, settings)
    if interpreter is None:
        return {"the target Python": "none"}
    facts = host_facts.facts(recipe, settings, probes.this_host(), interpreter)
    found = host_facts.for_record(recipe, settings, facts)
    versions = {name: getattr(found, program) for name, program in PROGRAMS.items()}
    return {name: version for name, version in versions.items() if version}


# Probing asks the compiler and the GPU driver; a night asks for it twice a build.
@functools.cache
def host_lines() -> dict[str, str]:
    """Describe this host for a build's page: nothing in it names a person or a network."""
    host, commit = probes.this_host(), ""
    # In a worktree .git is a file, so its kind is not checked.
    if (SHIPPED / ".git").exists():
        with suppress(TfwrightError):
            own = GitRepository(SHIPPED / ".git")
            commit = own.run("rev-parse", "--short=12", "HEAD").strip()
    described = {
        "system": str(host.release),
        "machine": host.machine,
        "processor": str(host.processor),
        "compiler": host.compiler.value,
        "glibc": host.glibc.value,
        "tfwright": f"{__version__} {commit}".rstrip(),
        "GPUs": ", ".join(str(gpu) for gpu in host.gpus),
    }
    return {name: text for name, text in described.items() if text}
