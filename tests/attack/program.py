"""The whole program on the demo: built for real, again and again, after something was damaged."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tfwright.documents.recipe import ROOT
from tfwright.tools import files

EXPECTED = {0, 2, 3, 4, 5, 6, 130}
"""Exit statuses that a message goes with; 1 is a fault of tfwright's own."""
# A campaign that goes on after its terminal closed ignores this, and so would all that it starts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
LONGEST = 600.0
"""Seconds that a build of the demo may take on a busy machine."""


@dataclass(frozen=True)
class Ended:
    """A run of the program."""

    status: int
    out: str
    err: str

    @property
    def fault(self) -> str:
        """What is wrong with how it ended; empty where it succeeded, or said what to do."""
        # One that is quoted of another program has a margin.
        lines = self.err.splitlines()
        if any(line.startswith("Traceback (most recent") for line in lines):
            return f"a traceback: {self.err.strip().splitlines()[-1][:200]}"
        if self.status not in EXPECTED:
            return f"exit status {self.status}: {self.err.strip()[-200:]}"
        if self.status and "do:" not in self.err:
            return f"no remedy: {self.err.strip()[-200:]}"
        return ""


def bazels_at_hand() -> str:
    """Return the host file's table of the Bazels in $TFWRIGHT_BAZELS, which are then not fetched."""
    folder = os.environ.get("TFWRIGHT_BAZELS")
    found = sorted(Path(folder).glob("bazel-*")) if folder else []
    lines = [f'"{path.name.split("-")[1]}" = "{path}"' for path in found]
    return "\n".join(["[bazels]", *lines, ""]) if lines else ""


class Program:
    """The program with a build directory of its own."""

    def __init__(self, folder: Path, host_file: str = "") -> None:
        self.folder, self.build_out = folder, folder / "out"
        self.host_file = folder / "host.toml"
        text = f'build_out = "{self.build_out}"\n{host_file}{bazels_at_hand()}'
        self.host_file.write_text(text, "utf-8")

    def start(self, *words: str, **env: str) -> "subprocess.Popen[str]":
        """Start a command in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "invoke", *words],
            cwd=ROOT,
            env={**os.environ, "TFWRIGHT_HOST_FILE": str(self.host_file), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, **env: str) -> Ended:
        """Run a command to its end."""
        process = self.start(*words, **env)
        try:
            out, err = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return Ended(124, out, f"it did not end within {LONGEST:.0f} s\n{err}")
        return Ended(process.returncode, out, err)

    def killed(self, number: int, after: float, *words: str) -> int | None:
        """Start a command and send it a signal; return its status.

        None if it ended before, or went on for long after it.
        """
        process = self.start(*words)
        try:
            process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            try:
                process.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return None
            return process.returncode
        return None


class Demo(Program):
    """The demo in a build directory of its own, built once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        first = self.run("build")
        assert first.status == 0, first.err
        self.wheel = Path(first.out.strip().splitlines()[-1])
        self.sha256 = files.sha256(self.wheel)

    def wrong(self, ended: Ended, *, may_fail: bool = False) -> str:
        """Say in what a build ended otherwise than it should: another wheel, or an error."""
        if ended.fault:
            return ended.fault
        if ended.status:
            return "" if may_fail else f"it failed: {ended.err.strip()[:300]}"
        made = Path(ended.out.strip().splitlines()[-1])
        return "" if files.sha256(made) == self.sha256 else "another wheel was made, and published"

    def forget(self) -> None:
        """Let the next build begin with its sources: all that was made for the recipe goes."""
        for place in ("stamps", "tree", "dist"):
            shutil.rmtree(self.build_out / "demo" / place, ignore_errors=True)


SIGNALS = {
    "SIGKILL": signal.SIGKILL,
    "SIGTERM": signal.SIGTERM,
    "SIGINT": signal.SIGINT,
    "SIGHUP": signal.SIGHUP,
}


def seconds_of(demo: Demo) -> float:
    """Return how long a build takes that begins with the sources."""
    demo.forget()
    begun = time.monotonic()
    demo.run("build")
    return time.monotonic() - begun
