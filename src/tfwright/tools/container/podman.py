"""Podman: images loaded by digest, and a container that ends with this process.

The container's first process waits for the end of a named pipe that only this process holds open.
However this process ends, SIGKILL included, the kernel closes the pipe; the first process ends, and
the kernel ends all others of the container with it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfwright.errors import HostError, ToolError
from tfwright.tools.container.image import KeptImage
from tfwright.tools.process import isolation, runner
from tfwright.tools.process.inside import entered
from tfwright.tools.process.runner import Command

LABEL = "org.tfwright.job"
CLIENT_VARIABLES = ("HOME", "PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""What podman itself needs of the caller's environment; nothing of it reaches the container."""
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
    """Further options of `podman run`, from the host file."""


@dataclass(frozen=True)
class Container:
    """A container that is running."""

    identifier: str
    image: KeptImage
    first: int
    """The host's number of its first process."""

    @property
    def name(self) -> str:
        """The digest of its image."""
        return self.image.digest

    def command(self, command: Command, *, terminal: bool) -> Command:
        """Return the command on the host that runs another one inside, in just its environment."""
        variables = [f"{name}={value}" for name, value in command.env.items()]
        options = ("--interactive", *(("--tty",) if terminal else ()))
        where = ("--workdir", str(command.cwd), self.identifier)
        quiet = ("/bin/sh", "-c", QUIET, "sh") if terminal else ()
        clean = ("/usr/bin/env", "-i", *variables, *quiet, *command.argv)
        return client("exec", *options, *where, *clean)

    def interactive(self, command: Command) -> Command:
        """Return the command on the host that runs another one inside, on the user's terminal."""
        variables = [f"{name}={value}" for name, value in command.env.items()]
        options = ("--interactive", "--tty", "--workdir", str(command.cwd), self.identifier)
        return client("exec", *options, "/usr/bin/env", "-i", *variables, *command.argv)

    def host_process(self, pid: int) -> int | None:
        """Return the host's number for a process of this container."""
        # /proc lists the processes of all containers; the namespace tells ours from others.
        own = _namespace(self.first)
        for status in Path("/proc").glob("[0-9]*/status"):
            process = int(status.parent.name)
            if _namespace(process) == own and _number_inside(status) == pid:
                return process
        return None

    def listening(self, door: Path, port: int) -> Command:
        """Return what makes loopback inside lead to the cache's proxy on the host."""
        program = isolation.listening(door, port)
        return isolation.beside(self.first, Command(program, Path("/"), here=True))


@contextmanager
def opened(plan: ContainerPlan) -> Iterator[Container]:
    """Run programs inside a container while the block runs; nothing of it is left afterwards.

    Raises HostError if podman is missing, ToolError if it cannot start the container.
    """
    insist()
    # After a loss of power nothing has ended what the last start left.
    remove_left(plan.job)
    with tempfile.TemporaryDirectory(prefix="tfwright-box-") as room:
        load(plan.image, Path(room))
        pipe = Path(room, "alive")
        os.mkfifo(pipe)
        # Opened for both directions it blocks neither side. Children do not inherit it.
        held = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        container = None
        try:
            container = _started(plan, Path(room))
            with entered(container):
                yield container
        finally:
            os.close(held)
            if container:
                runner.answer(client("rm", "--force", "--time", "0", container.identifier))


def start_command(plan: ContainerPlan, room: Path) -> Command:
    """Return the command that starts the container; `room` holds the pipe."""
    mounts = [f"--volume={path}:{path}" for path in plan.writable]
    mounts += [f"--volume={path}:{path}:ro" for path in (*plan.readable, room)]
    runtime = (f"--runtime={plan.runtime}",) if plan.runtime else ()
    waiting = WAITING.format(pipe=room / "alive")
    return client(
        *runtime,
        "run",
        "--detach",
        "--rm",
        # Without it podman would look for an unknown image on the network.
        "--pull=never",
        f"--label={LABEL}={plan.job}",
        "--network=host" if plan.network else "--network=none",
        f"--user={os.getuid()}:{os.getgid()}",
        # Rootless, the user inside is the user outside: files belong to whoever builds.
        *(() if os.getuid() == 0 else ("--userns=keep-id",)),
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


def installed() -> bool:
    """Say whether podman is there."""
    return shutil.which("podman") is not None


def insist() -> None:
    """Raise HostError if podman is not installed."""
    if not installed():
        raise HostError(
            "The recipe is built in a container, and podman is not installed",
            remedy="Install podman (Debian and Ubuntu: apt install podman).",
        )


def load(image: KeptImage, room: Path) -> None:
    """Give podman an image of the vault, unless it has it. Raises ToolError."""
    identifier = image.config.removeprefix("sha256:")
    if runner.answer(client("image", "inspect", "--format={{.Id}}", identifier)) == identifier:
        return
    pull = client("pull", "--quiet", f"dir:{_as_directory(image, room / 'image')}")
    runner.run(pull, room / "pull.log", remedy="Look at what podman says above.")


def _as_directory(image: KeptImage, folder: Path) -> Path:
    """Lay an image out as podman's ``dir:`` takes it; links, no copies.

    That form keeps the manifest as it is. ``oci:`` would refuse Docker's, and would want to know
    which manifest of a list is meant.
    https://github.com/containers/image/blob/main/directory/directory_transport.go
    """
    folder.mkdir()
    blobs = image.layout / "blobs/sha256"
    (folder / "version").write_text("Directory Transport Version: 1.1\n", "ascii")
    (folder / "manifest.json").symlink_to(blobs / image.manifest.digest.removeprefix("sha256:"))
    for part in dict.fromkeys(image.manifest.parts):
        name = part.removeprefix("sha256:")
        (folder / name).symlink_to(blobs / name)
    return folder


def remove_left(job: str) -> Sequence[str]:
    """Remove what an earlier start of the same job left; return what was removed."""
    listing = client("ps", "--all", "--quiet", f"--filter=label={LABEL}={job}")
    left = runner.answer(listing).split()
    for identifier in left:
        runner.answer(client("rm", "--force", "--time", "0", identifier))
    return left


def _started(plan: ContainerPlan, room: Path) -> Container:
    """Start the container and find its first process."""
    remedy = "Look at what podman says; the host file's [container] has its runtime and options."
    said = runner.run(start_command(plan, room), room / "run.log", remedy=remedy)
    # podman may print warnings before the container's id.
    identifier = said.split()[-1] if said.split() else ""
    first = runner.answer(client("inspect", "--format={{.State.Pid}}", identifier))
    # podman gives 0 for a container that does not run.
    if not first.isdigit() or first == "0":
        raise ToolError("The container ended at once", remedy=remedy)
    return Container(identifier, plan.image, int(first))


def client(*arguments: str) -> Command:
    """Return a command of podman, which runs on the host even while a container is open."""
    return Command(("podman", *arguments), Path("/"), _client_environment(), here=True)


def _client_environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ}


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _number_inside(status: Path) -> int:
    """Return a process's number in its innermost namespace."""
    try:
        lines = status.read_text("ascii", "replace").splitlines()
    except OSError:
        return 0
    # "NSpid: 4711 12": the number in each namespace, from the host's inwards.
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), ["0"])
    return int(numbers[-1])
