"""Gives a test a database on the shared PostgreSQL server, or a separate server."""

import asyncio
import atexit
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from sandbox.patience import PATIENCE_SECONDS
from sandbox.ports import free_port
from tests.support.needs import POSTGRESQL, find_program, lacks

POSTGRES_USER = "postgres"


# It doesn't matter if a crash of the shared server loses data.
QUICK = ("max_connections=300", "fsync=off", "full_page_writes=off", "autovacuum=off")
MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 * 1024**3  # noqa: S108 - we create our own folder there


def server_url() -> str:
    """Return the address of the shared test server. Skip the test if PostgreSQL is missing.

    The address comes from `TEST_DATABASE_URL`. If that variable is not set, this function starts a
    server.
    """
    if "TEST_DATABASE_URL" not in os.environ:
        os.environ["TEST_DATABASE_URL"] = _start_server()
    return os.environ["TEST_DATABASE_URL"]


def has_server() -> bool:
    """Start the shared server if necessary. Return False if PostgreSQL is missing."""
    return bool(find_program("initdb") or "TEST_DATABASE_URL" in os.environ) and bool(server_url())


def _start_server() -> str:
    """Start a PostgreSQL server that stops when this process ends.

    The server keeps its data in memory if there is enough room.
    """
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-pg-", dir=MEMORY if has_room else None))
    _give_away(folder)
    cluster = Cluster(folder / "data", free_port())
    subprocess.run(_initdb(cluster.data), check=True, **_as_postgres())
    subprocess.run(cluster.starting(*QUICK), check=True, **_as_postgres())

    def stop() -> None:
        subprocess.run(cluster.stopping("immediate"), check=False, **_as_postgres())
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return cluster.url


async def connect(url: str) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """Return a connection in autocommit mode."""
    seconds = round(PATIENCE_SECONDS)
    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, prepare_threshold=None, connect_timeout=seconds
    )


@asynccontextmanager
async def own_database(
    server: str, template: str | None = None, *, is_durable: bool = True
) -> AsyncIterator[str]:
    """Create a database, yield its address, and drop the database after the block.

    The database is a copy of `template`, or empty if no template is given. If `is_durable` is
    False, commits don't wait for the disk, so a server crash may lose data.

    Raises:
        psycopg.OperationalError: The server can't be reached.
    """
    admin = await connect(server)
    name = f"gatehouse_test_{uuid.uuid4().hex}"
    how = f' TEMPLATE "{template}"' if template else ""
    if not is_durable and admin.info.server_version >= 150000:
        # The default before version 15 is twice as fast if commits don't wait for the disk.
        how += " STRATEGY file_copy"
    await admin.execute(f'CREATE DATABASE "{name}"{how}')
    if not is_durable:
        await admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    try:
        yield server.rsplit("/", 1)[0] + "/" + name
    finally:
        # A new connection, because the server may have been restarted in the meantime.
        await admin.close()
        admin = await connect(server)
        await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await admin.close()


class Cluster:
    """A PostgreSQL server for a single test. The test may restart or kill the server."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self.url = f"postgresql://{POSTGRES_USER}@127.0.0.1:{port}/postgres"

    async def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        await _run(self.starting())

    async def stop(self, mode: str = "fast") -> None:
        """Stop the server. The mode `immediate` simulates a crash."""
        await _run(self.stopping(mode))

    def starting(self, *settings: str) -> list[str]:
        """Return the command that starts the server."""
        given = ("listen_addresses=127.0.0.1", "unix_socket_directories=", *settings)
        options = " ".join([f"-p {self.port}", *(f"-c {setting}" for setting in given)])
        log = str(self.data / "server.log")
        return [_program("pg_ctl"), "-D", str(self.data), "-l", log, "-o", options, "-w", "start"]

    def stopping(self, mode: str) -> list[str]:
        """Return the command that stops the server."""
        return [_program("pg_ctl"), "-D", str(self.data), "-m", mode, "-w", "stop"]


@asynccontextmanager
async def private_cluster() -> AsyncIterator[Cluster]:
    """Run a PostgreSQL server that keeps its data in a temporary folder, and yield the server.

    The test is skipped if PostgreSQL is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="gatehouse-pg-") as folder:
        _give_away(Path(folder))
        cluster = Cluster(Path(folder) / "data", free_port())
        await _run(_initdb(cluster.data))
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.stop("immediate")


def _initdb(data: Path) -> list[str]:
    user, encoding = ("-U", POSTGRES_USER, "-A", "trust"), ("-E", "UTF8", "--locale=C.UTF-8")
    return [_program("initdb"), "-D", str(data), *user, *encoding, "-N"]


def _program(name: str) -> str:
    return find_program(name) or lacks(POSTGRESQL)


def _as_postgres() -> dict[str, Any]:
    """Return `subprocess` options that hide PostgreSQL's output.

    If the tests run as root, the options also change the user, because PostgreSQL refuses to run
    as root.
    """
    user = {"user": POSTGRES_USER, "group": POSTGRES_USER} if os.geteuid() == 0 else {}
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    return {"cwd": "/", **silent, "stderr": subprocess.DEVNULL, **user}


async def _run(command: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(*command, **_as_postgres())
    status = await process.wait()
    if status != 0:
        raise OSError(f"{command[0]} ended with {status}")


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, POSTGRES_USER, POSTGRES_USER)
