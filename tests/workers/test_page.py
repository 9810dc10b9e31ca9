"""What is printed of builds on other machines."""

from tests.making import Read

from tfwright.workers import page
from tfwright.workers.schedule import Assignment

DONE = (
    Assignment("one", "built", "red", seconds=60),
    Assignment("two", "failed", "blue", seconds=5, detail="no CUDA", remedy="Install it."),
)


def test_the_table_alone_explains_nothing(err: Read) -> None:
    page.show_assignments(DONE, explain=False)
    assert "why:" not in err()
