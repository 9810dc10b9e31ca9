import pytest

from tfwright.documents import recipe as recipes
from tfwright.tools.git import demo


@pytest.mark.medium
def test_the_recipe_pins_the_tree_as_it_is_bundled() -> None:
    assert recipes.read("demo").source.commit == demo.commit_id()
