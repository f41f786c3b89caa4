"""Runs PgBouncer as a connection pooler in front of the tests' PostgreSQL server."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from sandbox.ports import free_port
from tests.support.needs import needs
from tests.support.postgres import connect

USER = "postgres"


@asynccontextmanager
async def running_pgbouncer(database_url: str, mode: str = "transaction") -> AsyncIterator[str]:
    """Run PgBouncer in front of a database, and yield the address for clients."""
    program = needs("pgbouncer")
    server = urlsplit(database_url)
    with tempfile.TemporaryDirectory(prefix="gatehouse-pgb-") as name:
        folder, port = Path(name), free_port()
        (folder / "users").write_text(f'"{server.username}" "{server.password or ""}"\n', "utf-8")
        (folder / "ini").write_text(
            "[databases]\n"
            f"* = host={server.hostname} port={server.port or 5432}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder}/users\npool_mode = {mode}\n"
            f"default_pool_size = {4 if mode == 'transaction' else 40}\nmax_client_conn = 200\n",
            "utf-8",
        )
        user = {}
        if os.geteuid() == 0:
            # PgBouncer refuses to run as root.
            user = {"user": USER, "group": USER}
            for path in (folder, folder / "ini", folder / "users"):
                shutil.chown(path, USER, USER)
        process = await asyncio.create_subprocess_exec(
            program, "-q", str(folder / "ini"), stderr=asyncio.subprocess.DEVNULL, **user
        )
        address = server._replace(netloc=f"{server.username}@127.0.0.1:{port}").geturl()
        try:
            await _answers(address)
            yield address
        finally:
            process.kill()
            await process.wait()


async def _answers(address: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                connection = await connect(address)
            except psycopg.OperationalError:
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return
