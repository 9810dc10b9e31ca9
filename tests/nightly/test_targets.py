"""A target of a build host as a recipe: its axes reach every place that names them."""

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.making import change_text, make_file
from tests.nightly.wheels import write_wheel
from tests.upstream import commit, run_git

from tfwright.documents import recipe
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import FollowTable, NightlyFile, Target
from tfwright.documents.nightly import targets as targets_of
from tfwright.documents.recipe import ImageTable
from tfwright.errors import Evidence, RecipeError, SupplyError, TfwrightError, ToolError
from tfwright.host import probes, toolchain
from tfwright.host.place import Seen
from tfwright.host.probes import Host
from tfwright.nightly import builder, builds, targets
from tfwright.nightly.builds import Breakage
from tfwright.pipeline import stamps
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.stamps import Stamp


def target(name: str, **axes: object) -> Target:
    """Return the first target of a recipe with axes."""
    recipe = {"name": name, **axes}
    (first, *_) = targets_of(NightlyFile.model_validate({"directory": "/x", "recipe": [recipe]}))
    return first


def test_capabilities_reach_the_answer_that_the_release_reads_and_its_flag() -> None:
    found = targets.recipe_of(
        target("linux-r2.20-cuda12.8-sm120", capabilities=["sm_86,compute_86"], local="cu128")
    )
    name = "HERMETIC_CUDA_COMPUTE_CAPABILITIES"
    assert found.configure.answers[name] == "sm_86,compute_86"
    assert f"--repo_env={name}=sm_86,compute_86" in found.compile.flags
    assert "TF_CUDA_COMPUTE_CAPABILITIES" not in found.configure.answers
    assert found.verify.architectures == ("sm_86", "compute_86")


def test_a_recipe_that_insists_on_ptx_goes_on_to_insist_on_it() -> None:
    found = targets.recipe_of(target("demo-cuda", capabilities=["7.0,7.5"]))
    assert found.verify.architectures == ("sm_70", "sm_75", "compute_75")
    without = targets.recipe_of(target("linux-r2.1-cuda10.1", capabilities=["6.1"]))
    assert without.verify.architectures == ("sm_61",)


def test_a_python_reaches_the_flag_that_repeats_it() -> None:
    found = targets.recipe_of(target("linux-r2.20-cuda12.8-sm120-py310", python=["3.12"]))
    assert found.host.python == "3.12"
    assert "--repo_env=HERMETIC_PYTHON_VERSION=3.12" in found.compile.flags


def test_a_target_without_axes_is_its_recipe() -> None:
    plain = targets.recipe_of(target("linux-r2.1-cuda10.1"))
    assert plain.name == "linux-r2.1-cuda10.1"
    assert plain.verify.architectures[0] == "sm_35"


def test_a_recipe_with_an_image_depends_on_its_digest_and_not_on_the_hosts_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts(digest: str, **settings: Path) -> Mapping[str, str]:
        base = targets.recipe_of(target("linux-r2.1-cuda10.1"))
        image = ImageTable(name="own", digest=f"sha256:{digest * 64}")
        host = base.host.model_copy(update={"image": image, "python": "any"})
        own = base.model_copy(update={"host": host})
        return targets.fingerprint(
            RecipeJob(recipe=own, host_file=HostFile(build_out=tmp_path, **settings))
        )

    before = parts("1")
    monkeypatch.setattr(probes, "this_host", Host)
    monkeypatch.setattr(toolchain, "compiler", lambda _: Seen("gcc 99", "c++"))
    assert parts("1") == before
    assert builds.differing_parts(before, parts("2")) == ("the recipe's [host]",)
    # What the host file names is visible in the image.
    (tmp_path / "version.txt").write_text("CUDA Version 11.8.0")
    assert parts("1", cuda=tmp_path)["CUDA"] == "11.8.0"


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        (
            SupplyError("x", remedy="y", evidence=Evidence(lines=["Could not resolve host"])),
            "blocked",
        ),
        (SupplyError("a.zip: the connection timed out", remedy="y"), "blocked"),
        (SupplyError("a.zip: HTTP 404", remedy="y"), "failed"),
        (SupplyError("a.zip has other bytes", remedy="y"), "failed"),
        (ToolError("a test timed out", remedy="y"), "failed"),
    ],
)
def test_a_server_that_does_not_answer_is_no_failure_of_the_recipe(
    fault: TfwrightError, result: str, tmp_path: Path
) -> None:
    assert builder._failure(fault, tmp_path)["result"] == result


