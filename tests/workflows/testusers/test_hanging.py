"""Flows whose service hangs hold up nothing that is about anything else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from bot.app import CROWDS
from bot.approvals.rules import Act, State
from bot.services.errors import ServiceTimeout
from bot.slack.messages.block_kit import Message
from bot.slack.sender import SEND_KIND
from bot.store import outbox
from bot.store.job_loop import JobLoop
from bot.store.outbox import OutboxMessage
from bot.testusers.interactions import INTERACTION, StoredInteraction, StoredInteractions
from bot.testusers.transitions import card_key
from tests.support.testusers import ADA, ADAM, WELCOME, FakeFlowService, World

PATIENCE = 60
# More than may run at once of anything that waits for the flow service.
FLOWS = 26
ALERT = f"{outbox.INCIDENT_CARD}1"


@dataclass
class HangingService(FakeFlowService):
    """Flows of which some hang; the calls that came to those end, in vain, when `go_on` is set."""

    hanging: tuple[str, ...] = ()
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    hung: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, flow_sid: str) -> list[str]:
        await self._hang(flow_sid)
        return await super().read(flow_sid)

    async def _hang(self, flow_sid: str) -> None:
        if flow_sid in self.hanging:
            self.hung.set()
            await self.go_on.wait()
            raise ServiceTimeout("flow", "The flow service gave no answer in time.")


class ServiceWhosePostsHang(HangingService):
    """The same with lists that can be read."""

    read = FakeFlowService.read

    async def replace(self, flow_sid: str, identities, may_send) -> list[str]:
        await self._hang(flow_sid)
        return await super().replace(flow_sid, identities, may_send)


class Seen:
    """What arrives in Slack, and who waits for it: answers by their URL, messages by their key."""

    def __init__(self) -> None:
        self.arrived: dict[str, str] = {}
        self._more = asyncio.Event()

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        self._note(response_url, message.text)
        return True

    async def send(self, job, lease) -> None:
        self._note(job.subject, "")

    def _note(self, name: str, text: str) -> None:
        self.arrived[name] = text
        self._more.set()

    async def until(self, names: set[str]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not names <= self.arrived.keys():
                self._more.clear()
                await self._more.wait()


class Scene:
    """A world with a flow that is well and many that will hang."""

    def __init__(self, database, clock, service_class: type[HangingService]) -> None:
        self.sids = tuple(f"FW{1000 + number:032X}" for number in range(FLOWS))
        self.service = service_class({sid: [] for sid in (WELCOME, *self.sids)})
        self.world, self.seen = World(database, clock, self.service), Seen()
        self.world.replies, self.clicks = self.seen, StoredInteractions(self.world)

    async def press(self, act: Act, request, by: str, name: str) -> None:
        click = StoredInteraction(act, request.id, by, (), name)
        await self.clicks.store(click)

    async def ask(self) -> None:
        """Ask for a change of each flow that will hang."""
        for sid in self.sids:
            await self.world.ask(f"add {sid} +1 now because x", ADAM)

    @asynccontextmanager
    async def hangs(self) -> AsyncIterator[None]:
        """The service hangs, and jobs run, until the block ends."""
        self.service.hanging = self.sids
        clicks = {INTERACTION: self.clicks.run}
        runners = {**self.world.runners, **clicks, SEND_KIND: self.seen.send}
        loop = JobLoop(self.world.database, self.world.clock, "me", runners, CROWDS)
        task = asyncio.create_task(loop.run())
        try:
            async with asyncio.timeout(PATIENCE):
                await self.service.hung.wait()
            yield
            assert not self.service.go_on.is_set()
        finally:
            self.service.go_on.set()
            await loop.stop(PATIENCE)
            await task


async def changes_are_to_be_made(scene: Scene) -> None:
    await scene.ask()


async def looks_are_due(scene: Scene) -> None:
    scene.service.late = FLOWS
    await scene.ask()
    await scene.world.work()
    scene.world.clock.advance(5)


CASES = [
    (HangingService, changes_are_to_be_made),
    (HangingService, looks_are_due),
    (ServiceWhosePostsHang, changes_are_to_be_made),
]


@pytest.mark.parametrize(("service_class", "prepare"), CASES)
async def test_hanging_flows_delay_no_click_card_or_alert(database, clock, service_class, prepare):
    scene = Scene(database, clock, service_class)
    other = await scene.world.ask("add welcome +9")
    await scene.world.work()
    await prepare(scene)
    async with scene.hangs():
        await scene.press(Act.APPROVE, other, ADA, "approve")
        async with database.transaction() as tx:
            await outbox.put(tx, OutboxMessage(ALERT, "alert", "1"))
        await scene.seen.until({"approve", ALERT, card_key(other.id)})
        assert scene.seen.arrived["approve"].startswith("You approved")
        if prepare is looks_are_due:
            # What hangs with nobody's click delays no decided change either.
            await scene.seen.until({f"requester:{other.id}"})
            assert (await scene.world.stored(other)).state is State.APPLIED
