"""Runs a load test on a database that already has data, and checks the results against limits."""

import asyncio
import os
import random
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from sqlalchemy import insert, select

from bench.processes import Server, Surroundings, surroundings
from bench.wire import Connection, command_fields, signed
from bot.ops.clock import SystemClock
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, Transaction
from bot.store.tables import jobs
from bot.testusers.tables import requests
from tests.support.databases import Kind, database_of

# More connections than are busy while acknowledgements take less than a third of a second.
CONNECTIONS = 64


@dataclass(frozen=True)
class Command:
    """A slash command. A command with a larger `weight` is sent more often."""

    command: str
    text: str
    weight: int

    def __str__(self) -> str:
        return f"{self.command} {self.text}".strip()


COMMANDS = (
    Command("/orgs", "", 6),
    Command("/orgs", "show 20077314", 2),
    Command("/orgs", "EUR", 2),
    Command("/orgs", "help", 1),
    Command("/ratelimits", "", 1),
    Command("/ratelimits", "10234695", 1),
    Command("/testusers", "list welcome", 1),
    Command("/testusers", "history welcome", 1),
    Command("/testusers", "requests", 1),
    Command("/gatehouse", "status", 1),
    Command("/gatehouse", "whoami", 2),
    Command("/gatehouse", "no such word", 1),
)


@dataclass
class Played:
    """Collects acknowledgement times, failures and memory use during a load test."""

    acks: list[float] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    resident: list[float] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """The number of commands sent."""
        return len(self.acks) + self.others.total()


