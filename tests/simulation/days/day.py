"""People make requests, and approve or deny them, while faults occur.

At the end of the day, the oracle checks whether the results are correct.
"""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import bot.quotas.guard
import bot.store.job_loop
import bot.store.retention
from bot.approvals.rules import Act
from bot.errors import GatehouseError, QuotaError
from bot.ops.logs import following
from bot.services.calls import CallCause
from bot.services.errors import ServiceTimeout
from bot.slack.received_events import ReceivedEvents
from bot.store.engine import Database
from bot.testusers import asking, presets, store
from bot.testusers.asking import Program
from bot.testusers.interactions import StoredInteraction, store_click
from bot.testusers.parse.command import ChangeRequest, parse_testusers
from tests.simulation.days import inline_sqlite
from tests.simulation.days.homes import Homes
from tests.simulation.days.inventory import CLIENTS, KEY, Inventory, make_limits_small
from tests.simulation.days.loop import SharedLock, SimulationLoop, gather_alike
from tests.simulation.days.oracle import IDENTITIES, Oracle
from tests.simulation.days.outside import STORMS, Faults, Flows, Slack
from tests.simulation.days.processes import Outside, Process, VirtualClock
from tests.support.testusers import ABEL, ADA, ADAM, OTTO, SURVEY, WELCOME

PROCESSES = 3
DAY_SECONDS = 420
# After the last fault, everything must be settled within this time.
SETTLE_SECONDS = 900
# The time for publishing a Home tab after all faults have ended.
HOME_SECONDS = 60
CALL_AGAIN_SECONDS = 30
# Idle processes rarely look for jobs, because each look takes real time.
POLL_SECONDS, POLL_AT_REST_SECONDS = 5.0, 30.0
# On some days, decided requests are deleted within minutes.
KEPT_DAYS = (400, 180 / 86_400, 400)
RETAIN_EVERY = timedelta(seconds=45)
# The share of calls with a fault; on one day in four, no call has a fault.
SHARES = (0.0, 0.1, 0.2, 0.3)
FLOWS = {"welcome": WELCOME, "survey": SURVEY}
PRESET = "team"
EDITED = tuple(f"outside-{n}" for n in range(3))
HOME = (OTTO, ABEL)
DECIDERS = (ADA, ABEL, ADAM, OTTO)
ACTS = (*[Act.APPROVE] * 6, Act.DENY, Act.CANCEL, Act.RETRY, Act.UNDO, Act.UNDO)


@dataclass
class Result:
    """The result of a simulated day."""

    seed: int
    problems: list[str]
    steps: int
    requests: int
    trace: str
    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)


