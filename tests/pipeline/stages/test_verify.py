import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.tags import platform_tags
from tests.failing import fails
from tests.making import Maker, make_file
from tests.results import facts_of, tree_of

from tfwright.documents.recipe import SMOKE, VerifyTable
from tfwright.errors import RecipeError, WheelError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Check, SealedWheel, Verdict
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import verify
from tfwright.smoke import PROGRAMS
from tfwright.smoke import run as trying
from tfwright.tools.process.command import Command
from tfwright.tools.python import packages
from tfwright.wheel.binary import elf, macho
from tfwright.wheel.inspect import floors
from tfwright.wheel.inspect.library import Library

# What smoke/matmul.py needs of a module, in the style of TensorFlow 2.
MODULE = """\
__version__ = "1.0"


class Rows(list):
    def tolist(self):
        return list(self)


constant = Rows


def matmul(left, right):
    return Rows([float(sum(a * b for a, b in zip(row, column))) for column in zip(*right)] for row in left)
"""
ALONE = VerifyTable(imports=("small",), smoke=())
Tried = Callable[..., tuple[Check, ...]]


def run(
    job: RecipeJob, table: VerifyTable, wheel: Path, python: Path = Path(sys.executable)
) -> Verdict:
    job.places.home.mkdir(parents=True, exist_ok=True)
    version = platform.python_version()
    host = facts_of(python, python=version)
    sealed = SealedWheel(wheel=Artefact.of(wheel))
    return verify.run(job, table, job.recipe.host, host, tree_of(job), sealed)


@pytest.fixture
def tried(job: RecipeJob, make_wheel: Maker, quick_python: Path) -> Tried:
    """Return what tries a wheel of some files, with some keys of [verify] changed."""
    return lambda files, **keys: (
        run(job, ALONE.changed(**keys), make_wheel(files), quick_python).checks
    )


@pytest.mark.medium
def test_a_good_wheel_is_installed_imported_and_run(job: RecipeJob, tried: Tried) -> None:
    checks = tried({"small.py": MODULE}, smoke=("matmul",))
    assert [check.name for check in checks] == [
        "RECORD",
        "tags",
        "directories of the host",
        "install",
        "import small",
        "smoke matmul",
    ]
    assert all(check.passed for check in checks)
    assert checks[-1].detail == "the product is [[22.0, 28.0], [49.0, 64.0]]"
    assert not (job.places.dist / "verify" / "venv").exists()


@pytest.mark.medium
def test_a_wheel_that_names_directories_of_the_build_passes_with_a_note(
    job: RecipeJob, notes: list[str], tried: Tried
) -> None:
    header = f'#define SOURCE "{job.places.tree}/small.h"\n'
    checks = tried({"small.py": MODULE, "small.h": header})
    (note,) = notes
    assert note.startswith(
        f"small.h names {job.places.tree}, the source tree of this host, "
        f"such as {job.places.tree}/small.h. Users have no such directory"
    )
    assert "Patch the rule or template" in note
    assert [check.passed for check in checks] == [True] * len(checks)
    assert checks[2].detail == "named in 1 of the wheel's files"


@pytest.mark.slow
def test_an_import_that_never_ends_is_ended_and_fails_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tried: Tried
) -> None:
    monkeypatch.setattr(trying, "SECONDS", 2.0)
    endless = {"small.py": "print('begun', flush=True)\nwhile True: pass\n"}
    with fails(WheelError, "import small", "2 s") as caught:
        tried(endless)
    first, *where = caught.value.evidence.lines
    assert first == "begun"
    assert "small.py" in "".join(where), "Python says where it was"


@pytest.mark.medium
def test_a_module_that_does_not_import_is_named_with_what_python_said(
    job: RecipeJob, tried: Tried
) -> None:
    with fails(WheelError, "import small") as caught:
        tried({"small.py": "raise ImportError('undefined symbol')\n"})
    assert caught.value.evidence.log == job.log("verify-import-small")
    assert (job.places.dist / "verify" / "venv").exists()


@pytest.mark.medium
def test_a_wrong_product_fails_the_smoke_program(tried: Tried) -> None:
    wrong = MODULE.replace("a * b", "a + b")
    with fails(WheelError, "smoke matmul", "22.0", "28.0", "49.0", "64.0"):
        tried({"small.py": wrong}, smoke=("matmul",))


@pytest.mark.medium
def test_what_a_program_lacks_on_this_machine_is_said_and_is_no_fault_of_the_wheel(
    tried: Tried,
) -> None:
    checks = tried({"small.py": MODULE}, smoke=("matmul", "cnn"))
    assert [check.passed for check in checks[-2:]] == [True, False]
    assert checks[-1].detail == "small has no sessions: it is not TensorFlow"


