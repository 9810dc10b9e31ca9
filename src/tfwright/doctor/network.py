"""Whether the servers that a build downloads from answer this host: all are asked at once."""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tfwright.doctor.inventory import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.tools.bazel.binary import find_stored
from tfwright.tools.http import client
from tfwright.tools.process import runner
from tfwright.tools.python import package_clients

GITHUB = "https://github.com/"
SECONDS = 3.0
"""In which a server has to answer."""
PATIENCE = 20.0
"""Seconds in which pip itself has to end, which starts slowly on a busy host."""
SLOW = "did not answer in time"


def findings(recipe: Recipe, host_file: HostFile, stores: Sequence[Path]) -> Iterator[Finding]:
    """Ask GitHub and pip's index where a recipe needs them; one finding for all that are alike."""
    if recipe.source.bundled:
        return
    github = ["the archives that the vault does not hold"]
    if (host_file.mirror_of(recipe.source.url) or recipe.source.url).startswith(GITHUB):
        github.insert(0, "the sources")
    version = recipe.bazel.version
    if not (host_file.bazel(version) or find_stored(version, recipe.bazel.sha256, stores)):
        github.insert(0, f"Bazel {version}")
    packages = len(recipe.host.requirements) + len(recipe.verify.requirements)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(client.ask, GITHUB, (SECONDS, SECONDS))
        faults = {"pip's index": _index_fault() if packages else ""}
        found = answer.result()
    # A server that refuses this one page is there.
    faults["GitHub"] = found.why if found.there is None or "407" in found.why else ""
    wants = {"GitHub": ", ".join(github), "pip's index": f"{packages} packages"}
    away = (
        "Name a proxy in https_proxy and http_proxy, with user name and password if it wants them, "
        "or mirrors in the host file; what the vault and a bundle hold needs no network."
    )
    late = "Nothing, if this host or its network is busy: a build waits longer and asks again."
    within = f"did not answer within {SECONDS:.0f} s"
    for slow, symptom, remedy in ((False, "cannot be reached", away), (True, within, late)):
        if silent := [name for name in wants if faults[name] and (SLOW in faults[name]) is slow]:
            yield Finding(
                f"{' and '.join(silent)} {symptom}",
                f"a way to {', '.join(wants[name] for name in silent)}",
                remedy,
                why="; ".join(dict.fromkeys(faults[name] for name in silent)),
            )


def _index_fault() -> str:
    """Say why pip does not learn which versions a small package has; empty if it does."""
    # An installer such as uv makes environments without it.
    if importlib.util.find_spec("pip") is None:
        return ""
    question = ("index", "versions", "wheel", "--retries=0", f"--timeout={SECONDS:.0f}")
    command = package_clients.pip_command(Path(sys.executable), *question, cwd=Path("/"))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        try:
            if runner.attempt(command, log, remedy="", timeout=PATIENCE) == 0:
                return ""
        except TimeoutError:
            return f"pip {SLOW}"
        slow = "timed out" in log.read_text("utf-8", "replace")
    return f"the index {SLOW}" if slow else "'pip config list' shows which index pip asks"
