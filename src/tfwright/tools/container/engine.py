"""Podman or Docker: images loaded by digest, and a container that ends with this process.

The container's first process waits for the end of a named pipe that only this process holds open.
However this process ends, SIGKILL included, the kernel closes the pipe; the first process ends, and
the kernel ends all others of the container with it.
"""

import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tfwright.documents.host_file import Engine
from tfwright.errors import Evidence, HostError, ToolError
from tfwright.tools import files
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, caller_variables, inside_container

LABEL = "org.tfwright.job"
ENGINES: tuple[Engine, ...] = get_args(Engine)
CLIENT_VARIABLES = (
    "HOME",
    "PATH",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
)
"""What an engine needs of the caller's environment; nothing of it reaches the container."""
QUIET_CLIENT = "--log-level=fatal"
"""Rootless podman warns at every start of what it lacks, in the output of programs inside. What it
fails with, it says all the same."""
WAITING = "read -r _ < {pipe}"
QUIET = 'stty -echo; exec "$@"'
"""A terminal inside echoes what is typed unless that is switched off; ours already has it off."""


@dataclass(frozen=True)
class ContainerPlan:
    """What a container is started with."""

    image: KeptImage
    job: str
    """What marks containers of one job, so that the next start removes what is left."""
    writable: tuple[Path, ...]
    """Directories that are the same inside and outside, by the same path."""
    readable: tuple[Path, ...] = ()
    network: bool = False
    """Whether programs inside reach the host's network; else they have loopback only."""
    runtime: str | None = None
    options: tuple[str, ...] = ()
    """Further options of the engine's `run`, from the host file."""
    engine: Engine = "podman"


@dataclass(frozen=True)
class Container:
    """A container that is running."""

    identifier: str
    image: KeptImage
    first: int
    """The host's number of its first process."""
    engine: Engine = "podman"

    @property
    def name(self) -> str:
        """The digest of its image."""
        return self.image.digest

    def command(self, command: Command, *, terminal: bool, echo: bool = False) -> Command:
        """Return the command on the host that runs another one inside, in just its environment.

        A `terminal` echoes what is typed only where a person sits at it.
        """
        variables = [f"{name}={value}" for name, value in command.env.items()]
        options = ("--interactive", *(("--tty",) if terminal else ()))
        where = ("--workdir", str(command.cwd), self.identifier)
        quiet = ("/bin/sh", "-c", QUIET, "sh") if terminal and not echo else ()
        clean = ("/usr/bin/env", "-i", *variables, *quiet, *command.argv)
        return client_command(self.engine, "exec", *options, *where, *clean)

    def host_process(self, pid: int) -> int | None:
        """Return the host's number for a process of this container."""
        # /proc lists the processes of all containers; the namespace tells ours from others.
        own = _pid_namespace(self.first)
        for status in Path("/proc").glob("[0-9]*/status"):
            process = int(status.parent.name)
            # "NSpid: 4711 12": the number in each namespace, from the host's inwards.
            with suppress(OSError):
                inside = re.search(
                    r"^NSpid:.*\s(\d+)$", status.read_text("ascii", "replace"), re.MULTILINE
                )
                if inside and int(inside[1]) == pid and _pid_namespace(process) == own:
                    return process
        return None


@contextmanager
def running_container(plan: ContainerPlan) -> Iterator[Container]:
    """Run programs inside a container while the block runs; nothing of it is left afterwards.

    Raises HostError if the engine is missing, ToolError if it cannot start the container.
    """
    check_runs(plan.engine)
    # After a loss of power nothing has ended what the last start of the same job left.
    wanted = f"--filter=label={LABEL}={plan.job}"
    for left in runner.short_output(
        client_command(plan.engine, "ps", "--all", "--quiet", wanted)
    ).split():
        runner.short_output(_remove_command(plan.engine, left))
    with files.scratch_directory(prefix="tfwright-box-") as scratch:
        load(plan.image, scratch, plan.engine)
        pipe = scratch / "alive"
        os.mkfifo(pipe)
        # Opened for both directions it blocks neither side. Children do not inherit it.
        held = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        container = None
        try:
            container = _start(plan, scratch)
            with inside_container(container):
                yield container
        finally:
            os.close(held)
            if container:
                runner.short_output(_remove_command(plan.engine, container.identifier))


def start_command(plan: ContainerPlan, scratch: Path) -> Command:
    """Return the command that starts the container; `scratch` holds the pipe."""
    mounts = [f"--volume={path}:{path}" for path in plan.writable]
    mounts += [f"--volume={path}:{path}:ro" for path in (*plan.readable, scratch)]
    runtime = (f"--runtime={plan.runtime}",) if plan.runtime else ()
    rootless = os.getuid() != 0 and plan.engine == "podman"
    waiting = WAITING.format(pipe=scratch / "alive")
    return client_command(
        plan.engine,
        # Of podman it is a global option, of docker one of `run`.
        *(runtime if plan.engine == "podman" else ()),
        "run",
        *(runtime if plan.engine == "docker" else ()),
        "--detach",
        "--rm",
        # Without it an engine would look for an unknown image on the network.
        "--pull=never",
        f"--label={LABEL}={plan.job}",
        "--network=host" if plan.network else "--network=none",
        f"--user={os.getuid()}:{os.getgid()}",
        # Rootless, the user inside is the user outside: files belong to whoever builds.
        *(("--userns=keep-id",) if rootless else ()),
        # SELinux would forbid the mounted directories to the container.
        "--security-opt=label=disable",
        "--tmpfs=/tmp:rw,exec,mode=1777",
        *plan.options,
        *mounts,
        plan.image.config.removeprefix("sha256:"),
        "/bin/sh",
        "-c",
        waiting,
    )


