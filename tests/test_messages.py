import pytest
from tests import messages
from tests.failing import fails

from tfwright.errors import HostError, RecipeError


def test_every_message_is_as_a_person_has_read_it() -> None:
    assert messages.GOLDEN.read_text("utf-8") == messages.rendered(), (
        "read what changed: python3 tests/messages.py --write; git diff tests/messages.txt"
    )


def test_an_expected_error_names_the_values_that_it_is_about() -> None:
    with fails(RecipeError, "bazel.version"):
        raise RecipeError("bazel.version is missing", remedy="Add it.")
    with pytest.raises(AssertionError), fails(RecipeError, "source.commit"):
        raise RecipeError("bazel.version is missing", remedy="Add it.")
    with pytest.raises(HostError), fails(RecipeError):
        raise HostError("no room", remedy="Make room.")