class Day:
    """Simulates a day, starting with an empty database. The seed determines what happens."""

    def __init__(self, seed: int, template: Path, folder: Path) -> None:
        self.seed = seed
        self.loop = SimulationLoop(seed)
        self.random = self.loop.random
        self.faults = Faults(self.loop, share=SHARES[seed % len(SHARES)])
        self.flows = Flows(self.loop, self.faults, {WELCOME: ["old-1"], SURVEY: []})
        self.flows.respells = seed % 3 == 1
        self.slack = Slack(self.loop, self.faults)
        path = folder / f"day-{seed}-{os.getpid()}.db"
        shutil.copy(template, path)
        self.outside = Outside(
            self.loop,
            self.faults,
            self.flows,
            self.slack,
            Homes(self.loop, self.faults),
            Inventory(self.loop, self.faults),
            f"sqlite:///{path}",
            SharedLock(self.loop),
            {"request_hours": self.random.choice((0.05, 0.1))},
            kept_days=KEPT_DAYS[seed % len(KEPT_DAYS)],
        )
        # On every second day, two people have their Home tab open.
        self.at_home = HOME[: 2 * (seed % 2)]
        self.processes: list[Process] = []
        self.started = 0
        self.deliveries = 0
        self.known: list[str] = []
        # Pairs of requests that came from one delivery.
        self.twice: list[tuple[str, str]] = []
        self.asked: dict[str, str] = {}

    def run(self) -> Result:
        """Simulate the day. Return the result, including any problems that were found."""
        inline_sqlite.install()
        gather_alike()
        bot.store.job_loop.POLL_SECONDS = POLL_SECONDS
        bot.store.retention.EVERY = RETAIN_EVERY
        make_limits_small()
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda *_: None)
        return self.loop.run_until_complete(self._live())

    async def _live(self) -> Result:
        for _ in range(PROCESSES):
            self._start()
        people = [self.loop.create_task(self._person()) for _ in range(6)]
        people += [self.loop.create_task(self._look_at_home(item)) for item in self.at_home]
        people += [self.loop.create_task(self._program(client)) for client in CLIENTS]
        trouble = [self.loop.create_task(work) for work in (self._trouble(), self._weather())]
        await asyncio.sleep(DAY_SECONDS)
        for task in (*people, *trouble):
            task.cancel()
        await self._calm_down()
        await asyncio.sleep(SETTLE_SECONDS)
        return await self._judge()

    def _start(self) -> None:
        self.started += 1
        process = Process(f"p{self.started}", self.outside)
        self.processes.append(process)
        process.start()

    def _alive(self) -> list[Process]:
        return [
            process
            for process in self.processes
            if not process.is_dead
            and process.name not in self.loop.frozen
            and process.bot is not None
        ]

    async def _calm_down(self) -> None:
        """Stop causing faults, and replace the processes that died."""
        self.faults.share, self.faults.storm = 0.0, ""
        bot.store.job_loop.POLL_SECONDS = POLL_AT_REST_SECONDS
        for name in sorted(self.loop.frozen):
            self.loop.wake(name)
        for _ in range(
            PROCESSES - len([process for process in self.processes if not process.is_dead])
        ):
            self._start()
        await asyncio.sleep(5)

    async def _person(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(1, 40))
            alive = self._alive()
            if alive:
                process = self.random.choice(alive)
                process.run(_quietly(self._do_something(process)))

    async def _program(self, client: str) -> None:
        """Make calls through the gateway as a client would. Some calls wait for their turn."""
        while True:
            await asyncio.sleep(self.random.uniform(5, 60))
            seconds = self.random.choice((0.0, 0.0, 0.0, 5.0))
            alive = self._alive()
            for process in alive and self.random.choices(alive, k=self.random.choice((1, 1, 3))):
                process.run(_patiently(partial(process.client.through_gateway, client, seconds)))

    async def _look_at_home(self, who: str) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(20, 120))
            if alive := self._alive():
                process = self.random.choice(alive)
                process.run(_quietly(process.home.open(who)))

    async def _do_something(self, process: Process) -> None:
        if self.random.random() < 0.2:
            self._look_at_organizations()
        elif self.random.random() < 0.1:
            self._ask_as_a_program()
        elif self.random.random() < 0.3 or not self.known:
            await self._ask(process)
        elif self.random.random() < 0.1:
            self.flows.edit(self.random.choice(list(FLOWS.values())), self.random.choice(EDITED))
        else:
            await self._click(process)

    def _look_at_organizations(self) -> None:
        """List the organizations in up to six concurrent calls, which may exceed the limits."""
        cause = CallCause("list", OTTO)
        alive = self._alive()
        for process in alive and self.random.choices(alive, k=self.random.choice((1, 3, 6))):
            process.run(_patiently(partial(process.client.organizations, KEY, cause)))

    async def _ask(self, process: Process) -> None:
        kind, flow = self.random.choice(("add", "add", "remove")), self.random.choice(list(FLOWS))
        who = self.random.sample(IDENTITIES, self.random.choice((1, 1, 2, 3)))
        lasts = self.random.choice(("", " for 40s", " for 5m")) if kind == "add" else ""
        if kind == "add" and not lasts and self.random.random() < 0.2:
            lasts = f" until {self._soon()}"
        if self.random.random() < 0.2:
            await self._save_preset(process)
            who[0] = f"@{PRESET}"
        asker = self.random.choice((OTTO, OTTO, OTTO, ADA, ADA, ADAM))
        now = " now because urgent" if asker == ADAM else ""
        text = f"{kind} {flow} {' '.join(who)}{lasts}{now}"
        self.loop.trace(f"{asker} {text}")
        self.deliveries += 1
        delivery = f"delivery-{self.deliveries}"
        if self.random.random() < 0.2:
            # Slack delivers the command a second time, to any process.
            other = self.random.choice(self._alive() or [process])
            other.run(_quietly(self._deliver(other, asker, text, delivery)))
        await self._deliver(process, asker, text, delivery)

    def _ask_as_a_program(self) -> None:
        """Send the same text up to three times, to any processes."""
        self.deliveries += 1
        text = f"add welcome {self.random.choice(IDENTITIES)} for 5m because {self.deliveries}"
        self.loop.trace(f"program {text}")
        alive = self._alive()
        for process in alive and self.random.choices(alive, k=self.random.choice((1, 2, 3))):
            process.run(_quietly(self._send(process, text)))

    async def _send(self, process: Process, text: str) -> None:
        assert process.bot is not None
        command = parse_testusers(text)
        assert isinstance(command, ChangeRequest)
        asked = await asking.ask_for(process.bot, Program("ci", OTTO, text), command)
        if asked.request is not None:
            first = self.asked.setdefault(text, asked.request.id)
            self.twice.append((first, asked.request.id))
            self.known.append(asked.request.id)

    async def _deliver(self, process: Process, asker: str, text: str, delivery: str) -> None:
        assert process.bot is not None
        with following(delivery):
            if not await ReceivedEvents(process.bot.database).take():
                return
        person, command = await process.people.find(asker), parse_testusers(text)
        asked = await asking.ask(process.bot, person, command)
        if asked.request is not None:
            first = self.asked.setdefault(delivery, asked.request.id)
            self.twice.append((first, asked.request.id))
            self.known.append(asked.request.id)

    def _soon(self) -> str:
        """Return the time that clocks in Berlin will show in a few minutes."""
        minutes = self.random.randrange(2, 6)
        there = VirtualClock(self.loop).now().astimezone(ZoneInfo("Europe/Berlin"))
        return f"{there + timedelta(minutes=minutes):%H:%M}"

    async def _save_preset(self, process: Process) -> None:
        assert process.bot is not None
        people = self.random.sample(IDENTITIES, 2)
        otto = await process.people.find(OTTO)
        await presets.save_preset(process.bot, otto, PRESET, people)

    async def _click(self, process: Process) -> None:
        """Let one or more people press a button. Sometimes, one person presses the button twice."""
        act, request_id = self.random.choice(ACTS), self.random.choice(self.known[-6:])
        who = list(DECIDERS) if self.random.random() < 0.2 else [self.random.choice(DECIDERS)]
        if self.random.random() < 0.2:
            who.append(who[0])
        for item in who:
            self.loop.trace(f"{item} {act} {request_id}")
            taken_by = self.random.choice(self._alive() or [process])
            is_outdated = self.random.random() < 0.1
            click = StoredInteraction(act, request_id, item, (), "https://reply.example", "no")
            taken_by.run(_quietly(self._press(taken_by, click, int(is_outdated))))

    async def _press(self, process: Process, click: StoredInteraction, behind: int) -> None:
        """Press a button on a card that is out of date by `behind` versions."""
        assert process.bot is not None
        async with process.bot.database.read_only() as tx:
            request = await store.load_request(tx, click.request_id)
        version = request.requested.card_version - behind if request else 0
        await store_click(process.bot, replace(click, version=version))

    async def _trouble(self) -> None:
        """Kill and freeze processes while they are working."""
        while True:
            await asyncio.sleep(self.random.uniform(5, 60))
            alive = self._alive()
            if not self.faults.share or len(alive) < 2:
                continue
            strike = self.random.choice((self._kill, self._freeze))
            process, steps = self.random.choice(alive), self.random.randrange(400)
            self.loop.after_steps(process.name, steps, partial(strike, process))

    async def _weather(self) -> None:
        """From time to time, make one kind of fault frequent for a while."""
        while self.faults.share:
            await asyncio.sleep(self.random.uniform(10, 60))
            self.faults.storm = self.random.choice(STORMS)
            self.loop.trace(f"storm of {self.faults.storm}")
            await asyncio.sleep(self.random.uniform(5, 90))
            self.faults.storm = ""

    def _kill(self, process: Process) -> None:
        if self.faults.share and not process.is_dead:
            self.faults.counts["kill -9"] += 1
            process.kill()
            self._start()

    def _freeze(self, process: Process) -> None:
        if self.faults.share and not process.is_dead:
            self.faults.counts["freeze"] += 1
            self.loop.freeze(process.name)
            self.loop.call_later(self.random.uniform(1, 60), self.loop.wake, process.name)

    async def _judge(self) -> Result:
        database = Database(self.outside.url, VirtualClock(self.loop))
        database._writer = self.outside.writer  # type: ignore[assignment]
        stuck = [problem for item in self._alive() if (problem := await self._call_of(item))]
        (process, *_) = self._alive()
        # People who look at their Home tab again see the truth.
        for who in list(self.outside.homes.shown):
            await process.run(process.home.open(who))
        await asyncio.sleep(HOME_SECONDS)
        oracle = await Oracle.look(database, self.outside, process)
        problems = stuck + await oracle.problems(self.twice)
        return Result(
            self.seed,
            problems,
            self.loop.steps,
            len(oracle.created),
            self.loop.trace_hash,
            self.faults.counts,
            oracle.ends,
        )

    async def _call_of(self, process: Process) -> str:
        """Make a call after all faults have ended. Return the problem, or "" if there is none.

        A process whose look at the database's clock was never stored takes a long drift for a
        correction, and then keeps slots for some seconds too long. So there's a second try.
        """
        problem = ""
        for _ in range(2):
            try:
                await process.run(process.client.organizations(KEY, CallCause("list", OTTO)))
            except GatehouseError as error:
                problem = f"{process.name} can't call: {error.sentence}"
            else:
                return ""
            await asyncio.sleep(CALL_AGAIN_SECONDS)
        return problem


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    """Do the work, and ignore refusals, which are normal in a simulation."""
    try:
        await work
    except GatehouseError:
        return


async def _patiently(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Make a call, and retry it up to two times.

    If the guard declines the call, wait for as long as the guard specifies. After a timeout,
    retry immediately.
    """
    for _ in range(3):
        try:
            await call()
        except QuotaError as declined:
            await asyncio.sleep(max(1.0, declined.seconds))
        except ServiceTimeout:
            continue
        except GatehouseError:
            return
        else:
            return
