"""The wrappers in front of nvcc's compilers, run as nvcc runs them."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.making import make_file, make_folder, make_program
from tests.toolkit.parts import part_of

from tfwright.toolkit import nvcc, tree
from tfwright.tools import files
from tfwright.tools.process import isolation

COMPILER = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
"""Prints its arguments, one a line."""


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """Return a toolkit whose compilers print how they were called."""
    return fake_toolkit(tmp_path / "cuda")


def fake_toolkit(root: Path) -> Path:
    """Make and return a toolkit whose compilers print how they were called."""
    for name in ("bin/nvcc", "bin/cudafe++", "nvvm/bin/cicc"):
        make_program(root / name, COMPILER)
    nvcc.complete(root)
    return root


def called(toolkit: Path, name: str, *arguments: str, folder: Path | None = None) -> list[str]:
    """Return what NVIDIA's program prints if the wrapper is found on PATH, as nvcc finds it."""
    path = f"{toolkit}/tfwright/bin:{os.defpath}"
    command = [name, *arguments]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": path}, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["cicc", "cudafe++"])
def test_a_compiler_gets_no_absolute_path_of_a_source_that_was_given_relatively(
    toolkit: Path, name: str
) -> None:
    given = ["--orig_src_file_name", "op.cu.cc", "--orig_src_path_name", "/build/one/op.cu.cc"]
    assert called(toolkit, name, *given)[-1] == "/proc/self/cwd/op.cu.cc"


@pytest.mark.parametrize(
    "given",
    [
        ["--orig_src_file_name", "/src/op.cu", "--orig_src_path_name", "/src/op.cu"],
        # The other compilers of a source get the name that was made.
        ["--module_id_file_name", "x.module_id", "", "a b.cpp1.ii"],
        ["-D", 'TEXT="two words"', "", "*"],
    ],
    ids=["an absolute path", "a name that was made", "anything else"],
)
def test_a_wrapper_keeps_every_other_argument_as_it_is(toolkit: Path, given: list[str]) -> None:
    assert called(toolkit, "cicc", *given) == given


def test_nvcc_finds_the_wrappers_before_the_compilers(toolkit: Path) -> None:
    lines = (toolkit / "bin/nvcc.profile").read_text().splitlines()
    searched = [line for line in lines if line.startswith("PATH")]
    assert "tfwright/bin" in searched[-1]


def test_from_cuda_12_on_nvcc_is_shown_the_wrapper_of_cicc(tmp_path: Path) -> None:
    make_file(tmp_path / "bin/nvcc", "")
    make_file(tmp_path / "nvvm/bin/cicc", "")
    profile = make_file(tmp_path / "bin/nvcc.profile", "CICC_PATH = $(TOP)/nvvm/bin\n")
    nvcc.complete(tmp_path)
    last = profile.read_text().splitlines()[-1]
    assert last == "CICC_PATH = $(TOP)/tfwright/bin"


def test_a_module_is_named_by_its_source_and_not_by_its_temporary_file(
    toolkit: Path, tmp_path: Path
) -> None:
    def named(temporary: str, content: str) -> str:
        preprocessed = make_file(
            tmp_path / f"{temporary}.cpp1.ii",
            f'# 1 "/tmp/{temporary}"\nlog("/{temporary}/include/util.cuh"); {content}\n',
        )
        written = tmp_path / "module_id"
        seen = called(
            toolkit,
            "cicc",
            "--orig_src_file_name",
            "a/op.cu.cc",
            "--gen_module_id_file",
            "--module_id_file_name",
            str(written),
            str(preprocessed),
        )
        assert "--gen_module_id_file" not in seen
        assert seen[-1] == str(preprocessed)
        return written.read_text()

    first = named("tmpxft_1", "int a;")
    assert first == named("tmpxft_2", "int a;")
    assert first != named("tmpxft_1", "int b;")
    # Its length stands before a name, as in mangled C++.
    length, name = first[1:].split("_", 1)
    assert name.startswith("op_cu_cc_")
    assert len(name) == int(length)


def test_nvcc_makes_its_temporary_files_next_to_the_object_if_it_can(
    toolkit: Path, tmp_path: Path
) -> None:
    driver = toolkit / "bin/nvcc"
    assert driver.read_text() == COMPILER
    driver.write_text(f"{COMPILER}# --objdir-as-tempdir\n")
    nvcc.complete(toolkit)
    nvcc.complete(toolkit)
    link = tmp_path / "a link"
    link.symlink_to(driver)
    for program in (driver, link):
        done = subprocess.run([program, "-c", "a b.cu"], check=True, capture_output=True, text=True)
        assert done.stdout.splitlines() == ["-objtemp", "-c", "a b.cu"]


