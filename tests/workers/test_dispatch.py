"""Where several recipes are built, as the host file and the user say."""

from pathlib import Path

import pytest

from tfwright.documents.host_file import HostFile, SlurmTable, WorkerTable
from tfwright.workers import dispatch as builds
from tfwright.workers.dispatch import Place

WORKER = WorkerTable(name="one", address="one", directory="/srv/tfwright")
SLURM = SlurmTable(directory=Path("/srv/tfwright"))
DEFAULTS = {
    "until": "publish",
    "again": "",
    "jobs": "",
    "fresh": False,
    "offline": False,
    "cache": True,
    "verified_by": "",
}


@pytest.mark.parametrize(
    ("settings", "recipes", "place"),
    [
        (HostFile(), ["a", "b"], "here"),
        (HostFile(workers=(WORKER,)), ["a"], "here"),
        (HostFile(workers=(WORKER,)), ["a", "b"], "workers"),
        (HostFile(slurm=SLURM), ["a", "b"], "slurm"),
        (HostFile(slurm=SLURM), ["a"], "here"),
        (HostFile(workers=(WORKER,), slurm=SLURM), ["a", "b"], "workers"),
    ],
)
def test_only_several_recipes_leave_this_host_unasked(
    settings: HostFile, recipes: list[str], place: Place
) -> None:
    assert builds.place_of(settings, "", recipes) == place
    assert builds.place_of(settings, "here", recipes) == "here"


def test_a_worker_is_started_with_the_options_that_were_typed() -> None:
    given = {"jobs": "3", "fresh": True, "cache": False, "offline": True}
    options = {**DEFAULTS, **given}
    assert builds.program_of("demo", options, supplied=True) == (
        "build",
        "--recipe",
        "demo",
        "--wait",
        "--until=publish",
        "--jobs=3",
        "--fresh",
        "--offline",
        "--no-cache",
    )
