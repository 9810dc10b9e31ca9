"""A separate program that runs another one in a network with loopback only, where Linux can.

``enclosure.py PROGRAM ARGUMENT...`` makes such a network. It ends by becoming PROGRAM, as the same
user, without any privilege that PROGRAM would not have had. Imports nothing of ours: it is run by
its path, isolated.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""CLONE_NEWUSER and CLONE_NEWNET of <linux/sched.h>."""
SET_FLAGS, UP = 0x8914, 1
"""SIOCSIFFLAGS of <linux/sockios.h>, IFF_UP of <linux/if.h>."""
REFUSED, NOT_RUN = 125, 127
"""Exit statuses, as those of env and nohup: nothing was started, and PROGRAM could not be."""


def main(arguments: list[str]) -> None:
    """Enter a network, and become a program."""
    try:
        enter_new_network()
        raise_loopback()
    except OSError as fault:
        sys.stderr.write(f"{fault.strerror}\n")
        sys.exit(REFUSED)
    try:
        os.execvp(arguments[0], arguments)  # noqa: S606 an argv that was given, no shell
    except OSError as fault:
        sys.stderr.write(f"{arguments[0]}: {fault.strerror}\n")
        sys.exit(NOT_RUN)


def enter_new_network() -> None:
    """Go into a new network."""
    # A user without that right may still do it in a user namespace, and keeps the same user id.
    try:
        call_libc("unshare", NEW_NETWORK)
    except PermissionError:
        user, group = os.getuid(), os.getgid()
        call_libc("unshare", NEW_USER | NEW_NETWORK)
        # Since Linux 3.19 the kernel refuses gid_map until setgroups is denied.
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny", "ascii")
        (own / "uid_map").write_text(f"{user} {user} 1", "ascii")
        (own / "gid_map").write_text(f"{group} {group} 1", "ascii")


def raise_loopback() -> None:
    """Switch loopback on: Bazel's client talks to its server over it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # A new network namespace has loopback, but down.
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))


def call_libc(name: str, *arguments: int) -> int:
    """Call the C library, with what C takes for unsigned long; raise OSError as Python does."""
    library = ctypes.CDLL(None, use_errno=True)
    result = int(getattr(library, name)(*map(ctypes.c_ulong, arguments)))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
