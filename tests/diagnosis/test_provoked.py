"""What real tools say, and what is composed of formats in their sources, each in a log of its own.

Those in provoked/ are of gcc 12, ld, gold, nvcc 13.0, pip, git, Python, shells and two Bazels, and each
was made by provoking one mistake. A log begins with the family that must explain it; the line that must
be found as the root is marked. Some say as well which families match at all, and what the cause or the action must be.
"""

import re
from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, explaining, root_of

from tfwright.diagnosis.families import all_families

HERE = Path(__file__).parent
LOGS = sorted([*HERE.glob("provoked/*.log"), *HERE.glob("composed/*.log")])
HEAD = re.compile(r"^# (family|matches|cause|action): (.*)\n", re.MULTILINE)
MARK = ">>> "


def read(path: Path) -> tuple[dict[str, str], str]:
    """Return what must be found in a log, and the log."""
    text = path.read_text("utf-8")
    return dict(HEAD.findall(text)), HEAD.sub("", text)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_the_line_that_the_tool_means_is_the_root(path: Path) -> None:
    wanted, text = read(path)
    marked = next(line for line in text.splitlines() if line.startswith(MARK))
    log = text.replace(MARK, "")
    assert root_of(log).what == marked.removeprefix(MARK).strip()
    found = {match.entry.id: match.cause for match in explaining(log)}
    assert wanted.get("cause", "") in found[wanted["family"]]
    matches = " ".join(match.entry.id for match in diagnose(log).matches)
    assert matches == wanted.get("matches", matches)
    assert wanted.get("action", "") in root_of(log).action


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
@pytest.mark.medium
def test_what_is_said_of_it_is_whole_sentences(path: Path) -> None:
    for match in diagnose(read(path)[1].replace(MARK, "")).matches:
        assert match.cause[:1] not in {" ", ","}
        assert "{" not in match.cause
        assert "<" not in match.cause.replace("<cst", "").replace("<lim", "")


def test_every_family_of_the_fixtures_is_known() -> None:
    named = {read(path)[0]["family"] for path in LOGS}
    assert named <= {family.id for family in all_families()}
