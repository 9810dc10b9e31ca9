"""How the time of 40 recipes falls with workers, and what a worker's death costs, over real ssh.

    python benchmarks/cluster.py                    # builds that only sleep: measures the hand-out
    python benchmarks/cluster.py --real 6           # the demo itself, under other project names
    python benchmarks/cluster.py --real 6 --night   # the same by 'invoke nightly'

Each worker is a network namespace of this machine with an address and an sshd of its own, so that
cutting its link and killing its sshd look like the death of a machine. Needs root, iproute2, rsync
and an sshd (on Debian, openssh-server).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NET = "10.211.17"
BRIDGE = "tfwbench"
SLEEPY = """\
import sys, time
time.sleep({seconds})
print("built")
"""
SSHD = """\
HostKey {room}/host_key
AuthorizedKeysFile {room}/key.pub
PidFile {room}/{name}.pid
ListenAddress {address}
StrictModes no
UsePAM no
"""
CLIENT = """\
IdentityFile {room}/key
IdentitiesOnly yes
UserKnownHostsFile {room}/known_hosts
GlobalKnownHostsFile /dev/null
"""


def run(*argv: str, check: bool = True) -> None:
    """Run a program silently."""
    subprocess.run(argv, check=check, capture_output=True)


@contextmanager
def machines(room: Path, count: int) -> Iterator[list[str]]:
    """Start machines; yield their names. Their addresses are NET.11 and so on."""
    names = [f"tfwbench{number}" for number in range(1, count + 1)]
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(room / "key"))
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(room / "host_key"))
    key = " ".join((room / "host_key.pub").read_text().split()[:2])
    known = [f"{NET}.{10 + number} {key}\n" for number in range(1, count + 1)]
    (room / "known_hosts").write_text("".join(known))
    (room / "ssh_config").write_text(CLIENT.format(room=room))
    Path("/run/sshd").mkdir(exist_ok=True)
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    try:
        run("ip", "addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for number, name in enumerate(names, 1):
            start_machine(room, name, number)
        time.sleep(1)
        yield names
    finally:
        for name in names:
            end_machine(room, name)
            run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", BRIDGE, check=False)


def start_machine(room: Path, name: str, number: int) -> None:
    """Make a namespace with one link to the bridge, and start an sshd in it."""
    address = f"{NET}.{10 + number}"
    inside, outside = f"{BRIDGE}i{number}", f"{BRIDGE}o{number}"
    run("ip", "netns", "add", name)
    run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
    run("ip", "link", "set", outside, "master", BRIDGE, "up")
    run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", inside)
    run("ip", "-n", name, "link", "set", inside, "up")
    run("ip", "-n", name, "link", "set", "lo", "up")
    config = room / f"{name}.sshd"
    config.write_text(SSHD.format(room=room, name=name, address=address))
    run("ip", "netns", "exec", name, "/usr/sbin/sshd", "-f", str(config))


def end_machine(room: Path, name: str) -> None:
    """Kill everything that runs in a machine, its sshd first."""
    listing = ("ip", "netns", "pids", name)
    listed = subprocess.run(listing, check=False, capture_output=True, text=True)
    pid = room / f"{name}.pid"
    numbers = [pid.read_text()] if pid.exists() else []
    for number in (*numbers, *listed.stdout.split()):
        try:
            os.kill(int(number), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            continue


def kill_after(seconds: float, room: Path, name: str, number: int) -> threading.Thread:
    """Cut a machine's link and kill what runs in it, later."""

    def kill() -> None:
        time.sleep(seconds)
        run("ip", "link", "set", f"{BRIDGE}o{number}", "down", check=False)
        end_machine(room, name)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def host_file(room: Path, names: Sequence[str], directory: Path) -> Path:
    """Write the host file of the machine that hands out; return its path."""
    lines = [f'build_out = "{room}/out"']
    for number, name in enumerate(names, 1):
        lines += [
            "[[workers]]",
            f'name = "{name}"',
            f'address = "{NET}.{10 + number}"',
            f'directory = "{directory}"',
            f'python = "{sys.executable}"',
            f'host_file = "{room}/worker.toml"',
            f'config = "{room}/ssh_config"',
        ]
    (room / "host.toml").write_text("\n".join(lines) + "\n")
    (room / "worker.toml").write_text(f'build_out = "{room}/out"\n')
    return room / "host.toml"


def sleepy_checkout(room: Path, seconds: float) -> Path:
    """Make a directory whose tasks.py does nothing for a while, instead of a build."""
    folder = room / "checkout"
    folder.mkdir()
    (folder / "tasks.py").write_text(SLEEPY.format(seconds=seconds))
    return folder


