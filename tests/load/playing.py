"""Plays commands: at a pace that does not wait for the bot, or one after the other."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.processes import Server, Surroundings
from bench.wire import Connection, command_fields, signed

# More than are ever busy while acknowledgements take less than a third of a second.
CONNECTIONS = 64


@dataclass(frozen=True)
class Command:
    """What somebody types, and how often among the others."""

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
    """What became of the commands.

    Attributes:
        acks: Seconds to each acknowledgement.
        others: Every other end, by status or error.
        resident: MiB that the bot held, about once a second.
    """

    acks: list[float] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    resident: list[float] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """How many commands were sent."""
        return len(self.acks) + self.others.total()


@dataclass(frozen=True)
class Player:
    """Sends signed commands to one bot; `people` type in turn, `reply_to` gets the answers.

    It waits for an acknowledgement as long as Slack does.
    """

    around: Surroundings
    server: Server
    people: int
    reply_to: str
    waits_seconds: float = 3.0

    def request(self, one: Command, number: int) -> bytes:
        """Return the whole request of the next person."""
        user = f"U0LOAD{number % self.people}"
        fields = command_fields(user, self.around.team, one.command, one.text, self.reply_to)
        return signed(self.server.url, self.around.signing_secret, fields)

    async def pace(
        self, seconds: float, a_second: float, commands: Sequence[Command] = COMMANDS
    ) -> Played:
        """Send at an even pace for so long, whatever the bot does meanwhile.

        The time of each runs from when it was due: a bot that stands still cannot hide it.
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
            # What comes late on this connection would be taken for another command's answer.
            await connection.close()
            connection = await Connection.open(self.server.url)
        else:
            if status == 200:
                played.acks.append(time.perf_counter() - due)
            else:
                played.others[str(status)] += 1
        free.put_nowait(connection)

    async def outcomes(self) -> Counter[str]:
        """Return how many commands were answered with which outcome, from the bot's metrics."""
        connection = await Connection.open(self.server.url)
        host = self.server.url.partition("//")[2]
        _, page = await connection.send(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await connection.close()
        counted: Counter[str] = Counter()
        for line in page.decode().splitlines():
            if line.startswith("gatehouse_commands_total{"):
                outcome = line.partition('outcome="')[2].partition('"')[0]
                counted[outcome] += round(float(line.rpartition(" ")[2]))
        return counted

    async def all_answered(self, count: int, seconds: float) -> Counter[str]:
        """Return the outcomes once so many commands are answered, or when the time is over."""
        deadline = time.perf_counter() + seconds
        found = await self.outcomes()
        # Another process's metrics can only be asked for.
        while found.total() < count and time.perf_counter() < deadline:
            await asyncio.sleep(0.2)
            found = await self.outcomes()
        return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so large a share of all is not above."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]
