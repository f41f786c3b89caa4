"""PostgreSQL for tests: a database of one's own, or a whole server of one's own."""

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from sandbox.patience import PATIENCE_SECONDS
from sandbox.ports import free_port

DEFAULT_SERVER = "postgresql://postgres@127.0.0.1:5432/postgres"
POSTGRES_USER = "postgres"


def server_url() -> str:
    """The server that tests share, by `TEST_DATABASE_URL`."""
    return os.environ.get("TEST_DATABASE_URL", DEFAULT_SERVER)


@asynccontextmanager
async def own_database(
    server: str, template: str | None = None, *, is_durable: bool = True
) -> AsyncIterator[str]:
    """Yield the address of a new database, empty or a copy of `template`, and drop it afterwards.

    `is_durable` is off where nobody minds what a crash of the server would lose, and everybody the
    waiting for its disk.

    Raises:
        OSError, TimeoutError, asyncpg.PostgresError: There is no such server.
    """
    admin = await asyncpg.connect(server, timeout=PATIENCE_SECONDS)
    name = f"gatehouse_test_{uuid.uuid4().hex}"
    how = f' TEMPLATE "{template}"' if template else ""
    if not is_durable and admin.get_server_version().major >= 15:
        # As before 15: it takes half as long where the disk is not waited for.
        how += " STRATEGY file_copy"
    await admin.execute(f'CREATE DATABASE "{name}"{how}')
    if not is_durable:
        await admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    try:
        yield server.rsplit("/", 1)[0] + "/" + name
    finally:
        # A connection of its own: the server may have been restarted meanwhile.
        await admin.close()
        admin = await asyncpg.connect(server, timeout=PATIENCE_SECONDS)
        await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await admin.close()


def find_program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs; Debian keeps them out of PATH."""
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(kept[-1]) if kept else shutil.which(name)


class Cluster:
    """A PostgreSQL server that nobody else uses, so that it may be restarted and killed."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self.url = f"postgresql://{POSTGRES_USER}@127.0.0.1:{port}/postgres"

    async def start(self) -> None:
        """Start it and return when it takes connections."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        log = str(self.data / "server.log")
        await _run("pg_ctl", "-D", str(self.data), "-l", log, "-o", settings, "-w", "start")

    async def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast`, or `immediate` as in a crash."""
        await _run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")


@asynccontextmanager
async def private_cluster() -> AsyncIterator[Cluster]:
    """Yield a running server in a temporary folder.

    Raises:
        FileNotFoundError: PostgreSQL's programs are not installed.
    """
    with tempfile.TemporaryDirectory(prefix="gatehouse-pg-") as folder:
        _give_away(Path(folder))
        cluster = Cluster(Path(folder) / "data", free_port())
        await _run("initdb", "-D", str(cluster.data), "-U", POSTGRES_USER, "-A", "trust", "-N")
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.stop("immediate")


async def _run(name: str, *arguments: str) -> None:
    program = find_program(name)
    if program is None:
        raise FileNotFoundError(f"{name} of PostgreSQL is not installed")
    # PostgreSQL refuses to run as root.
    user = {"user": POSTGRES_USER, "group": POSTGRES_USER} if os.geteuid() == 0 else {}
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        **user,
    )
    status = await process.wait()
    if status != 0:
        raise OSError(f"{name} ended with {status}")


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, POSTGRES_USER, POSTGRES_USER)
