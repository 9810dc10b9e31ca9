"""Targets that follow a branch, with real git; and targets with axes, from recipe to page."""

from pathlib import Path

import pytest
from tests.nightly.fake import a_build, host_with
from tests.upstream import commit, run_git

from tfwright.documents import recipe
from tfwright.documents.host_file import HostFile
from tfwright.documents.nightly import NightlyFile
from tfwright.documents.nightly import targets as targets_of
from tfwright.nightly import night, targets, versions
from tfwright.nightly.builder import PipelineBuilder
from tfwright.nightly.builds import BuildOrder, NightlyBuild
from tfwright.nightly.pages import build as page

REWRITTEN = "the history: no path leads from the last good commit to this one"


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository that a recipe follows."""
    commit(tmp_path / "upstream")
    return tmp_path / "upstream"


@pytest.fixture
def builder(tmp_path: Path, upstream: Path) -> PipelineBuilder:
    """Return a builder of the demo, whose source is the repository."""
    text = (recipe.RECIPES / "demo.toml").read_text()
    moved = text.replace('url = "bundled:demo"', f'url = "{upstream.as_uri()}"')
    (tmp_path / "tracked.toml").write_text(moved.partition("[verified]")[0])
    followed = {"name": str(tmp_path / "tracked.toml"), "follow": {"branch": "main"}}
    wanted = NightlyFile.model_validate({"directory": str(tmp_path / "host"), "recipe": [followed]})
    return PipelineBuilder(wanted, HostFile(build_out=tmp_path / "out"))


def since(builder: PipelineBuilder, last: str) -> NightlyBuild:
    """Return a build of what is followed now, compared with a good one of another commit."""
    (target,) = targets_of(builder.nightly)
    fingerprint = builder.fingerprint(target)
    host = targets.host_lines()
    known = {"target": target.name, "recipe": target.recipe, "host": host, "result": "built"}
    before = {**fingerprint, "the commit": last}
    good = a_build(id="good", commit=last, fingerprint=before, **known)
    order = BuildOrder(
        id="now", target=target, fingerprint=fingerprint, started=good.started, last_good=good
    )
    found = builder._since_last_good(order, builder.job(target))
    now = {**known, "commit": fingerprint["the commit"], "fingerprint": fingerprint}
    return a_build(**now, **found)


@pytest.mark.medium
def test_the_commits_since_the_last_good_build_are_listed(
    builder: PipelineBuilder, upstream: Path
) -> None:
    before = commit(upstream)
    for subject in ("One", "Two"):
        commit(upstream, message=subject)
    found = since(builder, before)
    assert [line.subject for line in found.commits] == ["Two", "One"]
    assert found.changed == ("the commit",)


@pytest.mark.medium
def test_a_branch_that_was_rewritten_is_said_on_the_page(
    builder: PipelineBuilder, upstream: Path, tmp_path: Path
) -> None:
    before = commit(upstream, message="One")
    run_git("reset", "--quiet", "HEAD^", cwd=upstream)
    after = commit(upstream, message="Another one")
    found = since(builder, before)
    assert found.commit == after
    assert found.commits == ()
    assert found.changed == ("the commit", REWRITTEN)
    good = found.model_copy(update={"id": "good", "commit": before})
    (tmp_path / "page").mkdir()
    assert REWRITTEN in page.page(found, tmp_path / "page", good, tmp_path)
    assert "no path leads" in page.markdown(found, tmp_path / "page")


@pytest.mark.medium
def test_each_choice_of_the_axes_has_its_own_lock_fingerprint_version_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFWRIGHT_NIGHTLY_FILE", str(tmp_path / "nightly.toml"))
    axes = {"python": ["3.11", "3.12"], "capabilities": ["7.0", "8.6,9.0"]}
    wanted = {"name": "demo-cuda", "local": "cu118", **axes}
    host = host_with(tmp_path, url="https://wheels.example/")
    nightly = host.nightly.model_validate(
        {"directory": str(tmp_path), "recipe": [wanted], "url": "https://w.example/"}
    )
    found = targets_of(nightly)
    assert [target.name for target in found] == [
        "demo-cuda-py3.11-sm70",
        "demo-cuda-py3.11-sm86_sm90",
        "demo-cuda-py3.12-sm70",
        "demo-cuda-py3.12-sm86_sm90",
    ]
    locks = {targets.lock_of(target) for target in found}
    assert locks == {tmp_path / "locks" / f"{target.name}.lock" for target in found}
    settings = HostFile(build_out=tmp_path / "out")
    fingerprints = [targets.fingerprint(targets.job_of(target, settings)) for target in found]
    for number, one in enumerate(fingerprints):
        assert one not in fingerprints[:number]
    labelled = {
        versions.nightly_version("1.0", target.local, commit="", epoch=0) for target in found
    }
    # The Python is in the wheel's tag.
    assert labelled == {"1.0+cu118.sm70", "1.0+cu118.sm86.sm90"}
    night.run(night.BuildHost(nightly, host.builder, host.clock))
    text = host.page()
    for target in found:
        assert f'<a href="recipes/{target.name}.html">' in text
        assert (host.site / "r" / target.name / "index.html").is_file()
