from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tfwright.doctor import requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import Recipe
from tfwright.host import cuda
from tfwright.host.probes import Host
from tfwright.tools.container import engine
from tfwright.tools.process.command import RunningContainer, entered

Player = Callable[[dict[str, Any]], Host]
PROGRAMS = {
    "/usr/bin/uname": {"-sm": "Linux x86_64"},
    "/usr/bin/apt-get": {"*": ""},
    "/usr/bin/npm": {"*": ""},
    "/usr/bin/git": {"--version": "git version 2.39.5"},
    "/usr/bin/c++": {"--version": "g++ (Debian) 12.2.0"},
    "/usr/bin/gcc": {"--version": "gcc (Debian) 7.5.0"},
    "/usr/bin/df": {
        "*": (
            "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 264032284 "
            "36700160 216895488 15% /"
        )
    },
    "/usr/bin/nvidia-smi": {
        "--query-gpu=driver_version --format=csv,noheader": "580.82",
        "*": "GeForce GTX 1080, 6.1",
    },
}
BUILD_OUT = Path("/build_out")
"""Anywhere, whatever the path of this checkout is."""
UNSET = HostFile(build_out=BUILD_OUT)
LITTLE_ROOM = {
    "*": (
        "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 264032284 36700160 "
        "3145728 15% /"
    )
}
HEADERS = {
    "include/cuda.h": "#define CUDA_VERSION 9020",
    "include/cudnn.h": "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 1",
}


@pytest.fixture
def good(play: Player) -> Callable[..., Host]:
    """Return a function that plays a host with everything; programs given as None are not there."""

    def made(files: Mapping[str, str] | None = None, **programs: Mapping[str, str] | None) -> Host:
        changed = {
            f"/usr/bin/{name.replace('_', '-')}": answers for name, answers in programs.items()
        }
        return play(
            {
                "programs": {
                    path: answers
                    for path, answers in {**PROGRAMS, **changed}.items()
                    if answers is not None
                },
                "files": files or {},
            }
        )

    return made


Good = Callable[..., Host]


def varied(recipe: Recipe, **tables: Mapping[str, object]) -> Recipe:
    """Return a recipe with some keys of some tables changed."""
    values = recipe.model_dump(mode="json")
    return Recipe.model_validate(
        {**values, **{name: {**values[name], **keys} for name, keys in tables.items()}}
    )


def with_cuda(recipe: Recipe, release: str = "1.8", **answers: str) -> Recipe:
    answers = {"TF_CUDA_COMPUTE_CAPABILITIES": "6.1", **answers}
    return varied(
        recipe,
        source={"release": release},
        host={"cuda": "9.2", "cudnn": "7.2"},
        configure={"answers": {"TF_NEED_CUDA": True, **answers}},
    )


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def test_a_host_that_has_everything_gives_no_findings(recipe: Recipe, good: Good) -> None:
    assert requirements.examine(recipe, UNSET, good()) == []


@pytest.mark.parametrize(("name", "odd"), [("my disk", " "), ("b\u00fcro", "\u00fc")])
def test_a_place_that_tensorflow_or_bazel_would_trip_over_is_refused(
    recipe: Recipe, tmp_path: Path, name: str, odd: str, good: Good
) -> None:
    finding = only(requirements.examine(recipe, HostFile(build_out=tmp_path / name), good()))
    assert (finding.found, finding.blocks) == (f"{odd!r} in {tmp_path / name}", "fetch")


def test_a_recipe_for_another_system_is_blocked_from_configure_on_only(
    recipe: Recipe, good: Good
) -> None:
    finding = only(
        requirements.examine(
            varied(recipe, host={"system": "Darwin", "machine": "x86_64"}), UNSET, good()
        )
    )
    assert finding.blocks == "configure"
    assert str(finding) == "this host is Linux-x86_64; wanted: Darwin-x86_64"


def test_another_machine_of_the_same_system_will_not_do(recipe: Recipe, good: Good) -> None:
    finding = only(
        requirements.examine(
            varied(recipe, host={"machine": "x86_64"}), UNSET, good(uname={"-sm": "Linux aarch64"})
        )
    )
    assert finding.found == "this host is Linux-aarch64"


def test_a_missing_python_says_how_to_get_and_how_to_name_one(recipe: Recipe, good: Good) -> None:
    finding = only(requirements.examine(varied(recipe, host={"python": "3.2"}), UNSET, good()))
    assert finding.found == "no Python 3.2"
    assert "pyenv install 3.2" in finding.remedy
    assert "host file" in finding.remedy


