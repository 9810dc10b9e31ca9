"""A small recipe all of whose inputs are on this host, as bundles need it too; other machines, played."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bundle.conftest import brought, document, small_job, tree
from tests.making import make_program

from tfwright.tools.remote import slurm

__all__ = ["brought", "document", "small_job", "tree"]

Programs = Callable[..., None]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Return what puts shell scripts in the place of ssh, or of Slurm's programs, which answer at once."""
    monkeypatch.setattr(slurm, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(slurm, "ARRIVAL_SECONDS", 0.05)

    def put(**scripts: str) -> None:
        for name, script in scripts.items():
            make_program(tmp_path / name, f"#!/bin/sh\n{script}\n")
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put
