import zipfile
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker, make_file, make_program
from tests.results import configured_of, for_target, inputs_of, tree_of
from tests.wheel.test_relinking import WANTED
from tests.wheel.test_relinking import wheel as wheel_for_macos

from tfwright.documents.recipe import WHEEL_TARGET, PackageTable
from tfwright.errors import ToolError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, NcclOps, RawWheel
from tfwright.pipeline.stage import Artefact, Stage
from tfwright.pipeline.stages import package
from tfwright.tools.process.command import Command
from tfwright.wheel import archive, record

SCRIPT = """\
#!/bin/sh
# Behaves like build_pip_package as far as the stage sees it: it names the wheel by itself.
printf '%s\\n' "$@" > asked
[ -d bazel-bin ] || exit 1
[ -d "$TMPDIR" ] || exit 1
echo "$SOURCE_DATE_EPOCH" > epoch
for name in {made}; do echo wheel > "$1/$name"; done
"""


def script(job: RecipeJob, made: str) -> None:
    path = job.places.tree / "bazel-bin/tensorflow/tools/pip_package/build_pip_package"
    path.parent.mkdir(parents=True)
    make_program(path, SCRIPT.replace("{made}", made))
    job.places.home.mkdir()


def packaged(job: RecipeJob, table: PackageTable, outputs: tuple[Path, ...] = ()) -> RawWheel:
    file = make_file(job.places.build_out / "file", b"")
    made = tuple(map(Artefact.of, outputs))
    return package.run(
        job,
        table,
        inputs_of(file, file),
        tree_of(job),
        configured_of(file),
        Built(target=job.recipe.compile.target, outputs=made, actions=1),
        NcclOps(library=None, stub=False),
    )


def asked(job: RecipeJob) -> list[str]:
    return (job.places.tree / "asked").read_text("utf-8").split("\n")[:-1]


def test_the_directory_comes_first_and_nothing_names_the_wheel(job: RecipeJob) -> None:
    script(job, "small-1.0-py3-none-any.whl")
    packaged(job, PackageTable(flags=("--gpu",)))
    assert asked(job) == [str(job.places.dist / "raw"), "--gpu"]


def test_a_project_name_is_passed(job: RecipeJob) -> None:
    script(job, "small-1.0-py3-none-any.whl")
    packaged(job, PackageTable(project_name="mine"))
    assert asked(job) == [str(job.places.dist / "raw"), "--project_name", "mine"]


def test_the_wheel_is_found_whatever_it_is_called_and_its_date_is_the_commits(
    job: RecipeJob,
) -> None:
    script(job, "'who would_guess-7.whl'")
    assert packaged(job, PackageTable()).wheel.path.name == "who would_guess-7.whl"
    assert (job.places.tree / "epoch").read_text("utf-8") == "5\n"


def test_a_wheel_of_an_earlier_run_is_not_mistaken_for_the_new_one(job: RecipeJob) -> None:
    script(job, "new.whl")
    make_file(job.places.dist / "raw" / "old.whl", b"")
    assert packaged(job, PackageTable()).wheel.path.name == "new.whl"


@pytest.mark.parametrize("made", ["", "one.whl two.whl", "one.tar.gz"])
def test_anything_but_one_wheel_is_a_failure(job: RecipeJob, made: str) -> None:
    script(job, made)
    with fails(ToolError, len(made.split())) as caught:
        packaged(job, PackageTable())
    assert list(caught.value.evidence.lines) == made.split()


def test_the_wheel_target_makes_the_wheel_itself(job: RecipeJob, make_wheel: Maker) -> None:
    job = for_target(job, WHEEL_TARGET)
    job.places.build_out.mkdir()
    raw = packaged(job, PackageTable(), (make_wheel(),)).wheel
    assert raw.path.parent == job.places.dist / "raw"
    assert zipfile.is_zipfile(raw.path)
    assert Stage(package).steps(job, {}) == ()


def test_the_plan_shows_the_very_command(job: RecipeJob) -> None:
    (step,) = Stage(package).steps(job, {})
    assert isinstance(step, Command)
    assert step.argv[0].endswith("bazel-bin/tensorflow/tools/pip_package/build_pip_package")


def test_what_macos_looks_for_is_written_into_the_wheel_and_said(
    job: RecipeJob, make_wheel: Maker, notes: list[str]
) -> None:
    table = PackageTable(
        libraries={"@rpath/libcudart.9.2.dylib": "/usr/local/cuda/lib/libcudart.9.2.dylib"}
    )
    job.places.build_out.mkdir()
    raw = packaged(for_target(job, WHEEL_TARGET), table, (make_wheel(),)).wheel
    with archive.open_wheel(raw.path) as wheel:
        assert record.faults(wheel) == []
    assert notes == [
        "package.libraries names @rpath/libcudart.9.2.dylib, which no library of the wheel asks for"
    ]


def test_each_library_that_is_written_anew_for_macos_is_said(
    job: RecipeJob, tmp_path: Path, notes: list[str]
) -> None:
    job.places.build_out.mkdir()
    raw = packaged(
        for_target(job, WHEEL_TARGET),
        PackageTable(libraries=dict(WANTED.libraries)),
        (wheel_for_macos(tmp_path),),
    ).wheel
    with archive.open_wheel(raw.path) as wheel:
        assert record.faults(wheel) == []
    (name,) = WANTED.libraries
    assert notes == [f"{name} is now {WANTED.libraries[name]}, in 1 library"]


def test_what_the_wheel_target_makes_besides_the_wheel_stays_where_it_is(
    job: RecipeJob, tmp_path: Path, make_wheel: Maker
) -> None:
    job.places.build_out.mkdir()
    metadata = make_file(tmp_path / "METADATA", "Name: small\n")
    job = for_target(job, WHEEL_TARGET)
    raw = packaged(job, PackageTable(), (metadata, make_wheel())).wheel
    assert list(raw.path.parent.iterdir()) == [raw.path]


def test_a_repository_names_the_program_that_makes_its_wheel_and_its_arguments(
    job: RecipeJob,
) -> None:
    job = for_target(job, "//:build_pip_pkg")
    table = PackageTable(program="pack.sh", arguments=("--out", "@DESTINATION@"))
    program = job.places.tree / "pack.sh"
    (job.places.tree / "bazel-bin").mkdir(parents=True)
    make_program(program, '#!/bin/sh\necho wheel > "$2/own-1.0-py3-none-any.whl"\n')
    job.places.home.mkdir()
    made = packaged(job, table)
    assert made.wheel.path.name == "own-1.0-py3-none-any.whl"
