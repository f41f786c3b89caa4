"""Ports of loopback for programs that want to be told one."""

import random
import socket

# Below those that systems hand out by themselves: to whoever asks for any, and to every connection
# that is made. One of those may be gone again before a program that is starting takes it.
HANDED_OUT_BY_NOBODY = range(20_000, 30_000)


def free_port() -> int:
    """A port that nobody listens on, and that nobody is given by chance.

    Raises:
        OSError: None is free.
    """
    for port in random.SystemRandom().sample(HANDED_OUT_BY_NOBODY, len(HANDED_OUT_BY_NOBODY)):
        if is_free(port):
            return port
    raise OSError("no port is free")


def port_near(wanted: int) -> int:
    """The port that is wanted, or any free one where somebody has that already."""
    return wanted if is_free(wanted) else free_port()


def is_free(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
