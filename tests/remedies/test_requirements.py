"""What is said of a host that a recipe does not fit, done to the letter on small hosts of programs and files."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.host.conftest import lay_out, write_program
from tests.host.test_requirements import BUILD_OUT, PROGRAMS, varied, with_cuda
from tests.making import find_text, make_file, make_folder
from tests.remedies.following import commands

from tfwright.doctor import gpu, images, requirements
from tfwright.doctor.inventory import Finding
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ImageTable, Recipe
from tfwright.facts import compatibility
from tfwright.host.place import Place
from tfwright.host.probes import Host
from tfwright.toolkit import ways as toolkit_ways
from tfwright.tools.container import engine, image, registry

KIB = 1 << 20
"""A GiB, as /proc/meminfo counts."""


@dataclass
class Trial:
    """A recipe, a host and its file; what follows a remedy changes them."""

    recipe: Recipe
    root: Path
    host_file: HostFile = field(default_factory=lambda: HostFile(build_out=BUILD_OUT))

    def file(self, path: str, text: str) -> None:
        make_file(self.root / path.lstrip("/"), text)

    def program(self, path: str, answers: Mapping[str, str]) -> None:
        write_program(self.root / path.lstrip("/"), answers)

    def host(self) -> Host:
        """Look at the host again, as a new command does."""
        return Host(Place(self.root, {}))

    def findings(self) -> list[Finding]:
        return requirements.examine(self.recipe, self.host_file, self.host())

    def remedy(self, text: str) -> str:
        """Return the remedy of the one finding that says something."""
        (finding,) = [each for each in self.findings() if text in each.found]
        return finding.remedy

    def changed(self, **tables: Mapping[str, object]) -> None:
        self.recipe = varied(self.recipe, **tables)

    def settings(self, **keys: object) -> None:
        self.host_file = HostFile.model_validate(
            {**self.host_file.model_dump(exclude_unset=True), **keys}
        )

    def install(self, command: str, packages: Mapping[str, str]) -> None:
        """Type a command of a remedy where sudo and apt-get are; a package is one program."""
        bin_ = make_folder(self.root / "as root")
        lines = [
            f"{name}) mkdir -p $(dirname {self.root}{path}); "
            f"printf '#!/bin/sh\\necho {name} version 99.0\\n' > {self.root}{path}; chmod +x {self.root}{path};;"
            for name, path in packages.items()
        ]
        scripts = {
            "sudo": 'exec "$@"',
            "apt-get": f'[ "$1" = update ] || case $2 in {" ".join(lines)} *) exit 1;; esac',
            "add-apt-repository": "exit 0",
        }
        for name, script in scripts.items():
            (bin_ / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
            (bin_ / name).chmod(0o755)
        for line in command.splitlines():
            path = f"{bin_}:/usr/bin:/bin"
            subprocess.run(["sh", "-ec", line], check=True, env={"PATH": path})


@pytest.fixture
def trial(recipe: Recipe, tmp_path: Path) -> Trial:
    """Return a host that has everything, and a recipe that it fits."""
    lay_out(tmp_path / "host", {"programs": PROGRAMS})
    made = Trial(recipe, tmp_path / "host")
    assert made.findings() == []
    return made


def gone(trial: Trial, *names: str) -> None:
    """Remove programs, and say nothing of them: the host looks again each time."""
    for name in names:
        (trial.root / "usr/bin" / name).unlink()


def test_another_machine_or_an_earlier_stage_is_chosen(trial: Trial) -> None:
    trial.changed(host={"machine": "aarch64"})
    (finding,) = trial.findings()
    until = find_text(r"--until (\w+)", finding.remedy)
    assert not finding.stops(until[1])
    trial.program("/usr/bin/uname", {"-sm": "Linux aarch64"})
    assert trial.findings() == []


PACKAGES = {
    "git": "/usr/bin/git",
    "g++": "/usr/bin/c++",
    "patchelf": "/usr/bin/patchelf",
    "clang-17": "/usr/lib/llvm-17/bin/clang",
}


@pytest.mark.parametrize("what", ["git", "compiler", "program", "clang", "old git"])
def test_what_is_missing_is_installed_by_the_commands_that_are_shown(
    trial: Trial, what: str
) -> None:
    match what:
        case "git":
            gone(trial, "git")
        case "old git":
            trial.program("/usr/bin/git", {"--version": "git version 2.17.1"})
        case "compiler":
            gone(trial, "c++")
        case "program":
            trial.changed(host={"programs": ["patchelf"]})
        case _:
            flag = "--action_env=CLANG_COMPILER_PATH=/usr/lib/llvm-17/bin/clang"
            trial.changed(compile={"flags": [flag]})
    (finding,) = trial.findings()
    trial.install(finding.remedy, PACKAGES)
    assert trial.findings() == []


@pytest.mark.parametrize("way", ["install npm", "[bazels]"])
def test_a_second_source_of_bazel_is_installed_or_a_binary_named(trial: Trial, way: str) -> None:
    gone(trial, "npm")
    remedy = trial.remedy("Bazel")
    assert way in remedy
    if way == "[bazels]":
        line = find_text(r"(\[bazels\]) ('[\d.]+' = '/path/to/bazel')", remedy)
        trial.settings(**tomllib.loads(f"{line[1]}\n{line[2]}"))
    else:
        trial.program("/usr/bin/npm", {"*": ""})
    assert trial.findings() == []


@pytest.mark.parametrize("kind", ["nfs", "tmpfs"])
def test_build_out_is_moved_to_another_disk(trial: Trial, kind: str) -> None:
    trial.file("/proc/mounts", f"rootfs / {kind} rw\n/dev/vdb /disk ext4 rw\n")
    remedy = trial.remedy(kind)
    key = find_text(r"^Set (\w+) in the host file to a directory on a (?:local )?disk", remedy)
    (trial.root / "disk").mkdir()
    other = PROGRAMS["/usr/bin/df"]["*"].replace("15% /", "15% /disk")
    trial.program("/usr/bin/df", {"*": other})
    trial.settings(**{key[1]: "/disk/out"})
    assert trial.findings() == []


@pytest.mark.parametrize("checkout", [True, False])
def test_build_out_is_moved_to_a_plain_path(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, *, checkout: bool
) -> None:
    odd = Path("/my disk/tfwright")
    monkeypatch.setattr(requirements, "ROOT", odd)
    place = odd / "build_out" if checkout else "/another disk"
    trial.settings(build_out=place)
    remedy = trial.remedy("' ' in")
    assert ("or move " in remedy) == checkout
    key = find_text(r"^Set (\w+) to such a directory", remedy)
    trial.settings(**{key[1]: "/disk"})
    assert trial.findings() == []


def test_the_python_of_a_recipe_is_corrected(trial: Trial) -> None:
    for version in ("3.6", "3.9"):
        trial.program(f"/usr/bin/python{version}", {"*": version})

    def of_release() -> list[Finding]:
        return list(
            requirements.Requirements(trial.recipe, trial.host_file, trial.host()).release()
        )

    trial.changed(host={"python": "3.9"})
    (finding,) = of_release()
    key = re.match(r"Correct (host)\.(python) in the recipe", finding.remedy)
    last = re.search(r"to ([\d.]+)$", finding.wanted)
    assert key
    assert last
    trial.changed(**{key[1]: {key[2]: last[1]}})
    assert of_release() == []


@pytest.mark.parametrize("way", ["outside", "newer"])
def test_the_bazel_of_a_recipe_is_corrected(trial: Trial, way: str) -> None:
    trial.changed(bazel={"version": "0.9.0"})
    if way == "newer":
        answers = {"TF_IGNORE_MAX_BAZEL_VERSION": True}
        trial.changed(
            source={"release": "2.6"}, bazel={"version": "4.2.3"}, configure={"answers": answers}
        )
    (finding,) = [each for each in trial.findings() if "Bazel" in each.found]
    if way == "newer":
        assert "pin such a Bazel" in finding.remedy
    else:
        assert finding.remedy == "Correct bazel.version in the recipe."
    numbers = re.findall(r"\d[\d.]*\d", finding.wanted)
    trial.changed(bazel={"version": numbers[-1]})
    assert not [each for each in trial.findings() if "Bazel" in each.found]
    assert compatibility.bazel(trial.recipe.source.release)


@pytest.mark.parametrize("way", ["Stop other programs", "limit", "swap"])
def test_room_is_made_in_the_memory(trial: Trial, way: str) -> None:
    def meminfo(available: float, swap: int = 0) -> None:
        text = f"MemTotal: {8 * KIB} kB\nMemAvailable: {int(available * KIB)} kB\nSwapTotal: {swap * KIB} kB\n"
        trial.file("/proc/meminfo", text)

    limit = "/sys/fs/cgroup/memory.max"
    meminfo(8 if way == "limit" else 0.5)
    if way == "limit":
        trial.file(limit, str(1 << 28))
    assert way in trial.remedy("of memory")
    if way == "limit":
        trial.file(limit, str(8 << 30))
    else:
        meminfo(*((0.5, 8) if way == "swap" else (8,)))
    assert trial.findings() == []


# GPUs


@pytest.fixture
def kernels(trial: Trial) -> Trial:
    """Return a host and a recipe for CUDA 9.2 that fit each other."""
    trial.recipe = with_cuda(trial.recipe)
    trial.file("/usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 9020\n")
    trial.file(
        "/usr/local/cuda/include/cudnn.h",
        "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 1\n",
    )
    assert trial.findings() == []
    return trial


@pytest.mark.parametrize("way", ["capabilities", "CUDA"])
def test_a_capability_is_corrected_or_another_cuda_taken(kernels: Trial, way: str) -> None:
    answers = kernels.recipe.configure.answers
    wrong = {**answers, "TF_CUDA_COMPUTE_CAPABILITIES": "6.1,7.5"}
    kernels.changed(configure={"answers": wrong})
    (finding,) = kernels.findings()
    assert way in finding.remedy
    if way == "CUDA":
        kernels.changed(host={"cuda": "10.0"})
        kernels.file("/usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 10000\n")
    else:
        newest = find_text(r"to ([\d.]+):", finding.remedy)
        right = f"6.1,{newest[1]}"
        wrong["TF_CUDA_COMPUTE_CAPABILITIES"] = right
        kernels.changed(configure={"answers": wrong})
    # Another CUDA wants another cuDNN as well, and says so.
    said = [each.found for each in kernels.findings()]
    assert not [found for found in said if "does not compile" in found]


def test_the_capability_of_this_gpu_is_added_or_a_recipe_found_that_has_it(kernels: Trial) -> None:
    answers = kernels.recipe.configure.answers
    other = {**answers, "TF_CUDA_COMPUTE_CAPABILITIES": "7.0"}
    kernels.changed(configure={"answers": other})
    (finding,) = kernels.findings()
    (command,) = commands(finding.remedy)
    assert command == "invoke match"
    capability = find_text(r"(\d\.\d)", finding.found)
    other["TF_CUDA_COMPUTE_CAPABILITIES"] = f"7.0,{capability[1]}"
    kernels.changed(configure={"answers": other})
    assert kernels.findings() == []


@pytest.mark.parametrize("driver", ["", "300.10"])
def test_a_driver_that_is_shown_is_enough(kernels: Trial, driver: str) -> None:
    query = "--query-gpu=driver_version --format=csv,noheader"
    answers = PROGRAMS["/usr/bin/nvidia-smi"]
    if driver:
        kernels.program("/usr/bin/nvidia-smi", {**answers, query: driver})
    else:
        gone(kernels, "nvidia-smi")
    (finding,) = kernels.findings()
    shown = find_text(r"^Install driver ([\d.]+\d)", finding.remedy)
    kernels.program("/usr/bin/nvidia-smi", {**answers, query: shown[1]})
    assert kernels.findings() == []


def test_an_older_compiler_of_nvcc_is_installed_and_named_as_is_shown(kernels: Trial) -> None:
    kernels.program("/usr/bin/gcc", {"--version": "gcc (Debian) 12.2.0"})
    (finding,) = kernels.findings()
    install, answer = finding.remedy.splitlines()
    package = shlex.split(install.partition("#")[0])[3]
    path = f"/usr/bin/{package}"
    number = package.removeprefix("gcc-")
    kernels.program(path, {"--version": f"{package} (Debian) {number}.1.0"})
    line = find_text(r"under \[(configure\.answers)\]: (\w+ = \".*\")", answer)
    shown = tomllib.loads(line[2])
    assert shown["GCC_HOST_COMPILER_PATH"] == path
    answers = {**kernels.recipe.configure.answers, **shown}
    kernels.changed(configure={"answers": answers})
    # The path is one of the host that runs this test.
    settings = kernels.host_file
    assert not list(gpu.CudaRequirements(kernels.recipe, settings, kernels.host()).host_compiler())


def test_a_toolkit_is_obtained_where_apt_is_or_named_in_the_host_file(trial: Trial) -> None:
    trial.recipe = recipes.read("demo-cuda")
    gone(trial, "apt-get")
    table = trial.recipe.toolkit.cuda
    assert table
    only = table.changed(archives={})
    toolkit = trial.recipe.toolkit.changed(cuda=only)
    trial.recipe = trial.recipe.changed(toolkit=toolkit)
    text = toolkit_ways.remedy(trial.recipe, "cuda", trial.host())
    line = find_text(r'host file: (cuda = "/path")', text)
    trial.settings(**tomllib.loads(line[1]))
    trial.file("/path/include/cuda.h", "#define CUDA_VERSION 11080\n")
    places = [each.found for each in trial.findings()]
    assert not [found for found in places if "no CUDA" in found]
    trial.program("/usr/bin/apt-get", {"*": ""})
    again = toolkit_ways.remedy(trial.recipe, "cuda", trial.host())
    assert "from Debian bookworm by apt" in again


# Images


def test_an_image_that_is_not_here_is_pulled_by_the_command_that_is_shown(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = f"sha256:{'1' * 64}"
    pinned = ImageTable(name="docker.io/library/debian", digest=digest)
    trial.settings(build_out=tmp_path)
    host = trial.recipe.host.changed(image=pinned)
    trial.recipe = trial.recipe.changed(host=host)
    monkeypatch.setattr(engine, "is_installed", lambda _: True)
    monkeypatch.setattr(registry, "ask", lambda *_: ("there", "200"))
    (finding,) = images.findings(trial.recipe, trial.host_file)
    command = shlex.split(finding.remedy, comments=True)
    assert command == ["invoke", "image", "--recipe", "small", "--pull"]
    # Where that command puts it.
    image.path_of(tmp_path / "vault", digest).mkdir(parents=True)
    assert list(images.findings(trial.recipe, trial.host_file)) == []
