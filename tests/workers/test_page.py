"""What is printed of builds on other machines."""

from tests.making import Read

from tfwright.workers import page
from tfwright.workers.schedule import Assignment

DONE = (
    Assignment("one", "built", "red", seconds=60),
    Assignment("two", "failed", "blue", seconds=5, detail="no CUDA", remedy="Install it."),
    Assignment("three", "lost", detail="no worker was left"),
)


def test_what_was_not_built_is_explained_by_worker_reason_and_remedy(err: Read) -> None:
    page.show_assignments(DONE)
    said = err()
    assert "1 built, 1 failed, 1 lost" in said
    assert "two: failed on blue" in said
    assert "    why:  no CUDA\n    do:   Install it.\n" in said
    assert "three: lost\n" in said
    assert "one: built" not in said


def test_the_table_alone_explains_nothing(err: Read) -> None:
    page.show_assignments(DONE, explain=False)
    assert "why:" not in err()