def test_a_failure_without_a_log_is_told_by_its_own_sentence(tmp_path: Path) -> None:
    details = Evidence(lines=("BUILD.tpl, hunk 1:", "third_party/BUILD.tpl, hunk 1:"))
    fault = RecipeError("0003-no-gomp.patch does not fit", remedy="Redo it.", evidence=details)
    broken = builder._failure(fault, tmp_path)["broken"]
    assert isinstance(broken, Breakage)
    assert broken.line == "0003-no-gomp.patch does not fit"


@pytest.mark.medium
def test_the_cause_names_what_the_log_names(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    line = "matrix.cc:1:10: fatal error: no/such/header.h: No such file or directory"
    log.write_text(f"INFO: building\n{line}\n")
    fault = ToolError("Bazel failed", remedy="Read it.", evidence=Evidence(log=log))
    broken = builder._failure(fault, tmp_path)["broken"]
    assert isinstance(broken, Breakage)
    assert "no/such/header.h" in broken.cause
    # What the catalogue fills in from the log is in braces there.
    assert "{" not in broken.cause + broken.remedy


def test_a_last_wheel_that_the_disk_damaged_does_not_fail_a_build(tmp_path: Path) -> None:
    last, wheel = write_wheel(tmp_path / "last"), write_wheel(tmp_path / "new")
    last.write_bytes(last.read_bytes()[:-40])
    (said,) = builder._differences(last, wheel)
    assert said.startswith("not compared: ")
    assert last.name in said


def test_a_failed_build_shows_nothing_of_the_stages_that_it_did_not_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = HostFile(build_out=tmp_path / "out")
    job = targets.job_of(target("demo"), settings)
    names = ("fetch.log", "compile.log", "compile.profile.json", "verify-install.log")
    job.places.logs.mkdir(parents=True)
    for name in names:
        (job.places.logs / name).write_text("of an earlier build, or of this one")
    stamp = Stamp(parts={}, result={}, seconds=7.0, cpu=1.0)
    # A stage that fails has no stamp; those after it have the stamps of earlier builds.
    monkeypatch.setattr(stamps, "read", lambda _, name: None if name == "compile" else stamp)
    failed = builder._copy_logs(job, made(tmp_path / "failed"), "compile")
    assert failed["logs"] == ("logs/compile.log", "logs/fetch.log")
    assert failed["profile"] == "logs/compile.profile.json.gz"
    times = builder._stage_times(job, "compile", time.time() - 60)
    assert list(times) == ["check", "fetch", "source", "configure", "compile"]
    assert 60 <= times["compile"] < 90
    # A night does not publish; the stamp is of a build by hand.
    night = dataclasses.replace(job, until="verify")
    assert list(builder._stage_times(night, "smoke", time.time()))[-2:] == ["seal", "verify"]
    unreached = builder._copy_logs(job, made(tmp_path / "unreached"), "fetch")
    assert unreached == {"logs": ("logs/fetch.log",)}
    whole = builder._copy_logs(job, made(tmp_path / "whole"), "smoke")
    assert len(whole["logs"]) == 3  # type: ignore[arg-type]  # a tuple, as above


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with two tags, and a commit after them."""
    folder = tmp_path / "upstream"
    for version in ("v1.8.0", "v1.10.0"):
        commit(folder, {"version": version})
        run_git("tag", version, cwd=folder)
    commit(folder, {"version": "later"})
    return folder


def test_the_newest_tag_that_fits_a_pattern_is_followed(
    tmp_path: Path, recipe_file: Path, upstream: Path
) -> None:
    url = recipe.read(str(recipe_file)).source.url
    settings = HostFile(build_out=tmp_path / "out", mirrors={url: str(upstream)})
    pinned = Target(name="small", recipe=str(recipe_file))
    assert targets.resolve(pinned, settings) is None
    follow = FollowTable(tags="v1.*")
    found = targets.resolve(pinned.model_copy(update={"follow": follow}), settings)
    assert found
    assert found.name == "v1.10.0"
    assert found.commit == run_git("rev-parse", "v1.10.0", cwd=upstream)


def test_a_changed_lock_file_and_a_python_that_is_gone_start_a_build(
    tmp_path: Path, recipe_file: Path
) -> None:
    settings = HostFile(build_out=tmp_path / "out")
    given = Target(name="small", recipe=str(recipe_file))
    lock = make_file(recipe_file.with_suffix(".lock"), "one")
    before = targets.fingerprint(targets.job_of(given, settings))
    lock.write_text("two", "utf-8")
    change_text(recipe_file, 'python = "any"', 'python = "2.4"')
    after = targets.fingerprint(targets.job_of(given, settings))
    assert after["the target Python"] == "none"
    changed = builds.differing_parts(before, after)
    assert {"the lock", "the target Python"} <= {*changed}
