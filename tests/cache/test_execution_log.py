"""What is read of an action in Bazel's execution log."""

from tfwright.tools.cache import execution_log as log
from tfwright.tools.cache import messages


def test_an_action_is_read_and_what_a_later_bazel_adds_is_left() -> None:
    digest = messages.field(2, messages.field(1, b"ab12") + b"\x10\x07")
    message = (
        messages.field(log.ARGUMENT, b"gcc")
        + messages.field(log.VARIABLE, messages.field(1, b"MODE") + messages.field(2, b"fast"))
        + messages.field(log.INPUT, messages.field(1, b"a.cc") + digest + messages.field(9, b"?"))
        + messages.field(log.LISTED_OUTPUT, b"a.o")
        + messages.field(log.MNEMONIC, b"CppCompile")
        + b"\x68\x01"  # a hit
        + messages.field(99, b"of a later Bazel")
    )
    found = log._action(message)
    assert (found.mnemonic, found.arguments) == ("CppCompile", ("gcc",))
    assert (found.variables, found.inputs) == ({"MODE": "fast"}, {"a.cc": "ab12"})
    assert (found.outputs, found.hit) == (("a.o",), True)
