"""The host that is looked at: this one, or a directory that plays another."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfwright.tools import disk, files
from tfwright.tools.process import command as programs
from tfwright.tools.process import runner
from tfwright.tools.process.command import Command, clean_environment, open_container


@dataclass(frozen=True)
class Seen:
    """What a probe saw, and how; false if it saw nothing."""

    value: str = ""
    by: str = ""
    """The command that was run, the file that was read, or ``environment``."""

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return self.value

    def find(self, pattern: str) -> "Seen":
        """Return the first group of a pattern in it, whose ^ and $ are those of a line."""
        found = re.search(pattern, self.value, re.MULTILINE)
        return Seen(found[1], self.by) if found else NOTHING


NOTHING = Seen()
PROBED = (*programs.SYSTEM_PATH, "/usr/lib/wsl/lib")
"""Where programs are looked for: on the system's PATH, as builds do, and among WSL's own."""
ON_HOST = ("git", "npm", "podman", "docker", "df")
"""What a build runs on the host, also where the rest of it runs in a container."""


@dataclass(frozen=True)
class Place:
    """Files under a root, programs on the system's own PATH there, and the caller's environment.

    Paths are given and shown as they are called there: ``/usr/bin/gcc``, wherever the root is.
    While a container is open, files and programs of this host are those of its image.
    """

    root: Path = Path("/")
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def enclosed(self) -> bool:
        """Whether files and programs are those of an image."""
        return self.root == Path("/") and open_container() is not None

    def at(self, path: str | Path) -> Path:
        """Return where a path of that host really is."""
        return self.root / str(path).lstrip("/")

    def shown_path(self, path: Path) -> str:
        """Return how that host calls a real path."""
        if not path.is_relative_to(self.root):
            return str(path)
        return str(Path("/", path.relative_to(self.root)))

    def read(self, path: str | Path) -> Seen:
        """Return a file's text; nothing if it cannot be read."""
        # Programs that run on the host, such as df, speak of the host's mounts.
        if self.enclosed and not str(path).startswith("/proc/"):
            text = self._run_shell('cat "$0"', str(path))
            return Seen(text, str(path)) if text else NOTHING
        try:
            # "replace": a header in Latin-1 must not end a look at the host.
            text = files.content(self.at(path)).decode("utf-8", "replace")
            return Seen(text.replace("\r\n", "\n").strip(), str(path))
        except OSError as fault:
            if disk.is_limit(fault):
                raise
            return NOTHING

    def exists(self, path: str | Path) -> bool:
        """Say whether there is a file or directory."""
        if self.enclosed:
            return bool(self._run_shell('[ ! -e "$0" ] || echo yes', str(path)))
        return self.at(path).exists()

    def matching(self, folder: Path, patterns: Iterable[str]) -> Iterator[str]:
        """Yield what fits patterns below a folder, in their order and each sorted."""
        if self.enclosed:
            paths = " ".join(f'"$0"/{pattern}' for pattern in patterns)
            script = f'for path in {paths}; do [ ! -e "$path" ] || echo "$path"; done'
            yield from self._run_shell(script, str(folder)).splitlines()
            return
        for pattern in patterns:
            # Sorted, since a directory's own order differs from host to host.
            for path in sorted(self.at(folder).glob(pattern)):
                yield self.shown_path(path)

    def _run_shell(self, script: str, argument: str) -> str:
        """Return what a script prints in the image."""
        # An argument, not part of the script: the path may come from a recipe.
        return self.ask("/bin/sh", "-c", script, argument).value

    def which(self, program: str, folders: Iterable[str] = PROBED) -> Path | None:
        """Return where a program really is, by default on the system's own PATH."""
        # The caller's PATH may name a venv or a shim, which builds do not use.
        if self.enclosed and program not in ON_HOST:
            # Of a word of the shell's own it prints no path.
            output = self._run_shell('command -v "$0"', program)
            return Path(output) if output.startswith("/") else None
        search = os.pathsep.join(str(self.at(folder)) for folder in folders)
        place = shutil.which(program, path=search)
        return Path(place) if place else None

    def ask(self, program: str, *arguments: str, failed: bool = False) -> Seen:
        """Return what a short program prints; nothing if it is missing or, unless `failed`, fails.

        `program` is a name on the system's PATH, or an absolute path.
        """
        path = self.at(program) if program.startswith("/") else self.which(program)
        # A host without a program is a finding, so a probe never raises.
        if path is None:
            return NOTHING
        search = ":".join(str(self.at(folder)) for folder in programs.SYSTEM_PATH)
        # The user's LANG would translate what compilers and df print.
        env = clean_environment(self.root, extra={"PATH": search})
        argv = (str(path), *arguments)
        command = Command(argv, self.root, env, here=program in ON_HOST)
        return Seen(runner.short_output(command, failed=failed), shlex.join((program, *arguments)))

    def nearest_directory(self, path: str | Path) -> Path:
        """Return the nearest directory, upwards from a path, that exists."""
        real = self.at(path)
        return next(parent for parent in (real, *real.parents) if parent.exists())

    def is_writable(self, path: str | Path) -> bool:
        """Say whether this user may make files in a directory, or make it."""
        return os.access(self.nearest_directory(path), os.W_OK | os.X_OK)


HERE = Place()
"""This host."""
