import pytest

from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.recipes import listing


@pytest.mark.medium
def test_every_bundled_recipe_has_a_row() -> None:
    rows = {row.recipe: row for row in listing.rows(HostFile())}
    assert sorted(rows) == recipes.names()
    assert rows["macos-r1.8-cuda9.2"].patches == 4