def test_what_an_image_has_is_not_asked_of_the_host(
    recipe: Recipe, good: Good, container: RunningContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "installed", lambda _: True)
    image = {"name": "own", "digest": f"sha256:{'1' * 64}"}
    wanted = varied(
        with_cuda(recipe),
        host={"python": "3.2", "image": image, "programs": ["swig"]},
        compile={"env": {}, "flags": ["--repo_env=CLANG_COMPILER_PATH=/opt/clang"]},
    )
    bare = good(c__=None, nvidia_smi=None)
    assert requirements.examine(wanted, UNSET, bare) == []
    with entered(container):
        found = {finding.found: finding for finding in requirements.examine(wanted, UNSET, bare)}
    for lacking in ("no Python 3.2", "no swig", "no /opt/clang"):
        assert "the new digest into [host.image]" in found[lacking].remedy
    assert "image" in found["no Python 3.2"].wanted
    assert "no CUDA at /usr/local/cuda" in found
    monkeypatch.setattr(engine, "installed", lambda _: False)
    assert only(requirements.examine(wanted, UNSET, bare)).found == "no podman"


def test_a_wrong_python_in_the_host_file_is_named(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    host_file = HostFile(build_out=BUILD_OUT, pythons={"3.2": tmp_path / "python"})
    finding = only(requirements.examine(varied(recipe, host={"python": "3.2"}), host_file, good()))
    assert finding.found == f"{tmp_path / 'python'} does not run"


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("apt_get", "sudo apt-get install g++"),
        ("dnf", "sudo dnf install gcc-c++"),
        ("xcode_select", "xcode-select --install"),
        ("none", "Install g++."),
    ],
)
def test_a_missing_compiler_names_the_command_of_this_system(
    recipe: Recipe, installer: str, command: str, good: Good
) -> None:
    finding = only(
        requirements.examine(
            recipe, UNSET, good(**{"apt_get": None, "c++": None, installer: {"*": ""}})
        )
    )
    assert (finding.remedy, finding.blocks) == (command, "compile")


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("apt_get", "sudo apt-get install bison"),
        ("xcode_select", "brew install bison"),
        ("none", "Install bison."),
    ],
)
def test_a_program_that_the_recipes_patches_run_is_looked_for(
    recipe: Recipe, installer: str, command: str, good: Good
) -> None:
    wanted = varied(recipe, host={"programs": ["perl", "bison"]})
    host = good(**{"apt_get": None, "perl": {"*": ""}, installer: {"*": ""}})
    finding = only(requirements.examine(wanted, UNSET, host))
    assert (finding.found, finding.remedy, finding.blocks) == ("no bison", command, "compile")


def test_a_missing_git_blocks_the_first_download(recipe: Recipe, good: Good) -> None:
    finding = only(requirements.examine(recipe, UNSET, good(git=None)))
    assert (finding.remedy, finding.blocks) == ("sudo apt-get install git", "fetch")


