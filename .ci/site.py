"""What mkdocs asks while it builds the site: help of all commands, and links that leave docs/."""

import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MARK = "<!-- commands -->"
"""Where commands.md has the help of each command."""
INVOKE = ".venv/bin/invoke"


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401 mkdocs' own
    """Return the text of a page as the site shows it."""
    here = posixpath.dirname(page.file.src_uri)
    if here == "lab-notes":
        # Below the guides among what a search finds.
        page.meta["search"] = {"boost": 0.2}

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", here, found[2]))
        # The site has only what lies in docs/.
        return found[0] if target.startswith("docs/") or ":" in found[2] else f"`{target}`"

    markdown = re.sub(r"\[([^\]]*)\]\(([^)#\s]+)[^)\s]*\)", link, markdown)
    return markdown.replace(MARK, _help()) if MARK in markdown else markdown


def _help() -> str:
    """Return the help of all commands, in lines that a page of the site has room for."""
    # Makes .venv where there is none.
    _run(sys.executable, "tasks.py", "--list")
    listed = _run(INVOKE, "--list")
    names = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
    helps = {name: _run(INVOKE, name, "--help") for name in names}
    return "\n\n".join(f"### {name}\n\n```text\n{text}```" for name, text in helps.items())


def _run(*command: str) -> str:
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout
