"""What `invoke index` refuses before it looks at a wheel."""

from pathlib import Path

import pytest

from tfwright.commands import index
from tfwright.commands.index import IndexPlace
from tfwright.errors import RecipeError


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_a_number_that_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    place = IndexPlace(tmp_path, "")
    with pytest.raises(RecipeError, match="is not a port"), index.serving(place, port):
        pass
    with pytest.raises(RecipeError, match="is not a port"):
        index.nginx_configuration(place, port, "wheels.example")
