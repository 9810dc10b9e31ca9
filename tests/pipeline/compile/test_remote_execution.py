"""Bazel's flags for other machines: passed to Bazel 6 and later, refused where they cannot work."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.failing import fails

from tfwright.documents.host_file import HostFile
from tfwright.errors import HostError
from tfwright.pipeline import caching
from tfwright.pipeline.compile.invocation import remote_execution
from tfwright.pipeline.job import Job
from tfwright.pipeline.results import Built

FLAG = "--remote_executor=grpcs://build.example"


def job(tmp_path: Path, *flags: str) -> Job:
    return Job(name="a", host_file=HostFile(build_out=tmp_path, remote_execution=flags))


def test_the_flags_reach_bazel_6(tmp_path: Path) -> None:
    assert remote_execution(job(tmp_path, FLAG), "6.5.0") == (FLAG,)


def test_an_old_bazel_refuses_them_before_it_starts(tmp_path: Path) -> None:
    with fails(HostError, "0.26.1"):
        remote_execution(job(tmp_path, FLAG), "0.26.1")


def test_an_offline_build_refuses_them(tmp_path: Path) -> None:
    offline = replace(job(tmp_path, FLAG), offline=True)
    with fails(HostError, "offline"):
        remote_execution(offline, "7.4.0")


def test_nothing_is_passed_without_them(tmp_path: Path) -> None:
    assert remote_execution(job(tmp_path), "0.17.2") == ()


@pytest.mark.parametrize("flag", ["--config=opt", "-c", "remote", "--remote_executor=a\nb"])
def test_other_flags_are_refused_by_the_host_file(flag: str) -> None:
    with pytest.raises(ValidationError):
        HostFile(remote_execution=(flag,))


def test_provenance_names_remote_execution() -> None:
    built = Built(target="//a", outputs=(), actions=1, remote=True)
    assert caching.summary(built) == "cache off, remote execution"
