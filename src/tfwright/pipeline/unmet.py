"""The downloads for which a build stopped, so that the next fetch can name them."""

from collections.abc import Iterable

from pydantic import TypeAdapter

from tfwright.pipeline.job import Job
from tfwright.tools import files

_URLS = TypeAdapter(frozenset[str])


def remember(job: Job, urls: Iterable[str]) -> None:
    """Keep the addresses that Bazel asked for in vain; without any, forget those of before."""
    kept = frozenset(urls)
    if kept:
        files.write(job.places.unmet, _URLS.dump_json(kept, indent=1).decode())
    else:
        files.remove(job.places.unmet)


def read(job: Job) -> frozenset[str]:
    """Return what is remembered; nothing, if that cannot be read."""
    try:
        return _URLS.validate_json(files.content(job.places.unmet))
    except (OSError, ValueError):
        return frozenset()
