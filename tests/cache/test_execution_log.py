"""What is read of an action in Bazel's execution log."""

from tfwright.tools.cache import execution_log as log
from tfwright.tools.cache import wire


def test_an_action_is_read_and_what_a_later_bazel_adds_is_left() -> None:
    digest = wire.field(2, wire.field(1, b"ab12") + wire.integer(2, 7))
    message = (
        wire.field(log.ARGUMENT, b"gcc")
        + wire.field(log.VARIABLE, wire.field(1, b"MODE") + wire.field(2, b"fast"))
        + wire.field(log.INPUT, wire.field(1, b"a.cc") + digest + wire.field(9, b"?"))
        + wire.field(log.LISTED_OUTPUT, b"a.o")
        + wire.field(log.MNEMONIC, b"CppCompile")
        + wire.integer(log.HIT, 1)
        + wire.field(99, b"of a later Bazel")
    )
    found = log._action(message)
    assert (found.mnemonic, found.arguments) == ("CppCompile", ("gcc",))
    assert (found.variables, found.inputs) == ({"MODE": "fast"}, {"a.cc": "ab12"})
    assert (found.outputs, found.hit) == (("a.o",), True)
