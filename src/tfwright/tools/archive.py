"""GitHub's source archives, made again from a git mirror, bit for bit."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from tfwright.environment import SYSTEM_PATH
from tfwright.errors import SupplyError

_URL = re.compile(r"https?://(?:.*/)?github\.com/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/archive/(?:refs/tags/)?(?P<ref>\w[\w./+-]*?)\.(?P<form>tar\.gz|zip)")


@dataclass(frozen=True)
class SourceArchive:
    """What GitHub packs at ``/OWNER/NAME/archive/REF.tar.gz`` or ``.zip``."""

    owner: str
    name: str
    ref: str
    """A commit, a tag or a branch."""
    form: Literal["tar.gz", "zip"]

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Read an address of GitHub, or of a mirror that keeps GitHub's path; None for any other."""
        found = _URL.fullmatch(url)
        return cls(found["owner"], found["name"], found["ref"], "zip" if found["form"] == "zip" else "tar.gz") if found else None

    @property
    def repository(self) -> str:
        """The url of the repository."""
        return f"https://github.com/{self.owner}/{self.name}.git"

    @property
    def prefix(self) -> str:
        """The directory that GitHub puts everything into: a tag's leading v is dropped, slashes become dashes."""
        return f"{self.name}-{re.sub(r'^v(?=[0-9])', '', self.ref).replace('/', '-')}/"


def regenerate(archive: SourceArchive, mirror: Path, target: Path) -> None:
    """Write `archive` to `target` from a bare mirror of its repository.

    GitHub's bytes are those of ``git archive`` through ``gzip -n``, and for zip those of git in the time
    zone of California, which its file times are written in. Raises SupplyError if the mirror lacks the
    ref or one of its files; whether the bytes are the pinned ones, the caller checks.
    """
    git = ["git", f"--git-dir={mirror}", "archive", f"--format={'zip' if archive.form == 'zip' else 'tar'}", f"--prefix={archive.prefix}", archive.ref]
    environment = {
        "PATH": ":".join(SYSTEM_PATH),
        "TZ": "America/Los_Angeles",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_LAZY_FETCH": "1",
    }
    with target.open("wb") as output, subprocess.Popen(git, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as packing:  # noqa: S603 argv is a list, and the ref cannot begin with a dash
        pack = ["gzip", "-n"] if archive.form == "tar.gz" else ["cat"]
        subprocess.run(pack, env=environment, stdin=packing.stdout, stdout=output, check=True)  # noqa: S603 fixed
        complaint = packing.stderr.read().decode("utf-8", "replace").strip() if packing.stderr else ""
        if packing.wait() != 0:
            raise SupplyError(f"{mirror} cannot give {archive.ref}: {complaint.partition(chr(10))[0]}", remedy="Fetch the whole repository into the mirror.")
