"""How npm, pip and apt are run: what they see of the caller's environment, and what they say."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.request import getproxies_environment

from tfwright.documents import filesystem
from tfwright.errors import SilentServerError, SupplyError, TfwrightError
from tfwright.tools.process.command import Command, clean_environment

_INDEX = {
    "npm": (
        "npm_config_registry",
        "npm_config_userconfig",
        "npm_config_globalconfig",
        "npm_config_cafile",
        "npm_config_cache",
    ),
    "pip": (
        "pip_index_url",
        "pip_extra_index_url",
        "pip_find_links",
        "pip_no_index",
        "pip_trusted_host",
        "pip_cert",
        "pip_config_file",
        "pip_cache_dir",
    ),
}
"""Which index is asked is the host's own business, and so are the clients' configuration files,
found by HOME."""


_UNREACHED = re.compile(
    # npm's codes, pip's warning, apt's sentences.
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)\b"
    r"|after connection broken by"
    r"|(Could not resolve|Temporary failure resolving|Could not connect to|Cannot initiate the)"
)


def error_kind(fault: TfwrightError) -> type[SupplyError]:
    """Return the error that a client's failure is: SilentServerError if it reached no server."""
    unreached = any(_UNREACHED.search(line) for line in fault.evidence.lines)
    return SilentServerError if unreached else SupplyError


def pip_remedy(fault: TfwrightError, complaint: str, known: str = "") -> str:
    """Return what to do about a pip that did not bring what it was to bring, by its `complaint`.

    Where its index and the checksums are not the cause, it is what is `known`.
    """
    # Where it reached no server, the requirements say nothing of the cause.
    if error_kind(fault) is SilentServerError:
        return "Check how pip reaches its index: 'pip config list' shows which one it asks."
    if "THESE PACKAGES DO NOT MATCH" in complaint:
        return (
            "pip's output names the file and both checksums. Correct the checksum of its pin, if "
            "it has one; otherwise the index or a proxy gives another file than it lists: ask who "
            "keeps it."
        )
    return known or (
        "Pin a version, and a checksum if any, that the index has; 'pip config list' shows which "
        "one pip asks."
    )


def proxy_variables() -> Mapping[str, str]:
    """Return the caller's proxy variables, in both spellings, since old programs know only one."""
    proxies = getproxies_environment()
    # npm and old programs do not know the variable for all schemes.
    for_all = {scheme: proxies["all"] for scheme in ("http", "https") if "all" in proxies}
    chosen = for_all | {name: proxies[name] for name in ("http", "https", "no") if name in proxies}
    lower = {f"{name}_proxy": value for name, value in chosen.items()}
    return lower | {name.upper(): value for name, value in lower.items()}


def pip_command(python: Path, *arguments: str, cwd: Path) -> Command:
    """Return a run of the pip of an interpreter, as this host's configuration has it."""
    # The version check asks the index each time, and its advice would be the last line of a log.
    argv = (str(python), "-m", "pip", "--disable-pip-version-check", *arguments)
    return Command(argv, cwd, client_environment("pip", (python.parent,)))


def client_environment(client: str, programs: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return the environment for ``npm`` or ``pip``; the directories `programs` lead its PATH."""
    # npm's variables are written in lower case, pip's in upper case.
    own = {name: value for name, value in os.environ.items() if name.lower() in _INDEX[client]}
    # npm does not read the other programs' variable for a company's certificate; it adds this one.
    if trusted := os.environ.get("NODE_EXTRA_CA_CERTS") or os.environ.get("SSL_CERT_FILE"):
        own["NODE_EXTRA_CA_CERTS"] = trusted
    # The real home: the clients' own configuration is there, often with the index's address.
    return clean_environment(filesystem.home(), programs, extra={**proxy_variables(), **own})
