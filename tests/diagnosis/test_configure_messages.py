"""What TensorFlow's own configuration can print, each message with plausible values.

The messages are those of configure, configure.py, find_cuda_config.py, util/python, tools/git and
every third_party/*_configure.bzl from 0.6 to 2.6, and of NVIDIA's 1.15.
"""

from pathlib import Path

import pytest
from tests.diagnosis.reading import explaining

MESSAGES = Path(__file__).with_name("configure_messages.txt").read_text("utf-8").splitlines()
UNSPECIFIC = {"general-error", "bazel-error", "marked-error", "python-exception"}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_configuration_belongs_to_a_family(message: str) -> None:
    assert not {match.entry.id for match in explaining(message)} & UNSPECIFIC