def test_missing_cuda_and_cudnn_are_two_findings_at_the_recipes_places(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    wanted = with_cuda(
        recipe, CUDA_TOOLKIT_PATH=str(tmp_path / "cuda"), CUDNN_INSTALL_PATH=str(tmp_path / "cudnn")
    )
    found = [str(finding) for finding in requirements.examine(wanted, UNSET, good())]
    assert found == [
        f"no CUDA at {tmp_path / 'cuda'}; wanted: CUDA 9.2",
        f"no cuDNN at {tmp_path / 'cudnn'}; wanted: cuDNN 7.2",
    ]


def test_the_host_file_says_where_cuda_is(recipe: Recipe, good: Good) -> None:
    wanted = with_cuda(recipe, CUDA_TOOLKIT_PATH="/nowhere", CUDNN_INSTALL_PATH="/nowhere")
    files = {f"/opt/{path}": text for path, text in HEADERS.items()}
    assert (
        requirements.examine(
            wanted,
            HostFile(build_out=BUILD_OUT, cuda=Path("/opt"), cudnn=Path("/opt")),
            good(files),
        )
        == []
    )


def test_cudnn_is_looked_for_with_the_toolkit_by_default(recipe: Recipe, tmp_path: Path) -> None:
    assert cuda.cudnn(with_cuda(recipe), HostFile(cuda=tmp_path)) == tmp_path


def test_the_first_of_the_later_releases_paths_is_the_toolkit(recipe: Recipe) -> None:
    assert cuda.toolkit(
        with_cuda(recipe, "1.14", TF_CUDA_PATHS="/usr/local/cuda-10.0,/usr"), UNSET
    ) == Path("/usr/local/cuda-10.0")


def test_a_hermetic_release_needs_no_cuda_of_this_host(recipe: Recipe, good: Good) -> None:
    downloaded = varied(
        with_cuda(recipe, "2.20", HERMETIC_CUDA_COMPUTE_CAPABILITIES="sm_61"), host={"cuda": "12.5"}
    )
    assert requirements.examine(downloaded, UNSET, good()) == []


def test_in_wsl_the_driver_is_the_one_of_windows(recipe: Recipe, play: Player) -> None:
    windows = play(
        {
            "programs": {
                **{path: says for path, says in PROGRAMS.items() if "nvidia" not in path},
                "/usr/lib/wsl/lib/nvidia-smi": {"*": "472.12"},
            },
            "files": {"/proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2"},
        }
    )
    wanted = varied(with_cuda(recipe, "2.20"), host={"cuda": "12.8"})
    (finding,) = [
        finding
        for finding in requirements.examine(wanted, UNSET, windows)
        if "driver" in finding.found
    ]
    assert finding.found == "driver 472.12"
    assert "on Windows" in finding.remedy
    assert "apt-get" not in finding.remedy


def test_the_stub_of_the_driver_on_the_library_path_is_found(recipe: Recipe, play: Player) -> None:
    stubs = "/usr/local/cuda/lib64/stubs"
    host = play({"programs": PROGRAMS, "env": {"LD_LIBRARY_PATH": f"/usr/lib:{stubs}"}})
    found = [
        finding
        for finding in requirements.examine(with_cuda(recipe, "2.20"), UNSET, host)
        if stubs in finding.found
    ]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "13, 14, 15, 16, 19"),
        ("A distribution of one's own", "apt-get install clang-18"),
    ],
)
def test_a_remedy_names_packages_that_the_distribution_has(
    release: str, named: str, recipe: Recipe, play: Player
) -> None:
    host = play({"programs": PROGRAMS, "files": {"/etc/os-release": f'PRETTY_NAME="{release}"'}})
    path = "--action_env=CLANG_CUDA_COMPILER_PATH=/usr/lib/llvm-18/bin/clang"
    wanted = varied(recipe, compile={"flags": [path]})
    (finding,) = [
        finding
        for finding in requirements.examine(wanted, UNSET, host)
        if "llvm-18" in finding.found
    ]
    assert named in finding.remedy


def test_root_in_a_container_without_sudo_is_told_no_sudo(recipe: Recipe, play: Player) -> None:
    programs = {path: answers for path, answers in PROGRAMS.items() if "c++" not in path}
    finding = only(requirements.examine(recipe, UNSET, play({"programs": programs, "sudo": False})))
    assert finding.remedy == "apt-get install g++"


def test_one_source_of_bazel_only_is_worth_a_note_but_blocks_nothing(
    recipe: Recipe, good: Good
) -> None:
    finding = only(requirements.examine(recipe, UNSET, good(npm=None)))
    assert finding.blocks == ""
    assert "[bazels]" in finding.remedy


