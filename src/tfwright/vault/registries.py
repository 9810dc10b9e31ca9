"""Files of package registries by package URL (ECMA-427), which stays when a registry moves."""

import re
from collections.abc import Mapping

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


def package_url(url: str) -> str:
    """Return the package URL of a registry's file, also on a mirror; any other url as it is."""
    for kind, form in _FORMS.items():
        # Only the path is known: every mirror has another host, and often a prefix.
        if found := re.fullmatch(r"https?://\S+?" + form, url):
            return _make_url(kind, found.groupdict())
    return url


def package_url_of_file(name: str) -> str:
    """Return the package URL of a Debian package or a wheel by the name of its file.

    A url is returned unchanged.
    """
    if name.endswith(".deb"):
        # Underscores separate the fields, and no field may contain one.
        package, version, arch = name.removesuffix(".deb").split("_")
        parts = {"space": "debian", "name": package, "version": version, "arch": arch}
        return _make_url("deb", parts)
    if name.endswith(".whl"):
        # PEP 427: hyphens separate the fields, and those of the project are replaced.
        project, version = name.split("-")[:2]
        return _make_url("pypi", {"name": project, "version": version})
    return name


def _make_url(kind: str, parts: Mapping[str, str | None]) -> str:
    # Every command imports this module, and few write a package URL.
    from packageurl import PackageURL

    space = parts.get("space")
    if space and kind == "maven":
        space = space.replace("/", ".")
    # What tells the files of one version apart. A jar is Maven's default, which is left out.
    qualifiers = {
        key: value
        for key in ("arch", "classifier", "type")
        if (value := parts.get(key)) and (key, value) != ("type", "jar")
    }
    return PackageURL(kind, space, parts["name"], parts["version"], qualifiers).to_string()
