"""What a Python that is too old says: the one line that works on this system.

Python 2.7 and every Python 3 read this file, so it uses only what all of them know.
"""

import os
import subprocess
import sys

try:
    from shlex import quote
except ImportError:
    from pipes import quote

NEEDED = (3, 11)
NEWER = ("3.14", "3.13", "3.12", "3.11")
"""Versions that are looked for, the newest first."""
UV_INSTALLER = "https://astral.sh/uv/install.sh"
PACKAGES = {
    "ubuntu 22.04": "apt-get update && apt-get install -y python3.11 python3.11-venv",
    "rhel 9": "dnf install -y python3.12",
    "rocky 9": "dnf install -y python3.12",
    "almalinux 9": "dnf install -y python3.12",
    "rhel 8": "dnf install -y python3.12",
    "rocky 8": "dnf install -y python3.12",
    "almalinux 8": "dnf install -y python3.12",
}
"""Releases whose own packages include a newer Python in addition to the default one."""


def message(command):
    # type: (list[str]) -> str
    """Return what is needed, and one command that runs this one, tasks.py's path first, with it."""
    words = " ".join(quote(word) for word in command)
    return (
        "tfwright needs Python %d.%d or newer to run; this is %d.%d. It still builds wheels for\n"
        "older ones. Run this instead:\n\n    %s"
        % (NEEDED + sys.version_info[:2] + (_line(words),))
    )


def _line(words):
    # type: (str) -> str
    """Return the shell line that works on this system."""
    # What is installed already needs no package manager and no rights.
    for version in NEWER:
        found = _working("python" + version)
        if found:
            return "%s %s" % (found, words)
    if sys.platform == "darwin":
        return "brew install python@3.13 && python3.13 " + words
    package = PACKAGES.get(_system())
    if package:
        return "%s && python%s %s" % (
            as_root(package),
            package.split("python")[1].split()[0],
            words,
        )
    runner = "uv run --no-project --python 3.13 python " + words
    if _on_path("uv"):
        return runner
    # pipx and pip of these systems are too old to run a tool that was never installed.
    return "%s | sh && ~/.local/bin/%s" % (_download(UV_INSTALLER), runner)


def _download(url):
    # type: (str) -> str
    """Return what prints a file from the web; a minimal Debian has no program for it."""
    if _on_path("wget") and not _on_path("curl"):
        return "wget -qO- " + url
    download = "curl -LsSf " + url
    if _on_path("curl") or not _on_path("apt-get"):
        return download
    return "%s && %s" % (as_root("apt-get update && apt-get install -y curl"), download)


def as_root(command):
    # type: (str) -> str
    """Return commands, joined by &&, as they are typed to run them as root."""
    # A container's root often has no sudo.
    return command if os.geteuid() == 0 else "sudo " + command.replace("&& ", "&& sudo ")


def _system():
    # type: () -> str
    """Return the distribution with its release, as `rhel 9` or `ubuntu 22.04`."""
    fields = {}
    if os.path.exists("/etc/os-release"):
        # platform.freedesktop_os_release came with 3.10, which is too late here.
        with open("/etc/os-release") as lines:
            for row in lines:
                name, _, value = row.strip().partition("=")
                fields[name] = value.strip('"')
    name, version = fields.get("ID", ""), fields.get("VERSION_ID", "")
    return "%s %s" % (name, version if name == "ubuntu" else version.partition(".")[0])


def _working(python):
    # type: (str) -> str
    """Return how a Python is typed that starts and has venv; empty where there is none."""
    # pyenv's shims are on PATH for each version that is installed, and start only the chosen
    # ones; the next directory of PATH, or pyenv's own, may hold one that does.
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    chosen = sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else []
    versions = [name for name in chosen if name.startswith(python[len("python") :] + ".")]
    folders = os.environ.get("PATH", "").split(os.pathsep)
    further = [os.path.join(pyenv, each, "bin") for each in versions]
    for place, folder in enumerate(folders + further):
        path = os.path.join(folder, python)
        if not folder or not os.access(path, os.X_OK):
            continue
        try:
            started = subprocess.Popen(  # noqa: S603 the first that fits on PATH
                [path, "-c", "import venv, ensurepip"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            started.communicate()
        except OSError:
            continue
        if started.returncode == 0:
            # The shell takes the first on PATH.
            first = _on_path(python)
            return python if first == path and place < len(folders) else path
    return ""


def _on_path(program):
    # type: (str) -> str
    """Return the path of the first program of this name on PATH; empty where there is none."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, program)
        if folder and os.access(path, os.X_OK):
            return path
    return ""