@pytest.mark.medium
def test_the_callers_modules_do_not_stand_in_for_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Tried
) -> None:
    (tmp_path / "small.py").write_text("", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with fails(WheelError, "small"):
        tried({"other.py": ""})


@pytest.mark.medium
def test_a_test_of_the_tree_runs_with_the_wheel_and_not_with_the_tree(
    job: RecipeJob, tried: Tried
) -> None:
    make_file(job.places.tree / "small.py", "raise ImportError('the tree')\n")
    tried_first = "import small\nassert small.NUMBER == 1, 'not 1'\nprint('OK')\n"
    make_file(job.places.tree / "tests/small_test.py", tried_first)
    names = ("tests/small_test.py",)
    last = tried({"small.py": "NUMBER = 1\n"}, tests=names)[-1]
    assert (last.name, last.passed, last.detail) == ("test tests/small_test.py", True, "OK")
    with fails(WheelError, "test tests/small_test.py"):
        tried({"small.py": "NUMBER = 2\n"}, tests=names)


def test_a_test_that_the_tree_has_not_is_named(job: RecipeJob, make_wheel: Maker) -> None:
    with fails(RecipeError, "absent_test.py"):
        run(job, ALONE.changed(tests=("absent_test.py",)), make_wheel())


def test_tags_that_do_not_fit_are_found_before_anything_is_installed(
    job: RecipeJob, make_wheel: Maker
) -> None:
    with fails(WheelError, "cp27-cp27mu-any"):
        run(job, ALONE, make_wheel(name="small-1.0-cp27-cp27mu-any.whl"))
    assert not (job.places.dist / "verify").exists()


def test_a_wheel_above_its_size_is_refused(job: RecipeJob, make_wheel: Maker) -> None:
    with pytest.raises(WheelError, match=r"size: \d+ bytes, 10 are allowed"):
        run(job, ALONE.changed(size=10), make_wheel())


def test_a_library_beyond_the_floor_is_refused_before_anything_is_installed(
    job: RecipeJob, make_wheel: Maker
) -> None:
    wheel = make_wheel(
        {"small.py": "", "small.so": "no library"},
        name=f"small-1.0-py3-none-{next(platform_tags())}.whl",
    )
    with fails(WheelError, "cannot be read"):
        run(job, ALONE.changed(glibc="2.17"), wheel)
    with fails(WheelError, "GPU", "sm_70"):
        run(job, ALONE.changed(architectures=("sm_70",)), make_wheel())
    assert not (job.places.dist / "verify").exists()


def test_what_a_library_needs_of_cpu_and_macos_is_held_against_the_floor() -> None:
    corpus = Path(__file__).parents[2] / "wheel/corpus"
    linux, mac = ((corpus / "elf-code").read_bytes(), (corpus / "macho-thin").read_bytes())
    libraries = [
        Library("small.so", 1, (elf.read(linux)[0],)),
        Library("small.dylib", 1, macho.read(mac)),
    ]

    assert floors.cpu_faults(libraries, "avx") == [
        "small.so needs fma (_ZN10tensorflow1gEff; found by a search of all code), the floor is avx"
    ]
    assert floors.macos_faults(libraries, "10.11") == [
        "small.dylib needs macOS 10.12, the floor is 10.11"
    ]
    assert floors.cpu_faults(libraries, "avx2") + floors.macos_faults(libraries, "10.12") == []


def test_a_smoke_program_that_is_not_there_is_named_with_those_that_are(
    job: RecipeJob, make_wheel: Maker
) -> None:
    with fails(RecipeError, "matmull"):
        run(job, ALONE.changed(smoke=("matmull",)), make_wheel())


def test_the_smoke_programs_are_part_of_what_the_verdict_depends_on(job: RecipeJob) -> None:
    assert {"smoke/matmul.py", "smoke/compatibility.py"} <= set(verify.inputs(job.recipe.verify))


def test_requirements_are_installed_at_their_pins_from_what_fetch_brought(job: RecipeJob) -> None:
    table = VerifyTable(requirements=("six==1.16.0",))
    install = verify._trials(job, table, "x.whl")[0]
    argv = install.command.argv
    assert argv[-2:] == ("x.whl", "six==1.16.0")
    assert {
        "--no-index",
        f"--find-links={packages.package_folder(job.places.vault) / packages.PAGE}",
    } <= set(argv)


def test_a_pinned_pip_is_installed_first_and_installs_the_rest(job: RecipeJob) -> None:
    table = VerifyTable(requirements=("grpcio==1.48.2", "pip==21.3.1"), plugins=("tf-x==1",))
    first, second = verify._trials(job, table, "x.whl")[:2]
    assert [first.name, second.name] == ["install pip", "install"]
    assert first.command.argv[-1] == "pip==21.3.1"
    assert second.command.argv[-3:] == ("x.whl", "grpcio==1.48.2", "tf-x==1")
    assert {"--no-index"} <= set(first.command.argv) & set(second.command.argv)


def test_the_plan_shows_the_venv_the_installation_and_every_trial(job: RecipeJob) -> None:
    shown = [
        step.argv
        for step in verify.steps(job, job.recipe.verify, None)
        if isinstance(step, Command)
    ]
    assert [argv[1:3] for argv in shown[:2]] == [("-m", "venv"), ("-m", "pip")]
    assert shown[2][-1] == "import tensorflow"
    assert [argv[-2:] for argv in shown[3:]] == [
        (str(PROGRAMS / f"{name}.py"), "tensorflow") for name in SMOKE
    ]
