"""The pages in Markdown: what they name exists, and whoever looks for a page finds it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfwright import tasks
from tfwright.documents.recipe import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "recipes/README.md",
]
README_LINES = 150
"""More would not be read before the first command is typed."""
OURS = (
    "benchmarks",
    "docs",
    "patches",
    "recipes",
    "src",
    "templates",
    "tests",
    ".ci",
    "requirements",
)
"""How a path of the checkout begins."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def code_of(text: str) -> Iterator[str]:
    """Yield what is code: fenced and indented lines, and spans between backticks."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line
        else:
            yield from re.findall(r"`([^`]+)`", line)


def options_of(command: str) -> set[str]:
    """Return the options of a command as they are typed, also those that switch one off."""
    found = {"--help"}
    known = {**tasks.collection(installed=True).tasks, **tasks.collection().tasks}
    for argument in known[command].get_arguments():
        names = {name.replace("_", "-") for name in argument.names}
        found |= {f"--{name}" for name in names}
        if argument.default is True:
            found |= {f"--no-{name}" for name in names}
    return found


@pages
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    known = {name for group in tasks.names(installed=True).values() for name in group}
    known |= {name for group in tasks.names().values() for name in group}
    wrong = []
    for code in code_of(page.read_text("utf-8")):
        typed = re.search(r"(?:\binvoke|\btfwright|\btasks\.py) ([a-z]\w*)(.*)", code)
        if not typed:
            continue
        command, rest = typed[1], typed[2].partition("#")[0].partition("|")[0]
        if command not in known:
            wrong.append(code)
            continue
        given = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", rest))
        wrong += [f"{command} {flag}" for flag in given - options_of(command)]
    assert wrong == []


def anchors_of(page: Path) -> set[str]:
    """Return what a link can lead to in a page: its headings, as forges write them."""
    headings = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pages
def test_every_link_within_the_checkout_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


@pages
def test_every_file_of_ours_that_a_page_names_exists(page: Path) -> None:
    named = re.compile(
        rf"(?<![\w./@:-])((?:{'|'.join(map(re.escape, OURS))})[\w./-]*\.(?:py|toml|md|txt|json|j2|svg|sh))(?![\w-])"
    )
    missing = [
        name
        for code in code_of(page.read_text("utf-8"))
        for name in named.findall(code)
        # Examples write recipes of their own.
        if not (ROOT / name).exists() and not name.startswith("recipes/linux-")
    ]
    assert missing == []


@pytest.mark.parametrize("folder", ["docs", "docs/lab-notes"])
def test_the_list_of_pages_has_each_page_once(folder: str) -> None:
    page = (ROOT / folder / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[[^\]]+\]\(([\w.-]+\.md)\)", page, re.MULTILINE)
    there = {path.name for path in ROOT.glob(f"{folder}/*.md")} - {"README.md"}
    assert sorted(listed) == sorted(there)


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= README_LINES


def test_the_layout_of_contributing_names_every_folder_of_the_package() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    layout = page.partition("## The layout")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)/`", layout))
    folders = {path.parent.name for path in ROOT.glob("src/tfwright/*/__init__.py")}
    assert folders - named == set()


def test_the_readme_names_every_recipe() -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    seen = page.partition("## Verified configurations")[2].partition("\n## ")[0]
    names = sorted(path.stem for path in ROOT.glob("recipes/*.toml"))
    # Siblings of one recipe share a row: `name`, `-suffix`, or "its siblings for Python".
    missing = [
        name
        for name in names
        if f"`{name}`" not in seen
        and not any(f"`{suffix}`" in seen for suffix in re.findall(r"-[a-z0-9]+$", name))
        and not re.search(r"-py3\d+$", name)
    ]
    assert missing == []
