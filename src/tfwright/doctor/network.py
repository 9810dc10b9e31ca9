"""Whether the servers that a build downloads from answer this host: all are asked at once."""

import importlib.util
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tfwright.doctor.inventory import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.tools.http import client
from tfwright.tools.process import runner
from tfwright.tools.python import package_clients

GITHUB = "https://github.com/"
SECONDS = 3.0
"""In which a server has to answer."""


def findings(recipe: Recipe, host_file: HostFile) -> Iterator[Finding]:
    """Ask GitHub and pip's index where a recipe needs them; one finding for all that are silent."""
    if recipe.source.url.startswith("bundled:"):
        return
    silent, wants, why = [], [], ""
    github = ["the archives that the vault does not hold"]
    if (host_file.mirror_of(recipe.source.url) or recipe.source.url).startswith(GITHUB):
        github.insert(0, "the sources")
    if recipe.bazel.version not in host_file.bazels:
        github.insert(0, f"Bazel {recipe.bazel.version}")
    packages = len(recipe.host.requirements) + len(recipe.verify.requirements)
    with ThreadPoolExecutor(1) as other:
        index = other.submit(_index_answers) if packages else None
        answer = client.ask(GITHUB, (SECONDS, SECONDS))
    # A server that refuses this one page is there.
    if answer.there is None or "407" in answer.why:
        silent.append("GitHub")
        wants += github
        why = answer.why
    if index and not index.result():
        silent.append("pip's index")
        wants.append(f"{packages} packages")
    if silent:
        yield Finding(
            f"{' and '.join(silent)} cannot be reached",
            f"a way to {', '.join(wants)}",
            "Name a proxy in https_proxy and http_proxy, with user name and password if it wants "
            "them, or mirrors in the host file; what the vault and a bundle hold needs no network.",
            why=why or "'pip config list' shows which index pip asks",
        )


def _index_answers() -> bool:
    """Say whether pip learns which versions a small package has; also where there is no pip."""
    # An installer such as uv makes environments without it.
    if importlib.util.find_spec("pip") is None:
        return True
    question = ("index", "versions", "wheel", "--retries=0", f"--timeout={SECONDS:.0f}")
    return bool(runner.answer(package_clients.pip(Path(sys.executable), *question, cwd=Path("/"))))
