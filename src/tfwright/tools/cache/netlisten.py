"""A program of its own: listens on loopback in the network that it runs in, for a proxy elsewhere.

``netlisten.py DOOR PORT [PROGRAM ARGUMENT...]`` makes the listening socket, hands it to the proxy
over the local socket DOOR, and becomes PROGRAM. A socket stays in the network that it was made in,
so that a program without any other network reaches the cache. Imports nothing of ours: it is run
by its path, isolated.
"""

import array
import os
import socket
import sys

BACKLOG = 128
PATIENCE_SECONDS = 10.0
NOT_RUN = 127


def main(door: str, port: str, program: list[str]) -> None:
    """Hand over a listening socket, and become a program."""
    try:
        hand_over(door, int(port))
    except OSError as fault:
        # The cache spares work, no more: the program runs without it.
        sys.stderr.write(f"The build cache cannot be reached from here: {fault.strerror}\n")
    if not program:
        return
    try:
        os.execvp(program[0], program)  # noqa: S606 an argv that was given, no shell
    except OSError as fault:
        sys.stderr.write(f"{program[0]}: {fault.strerror}\n")
        sys.exit(NOT_RUN)


def hand_over(door: str, port: int) -> None:
    """Make a listening socket and send it; return when the proxy has it."""
    with (
        socket.create_server(("127.0.0.1", port), backlog=BACKLOG) as listener,
        socket.socket(socket.AF_UNIX) as proxy,
    ):
        proxy.settimeout(PATIENCE_SECONDS)
        proxy.connect(door)
        descriptors = array.array("i", [listener.fileno()])
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)
        proxy.sendmsg([b"1"], [rights])
        proxy.recv(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
