import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.making import Maker
from tests.records import record_of

from tfwright import __version__
from tfwright.build import reproduce as reproduction
from tfwright.documents.recipe import Recipe
from tfwright.errors import RecipeError
from tfwright.host import probes
from tfwright.pipeline import containers, engine, host_facts
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import SealedWheel
from tfwright.pipeline.stage import Artefact, Results
from tfwright.tools.process import isolation
from tfwright.tools.process.command import Command, RunningContainer, inside_container
from tfwright.wheel.seal import build_record, sealing
from tfwright.wheel.seal.build_record import BuildRecord, RecordedFile, Sealer

Baked = Callable[[RecipeJob], str]
Built = Callable[[Baked], list[RecipeJob]]

needs_personality = pytest.mark.skipif(
    isolation.address_obstacle() is not None,
    reason="address-space randomisation cannot be switched off here",
)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, make_wheel: Maker) -> Built:
    """Return a function that replaces the engine by a build that keeps its jobs.

    Its wheel holds what is baked in.
    """

    def use(baked: Baked) -> list[RecipeJob]:
        jobs = list[RecipeJob]()

        def build(job: RecipeJob) -> Results:
            assert job.fresh
            jobs.append(job)
            path = make_wheel({"baked.txt": f"{baked(job)}\n"}, folder=f"build{len(jobs)}")
            return Results({SealedWheel: SealedWheel(wheel=Artefact.of(path))})

        monkeypatch.setattr(engine, "build", build)
        return jobs

    return use


def reproduce(
    job: RecipeJob, original: Path, *, cached: bool = False, control: bool = True
) -> reproduction.Reproduction:
    return reproduction.reproduce(job, original, cached=cached, control=control)


@pytest.fixture
def original(make_wheel: Maker) -> Path:
    return make_wheel({"baked.txt": "always\n"}, folder="original")


def test_the_rebuild_is_elsewhere_offline_and_from_nothing_but_the_same_inputs(
    job: RecipeJob, original: Path, built: Built
) -> None:
    jobs = built(lambda _: "always")
    assert reproduce(job, original).comparison.same
    places = jobs[0].places
    assert (places.vault.resolve(), places.git.resolve()) == (job.places.vault, job.places.git)
    assert places.own != job.places.own
    assert (jobs[0].offline, jobs[0].until, jobs[0].host_file.cache.enabled) == (
        True,
        "seal",
        False,
    )


def test_another_umask_holds_while_it_is_built_and_no_longer(
    job: RecipeJob, original: Path, built: Built
) -> None:
    before = os.umask(0o022)
    seen = list[int]()

    def look(_: RecipeJob) -> str:
        seen.append(os.umask(reproduction.UMASK))
        return "always"

    built(look)
    try:
        reproduce(job, original)
        assert seen == [reproduction.UMASK]
        assert os.umask(before) == 0o022
    finally:
        os.umask(before)


def test_the_build_cache_takes_part_only_when_asked_to(
    job: RecipeJob, original: Path, built: Built
) -> None:
    jobs = built(lambda _: "always")
    reproduce(job, original, cached=True)
    host_file = jobs[0].host_file
    assert host_file.cache.enabled
    assert host_file.cache_directory == job.host_file.cache_directory
    # An entry that was sealed with another secret is a miss.
    assert host_file.cache_secret == job.host_file.cache_secret


@needs_personality
def test_a_directory_that_was_baked_in_is_told_from_chance(
    job: RecipeJob, original: Path, built: Built
) -> None:
    jobs = built(lambda job: str(job.places.tree))
    causes = reproduce(job, original).causes
    assert causes[0] == "baked.txt holds the directory that it was built in"
    assert causes[1].startswith("Built again in the same place it is the same")
    assert len(jobs) == 2


@needs_personality
def test_what_is_another_each_time_is_named(job: RecipeJob, original: Path, built: Built) -> None:
    numbers: Iterator[int] = iter(range(10))
    built(lambda _: f"number {next(numbers)}")
    assert reproduce(job, original).causes == (
        (
            "Every build differs, also at fixed addresses: a clock, random numbers, "
            "or the order of parallel work. Again in: baked.txt"
        ),
    )


