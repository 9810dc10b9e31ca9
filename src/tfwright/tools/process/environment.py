"""The environment that every outside program gets: built from nothing, the same on every host."""

from collections.abc import Mapping
from pathlib import Path

SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where the host's own programs are looked for. The caller's PATH never leaks into a build."""


def clean(
    home: Path,
    programs: tuple[Path, ...] = (),
    epoch: int = 0,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a whole environment that depends on none of the caller's variables.

    `programs` are directories put before the system's own on PATH, `epoch` (seconds) becomes
    SOURCE_DATE_EPOCH, `extra` wins over the rest. `home` is a private directory, so that no
    ~/.bazelrc, ~/.gitconfig or ~/.pydistutils.cfg takes part.
    """
    return {
        "HOME": str(home),
        # A sort order, or a translated message, must not depend on the host's language.
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PATH": ":".join([*map(str, programs), *SYSTEM_PATH]),
        # Bytecode holds the time of its source file: it must not come into a tree or a
        # wheel.
        "PYTHONDONTWRITEBYTECODE": "1",
        # configure.py before 2.5 takes the default of a question from an unsorted set.
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # bdist_wheel and zip tools stamp their members with it instead of with the
        # clock.
        "SOURCE_DATE_EPOCH": str(epoch),
        # A zip archive holds local times.
        "TZ": "UTC",
        **(extra or {}),
    }
