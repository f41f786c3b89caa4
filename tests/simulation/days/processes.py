"""Runs a bot's workflows, job loop and outbox without HTTP or Bolt."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from bot.approvals.rules import FlowPolicy
from bot.errors import CommitUnknown, DatabaseUnavailable
from bot.flows import client
from bot.gateway.turns import Turns
from bot.home.publishing import Home, redraw
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.incidents import CARD, NOTE, Alerts, Probes, Watcher
from bot.quotas.ratelimits import RateLimits
from bot.quotas.store import incidents
from bot.slack.people import People
from bot.slack.sender import Sender
from bot.store import audit, outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import JobLoop, Lease, Outcome, Runner
from bot.store.jobs import Job
from bot.store.retention import Retention
from bot.store.tables import to_microseconds
from bot.tasks import Tasks
from bot.testusers import jobs as testuser_jobs
from bot.testusers import store
from bot.testusers.rendering import RequestMessages
from bot.testusers.rules.people import Wants
from tests.simulation.days import inline_sqlite
from tests.simulation.days.homes import Homes
from tests.simulation.days.inventory import CLIENTS, TERMS, Client, Inventory, WatchedGuard
from tests.simulation.days.loop import MOST_DRIFT, PROCESS, SharedLock, SimulationLoop
from tests.simulation.days.outside import Faults, Flows, Slack
from tests.support.clock import START
from tests.support.testusers import (
    ABEL,
    ADAM,
    SURVEY,
    TEAM,
    WELCOME,
    FakeSlackPeople,
    default_policy,
    default_settings,
)

# The running job and its claim.
RUN: ContextVar[tuple[str, str] | None] = ContextVar("run", default=None)
ALERTS = "C0ALERTS"
# Of the flow that wants an end: each process may have read another setting.
LONGEST_SECONDS = (600, 600, 60)
APPROVING = ("request.approved", "request.retried", "request.started")
APPROVALS_NEEDED = {WELCOME: 1, SURVEY: 2}


@dataclass
class VirtualClock:
    """Simulates a process's clock.

    The clock starts `ahead` seconds ahead of virtual time, and runs `rate` times as fast.
    """

    loop: SimulationLoop
    ahead: float = 0.0
    rate: float = 1.0
    boot: str = field(default_factory=lambda: uuid4().hex)

    def now(self) -> datetime:
        """Return the current date and time."""
        return START + timedelta(seconds=self.monotonic() + self.ahead)

    def monotonic(self) -> float:
        """Return a time in seconds that never decreases."""
        return self.loop.time() * self.rate

    def since_boot(self) -> float:
        """Return a time in seconds that keeps increasing while the machine is asleep."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds on the process's clock."""
        await asyncio.sleep(seconds)


@dataclass
class Outside:
    """Holds everything that the processes share.

    The bot keeps decided requests for `kept_days` days.
    """

    loop: SimulationLoop
    faults: Faults
    flows: Flows
    slack: Slack
    homes: Homes
    inventory: Inventory
    url: str
    writer: SharedLock
    rules: dict[str, Any]
    kept_days: float
    reader: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self.reader = sqlite3.connect(self.url.removeprefix("sqlite:///"))
        self.flows.holds = self.slack.holds = self.homes.holds = self.is_lease_held

    def is_lease_held(self) -> bool:
        """Return True if the running job's lease is still valid, or if no job is running."""
        run = RUN.get()
        if run is None:
            return True
        query = "SELECT owner, leased_until FROM jobs WHERE key = ?"
        owner, until = self.reader.execute(query, run[:1]).fetchone() or ("", 0)
        return bool(owner == run[1] and until > to_microseconds(VirtualClock(self.loop).now()))


class Server(Database):
    """Simulates a database server that sometimes fails, even just before or after a commit."""

    def __init__(self, outside: Outside, clock: VirtualClock, longest_seconds: int) -> None:
        # The server has its own clock, which can differ from the process's clock.
        super().__init__(outside.url, VirtualClock(outside.loop))
        self._writer = outside.writer  # type: ignore[assignment]
        self._faults = outside.faults
        self._problems = outside.flows.problems
        self._longest_seconds = longest_seconds

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Behave like the real method, but sometimes fail."""
        self._reach(0.02)
        async with super().transaction() as tx:
            position = (await audit.head(tx))[0]
            yield tx
            await self._watch(tx, position)
            self._break_off("commit lost", DatabaseUnavailable)
        self._break_off("commit unknown", CommitUnknown)

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Transaction]:
        """Behave like the real method, but sometimes fail."""
        self._reach(0.02)
        async with super().autocommit() as tx:
            yield tx

    @asynccontextmanager
    async def read_only(self, **options: bool) -> AsyncIterator[Transaction]:
        """Behave like the real method, but sometimes fail."""
        self._reach(0.02)
        async with super().read_only(**options) as tx:
            yield tx

    async def _watch(self, tx: Transaction, position: int) -> None:
        """Check that no process approves a grant that is longer than the settings allow."""
        for entry in await audit.after(tx, position):
            if entry.action not in APPROVING:
                continue
            request = await store.load_request(tx, entry.subject)
            if request is None or request.flow.sid != SURVEY:
                continue
            person = request.people[0]
            if person.wants is Wants.REMOVE or person.shown_end:
                continue
            seconds = person.shown_seconds
            if seconds is None or seconds > self._longest_seconds:
                problem = f"{entry.subject}: {entry.action} for {seconds} s, too long by now"
                self._problems.append(problem)

    def _reach(self, weight: float) -> None:
        if self._faults.happens("database away", weight):
            raise DatabaseUnavailable

    def _break_off(self, kind: str, error: type[DatabaseUnavailable]) -> None:
        if self._faults.happens(kind, 0.02):
            raise error


class Quotas:
    """Groups the bot's components for rate limits and alerts."""

    def __init__(self, database, guard, directory, people, clock) -> None:
        self.ratelimits = RateLimits(database, directory, people, TERMS, clock)
        self.alerts = Alerts(database, directory, ALERTS)
        probes = Probes(directory, TERMS)
        watcher = Watcher(database, directory, TERMS, is_on=True)
        self.kinds = {**probes.kinds, **watcher.kinds, **guard.kinds}
        self.cards = {CARD: self.alerts.card}
        self.notes = {NOTE: self.alerts.note}