@needs_personality
def test_what_varies_with_addresses_is_the_same_with_randomisation_off(
    job: RecipeJob, original: Path, built: Built
) -> None:
    # Where the stack ends depends on the randomisation alone. An address on the heap moves also
    # when a package is installed meanwhile: the loader maps /etc/ld.so.cache, whose size then
    # changes, before it maps libraries.
    program = (
        "[print(line.split()[0].split('-')[1]) "
        "for line in open('/proc/self/maps') if '[stack]' in line]"
    )
    built(
        lambda _: (
            subprocess.run(
                [sys.executable, "-IS", "-c", program],
                env={"PYTHONHASHSEED": "0"},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
    )
    assert (
        reproduce(job, original).causes[-1].startswith("It varies with address-space randomisation")
    )


def test_a_time_in_the_difference_is_pointed_out_also_without_a_control_build(
    job: RecipeJob, original: Path, built: Built
) -> None:
    jobs = built(lambda _: "made 2026-11-21 06:31:02")
    causes = reproduce(job, original, control=False).causes
    assert causes == (
        "baked.txt seems to hold the time of the build",
        "No control build was made, so chance and the place cannot be distinguished",
    )
    assert len(jobs) == 1


@pytest.fixture
def record(job: RecipeJob) -> BuildRecord:
    """Return the record of a wheel that the job's recipe made, as far as a record is compared."""
    return record_of(job.recipe).changed(files=())


def holding(path: Path, record: BuildRecord) -> Path:
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr(f"small-1.0.dist-info/{build_record.NAME}", build_record.write(record))
    return path


def test_a_wheel_names_the_recipe_that_made_it(original: Path, record: BuildRecord) -> None:
    assert reproduction.recipe_of_wheel(holding(original, record)) == "small"


def test_a_host_without_the_python_of_a_recipe_is_not_compared(
    job: RecipeJob, original: Path, record: BuildRecord
) -> None:
    host = job.recipe.host.changed(python="1.0")
    other = replace(job, recipe=job.recipe.changed(host=host))
    assert not reproduction.host_changes(other, holding(original, record))


def test_a_host_with_another_compiler_and_sealer_is_told_before_and_after_the_build(
    job: RecipeJob, original: Path, record: BuildRecord, built: Built, notes: list[str]
) -> None:
    built(lambda _: "otherwise")
    wheel = holding(original, record.changed(sealer=Sealer(version=__version__, deflate="0.0.1")))
    found = reproduce(job, wheel, control=False)
    compiler, compressor = (
        next(number for number, note in enumerate(notes) if f"made: {what}" in note)
        for what in ("compiler: cc (Debian) 12.2.0 then, ", "deflate: 0.0.1 then, ")
    )
    assert max(compiler, compressor) < next(
        number for number, note in enumerate(notes) if note.startswith("building in")
    )
    assert any(
        cause.startswith("Perhaps because of this host: deflate: 0.0.1 then")
        for cause in found.causes
    )


def test_a_host_that_is_as_the_record_says_gets_no_notice(
    job: RecipeJob, original: Path, record: BuildRecord
) -> None:
    facts = host_facts.facts(job.recipe, job.host_file, probes.this_host(), Path(sys.executable))
    here = host_facts.for_record(job.recipe, job.host_file, facts)
    same = record.changed(found=here, sealer=sealing.this_sealer())
    assert reproduction.host_changes(job, holding(original, same)) == []


def test_what_an_image_has_is_compared_in_its_container(
    job: RecipeJob, original: Path, record: BuildRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = Mock(spec=RunningContainer)
    container.name = "sha256:image"
    container.command.return_value = Command(("echo", "/usr/3.6.9"), Path("/"))
    monkeypatch.setattr(containers, "stage_container", lambda *_: inside_container(container))
    changes = reproduction.host_changes(job, holding(original, record))
    assert any(change.endswith("then, /usr/3.6.9 here") for change in changes)


def test_a_checkout_that_is_as_the_record_says_is_accepted(
    job: RecipeJob, original: Path, record: BuildRecord
) -> None:
    reproduction.check_unchanged(job, holding(original, record))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"compile": {"flags": ["--config=opt"]}}, "the recipe's compile flags"),
        ({"summary": "Another one"}, "the recipe's summary"),
        (
            {"source": {"patches": ["demo/0001-matrix-power-zero-is-the-identity.patch"]}},
            "the recipe's source patches",
        ),
    ],
)
def test_a_recipe_that_changed_since_is_refused_and_what_changed_is_named(
    change: dict[str, object], named: str, job: RecipeJob, original: Path, record: BuildRecord
) -> None:
    content = job.recipe.model_dump(mode="json", exclude_defaults=True)
    merged = {
        **content,
        **{
            key: {**content.get(key, {}), **value} if isinstance(value, dict) else value
            for key, value in change.items()
        },
    }
    changed = replace(job, recipe=Recipe.model_validate(merged))
    with pytest.raises(RecipeError) as caught:
        reproduction.check_unchanged(changed, holding(original, record))
    assert named in caught.value.evidence.lines


def test_a_patch_and_a_lock_that_changed_since_are_named(
    job: RecipeJob, original: Path, record: BuildRecord, recipe_file: Path
) -> None:
    made = record.changed(files=(RecordedFile(path="demo/nccl.h", sha256="0" * 64),))
    with pytest.raises(RecipeError) as caught:
        reproduction.check_unchanged(replace(job, locked=recipe_file), holding(original, made))
    assert list(caught.value.evidence.lines) == ["patches/demo/nccl.h", "the recipe's lock"]
