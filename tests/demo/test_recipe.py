import pytest
from tests.upstream import bundled_commit

from tfwright.documents import recipe as recipes


@pytest.mark.medium
def test_the_recipe_pins_the_tree_as_it_is_bundled() -> None:
    assert recipes.read("demo").source.commit == bundled_commit()
