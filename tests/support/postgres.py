"""PostgreSQL for tests: a database on the shared server, or a separate server."""

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
    """Return the shared test server's address; skip the test if PostgreSQL is missing.

    `TEST_DATABASE_URL` names the server. If it is not set, a server is started for this run.
    """
    if "TEST_DATABASE_URL" not in os.environ:
        os.environ["TEST_DATABASE_URL"] = _start_server()
    return os.environ["TEST_DATABASE_URL"]


def has_server() -> bool:
    """Return True if a shared server is available, starting one if needed."""
    return bool(find_program("initdb") or "TEST_DATABASE_URL" in os.environ) and bool(server_url())


def _start_server() -> str:
    """Start a server, in memory if there is room, and stop it at the end of this process."""
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
    """Yield the address of a new database (empty or a copy of `template`), and drop it at the end.

    Without `is_durable`, commits don't wait for the disk, and a server crash loses data.

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
    """A PostgreSQL server for a single test, which may restart or kill it."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self.url = f"postgresql://{POSTGRES_USER}@127.0.0.1:{port}/postgres"

    async def start(self) -> None:
        """Start the server, and return once it accepts connections."""
        await _run(self.starting())

    async def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast`, or `immediate` to simulate a crash."""
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
    """Yield a running server in a temporary folder.

    The test is skipped if PostgreSQL's programs are missing.
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
    """Return options that run PostgreSQL silently, and not as root, because it refuses that."""
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
