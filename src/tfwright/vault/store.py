"""The store: files by the SHA-256 of their content, in the layout that Bazel reads.

Bazel looks for an archive with a known digest at ``content_addressable/sha256/<digest>/file`` below
its ``--repository_cache`` (seen with 0.17.2, 0.24.1 and 0.26.1). The store keeps that layout, so
that a build reads from it without a copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tfwright.errors import SupplyError
from tfwright.tools import files


class Store:
    """A directory of files that are what their names say."""

    def __init__(self, root: Path) -> None:
        """Use the store at `root`; it need not exist yet."""
        self.root = root

    @property
    def _digests(self) -> Path:
        return self.root / "content_addressable/sha256"

    def path(self, sha256: str) -> Path:
        """Return where the file of a digest is, or would be."""
        return self._digests / sha256 / "file"

    def holds(self, sha256: str) -> bool:
        """Say whether the file is there; what got in was verified on the way in."""
        return self.path(sha256).is_file()

    def verify(self, sha256: str) -> bool:
        """Say whether the file is there and still what it was; one that is not is removed."""
        if self.holds(sha256) and files.sha256(self.path(sha256)) != sha256:
            self.remove(sha256)
        return self.holds(sha256)

    @contextmanager
    def admitting(self, sha256: str, origin: str) -> Iterator[Path]:
        """Give a temporary path to fill; what was written is admitted only if it has the digest.

        Raises SupplyError naming both digests and the origin otherwise. Two processes may admit the
        same file at once: the content is the same, and the last rename wins.
        """
        # Read-only, so that a build cannot change what later builds trust; `vault --gc`
        # also tells by this what tfwright admitted from what Bazel wrote by itself.
        with files.replacing(self.path(sha256), mode=0o444) as temporary:
            yield temporary
            # On the temporary file: until the rename no build can see what was not verified.
            found = files.sha256(temporary)
            if found != sha256:
                raise SupplyError(
                    f"{origin} gave other bytes than were pinned: sha256 {found}, wanted {sha256}",
                    remedy=(
                        "Trust the pin, not the server: get the file from a mirror, "
                        "or copy the right one into the folder that the host file names as 'drop'."
                    ),
                )

    def digests(self) -> list[str]:
        """Return the digests of all files, sorted."""
        return sorted(path.parent.name for path in self._digests.glob("*/file"))

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file, by digest."""
        return {digest: self.path(digest).stat().st_size for digest in self.digests()}

    def remove(self, sha256: str) -> None:
        """Remove a file, with the directory that is named after its checksum."""
        files.remove(self.path(sha256).parent)

    def remove_empty(self, sha256: str) -> None:
        """Remove the directory of a digest whose file was not obtained, if nothing is in it."""
        # A part of a download may be there, with which the next fetch goes on.
        with suppress(OSError):
            self.path(sha256).parent.rmdir()
