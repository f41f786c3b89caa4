"""`python -m bench.delay HOST PORT MS`: a TCP proxy that adds a round trip to a server nearby.

Each direction is delayed by half of the round trip. The proxy prints its port as JSON.
Threads sleep more exactly than an event loop, whose timers have steps of a millisecond.
"""

import json
import socket
import sys
import time
from queue import SimpleQueue
from threading import Thread

BUCKET_BYTES = 65_536
Arrived = tuple[float, bytes]


def main(host: str, port: int, milliseconds: float) -> None:
    """Serve until the process is stopped."""
    server = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": server.getsockname()[1]}), flush=True)
    while True:
        client, _ = server.accept()
        upstream = socket.create_connection((host, port))
        for end in (client, upstream):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _pipe(client, upstream, milliseconds / 2000)
        _pipe(upstream, client, milliseconds / 2000)


def _pipe(source: socket.socket, target: socket.socket, delay_seconds: float) -> None:
    arrived: SimpleQueue[Arrived] = SimpleQueue()
    Thread(target=_receive, args=(source, arrived), daemon=True).start()
    Thread(target=_send, args=(target, arrived, delay_seconds), daemon=True).start()


def _receive(source: socket.socket, arrived: SimpleQueue[Arrived]) -> None:
    data = b"-"
    while data:
        try:
            data = source.recv(BUCKET_BYTES)
        except OSError:
            data = b""
        arrived.put((time.perf_counter(), data))


def _send(target: socket.socket, arrived: SimpleQueue[Arrived], delay_seconds: float) -> None:
    while True:
        at, data = arrived.get()
        time.sleep(max(0.0, at + delay_seconds - time.perf_counter()))
        if not data:
            target.close()
            return
        try:
            target.sendall(data)
        except OSError:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
