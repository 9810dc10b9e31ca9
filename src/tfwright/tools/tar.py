"""Python's tarfile module, with the filters for foreign archives in every Python that we run on."""

import sys

# The filters of PEP 706 came with 3.11.4; Debian 12 has 3.11.2.
if sys.version_info >= (3, 11, 4):
    import tarfile
else:
    from backports import tarfile  # type: ignore[no-redef]

__all__ = ["tarfile"]
