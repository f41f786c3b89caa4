"""Finds free loopback ports for programs that need a port number when they start."""

import random
import socket

# Operating systems assign higher ports to connections and to programs that ask for any port. Such a
# port may be taken before a starting program listens on it.
HANDED_OUT_BY_NOBODY = range(20_000, 30_000)


def free_port() -> int:
    """Return a free port from a range that operating systems do not assign automatically.

    Raises:
        OSError: No port is free.
    """
    for port in random.SystemRandom().sample(HANDED_OUT_BY_NOBODY, len(HANDED_OUT_BY_NOBODY)):
        if is_free(port):
            return port
    raise OSError("no port is free")


def port_near(wanted: int) -> int:
    """Return the wanted port if it is free, or another free port if it is not."""
    return wanted if is_free(wanted) else free_port()


def is_free(port: int) -> bool:
    """Return True if nothing is listening on the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
