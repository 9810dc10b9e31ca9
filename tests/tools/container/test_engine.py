"""What an engine is asked to do, and real containers that end with the process that opened them."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tfwright.documents.host_file import Engine
from tfwright.tools.container import engine, image
from tfwright.tools.container.engine import Container, ContainerPlan
from tfwright.tools.container.image import ImageManifest, KeptImage
from tfwright.tools.process import isolation, runner
from tfwright.tools.process.command import Command, inside_container

MANIFEST = ImageManifest("sha256:" + "a" * 64, parts=("sha256:" + "b" * 64,))
IMAGE = KeptImage(MANIFEST.digest, MANIFEST, Path("/vault/images/a"), 1)


def argv(*, network: bool = False) -> tuple[str, ...]:
    plan = replace(ContainerPlan(IMAGE, "demo", (Path("/out"),), (Path("/src"),)), network=network)
    return engine.start_command(plan, Path("/room")).argv


def test_the_network_is_off_unless_asked_for() -> None:
    assert "--network=none" in argv()
    assert "--network=host" in argv(network=True)


def test_nothing_is_pulled_and_the_image_is_named_by_its_digest() -> None:
    assert "--pull=never" in argv()
    assert "b" * 64 in argv()


def test_files_have_the_same_path_inside_and_keep_their_owner() -> None:
    given = argv()
    assert "--volume=/out:/out" in given
    assert "--volume=/src:/src:ro" in given
    assert f"--user={os.getuid()}:{os.getgid()}" in given


def test_a_program_inside_has_just_the_environment_that_it_was_given() -> None:
    container = Container("abc", IMAGE, 1)
    placed = container.command(Command(("cc", "-c"), Path("/out"), {"A": "1"}), terminal=False)
    assert placed.argv[-5:] == ("/usr/bin/env", "-i", "A=1", "cc", "-c")
    assert "--workdir" in placed.argv


def test_git_runs_on_the_host_while_a_container_is_open() -> None:
    command = Command(("git",), Path("/"), here=True)
    with inside_container(Container("abc", IMAGE, 1)):
        assert isolation.host_command(command) == command
        assert isolation.host_command(Command(("cc",), Path("/"))).argv[0] == "podman"
    assert isolation.host_command(Command(("cc",), Path("/"))).argv == ("cc",)


def test_an_engines_warnings_do_not_get_among_what_programs_print() -> None:
    assert "--log-level=fatal" in argv()
    container = Container("abc", IMAGE, 1, "docker")
    placed = container.command(Command(("cc",), Path("/out")), terminal=False)
    assert placed.argv[:3] == ("docker", "--log-level=fatal", "exec")


# A real container


@pytest.fixture(params=["podman", "docker"])
def program(request: pytest.FixtureRequest) -> Engine:
    """Return an engine that works on this host."""
    name: Engine = request.param
    asked = (name, "info")
    if not shutil.which(name) or subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip(f"{name} does not run here")
    return name


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> KeptImage:
    """Return an image of this host's shell and the libraries that it needs."""
    place = tmp_path_factory.mktemp("image")
    programs = ("/bin/sh", "/usr/bin/env", "/bin/sleep", "/bin/stty")
    needed = set(programs)
    for program in programs:
        said = subprocess.run(("ldd", program), capture_output=True, text=True, check=True).stdout
        needed |= {word for word in said.split() if word.startswith("/")}
    with tarfile.open(place / "root.tar", "w", dereference=True) as archive:
        for name in sorted(needed):
            archive.add(name, name.lstrip("/"))
    return image.import_tar(place / "root.tar", place)


def plan_of(system: KeptImage, place: Path, program: Engine) -> ContainerPlan:
    runtime = "runc" if shutil.which("runc") else None
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
    return ContainerPlan(
        system, f"test-{place}", (place,), runtime=runtime, options=limits, engine=program
    )


@pytest.fixture
def container(system: KeptImage, tmp_path: Path, program: Engine) -> Iterator[Container]:
    with engine.running_container(plan_of(system, tmp_path, program)) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.usefixtures("container")
def test_programs_run_inside_without_a_network(tmp_path: Path) -> None:
    script = "echo ok > made; while read -r line; do echo $line; done < /proc/net/dev"
    said = runner.short_output(
        Command(("/bin/sh", "-c", script), tmp_path, {"PATH": "/usr/bin:/bin"})
    )
    names = [line.partition(":")[0] for line in said.splitlines() if ":" in line]
    assert names == ["lo"]
    assert (tmp_path / "made").stat().st_uid == os.getuid()


@pytest.mark.slow
def test_a_process_inside_is_found_on_the_host(container: Container) -> None:
    assert container.host_process(1) == container.first


HOLD = """
import sys, time
from pathlib import Path
from tfwright.tools.container import engine
from tfwright.tools.container.image import find_image
from tfwright.tools.container.engine import ContainerPlan
vault, digest, job, place, runtime, program, *options = sys.argv[1:]
image = find_image(Path(vault), digest)
extra = {"runtime": runtime or None, "options": tuple(options), "engine": program}
plan = ContainerPlan(image, job, (Path(place),), **extra)
with engine.running_container(plan):
    print("open", flush=True)
    time.sleep(60)
"""


# Ctrl-C, a closed terminal, a service's stop, and what nothing can catch.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGTERM", "SIGKILL"])
def test_an_ended_process_leaves_no_container(
    system: KeptImage, tmp_path: Path, program: Engine, name: str
) -> None:
    plan = plan_of(system, tmp_path, program)
    vault = system.layout.parents[1]
    arguments = (
        str(vault),
        system.digest,
        plan.job,
        str(tmp_path),
        plan.runtime or "",
        program,
        *plan.options,
    )
    command = (sys.executable, "-c", HOLD, *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"open\n"
        holder.send_signal(getattr(signal, name))
    listing = (program, "ps", "--all", "--quiet", f"--filter=label={engine.LABEL}={plan.job}")
    for _ in range(100):
        left = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        if not left:
            break
        time.sleep(0.1)
    assert left == ""
