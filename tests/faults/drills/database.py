"""Drills in which the database is unreachable, hangs, restarts, is locked, or runs out of space."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.faults.drill import Drill, Notes, lasts
from tests.support.fleet import Fleet, is_silence, running_fleet
from tests.support.needs import ROOT_USER, lacks
from tests.support.postgres import POSTGRES_USER, connect, own_database, private_cluster, server_url
from tests.support.proxy import TcpProxy, running_proxy
from tests.support.steady import seconds_now
from tests.support.story import ADMIN, APPROVER, REQUESTER, ExpectedRequest, Story

SORRY = ("database",)
DONE = ("You approved",)
MOST_REQUESTS = 60
DATABASE_BYTES = 12 * 2**20


@asynccontextmanager
async def proxied_fleet() -> AsyncIterator[tuple[TcpProxy, Fleet]]:
    """Run two bot processes that connect to their database through a proxy."""
    async with own_database(server_url()) as url:
        parts = urlsplit(url)
        async with running_proxy(parts.hostname or "", parts.port or 5432) as proxy:
            through = f"postgresql://{POSTGRES_USER}@127.0.0.1:{proxy.port}{parts.path}"
            async with running_fleet(through, 2) as fleet:
                yield proxy, fleet


async def away(notes: Notes) -> None:
    """Close all database connections, and refuse new ones."""
    async with proxied_fleet() as (proxy, fleet):
        await disturbed(notes, fleet, proxy.cut, proxy.mend)


async def hung(notes: Notes) -> None:
    """Keep database connections open, but let no data through."""
    async with proxied_fleet() as (proxy, fleet):

        async def hang() -> None:
            proxy.hang()

        await disturbed(notes, fleet, hang, proxy.mend)


async def restarted(notes: Notes) -> None:
    """Restart the database server after a normal shutdown."""
    await stopped(notes, "fast")


async def crashed(notes: Notes) -> None:
    """Restart the database server after a crash."""
    await stopped(notes, "immediate")


async def stopped(notes: Notes, mode: str) -> None:
    """Stop the database server in this mode, and start the server again."""
    async with (
        private_cluster() as cluster,
        own_database(cluster.url) as url,
        running_fleet(url, 2) as fleet,
    ):
        await disturbed(notes, fleet, lambda: cluster.stop(mode), cluster.start)


async def locked(notes: Notes) -> None:
    """Lock the database file, as a backup or a shell session might."""
    path = f"{notes.folder}/gatehouse.db"
    async with running_fleet(f"sqlite:///{path}") as fleet:
        other = sqlite3.connect(path, isolation_level=None)

        async def lock() -> None:
            other.execute("BEGIN EXCLUSIVE")

        async def unlock() -> None:
            other.execute("ROLLBACK")

        try:
            await disturbed(notes, fleet, lock, unlock, writes_only=True)
        finally:
            other.close()


async def full(notes: Notes) -> None:
    """Fill the disk that holds the database."""
    with small_disk(Path(notes.folder) / "disk") as disk:
        ballast = disk / "ballast"

        async def fill() -> None:
            with ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(b"\0" * 65_536):
                        pass
                except OSError:
                    return

        async def clear() -> None:
            ballast.unlink()

        async with database_on(notes, disk) as url, running_fleet(url) as fleet:
            await disturbed(notes, fleet, fill, clear, writes_only=True)


@asynccontextmanager
async def database_on(notes: Notes, disk: Path) -> AsyncIterator[str]:
    """Create a database on this disk, and yield its URL.

    PostgreSQL keeps its write-ahead log on another disk.
    """
    if notes.database == "sqlite":
        yield f"sqlite:///{disk}/gatehouse.db"
        return
    shutil.chown(disk, POSTGRES_USER)
    async with private_cluster() as cluster:
        admin = await connect(cluster.url)
        await admin.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        await admin.execute("CREATE DATABASE gatehouse TABLESPACE small")
        await admin.close()
        yield cluster.url.rsplit("/", 1)[0] + "/gatehouse"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small RAM disk on a new folder."""
    if os.geteuid() != 0:
        lacks(ROOT_USER)
    folder.parent.chmod(0o755)  # PostgreSQL's user has to get there
    folder.mkdir(mode=0o700)
    size = f"size={DATABASE_BYTES}"
    mount = ["/usr/bin/mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, timeout=10).returncode != 0:
        lacks(ROOT_USER)
    try:
        yield folder
    finally:
        subprocess.run(["/usr/bin/umount", "-l", str(folder)], check=True, timeout=10)


async def disturbed(
    notes: Notes,
    fleet: Fleet,
    begin: Callable[[], Awaitable[None]],
    end: Callable[[], Awaitable[None]],
    *,
    writes_only: bool = False,
) -> None:
    """Cause a fault while people use the bot, and check that everything works after the fault."""
    story = Story(fleet)
    waiting = await story.request()
    await begin()
    began = seconds_now()
    await refused(notes, story)
    await notes.click_says(story, waiting, "Approve", *SORRY, *(DONE if writes_only else ()))
    if not writes_only:
        await notes.people_see(fleet, ADMIN, "/gatehouse", "audit", *SORRY)
        assert await fleet.processes[0].readiness() == (503, "database")
    await lasts(began, notes.seconds)
    await end()
    async with notes.recovery():
        await notes.until(lambda: is_answered(fleet))
        await story.press(APPROVER, waiting, "Approve", "applied")
        await story.comes_true()
    await asyncio.gather(*(process.ready() for process in fleet.processes))
    await notes.all_holds(story)


async def refused(notes: Notes, story: Story) -> None:
    """Send requests until the database can't store any more.

    Even a full disk may have room for a few requests.
    """
    for _ in range(MOST_REQUESTS):
        identity = story.new_identity()
        words = f"add survey {identity} because {'of the drill ' * 35}"
        answer = await story.fleet.ask(REQUESTER, "/testusers", words)
        if "Sent to" not in answer.all_text:
            notes.saw(answer, *SORRY)
            return
        story.expected_requests[identity] = ExpectedRequest(identity, "survey")
    raise AssertionError("every request was taken")


async def is_answered(fleet: Fleet) -> bool:
    """Return True if the bot answers a command that needs the database."""
    answer = await fleet.ask("U0VIEWER", "/testusers", "requests")
    return "database" not in answer.all_text and not is_silence(answer)


PROMISE = (
    "Every command and click gets a sentence, `/readyz` says `database` where it cannot be read;"
    " afterwards the click made again is applied once, the card is true, the audit intact."
)
DRILLS = (
    Drill("the database is away", PROMISE, away, ("postgres",)),
    Drill("the database hangs", PROMISE, hung, ("postgres",)),
    Drill("PostgreSQL restarts", PROMISE, restarted, ("postgres",)),
    Drill("PostgreSQL crashes", PROMISE, crashed, ("postgres",)),
    Drill("another program locks the file", PROMISE, locked, ("sqlite",)),
    Drill("the disk is full", PROMISE, full),
)
