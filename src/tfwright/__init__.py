"""Reproducible source builds of TensorFlow wheels."""

import signal

__version__ = "0.1.0"
STARTED_AS = "TFWRIGHT_STARTED_AS"
"""The variable that holds what was typed in place of `invoke`, for messages."""


def let_interrupts_end_it():  # noqa: ANN201 Python 2.7 reads it
    # type: () -> None
    """Let Ctrl-C end the program without a traceback, until a command answers it itself."""
    # Under nohup the signal is ignored, and stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
