"""People make and decide requests while two bots run, lose connections and are replaced."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import bot.app
from bot.app import Gatehouse, gatehouse
from bot.migrations import migrate
from bot.ops.clock import SystemClock
from bot.serve import Service
from bot.store import audit
from bot.store.engine import Database
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack, running_slack
from tests.simulation.pair.model import (
    FLOWS,
    IDENTITY,
    UNTIL,
    Effect,
    Model,
    WatchedFlow,
    read,
)
from tests.support.databases import ClockedDatabase
from tests.support.postgres import connect, own_database, server_url
from tests.support.settings import read_settings
from tests.support.steady import LaterClock, SteadyLoop
from tests.support.world import ABEL, ADA, ADAM, OTTO, environment_for

BOTS, STEPS = 2, 150
PEOPLE = ("+15550101", "+15550102", "+15550103", "ann@example.com", "bob@example.com")
EDITED = ("console@example.com", *PEOPLE[:2])
LASTS = ("", "", "for 40s", "for 2m", "for 5m")
LONGEST = timedelta(minutes=6)
ASKERS, CLICKERS = (OTTO, OTTO, ADA, ABEL), (ADA, ADA, ABEL, ADAM, OTTO)
BUTTONS = (*["Approve"] * 6, "Cancel", "Undo", "Undo", "Retry")
# What has to happen in some life, for the lives to show anything.
HAPPENS = {"Approve", "ask", "clock", "disconnect", "edit", "fault", "kill"}
FAULTS = (
    FaultKind.CUT,
    FaultKind.RESET,
    FaultKind.STATUS,
    FaultKind.TRUNCATED,
    FaultKind.HTML,
)


class Bot:
    """A bot process, which runs in this process but has connections of its own."""

    def __init__(self, name: str, environment: dict[str, str], clock: LaterClock) -> None:
        self.name, self.url, self.clock = name, "", clock
        self.parts: Gatehouse | None = None
        database = f"{environment['DATABASE_URL']}?application_name={name}"
        self.settings = read_settings({**environment, "DATABASE_URL": database})
        self.task = asyncio.create_task(self._run(), name=name)

    async def _run(self) -> None:
        async with gatehouse(self.settings, clock=self.clock) as parts:
            self.parts = parts
            service = Service(parts)
            serving = asyncio.create_task(service.run(asyncio.Event()))
            try:
                while await service.missing() is not None:
                    await asyncio.wait({serving}, timeout=0.01)
                self.url = service.addresses[0]
                await serving
            finally:
                self.url = ""
                serving.cancel()
                await asyncio.wait({serving})

    async def kill(self, database_url: str) -> None:
        """End the bot. Its transactions are undone first, as if it had been killed."""
        self.url = ""
        await disconnect(database_url, self.name)
        self.task.cancel()
        await asyncio.wait({self.task})


async def disconnect(database_url: str, name: str) -> None:
    """Close a bot's connections to the database."""
    connection = await connect(database_url)
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
    await connection.execute(ends, [name])
    await connection.close()