def choose(asked: Engine | None) -> Engine:
    """Return the engine that the host file names, else the first that is installed.

    Podman comes first: it needs no daemon, and no root. It is also the answer where there is none.
    """
    if asked:
        return asked
    return next((engine for engine in ENGINES if is_installed(engine)), ENGINES[0])


PACKAGES: Mapping[Engine, str] = {"podman": "podman", "docker": "docker.io"}
"""What Debian and Ubuntu call them."""


def is_installed(engine: Engine) -> bool:
    """Say whether an engine is there."""
    return shutil.which(engine) is not None


def check_runs(engine: Engine) -> None:
    """Raise HostError if the engine that runs a recipe's container is not installed."""
    if is_installed(engine):
        return
    remedy = install_remedy(engine)
    if is_installed("podman" if engine == "docker" else "docker"):
        # Otherwise that one would have been chosen.
        remedy += ", or take engine out of [container] in the host file"
    elif engine == "podman":
        remedy += ", or Docker"
    raise HostError(
        f"The recipe is built in a container, and {engine} is not installed", remedy=f"{remedy}."
    )


def install_remedy(engine: Engine) -> str:
    """Say how an engine is installed, without the full stop."""
    return f"Install {engine} (Debian and Ubuntu: apt install {PACKAGES[engine]})"


def load(image: KeptImage, scratch: Path, engine: Engine = "podman") -> None:
    """Give an engine an image of the vault, unless it has it. Raises ToolError."""
    config, *layers = (part.removeprefix("sha256:") for part in image.manifest.parts)
    asked = client_command(engine, "image", "inspect", "--format={{.Id}}", config)
    # Docker writes "sha256:" before it, podman does not.
    if runner.short_output(asked).removeprefix("sha256:") == config:
        return
    blobs = image.layout / "blobs/sha256"
    # A layer may be there twice.
    parts = dict.fromkeys((config, *layers))
    if engine == "docker":
        archive = scratch / "image.tar"
        listed = [{"Config": config, "RepoTags": None, "Layers": layers}]
        content = json.dumps(listed).encode()
        with tarfile.open(archive, "w") as output:
            head = tarfile.TarInfo("manifest.json")
            head.size = len(content)
            output.addfile(head, io.BytesIO(content))
            for name in parts:
                output.add(blobs / name, name)
        command = client_command(engine, "load", "--quiet", "--input", str(archive))
    else:
        # podman's ``dir:`` keeps the manifest as it is. ``oci:`` would refuse Docker's, and would
        # want to know which manifest of a list is meant.
        # https://github.com/containers/image/blob/main/directory/directory_transport.go
        folder = scratch / "image"
        folder.mkdir()
        (folder / "version").write_text("Directory Transport Version: 1.1\n", "ascii")
        manifest = image.manifest.digest.removeprefix("sha256:")
        (folder / "manifest.json").symlink_to(blobs / manifest)
        for name in parts:
            (folder / name).symlink_to(blobs / name)
        command = client_command(engine, "pull", "--quiet", f"dir:{folder}")
    runner.run(command, remedy=f"Look at what {engine} says above.")


def _remove_command(engine: Engine, identifier: str) -> Command:
    # Docker kills at once; podman would first wait ten seconds for the container to end.
    at_once = ("--time", "0") if engine == "podman" else ()
    return client_command(engine, "rm", "--force", *at_once, identifier)


def _start(plan: ContainerPlan, scratch: Path) -> Container:
    """Start the container and find its first process."""
    remedy = f"Look at what {plan.engine} says above, and at [container] in the host file."
    command = start_command(plan, scratch)
    printed = runner.run(command, remedy=remedy)
    # An engine may print warnings before the container's id.
    identifier = printed.split()[-1] if printed.split() else ""
    asked = client_command(plan.engine, "inspect", "--format={{.State.Pid}}", identifier)
    first = runner.short_output(asked)
    # Engines give 0 for a container that does not run.
    if not first.isdigit() or first == "0":
        raise ToolError(
            "The container ended at once",
            remedy=remedy,
            evidence=Evidence(command=command.argv, lines=printed.splitlines()),
        )
    return Container(identifier, plan.image, int(first), plan.engine)


def client_command(engine: Engine, *arguments: str) -> Command:
    """Return a command of an engine, which runs on the host even while a container is open."""
    return host_command(engine, QUIET_CLIENT, *arguments)


def host_command(*argv: str) -> Command:
    """Return a command on the host with what it needs of the caller, also where logins are kept."""
    return Command(argv, Path("/"), caller_variables(CLIENT_VARIABLES), here=True)


def _pid_namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""