@dataclass(frozen=True)
class Player:
    """Sends signed commands to one bot.

    `people` is the number of users who take turns sending commands. `reply_to` receives the
    replies. By default, the player waits three seconds for each acknowledgement, just as Slack
    does.
    """

    around: Surroundings
    server: Server
    people: int
    reply_to: str
    waits_seconds: float = 3.0

    def request(self, one: Command, number: int) -> bytes:
        """Return the bytes of a signed request for this command."""
        user = f"U0LOAD{number % self.people}"
        fields = command_fields(user, self.around.team, one.command, one.text, self.reply_to)
        return signed(self.server.url, self.around.signing_secret, fields)

    async def pace(
        self, seconds: float, a_second: float, commands: Sequence[Command] = COMMANDS
    ) -> Played:
        """Send commands at a steady rate for `seconds`, no matter how slow the bot is.

        Time each command from the moment it was due, so that a stalled bot can't hide delays.
        """
        dice, played = random.Random(1), Played()
        weights = [command.weight for command in commands]
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            free.put_nowait(await Connection.open(self.server.url))
        began = time.perf_counter()
        async with asyncio.TaskGroup() as sending:
            for number in range(round(seconds * a_second)):
                due = began + number / a_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                request = self.request(dice.choices(commands, weights)[0], number)
                sending.create_task(self._send(free, request, due, played))
                if number % round(a_second) == 0:
                    played.resident.append(self.server.running.resident_mib())
        while not free.empty():
            await free.get_nowait().close()
        return played

    async def _send(
        self, free: "asyncio.Queue[Connection]", request: bytes, due: float, played: Played
    ) -> None:
        connection = await free.get()
        try:
            async with asyncio.timeout(self.waits_seconds):
                status, _ = await connection.send(request)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            played.others[type(error).__name__] += 1
            # A late answer on this connection would be taken for the next command's answer.
            await connection.close()
            connection = await Connection.open(self.server.url)
        else:
            if status == 200:
                played.acks.append(time.perf_counter() - due)
            else:
                played.others[str(status)] += 1
        free.put_nowait(connection)

    async def metrics(self) -> list[str]:
        """Return the lines of the bot's metrics page."""
        connection = await Connection.open(self.server.url)
        host = self.server.url.partition("//")[2]
        _, page = await connection.send(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await connection.close()
        return page.decode().splitlines()

    async def outcomes(self) -> Counter[str]:
        """Return the number of answered commands for each outcome."""
        counted: Counter[str] = Counter()
        for line in await self.metrics():
            if line.startswith("gatehouse_commands_total{"):
                outcome = line.partition('outcome="')[2].partition('"')[0]
                counted[outcome] += round(float(line.rpartition(" ")[2]))
        return counted

    async def no_job_is_due(self, seconds: float) -> None:
        """After the bot starts, wait until it has redrawn all open cards."""
        async with asyncio.timeout(seconds):
            # There is no notice from another process's metrics, so this polls.
            while IDLE - set(await self.metrics()):  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async def all_answered(self, count: int, seconds: float) -> Counter[str]:
        """Wait until `count` commands have been answered or time runs out.

        Return the number of answered commands for each outcome.
        """
        deadline = time.perf_counter() + seconds
        found = await self.outcomes()
        # There is no notice from another process's metrics, so this polls.
        while found.total() < count and time.perf_counter() < deadline:
            await asyncio.sleep(0.2)
            found = await self.outcomes()
        return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of the values. For example, `share` is 0.5 for the median."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


CHUNK = 1_000


async def fill(database: Database, pending: int, entries: int) -> None:
    """Fill the database with pending requests and entries in the audit log."""
    async with database.transaction() as tx:
        await _multiply_requests(tx, pending)
    for begun in range(0, entries, CHUNK):
        async with database.transaction() as tx:
            for number in range(begun, min(begun + CHUNK, entries)):
                detail = {"number": number}
                entry = AuditEntry("U0LOAD0", "permission.refused", "decide", detail)
                await audit.append(tx, entry)


async def _multiply_requests(tx: Transaction, count: int) -> None:
    """Make `count` copies of the newest request and its jobs, each with a new id."""
    newest = select(requests).order_by(requests.c.created_at.desc()).limit(1)
    row = (await tx.connection.execute(newest)).mappings().one()
    about_it = select(jobs).where(jobs.c.subject == row["id"])
    its_jobs = (await tx.connection.execute(about_it)).mappings().all()
    ids = [uuid.uuid4().hex[: len(row["id"])] for _ in range(count)]
    await tx.connection.execute(insert(requests), [{**row, "id": new} for new in ids])
    copies = [
        {**job, "key": job["key"].replace(row["id"], new), "subject": new}
        for new in ids
        for job in its_jobs
    ]
    if copies:
        await tx.connection.execute(insert(jobs), copies)


ASK = Command("/testusers", "add survey +15550177 because of the load", 1)
ACK_SECONDS = 0.1
# On a slow machine, the limit is a quarter more than the time of a bare Bolt app.
BARE = 1.25
BARE_SECONDS = 10.0
# Resident memory in the second half may exceed that in the first half by this share.
GROWTH = 0.10
DRAIN_SECONDS = 30.0
IDLE = {'gatehouse_jobs{state="due"} 0.0', 'gatehouse_jobs{state="late"} 0.0'}
# The bot needs this long for a thousand open cards of one flow.
REDRAW_SECONDS = 300.0


@dataclass(frozen=True)
class Load:
    """The size and duration of a load test."""

    seconds: float = 60.0
    a_second: float = 200.0
    people: int = 500
    pending: int = 1_000
    entries: int = 20_000
    waits_seconds: float = 3.0
    # In the data center com.
    organizations: int = 2_000


@dataclass(frozen=True)
class Line:
    """A table row that compares a result with its limit."""

    what: str
    found: str
    wanted: str
    is_well: bool


async def run(kind: Kind, load: Load) -> list[Line]:
    """Load-test the bot on a database that already contains data.

    For comparison, load-test a minimal Bolt app before and after the test of the bot.
    """
    people = surroundings(people=load.people, organizations=load.organizations)
    with tempfile.TemporaryDirectory(prefix="gatehouse-load-") as folder:
        async with people as around, database_of(kind, folder) as url:
            await _give_a_past(around, url, load)
            before = await _bare(around, load)
            played, lines = await play(around, url, load)
            return [*lines, *_quick(played, [before, await _bare(around, load)]), _memory(played)]


async def _give_a_past(around: Surroundings, url: str, load: Load) -> None:
    async with around.bot(url) as server:
        player = Player(around, server, load.people, around.sink)
        await player.pace(1 / load.a_second, load.a_second, [ASK])
        await player.all_answered(1, DRAIN_SECONDS)
    database = Database(url, SystemClock())
    await fill(database, load.pending, load.entries)
    await database.close()


async def play(around: Surroundings, url: str, load: Load) -> tuple[Played, list[Line]]:
    """Load-test the bot on the database at this URL. Return the measurements and table rows."""
    async with around.bot(url) as server:
        player = Player(around, server, load.people, around.sink, load.waits_seconds)
        # Before the measurement, every person is looked up once, and the caches are filled.
        warm = await player.pace(load.people / load.a_second + 1, load.a_second)
        await player.all_answered(warm.sent, DRAIN_SECONDS)
        await player.no_job_is_due(REDRAW_SECONDS)
        used = server.running.cpu_seconds()
        played = await player.pace(load.seconds, load.a_second)
        used = server.running.cpu_seconds() - used
        outcomes = await player.all_answered(warm.sent + played.sent, DRAIN_SECONDS)
    share = used / load.seconds
    return played, [
        _acknowledged(played, load),
        _answered(outcomes, warm.sent + played.sent),
        Line("processor time of the bot", f"{share:.0%} of one core", "", is_well=True),
        Line("load average of the machine", f"{os.getloadavg()[0]:.1f}", "", is_well=True),
    ]


async def _bare(around: Surroundings, load: Load) -> Played:
    """Load-test a minimal Bolt app to measure the current speed of the machine."""
    async with around.program("bench.peer_bolt") as server:
        player = Player(around, server, load.people, around.sink)
        await player.pace(1.0, load.a_second, COMMANDS[:1])
        return await player.pace(min(load.seconds, BARE_SECONDS), load.a_second, COMMANDS[:1])


def _acknowledged(played: Played, load: Load) -> Line:
    expected = round(load.seconds * load.a_second)
    others = f" ({dict(played.others)})" if played.others else ""
    found = f"{len(played.acks):,} of {expected:,}{others}"
    return Line("commands acknowledged", found, "all", len(played.acks) == expected)


def _quick(played: Played, bare: list[Played]) -> list[Line]:
    p50, p99 = percentile(played.acks, 0.5), percentile(played.acks, 0.99)
    bare_p50, bare_p99 = (
        max(percentile(item.acks, share) for item in bare) for share in (0.5, 0.99)
    )
    is_quick = p99 <= max(ACK_SECONDS, BARE * bare_p99)
    wanted = f"100 ms, or {BARE} x the bare app's"
    return [
        Line("acknowledgement, p50", _beside(p50, bare_p50), "", is_well=True),
        Line("acknowledgement, p99", _beside(p99, bare_p99), wanted, is_quick),
    ]


def _beside(ours: float, bare: float) -> str:
    return f"{ours * 1e3:.0f} ms, bare Bolt app {bare * 1e3:.0f} ms"


def _memory(played: Played) -> Line:
    half = len(played.resident) // 2
    first, second = median(played.resident[:half]), median(played.resident[half:])
    grown = second / first - 1
    found = f"{first:.0f} MiB, then {second:.0f} MiB ({grown:+.1%})"
    return Line("resident memory, first and second half", found, "+10 %", grown <= GROWTH)


def _answered(outcomes: dict[str, int], sent: int) -> Line:
    answered = sum(outcomes.values())
    by_outcome = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    is_well = answered == sent and not outcomes.get("broken")
    return Line("commands answered, by outcome", by_outcome, f"{sent:,}, none broken", is_well)


def table(kind: str, lines: list[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = [
        f"| {line.what} | {line.found} | {line.wanted} | {'yes' if line.is_well else 'NO'} |"
        for line in lines
    ]
    return "\n".join([f"| {kind} | found | wanted | well |", "|---|---|---|---|", *rows])
