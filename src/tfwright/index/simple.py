"""The simple repository API as text: HTML (PEP 503) and JSON (PEP 691), both of version 1.4.

Everything that a wheel says about itself is escaped: its author may be hostile. The `provenance`
key stays empty. PEP 740 wants a certificate there, and our statements are signed by a plain key.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from tfwright.index.wheels import IndexedWheel
from tfwright.tools import files

FOLDER = "simple"
"""The folder of all projects, below the index."""
API_VERSION = "1.4"
"""PEP 833 froze HTML at this version; it is the one that brought the status of a project."""
JSON_TYPE = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class IndexedDocument:
    """A file on a project's page that is not a wheel."""

    filename: str
    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class IndexedProject:
    """A project of the index: one page."""

    name: str
    """Normalised."""
    wheels: tuple[IndexedWheel, ...]
    """Oldest version first; hidden ones are left out."""
    status: str = "active"
    """As PEP 792 names them: active, archived, quarantined, deprecated."""
    reason: str = ""
    documents: tuple[IndexedDocument, ...] = ()
    """What describes the wheels, in the same folder."""


def lists(folder: Path, filename: str, sha256: str) -> bool:
    """Say whether both pages of a wheel's project, below an index, name it with this checksum."""
    project = re.sub(r"[-_.]+", "-", filename.partition("-")[0]).lower()
    for page in ("index.html", "index.json"):
        try:
            text = files.text(folder / FOLDER / project / page)
        except OSError:
            return False
        if quote(filename) not in text or sha256 not in text:
            return False
    return True


def project_json(project: IndexedProject, packages: str) -> bytes:
    """Return the JSON page of a project; `packages` is the relative URL of the wheels' folder."""
    status = {"status": project.status}
    if project.reason:
        status["reason"] = project.reason
    page = {
        "meta": {"api-version": API_VERSION},
        "name": project.name,
        "project-status": status,
        "versions": list(dict.fromkeys(wheel.version for wheel in project.wheels)),
        "files": [_file_json(wheel, packages) for wheel in project.wheels]
        + [_document_json(document, packages) for document in project.documents],
    }
    return _compact(page)


def _document_json(document: IndexedDocument, packages: str) -> dict[str, object]:
    return {
        "filename": document.filename,
        "url": packages + quote(document.filename),
        "hashes": {"sha256": document.sha256},
        "size": document.size,
    }


def _file_json(wheel: IndexedWheel, packages: str) -> dict[str, object]:
    """Return one file of a project's JSON page."""
    described: dict[str, object] = {
        "filename": wheel.filename,
        "url": packages + wheel.quoted,
        "hashes": {"sha256": wheel.sha256},
        "size": wheel.size,
        "upload-time": wheel.uploaded,
        # Only this key: pip 22.2 to 23.0 stumble over the older name in JSON (PEP 714).
        "core-metadata": {"sha256": wheel.metadata_sha256},
        "yanked": False if wheel.yanked is None else wheel.yanked or True,
    }
    if wheel.requires_python:
        described["requires-python"] = wheel.requires_python
    return described


def project_html(project: IndexedProject, packages: str) -> bytes:
    """Return the HTML page of a project, for clients that do not read JSON."""
    metas = [_meta("pypi:project-status", project.status)]
    if project.reason:
        metas.append(_meta("pypi:project-status-reason", project.reason))
    anchors = [_anchor(wheel, packages) for wheel in project.wheels]
    for document in project.documents:
        place = f"{packages}{quote(document.filename)}#sha256={document.sha256}"
        anchors.append(f'<a href="{place}">{escape(document.filename)}</a><br>')
    return _page(f"Links for {project.name}", metas, anchors)


def _anchor(wheel: IndexedWheel, packages: str) -> str:
    """Return the link to one wheel, with its attributes."""
    written = []
    for name, value in _attributes(wheel, packages).items():
        # An empty attribute means something: data-yanked="" is a yank without a reason.
        if value is not None:
            written.append(f'{name}="{escape(value)}"')
    return f"<a {' '.join(written)}>{escape(wheel.filename)}</a><br>"


def _attributes(wheel: IndexedWheel, packages: str) -> dict[str, str | None]:
    metadata = f"sha256={wheel.metadata_sha256}"
    return {
        "href": f"{packages}{wheel.quoted}#sha256={wheel.sha256}",
        "data-requires-python": wheel.requires_python or None,
        "data-core-metadata": metadata,
        # The name before PEP 714, which pip before 23.1.2 and uv read.
        "data-dist-info-metadata": metadata,
        "data-yanked": wheel.yanked,
        # Not in the standard, but uv's exclude-newer reads it.
        "data-upload-time": wheel.uploaded,
    }


def root_json(names: Sequence[str]) -> bytes:
    """Return the JSON list of all projects."""
    projects = [{"name": name} for name in names]
    return _compact({"meta": {"api-version": API_VERSION}, "projects": projects})


def root_html(names: Sequence[str]) -> bytes:
    """Return the HTML list of all projects."""
    anchors = (f'<a href="{quote(name)}/">{escape(name)}</a><br>' for name in names)
    return _page("Simple index", [], anchors)


def _page(title: str, metas: Sequence[str], body: Iterable[str]) -> bytes:
    """Return an HTML 5 document, which pip of 2018 parses as well."""
    head = [_meta("pypi:repository-version", API_VERSION), *metas]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        *head,
        f"<title>{escape(title)}</title></head><body>",
        f"<h1>{escape(title)}</h1>",
        *body,
        "</body></html>",
        "",
    ]
    return "\n".join(lines).encode()


def _meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{escape(content)}">'


def _compact(page: object) -> bytes:
    return json.dumps(page, separators=(",", ":")).encode()
