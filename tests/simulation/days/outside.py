"""Simulates Slack and the flow service. Calls may be slow or fail, and responses may get lost."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bot.errors import SlackRateLimited, SlackUnreachable
from bot.flows.rules import difference
from bot.services.errors import ServiceFailed, ServiceRefused, ServiceTimeout
from bot.slack.messages.block_kit import Message
from tests.simulation.days.loop import PROCESS, SimulationLoop

TIMEOUT_SECONDS = 10.0
# For this time after a change, an old copy of a list may be read.
OLD_SECONDS = 30.0
# Faults that come in storms: for some time, nearly every call has the fault.
STORMS = (
    *("read 500", "read hangs", "post refused", "post 500", "post lands late", "post answer lost"),
    *("post stored in part", "read old"),
    *("slack answer lost", "slack 429", "slack away", "reply lost"),
    *("database away", "commit lost", "commit unknown"),
    *("another client", "call hangs", "call 500", "call answer lost"),
    *("token 500", "token refused", "token late", "token answer lost", "token ended"),
)
T = TypeVar("T")


async def at_their_place(loop: SimulationLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run the service's work, which continues even if the caller is killed or frozen."""
    outside = Context()
    outside.run(PROCESS.set, "")
    return await asyncio.shield(loop.create_task(work, context=outside))


@dataclass
class Faults:
    """Decides at random when faults occur, and counts them."""

    loop: SimulationLoop
    share: float = 0.25
    counts: Counter[str] = field(default_factory=Counter)
    storm: str = ""

    def happens(self, kind: str, weight: float = 1.0) -> bool:
        """Decide at random whether this fault occurs now.

        The fault named in `storm` occurs 90% of the time.
        """
        share = 0.9 if kind == self.storm else self.share * weight
        if self.loop.random.random() >= share:
            return False
        self.counts[kind] += 1
        self.loop.trace(f"fault {kind}")
        return True


@dataclass
class Flows:
    """Simulates the flow service.

    `lists` holds each flow's current list, and `stored` holds every list that the bot has stored.
    If `respells` is True, the service stores identities in lowercase. For each flow, `former` holds
    the time of the most recent change and the list before that change. For a while after a change,
    the service may still return the old list.
    """

    loop: SimulationLoop
    faults: Faults
    lists: dict[str, list[str]]
    stored: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    edited: list[tuple[str, str, bool]] = field(default_factory=list)
    posting: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    holds: Callable[[], bool] = lambda: True
    respells: bool = False
    former: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)

    async def read(self, flow_sid: str) -> list[str]:
        """Return the flow's list after a short delay."""
        return await at_their_place(self.loop, self._read(flow_sid))

    async def replace(
        self, flow_sid: str, identities: Any, _may_send: Callable[[], bool]
    ) -> list[str]:
        """Store the list immediately, later, or never.

        If two processes update the same list at the same time, the bot has a bug.
        """
        process = PROCESS.get()
        others = {item for item in self.posting.get(flow_sid, ()) if item not in self.loop.dead}
        if others - self.loop.frozen - {process}:
            self.problems.append(f"{process} and {others} post to {flow_sid} at once")
        if not self.holds():
            self.problems.append(f"{process} posts to {flow_sid}, and the lease is another's")
        self.posting.setdefault(flow_sid, []).append(process)
        try:
            return await at_their_place(self.loop, self._replace(flow_sid, tuple(identities)))
        finally:
            self.posting[flow_sid].remove(process)

    async def _read(self, flow_sid: str) -> list[str]:
        await self._pass(0.3)
        if self.faults.happens("read 500", 0.3):
            raise ServiceFailed("flow", "Down.", status=500)
        if self.faults.happens("read hangs", 0.15):
            await asyncio.sleep(TIMEOUT_SECONDS)
            raise ServiceTimeout("flow", "No answer.")
        at, before = self.former.get(flow_sid, (-OLD_SECONDS, ()))
        if self.loop.time() - at < OLD_SECONDS and self.faults.happens("read old", 0.3):
            return list(before)
        return list(self.lists[flow_sid])

    async def _replace(self, flow_sid: str, sent: tuple[str, ...]) -> list[str]:
        await self._pass(0.3)
        if self.faults.happens("post refused", 0.1):
            raise ServiceRefused("flow", "No.", status=400, message="No.")
        if self.faults.happens("post 500", 0.3):
            raise ServiceFailed("flow", "Down.", status=500)
        if self.faults.happens("post lands late", 0.3):
            late = self.loop.random.uniform(0.5, 6.0)
            # The service goes on, even if the calling process dies.
            self.loop.call_later(TIMEOUT_SECONDS + late, self._store, flow_sid, sent)
            await asyncio.sleep(TIMEOUT_SECONDS)
            raise ServiceTimeout("flow", "No answer.")
        if self.faults.happens("post stored in part", 0.2):
            sent = self._but_for_one(self.lists[flow_sid], sent)
        self._store(flow_sid, sent)
        await self._pass(0.2)
        if self.faults.happens("post answer lost", 0.3):
            raise ServiceTimeout("flow", "No answer.")
        return list(self.lists[flow_sid])

    def _but_for_one(self, listed: list[str], sent: tuple[str, ...]) -> tuple[str, ...]:
        """Return the list that the bot sent, but leave out one change."""
        change = difference(listed, sent)
        one = self.loop.random.choice(change.identities)
        return tuple(who for who in sent if who != one) if one in sent else (*sent, one)

    def stored_as(self, identity: str) -> str:
        """Return the service's spelling of an identity."""
        return identity.casefold() if self.respells else identity

    def edit(self, flow_sid: str, identity: str) -> None:
        """Edit a list behind the bot's back."""
        listed = self.lists[flow_sid]
        adds = identity not in listed
        (listed.append if adds else listed.remove)(identity)
        self.edited.append((flow_sid, identity, adds))
        self.loop.trace(f"edit {flow_sid[-1]} {identity} {adds}")

    def _store(self, flow_sid: str, identities: tuple[str, ...]) -> None:
        identities = tuple(map(self.stored_as, identities))
        if identities != tuple(self.lists[flow_sid]):
            self.former[flow_sid] = self.loop.time(), tuple(self.lists[flow_sid])
        self.lists[flow_sid] = list(identities)
        self.stored.append((flow_sid, identities))
        self.loop.trace(f"stored {flow_sid[-1]} {identities}")

    async def _pass(self, seconds: float) -> None:
        await asyncio.sleep(self.loop.random.uniform(0, seconds))


