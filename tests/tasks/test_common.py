"""What each command does with errors and options."""

import pytest

from tfwright import options as common


def test_a_command_that_is_interrupted_says_what_goes_on_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended, common.explained(resume="invoke build --recipe demo"):
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert "invoke build --recipe demo" in capsys.readouterr().err