def test_a_compiler_has_the_same_addresses_in_every_run(toolkit: Path) -> None:
    if why := isolation.address_obstacle():
        pytest.skip(why)
    (toolkit / "nvvm/bin/cicc").write_text("#!/bin/sh\ncat /proc/self/maps\n")
    assert called(toolkit, "cicc") == called(toolkit, "cicc")


def test_a_compiler_sees_the_same_paths_in_any_directory(tmp_path: Path) -> None:
    if subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/sys"], check=False
    ).returncode:
        pytest.skip("this system does not allow a program its own view of files")
    seen = []
    for name in ("a", "a [longer] name, 2.0"):
        root = fake_toolkit(tmp_path / name / "toolkits/cuda")
        (root / "nvvm/bin/cicc").write_text("#!/bin/sh\npwd\nenv\ncat a.cpp1.ii\necho $0 $1\n")
        source = root.parent / "gcc/usr/include/vector"
        work = make_folder(tmp_path / name / "work")
        (work / "a.cpp1.ii").write_text(f'# 1 "{source}"\nf("{source}");\n# 1 "/usr/a.h"\n')
        seen.append(called(root, "cicc", f"{root}/nvvm/a.bc", "a.cpp1.ii", folder=work))
        assert '# 1 "/usr/a.h"' in seen[0]
    assert seen[0] == seen[1]


def test_a_compiler_finds_files_outside_the_directory_where_it_is_started(
    toolkit: Path, tmp_path: Path
) -> None:
    (toolkit / "nvvm/bin/cicc").write_text('#!/bin/sh\ncat "$1"\n')
    (tmp_path / "a.cpp1.ii").write_text("int a;\n")
    work = make_folder(tmp_path / "work")
    assert called(toolkit, "cicc", "../a.cpp1.ii", folder=work) == ["int a;"]


def test_a_compiler_runs_also_where_the_system_allows_neither(
    toolkit: Path, tmp_path: Path
) -> None:
    refusing = make_folder(tmp_path / "refusing")
    for name in ("setarch", "unshare"):
        (refusing / name).write_text("#!/bin/sh\nexit 1\n")
        (refusing / name).chmod(0o755)
    done = subprocess.run(
        [toolkit / "tfwright/bin/cicc", "-v"],
        env={"PATH": f"{refusing}:{os.defpath}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["-v"]


def test_a_pin_is_the_same_whatever_tfwrights_scripts_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {"bin/nvcc": "objdir-as-tempdir", "nvvm/bin/cicc": "cicc"}
    for name, text in {**programs, "bin/cudafe++": "cudafe++"}.items():
        files.write(tmp_path / name, text)
    nvcc.complete(tmp_path)
    before = part_of(tmp_path)
    # The bundled recipes pin what these scripts gave.
    assert before.tree == tree.digest(before.files)
    assert not nvcc.has_outdated_script(before.files)
    later = {path: f"{text}# Later.\n" for path, text in nvcc._SCRIPTS.items()}
    monkeypatch.setattr(nvcc, "_SCRIPTS", later)
    assert nvcc.has_outdated_script(before.files)
    nvcc.complete(tmp_path)
    now = part_of(tmp_path)
    scripts = {"bin/nvcc", "tfwright/bin/cicc", "tfwright/bin/cudafe++"}
    assert {path for path, _ in before.files.items() ^ now.files.items()} == scripts
    assert not nvcc.has_outdated_script(now.files)
    assert now.tree == before.tree
    # What builds use is another toolkit.
    whole = [tree.ToolkitRecord(parts={"cuda": part}).tree for part in (before, now)]
    assert whole[0] != whole[1]
    files.write(tmp_path / "bin/nvcc-nvidia", "another")
    assert part_of(tmp_path).tree != now.tree


def test_an_nvcc_that_keeps_its_name_is_nvidias_and_pinned(toolkit: Path) -> None:
    before = part_of(toolkit)
    (toolkit / "bin/nvcc").write_text("another")
    assert part_of(toolkit).tree != before.tree
    assert not nvcc.has_outdated_script(part_of(toolkit).files)