class Life:
    """Some minutes in the life of two bots. The seed decides what people do."""

    def __init__(self, seed: int, slack: RunningSlack, services: ServicesState) -> None:
        # What people find when they click isn't the same each time, but the kinds of steps are.
        self.kinds, self.dice = random.Random(seed), random.Random(seed + 1)
        self.slack, self.services = slack, services
        self.clock = LaterClock()
        self.model = Model(self.clock.now)
        self.flows: dict[str, WatchedFlow] = {}
        for alias, sid in FLOWS.items():
            flow = WatchedFlow(sid)
            flow.watch(alias, self.model)
            services.flows[sid] = self.flows[alias] = flow
        self.bots: list[Bot] = []
        self.environment: dict[str, str] = {}
        self.started = 0
        self.trace: list[str] = []
        self.done: Counter[str] = Counter()
        self.tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Start a bot."""
        self.started += 1
        self.bots.append(Bot(f"bot-{self.started}", self.environment, self.clock))

    def note(self, words: str) -> None:
        """Remember what was done."""
        self.done[words.split(maxsplit=1)[0]] += 1
        self.trace.append(f"{self.clock.now():%M:%S} {words}")

    def cards(self) -> list[Message]:
        """Return the cards in the channel."""
        return self.slack.workspace.messages("C0APPROVALS")

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let somebody do something while others go on."""
        alive = [item.url for item in self.bots if item.url]
        if not alive:
            work.close()
            return
        self.slack.bot_url = self.dice.choice(alive)
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def live(self, steps: int = STEPS) -> list[str]:
        """Let people work, then calm down. Return the problems.

        On a slow machine, they take up to three times as many steps, until an approved change has
        been applied.
        """
        for _ in range(BOTS):
            self.start()
        await self.slack.until(lambda: all(item.url for item in self.bots))
        for nth in range(3 * steps):
            if nth >= steps and any("*Applied*" in card.all_text for card in self.cards()):
                break
            await self.step()
            await asyncio.sleep(self.dice.choice((0.0, 0.01, 0.03, 0.1)))
        await self.calm()
        return [*self.model.problems, *self.card_problems(), *await self.list_problems()]

    async def step(self) -> None:
        """Do one random thing."""
        chance = self.kinds.random()
        if chance < 0.30:
            self.ask()
        elif chance < 0.70:
            self.click()
        elif chance < 0.76:
            self.edit()
        elif chance < 0.84:
            self.fault()
        elif chance < 0.96:
            self.clock.ahead += timedelta(seconds=self.dice.uniform(1, 40))
            self.note("clock")
        elif chance < 0.98:
            one = self.dice.choice(self.bots)
            self.note(f"disconnect {one.name}")
            await disconnect(self.environment["DATABASE_URL"], one.name)
        else:
            await self.replace()

    def ask(self) -> None:
        """Ask for a change."""
        verb, flow = self.dice.choice(("add", "add", "remove")), self.dice.choice([*FLOWS])
        people = self.dice.sample(PEOPLE, self.dice.choice((1, 1, 2)))
        spelled = [one.title() if self.dice.random() < 0.1 else one for one in people]
        lasts = self.dice.choice(LASTS) if verb == "add" else ""
        by, now = self.dice.choice(ASKERS), ""
        if self.dice.random() < 0.07:
            by, now = ADAM, "now because urgent"
            seconds = {"for 40s": 40, "for 2m": 120, "for 5m": 300}.get(lasts)
            # The list can have either spelling.
            either = (*people, *(one.title() for one in people))
            effects = {one: Effect(verb, seconds=seconds) for one in either}
            self.model.asks_now(flow, effects, f"now-{len(self.trace)}")
        text = f"{verb} {flow} {' '.join(spelled)} {lasts} {now}"
        self.note(f"ask {by} {text}")
        self.do(self.slack.command(by, "C0GENERAL", "/testusers", text))

    def click(self) -> None:
        """Let one or two people press a button on a recent card."""
        button = self.dice.choice(BUTTONS)
        shown = [card for card in self.cards()[-25:] if button in card.buttons]
        if not shown:
            return
        card = self.dice.choice(shown)
        for who in self.dice.sample(CLICKERS, self.dice.choice((1, 1, 2))):
            if button == "Approve":
                self.model.approves(who, card)
            self.note(f"{button} {who} {card.ts}")
            self.do(self.slack.click(who, card, button))

    def edit(self) -> None:
        """Change a list in the vendor's console."""
        flow, who = self.dice.choice([*self.flows.values()]), self.dice.choice(EDITED)
        listed = [one for one in flow.identities if one != who]
        self.note(f"edit {flow.alias} {who}")
        flow.edit(listed if who in flow.identities else [*listed, who])
        self.services.changed()

    def fault(self) -> None:
        """Make the next calls to the flow service fail."""
        kind, method = self.dice.choice(FAULTS), self.dice.choice(("GET", "POST", "POST"))
        times = self.dice.choice((1, 1, 2, 4))
        after = kind is not FaultKind.STATUS and self.dice.random() < 0.5
        self.note(f"fault {kind} {method} {times} {after}")
        more = {"method": method, "times": times, "after_work": after}
        self.services.faults.add(Fault(kind, "flow", status=503, **more))

    async def replace(self) -> None:
        """Kill a bot, and start another."""
        one = self.dice.choice(self.bots)
        self.note(f"kill {one.name}")
        self.bots.remove(one)
        await one.kill(self.environment["DATABASE_URL"])
        self.start()

    async def calm(self) -> None:
        """End all faults, and let the bots finish what they can."""
        self.services.faults.lift()
        await self.slack.until(lambda: all(item.url for item in self.bots))
        self.slack.bot_url = self.bots[0].url
        await self.pass_time(timedelta(minutes=30))

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass in small steps."""
        until = self.clock.ahead + time
        while self.clock.ahead < until:
            self.clock.ahead += timedelta(seconds=20)
            await self.quiet()

    async def quiet(self) -> None:
        """Wait until no bot runs a job, and no socket has been active for a moment."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteadyLoop)
        while True:
            heard = loop.selector.heard
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await self.slack.workspace.change()
            running = any(one.parts.jobs._running for one in self.bots if one.parts)
            if loop.selector.heard == heard and not running:
                return

    def card_problems(self) -> list[str]:
        """Compare the lists with the last change that cards say was made for each person."""
        found, last = list[str](), dict[tuple[str, str], list[tuple[int, Effect, str]]]()
        for message in self.cards():
            card = read(message)
            if card is None:
                found.append(f"not a card: {message.all_text[:200]!r}")
            elif card.state == ":hourglass:" and "Approve" not in message.buttons:
                found.append(f"still being applied: {card.text[:200]!r}")
            elif card.applied_at is not None:
                for identity, one in card.effects.items():
                    changes = last.setdefault((card.flow, identity), [])
                    changes.append((card.applied_at, one, card.text))
        for (flow, identity), changes in last.items():
            changes.sort(key=lambda change: change[0])
            at, one, text = changes[-1]
            if len(changes) > 1 and at - changes[-2][0] < 2:
                continue
            if (flow, identity) in self.model.edited_at:
                continue
            is_on = identity in self.flows[flow].identities
            end = one.end or (one.seconds and at + one.seconds)
            over = end is not None and end < self.clock.now().timestamp()
            if is_on != (one.verb != "remove" and not over):
                found.append(f"{flow}: {identity} is on the list: {is_on}, but {text[:300]!r}")
        return found

    async def list_problems(self) -> list[str]:
        """Compare what `list` says with the cards, and let all access with an end run out."""
        found, ended = list[str](), dict[str, set[str]]()
        kept = {name: [*flow.identities] for name, flow in self.flows.items()}
        for name, flow in self.flows.items():
            said = await self.listed(name)
            if said.keys() != {*flow.identities}:
                found.append(f"{name}: has {flow.identities}, but it says {said}")
            ended[name] = {who for who, line in said.items() if "until" in line}
            shown = [card for item in self.cards() if (card := read(item))]
            for who, line in said.items():
                if "outside" in line:
                    is_true = bool(self.model.outside[name]["+" + who])
                else:
                    ends = [int(end) for end in UNTIL.findall(line)] or [None]
                    is_true = any(
                        card.applied_at
                        and who in card.effects
                        and card.effects[who].verb != "remove"
                        and card.effects[who].end == ends[0]
                        for card in shown
                        if card.flow == name
                    )
                if not is_true:
                    found.append(f"{name}: no card says {line!r}")
        await self.pass_time(LONGEST)
        for name, flow in self.flows.items():
            left = [who for who in kept[name] if who not in ended[name]]
            if flow.identities != left:
                found.append(f"{name}: {left} should be left, there is {flow.identities}")
        return found

    async def listed(self, flow: str) -> dict[str, str]:
        """Return what `list` says of each person."""
        before = len(self.slack.workspace.ephemerals(OTTO))
        await self.slack.command(OTTO, "C0GENERAL", "/testusers", f"list {flow}")

        def answer() -> Message | None:
            new = self.slack.workspace.ephemerals(OTTO)[before:]
            return next((item for item in new if "Working on it" not in item.all_text), None)

        text = (await self.slack.until(answer)).text
        lines = [line for line in text.split("\n") if line.startswith("• `")]
        return {IDENTITY.findall(line)[0]: line for line in lines}


@asynccontextmanager
async def begun(seed: int) -> AsyncIterator[Life]:
    """Yield a life with a new database."""
    bot.app.Database = ClockedDatabase  # type: ignore[misc]
    services = ServicesState()
    try:
        async with (
            own_database(server_url(), is_durable=False) as url,
            running_services(services) as running,
            running_slack() as slack,
        ):
            database = Database(url, SystemClock())
            await migrate(database)
            slack.wait_for_acknowledgements(30)
            life = Life(seed, slack, services)
            policies = {"survey": {"approvals_needed": 2}}
            life.environment = {
                **environment_for(slack, running, url),
                "INVENTORY_WATCH": "off",
                "COMMANDS_PER_MINUTE": "0",
                "FLOW_POLICIES": json.dumps(policies),
            }
            try:
                yield life
                async with database.read_only() as tx:
                    if not (await audit.verify(tx)).is_intact:
                        life.model.problems.append("the audit log isn't intact")
            finally:
                await database.close()
                for one in life.bots:
                    one.task.cancel()
                await asyncio.wait({one.task for one in life.bots})
    finally:
        bot.app.Database = Database  # type: ignore[misc]