def test_a_bazel_named_in_the_host_file_needs_no_second_source(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    assert (
        requirements.examine(
            recipe,
            HostFile(build_out=BUILD_OUT, bazels={recipe.bazel.version: tmp_path}),
            good(npm=None),
        )
        == []
    )


def test_little_room_is_a_note_that_names_the_place(
    recipe: Recipe, tmp_path: Path, good: Good
) -> None:
    finding = only(requirements.examine(recipe, HostFile(build_out=tmp_path), good(df=LITTLE_ROOM)))
    assert finding.found == f"3.0 GiB free at {tmp_path}"
    assert finding.blocks == ""


def test_a_bundled_tree_is_content_with_less_room(recipe: Recipe, good: Good) -> None:
    bundled = varied(recipe, source={"url": "bundled:demo"})
    assert requirements.examine(bundled, UNSET, good(df=LITTLE_ROOM)) == []


def test_an_old_git_is_found_before_it_fails(recipe: Recipe, good: Good) -> None:
    finding = only(
        requirements.examine(recipe, UNSET, good(git={"--version": "git version 2.17.1"}))
    )
    assert (finding.found, finding.blocks) == ("git 2.17.1", "fetch")


@pytest.mark.parametrize(
    ("kind", "blocks"), [("nfs", "compile"), ("nfs4", "compile"), ("tmpfs", "")]
)
def test_a_network_disk_stops_bazel_and_one_in_memory_is_a_note(
    recipe: Recipe, kind: str, blocks: str, good: Good
) -> None:
    finding = only(
        requirements.examine(
            recipe, UNSET, good({"/proc/mounts": f"rootfs / rootfs rw\nserver:/x / {kind} rw\n"})
        )
    )
    assert finding.found.partition(",")[0].endswith(f"is on {kind}")
    assert finding.blocks == blocks


def test_a_bazel_that_configure_refuses_is_found_before_configure_runs(
    recipe: Recipe, good: Good
) -> None:
    finding = only(requirements.examine(varied(recipe, bazel={"version": "0.9.0"}), UNSET, good()))
    assert str(finding) == "Bazel 0.9.0 for TensorFlow 1.8; wanted: Bazel 0.10.0 or later"
    assert finding.blocks == "configure"
    assert finding.why.startswith("https://")


@pytest.mark.parametrize(("version", "blocks"), [("4.2.3", ""), ("3.5.1", "configure")])
def test_a_newer_bazel_stops_nothing_where_the_recipe_switches_configures_check_off(
    recipe: Recipe, good: Good, version: str, blocks: str
) -> None:
    answers = {**recipe.configure.answers, "TF_IGNORE_MAX_BAZEL_VERSION": True}
    wanted = varied(
        recipe,
        source={"release": "2.6"},
        bazel={"version": version},
        configure={"answers": answers},
    )
    findings = requirements.examine(wanted, UNSET, good())
    found = f"Bazel {version} for TensorFlow 2.6"
    assert {finding.found: finding.blocks for finding in findings}[found] == blocks


def test_cuda_of_a_later_release_is_looked_for_at_each_of_its_paths(recipe: Recipe) -> None:
    wanted = with_cuda(recipe, "1.14", TF_CUDA_PATHS="/usr/local/cuda-9.2,/usr")
    assert cuda.prefixes(wanted, UNSET) == [Path("/usr/local/cuda-9.2"), Path("/usr")]


def test_an_instruction_set_that_this_processor_lacks_stops_only_the_trial_of_the_wheel(
    recipe: Recipe, good: Good
) -> None:
    wanted = varied(recipe, configure={"answers": {"CC_OPT_FLAGS": "-mavx2"}})
    finding = only(
        requirements.examine(wanted, UNSET, good({"/proc/cpuinfo": "flags : sse4_1 avx"}))
    )
    assert (finding.found, finding.blocks) == ("a processor without avx2", "verify")


def test_code_for_this_very_processor_is_told_to_be_no_pin(recipe: Recipe, good: Good) -> None:
    wanted = varied(recipe, configure={"answers": {"CC_OPT_FLAGS": "-march=native"}})
    assert (
        only(requirements.examine(wanted, UNSET, good())).wanted == "the same bytes on every host"
    )


def test_a_capability_that_a_cuda_does_not_compile_for_is_found(recipe: Recipe, good: Good) -> None:
    files = {f"/usr/local/cuda/{path}": text for path, text in HEADERS.items()}
    wanted = with_cuda(recipe, TF_CUDA_COMPUTE_CAPABILITIES="6.1,7.5")
    assert (
        only(requirements.examine(wanted, UNSET, good(files))).found
        == "compute capability 7.5 with CUDA 9.2"
    )


@pytest.mark.parametrize(
    ("release", "blocks"), [("1.6", "configure"), ("1.8", ""), ("1.14", "configure")]
)
def test_another_minor_version_of_cudnn_stops_only_releases_that_ask_for_it(
    recipe: Recipe, release: str, blocks: str, good: Good
) -> None:
    files = {
        f"/usr/local/cuda/{path}": text.replace("MINOR 2", "MINOR 3")
        for path, text in HEADERS.items()
    }
    wanted = varied(
        with_cuda(recipe, release), bazel={"version": {"1.14": "0.24.1"}.get(release, "0.26.1")}
    )
    finding = only(requirements.examine(wanted, UNSET, good(files)))
    assert (finding.found, finding.blocks) == ("cuDNN 7.3.1", blocks)


def test_a_python_that_a_release_was_never_tested_with_is_a_note(
    recipe: Recipe, good: Good
) -> None:
    findings = requirements.examine(varied(recipe, host={"python": "3.9"}), UNSET, good())
    told = next(finding for finding in findings if "TensorFlow" in finding.found)
    assert (str(told), told.blocks) == (
        "Python 3.9 for TensorFlow 1.8; wanted: Python 2.7 to 3.6",
        "",
    )
