"""What real tools say: gcc 12, ld, gold, nvcc 13.0, pip, git, Python, shells, two Bazels.

Each log was made by provoking one mistake. Its first line names the family that must explain it;
the line that must be found as the root is marked.
"""

from pathlib import Path

import pytest
from tests.diagnosis.reading import diagnose, explaining, root_of

from tfwright.diagnosis.families import everything

LOGS = sorted(Path(__file__).with_name("provoked").glob("*.log"))
HEAD = "# family: "
MARK = ">>> "


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_the_line_that_the_tool_means_is_the_root(path: Path) -> None:
    head, _, text = path.read_text("utf-8").partition("\n")
    marked = next(line for line in text.splitlines() if line.startswith(MARK))
    log = text.replace(MARK, "")
    assert root_of(log).what == marked.removeprefix(MARK).strip()
    assert head.removeprefix(HEAD) in [match.entry.id for match in explaining(log)]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
@pytest.mark.medium
def test_what_is_said_of_it_is_whole_sentences(path: Path) -> None:
    text = path.read_text("utf-8").replace(MARK, "")
    for match in diagnose(text).matches:
        assert match.cause[:1] not in {" ", ","}
        assert "{" not in match.cause
        assert "<" not in match.cause.replace("<cst", "").replace("<lim", "")


def test_every_family_of_the_fixtures_is_known() -> None:
    heads = {path.read_text("utf-8").partition("\n")[0] for path in LOGS}
    assert {head.removeprefix(HEAD) for head in heads} <= {family.id for family in everything()}
