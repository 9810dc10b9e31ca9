"""Templates: text made from SHIPPED/templates, where a name that has no value is an error."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from tfwright.documents.filesystem import SHIPPED
from tfwright.tools import files

TEMPLATES = SHIPPED / "templates"


def render(template: str, values: Mapping[str, object]) -> str:
    """Return the text that a template of TEMPLATES gives with these values.

    In a template for HTML, named ``*.html.j2``, every value is escaped. Raises MissingValueError
    for a key that a mapping lacks, and jinja2.UndefinedError for any other name without a value,
    which is a fault of ours.
    """
    import jinja2

    try:
        return renderer(template)(values)
    except jinja2.UndefinedError as fault:
        key = re.fullmatch(r"'dict object' has no attribute '(\w+)'", str(fault))
        if key is None:
            raise
        raise MissingValueError(key[1]) from fault


class MissingValueError(Exception):
    """A template wants a key that its mapping does not have; the argument is that key."""


@lru_cache
def renderer(template: str) -> Callable[[Mapping[str, object]], str]:
    """Return a template as a function, for pages that are made by the hundred."""
    # Loaded here: most commands render nothing, and the import takes part of their start.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        # Jinja writes nothing for an unknown name by default: a line of a bazelrc would be gone.
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(
            ("html.j2", "xml.j2", "svg.j2"), default=False, default_for_string=False
        ),
        # The rendered bazelrc is compared with the one that ./configure wrote.
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
    )
    environment.globals["policy"] = content_policy
    return environment.get_template(template).render


@lru_cache
def content_policy() -> str:
    """Return what a browser may do with our pages: run the one script, and fetch from us."""
    script = files.content(TEMPLATES / "nightly_script.js")
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        f"script-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'"
    )
