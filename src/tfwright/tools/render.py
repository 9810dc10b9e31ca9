"""Templates: text made from SHIPPED/templates, where a name that has no value is an error."""

import base64
import hashlib
import importlib.util
import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from tfwright.documents.filesystem import SHIPPED
from tfwright.errors import HostError
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
    # Loaded here: most commands render nothing, and the import takes part of their
    # start.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        # Jinja writes nothing for an unknown name by default: a line of a bazelrc would
        # be gone.
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


Point = tuple[float, float]

COLOURS = ("#2f7ed8", "#e07b00", "#3a9d5d", "#b04fc0")
"""Of the lines, readable on white and on black."""
INK = "#010203"
"""Of everything else; in an SVG it becomes the colour of the text around it."""
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")


def require_matplotlib() -> None:
    """Raise HostError if matplotlib is not installed; called before the work that it plots."""
    if importlib.util.find_spec("matplotlib") is None:
        raise HostError(
            "matplotlib, which draws the report's plot, is not installed",
            remedy="Run 'python -m pip install -r requirements-report.txt' in .venv.",
        )


def growth_plot(
    curves: Mapping[str, Sequence[Point]], across: str, up: str, form: Literal["svg", "png"]
) -> bytes:
    """Draw curves over sizes that double, both axes logarithmic, each named at its end."""
    # Figure and not pyplot, which opens a display and keeps each figure until it is
    # closed.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Letters stay letters, in the page's own font; the salt gives the same plot the
    # same bytes.
    style: dict[Any, Any] = {"font.size": 11, "svg.fonttype": "none", "svg.hashsalt": "tfwright"}
    with rc_context(style | dict.fromkeys(INKED, INK)):
        figure = Figure(figsize=(5.8, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for colour, (name, points) in zip(COLOURS, curves.items(), strict=False):
            axes.plot(
                *zip(*points, strict=True), marker="o", markersize=4, color=colour, linewidth=1.8
            )
            # Without the line's own size the name would stand on its last point.
            axes.annotate(
                name,
                points[-1],
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                weight="bold",
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = sorted({size for points in curves.values() for size, _ in points})
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        # Room at the right for the names of the curves.
        axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.9)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        # A logarithmic axis would say 10^2 where the table says 100.
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(visible=True, color=INK, alpha=0.12)
        axes.minorticks_off()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        output = io.BytesIO()
        if form == "png":
            figure.savefig(output, format="png", dpi=200)
            return output.getvalue()
        # For a page, which may be dark. Without a date the same plot has the same bytes.
        figure.savefig(output, format="svg", transparent=True, metadata={"Date": None})
    drawn = output.getvalue()
    # The XML declaration and the document type must not stand inside of a page.
    element = drawn[drawn.index(b"<svg") :]
    return element.replace(INK.encode(), b"currentColor")
