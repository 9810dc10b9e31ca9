"""Files of package registries by package URL (ECMA-427), which stays when a registry moves."""

import re
from collections.abc import Mapping
from urllib.parse import quote

PATTERN = r"pkg:[a-z]+/[^\s?@]+@[^\s?]+(\?\S+)?"
"""A package URL with a version."""
_FORMS: Mapping[str, str] = {
    "pypi": r"/packages/(?:source/\w|\w{2}/\w{2})/[\w.-]+/"
    r"(?P<name>[A-Za-z][\w.-]*?)-(?P<version>\d[\w.+!-]*)\.(?P<ending>tar\.gz|zip)",
    "maven": r"/maven2?/(?P<space>[\w./-]+)/(?P<name>[\w.-]+)/(?P<version>[\w.+-]+)/"
    r"(?P=name)-(?P=version)(?:-(?P<classifier>[\w.-]+))?\.(?P<type>\w+)",
    "deb": r"/(?P<space>debian|ubuntu)/pool/(?:[\w.+-]+/)+"
    r"(?P<name>[a-z0-9.+-]+)_(?P<version>[\w.+~:-]+)_(?P<arch>\w+)\.deb",
    "npm": r"/(?:(?P<space>@[\w.-]+)/)?(?P<name>[\w.-]+)/-/(?P=name)-(?P<version>\d[\w.+-]*)\.tgz",
}
"""How a registry, and any mirror of it, lays out its files, by the type of its package URLs."""


def named(url: str) -> str:
    """Return the package URL of a registry's file, also on a mirror; any other url as it is."""
    for kind, form in _FORMS.items():
        # Only the path is known: every mirror has another host, and often a prefix.
        if found := re.fullmatch(r"https?://\S+?" + form, url):
            return _package_url(kind, found.groupdict())
    return url


def of_file(name: str) -> str:
    """Return the package URL of a Debian package or a wheel by the name of its file.

    A url is returned unchanged.
    """
    if name.endswith(".deb"):
        # Underscores separate the fields, and no field may contain one.
        package, version, arch = name.removesuffix(".deb").split("_")
        parts = {"space": "debian", "name": package, "version": version, "arch": arch}
        return _package_url("deb", parts)
    if name.endswith(".whl"):
        # PEP 427: hyphens separate the fields, and those of the project are replaced.
        project, version = name.split("-")[:2]
        return _package_url("pypi", {"name": project, "version": version})
    return name


def _package_url(kind: str, parts: Mapping[str, str | None]) -> str:
    space = (parts.get("space") or "").replace("/", "." if kind == "maven" else "/")
    name = parts["name"] or ""
    if kind == "pypi":
        # The specification of package URLs asks for this form of a Python project's
        # name.
        name = name.lower().replace("_", "-")
    path = "/".join(quote(part, safe="") for part in (space, name) if part)
    # What tells the files of one version apart. The specification sorts qualifiers, so that equal
    # packages have equal URLs. A jar is Maven's default, which a package URL leaves out.
    qualifiers = "&".join(
        f"{key}={parts[key]}"
        for key in ("arch", "classifier", "type")
        if parts.get(key) and (key, parts[key]) != ("type", "jar")
    )
    version = quote(parts["version"] or "", safe="")
    return f"pkg:{kind}/{path}@{version}" + (f"?{qualifiers}" if qualifiers else "")