class Process:
    """Simulates a bot process. `bot` is None until the process has started."""

    def __init__(self, name: str, outside: Outside) -> None:
        self.name = name
        self._outside = outside
        # Machines disagree about the time, and drift apart.
        ahead, drift = outside.loop.random.uniform(-90, 90), outside.loop.random.uniform(-1, 1)
        self._clock = VirtualClock(outside.loop, ahead, rate=1 + drift * MOST_DRIFT)
        outside.loop.rates[name] = self._clock.rate
        self._context = Context()
        self._context.run(PROCESS.set, name)
        self._ids = 0
        self.people: People
        self.bot: Any = None
        self.quotas: Quotas
        self.client: Client
        self.home: Home

    def start(self) -> None:
        """Start the process, which then runs until `kill` is called."""
        self.run(self._serve())

    def run(self, work: Any) -> "asyncio.Task[Any]":
        """Run a coroutine in this process."""
        return self._outside.loop.create_task(work, context=self._context.copy())

    def kill(self) -> None:
        """Kill the process immediately."""
        self._outside.loop.kill(self.name)
        inline_sqlite.close_all(self.name)
        self._outside.writer.drop(self.name)

    @property
    def is_dead(self) -> bool:
        """True after `kill`."""
        return self.name in self._outside.loop.dead

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self.name}-{self._ids}"

    async def _serve(self) -> None:
        while self.bot is None:
            try:
                await self._start()
            except DatabaseUnavailable:
                await asyncio.sleep(1)
        await self._jobs.run()

    async def _start(self) -> None:
        outside, clock = self._outside, self._clock
        longest = outside.loop.random.choice(LONGEST_SECONDS)
        database = Server(outside, clock, longest)
        directory = FakeSlackPeople({"S0APPROVERS": frozenset({ABEL})})
        # Settings that can differ at each start.
        escalate_after, remind_hours = outside.loop.random.choice(((60, 0.03), (None, 0.01)))
        survey = FlowPolicy(
            approvals_needed=APPROVALS_NEEDED[SURVEY],
            longest_seconds=longest,
            escalate_after_seconds=escalate_after,
            escalate_to=(ADAM,),
        )
        policy = default_policy(flow_policies={SURVEY: survey})
        self.people = People(directory, policy, clock, database)
        self.people.meet(TEAM, "U0BOT")
        settings = default_settings(
            **outside.rules,
            remind_hours=remind_hours,
            gateway_clients={"ci": SimpleNamespace(auto=False)},
            may_ask=lambda *_: True,
        )
        bot = SimpleNamespace(
            settings=settings,
            clock=clock,
            database=database,
            people=self.people,
            flows=client.Flows(settings.flow_aliases, outside.flows, ()),
            slack=outside.slack,
            replies=outside.slack,
            metrics=SimpleNamespace(count_command=lambda *_: None),
            new_id=self._new_id,
            refresh_home=redraw,
        )
        messages = RequestMessages(bot)
        self.client, quotas, self.home = self._quotas(bot)
        cards = {**messages.cards, **quotas.cards}
        notes = {**messages.notes, **quotas.notes}
        sender = Sender(database, outside.slack, cards, notes)
        prunes = [
            store.forget_requests,
            outbox.pruning(store.CARD_IS_NEEDED, incidents.CARD_IS_NEEDED),
        ]
        retention = Retention(database, outside.kept_days, prunes)
        kinds = {
            **quotas.kinds,
            **testuser_jobs.kinds(bot),
            **sender.kinds,
            **retention.kinds,
            **self.home.kinds,
        }
        observed = {name: replace(kind, run=_as_run(kind.run)) for name, kind in kinds.items()}
        self._jobs = JobLoop(database, clock, self.name, observed)
        async with database.transaction() as tx:
            await self._jobs.plan(tx)
        self.quotas, self.bot = quotas, bot

    def _quotas(self, bot: Any) -> tuple[Client, Quotas, Home]:
        database, clock = bot.database, bot.clock
        parts = database, clock, TERMS, Tasks()
        guard = WatchedGuard(self._outside.inventory, self._outside.reader, *parts)
        client = Client(self._outside.inventory, Turns(guard, CLIENTS))
        directory = OrganizationDirectory(client, database, clock, 300, {})
        quotas = Quotas(database, guard, directory, self.people, clock)
        with_homes = SimpleNamespace(**{**vars(bot), "slack": self._outside.homes})
        home = Home(with_homes, directory, quotas.ratelimits)
        return client, quotas, home


def _as_run(runner: Runner) -> Runner:
    """Wrap a runner so that it records which job is running and who holds the job's lease."""

    async def run(job: Job, lease: Lease) -> Outcome:
        RUN.set((job.key, lease.owner))
        return await runner(job, lease)

    return run
