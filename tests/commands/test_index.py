"""What `invoke index` refuses before it looks at a wheel."""

from pathlib import Path

import pytest

from tfwright.errors import RecipeError
from tfwright.index import serving as index
from tfwright.index.serving import IndexPlace


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_a_number_that_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    place = IndexPlace(tmp_path, "")
    with pytest.raises(RecipeError, match="is not a port"), index.serving(place, port):
        pass
    with pytest.raises(RecipeError, match="is not a port"):
        index.nginx_configuration(place, port, "wheels.example")