def recipes(room: Path, count: int) -> list[Path]:
    """Write recipes of the demo, each with a wheel of its own name."""
    text = (ROOT / "recipes/demo.toml").read_text()
    # What was verified belongs to the demo itself.
    text = text.partition("[verified]")[0]
    paths = []
    for number in range(1, count + 1):
        path = room / f"demo{number:02}.toml"
        path.write_text(f'{text}\n[package]\nproject_name = "cluster_demo_{number:02}"\n')
        paths.append(path)
    return paths


def environment(room: Path) -> Mapping[str, str]:
    """Return the environment of the machine that hands out."""
    return {
        **os.environ,
        "TFWRIGHT_HOST_FILE": str(room / "host.toml"),
        "TFWRIGHT_NIGHTLY_FILE": str(room / "nightly.toml"),
        "PYTHONPATH": str(ROOT / "src"),
    }


def invoked(room: Path, *arguments: str) -> tuple[float, str]:
    """Run a command of tfwright; return the seconds and its output."""
    begun = time.monotonic()
    done = subprocess.run(
        (sys.executable, "-m", "invoke", *arguments),
        # A recipe that fails is a result.
        check=False,
        cwd=ROOT,
        env=environment(room),
        stdout=subprocess.PIPE,
        text=True,
    )
    return time.monotonic() - begun, done.stdout


def build(room: Path, paths: Sequence[Path]) -> tuple[float, list[dict[str, Any]]]:
    """Build recipes on the workers; return the seconds and what `--json` says."""
    named = [word for path in paths for word in ("--recipe", str(path))]
    seconds, said = invoked(room, "build", "--on", "workers", "--json", *named)
    return seconds, json.loads(said)


def night(room: Path, paths: Sequence[Path]) -> tuple[float, str]:
    """Run a night on the workers; return the seconds and what it says."""
    lines = [f'directory = "{room}/nights"', 'on = "workers"', "reproduce = false", "links = false"]
    for path in paths:
        lines += ["[[recipe]]", f'name = "{path}"']
    lines += ["[retention]", 'free = "1 GB"']
    (room / "nightly.toml").write_text("\n".join(lines) + "\n")
    return invoked(room, "nightly")


def shown(label: str, seconds: float, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line of the result."""
    states = [str(row["state"]) for row in rows]
    shares = {row["worker"] for row in rows}
    counts = [sum(row["worker"] == name for row in rows) for name in sorted(map(str, shares))]
    lost = [f"{row['recipe']} lost {', '.join(row['lost'])}" for row in rows if row["lost"]]
    built = f"{states.count('built')} of {len(rows)} built"
    print(f"{label}: {seconds:.1f} s, {built}, by worker {counts}", *lost, sep="; ", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipes", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a build that only sleeps")
    parser.add_argument("--real", type=int, default=0, help="build the demo so many times instead")
    parser.add_argument("--night", action="store_true", help="with --real: by 'invoke nightly'")
    parser.add_argument("--kill", type=float, default=15.0, help="0: no machine dies")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 3])
    given = parser.parse_args()
    room = Path(tempfile.mkdtemp(prefix="tfwright-cluster-"))
    try:
        with machines(room, 3) as names:
            if given.real:
                real(room, names, given)
            else:
                scaling(room, names, given)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def scaling(room: Path, names: Sequence[str], given: argparse.Namespace) -> None:
    """Measure 1, 2 and 3 workers with builds that sleep, then 3 of which one dies."""
    directory, paths = (sleepy_checkout(room, given.seconds), recipes(room, given.recipes))
    for count in given.workers:
        host_file(room, names[:count], directory)
        shown(f"{count} workers", *build(room, paths))
    if not given.kill:
        return
    host_file(room, names, directory)
    killing = kill_after(given.kill, room, names[0], 1)
    shown("3 workers, one killed", *build(room, paths))
    killing.join()


def real(room: Path, names: Sequence[str], given: argparse.Namespace) -> None:
    """Build the demo under several names on 3 workers, of which one dies."""
    host_file(room, names, ROOT)
    paths = recipes(room, given.real)
    # The machines have no way to the internet: what a build downloads is in the shared vault.
    for path in paths:
        invoked(room, "build", "--recipe", str(path), "--until", "fetch")
    killing = kill_after(given.kill, room, names[0], 1)
    if given.night:
        seconds, said = night(room, paths)
        print(said, f"{seconds:.0f} s", sep="\n")
        page = (room / "nights/site/index.html").read_text()
        print("page names", [name for name in names if name in page])
    else:
        shown("3 workers, one killed", *build(room, paths))
        wheels = sorted((room / "out/wheelhouse").glob("*.whl"))
        print(f"{len(wheels)} wheels")
    killing.join()


if __name__ == "__main__":
    main()
