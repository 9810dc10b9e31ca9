from tfwright import recipe as recipes
from tfwright.tools import bundled


def test_the_recipe_pins_the_tree_as_it_is_bundled() -> None:
    assert recipes.read("demo").source.commit == bundled.commit_id()