@dataclass
class Slack:
    """Simulates Slack, which posts only one message for each `client_msg_id`.

    `messages` holds the messages that were posted in channels, but not the replies in threads.
    """

    loop: SimulationLoop
    faults: Faults
    messages: dict[tuple[str, str], str] = field(default_factory=dict)
    by_client_id: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    holds: Callable[[], bool] = lambda: True

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post a message once."""
        self._look_at_lease(client_msg_id)
        post = self._post(channel_id, message, thread_ts, client_msg_id)
        return await at_their_place(self.loop, post)

    async def _post(
        self, channel_id: str, message: Message, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        await self._trouble()
        place = self.by_client_id.get(client_msg_id)
        if place is None:
            place = (channel_id, f"{len(self.by_client_id)}.0")
            self.by_client_id[client_msg_id] = place
            if thread_ts is None and not channel_id.startswith("U"):
                self.messages[place] = message.text
            self.loop.trace(f"posted {place}")
        if self.faults.happens("slack answer lost", 0.3):
            raise SlackUnreachable
        return place

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit a message."""
        self._look_at_lease(message_ts)
        await at_their_place(self.loop, self._update(channel_id, message_ts, message))

    async def _update(self, channel_id: str, message_ts: str, message: Message) -> None:
        await self._trouble()
        if (channel_id, message_ts) in self.messages:
            self.messages[channel_id, message_ts] = message.text
        self.loop.trace(f"updated {message_ts}")
        if self.faults.happens("slack answer lost", 0.3):
            raise SlackUnreachable

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        """Return a link."""
        return f"https://slack.example/{channel_id}/{message_ts}"

    async def say(self, response_url: str, message: Message, *, to: str, **_: Any) -> bool:
        """Reply to a click. Replies may get lost."""
        await asyncio.sleep(0)
        self.loop.trace(f"said to {to}")
        return not self.faults.happens("reply lost", 0.3)

    def _look_at_lease(self, what: str) -> None:
        if not self.holds():
            self.problems.append(f"{PROCESS.get()} sends {what}, and the lease is another's")

    async def _trouble(self) -> None:
        await asyncio.sleep(self.loop.random.uniform(0, 0.3))
        if self.faults.happens("slack 429", 0.2):
            raise SlackRateLimited(self.loop.random.randrange(1, 5))
        if self.faults.happens("slack away", 0.3):
            raise SlackUnreachable
