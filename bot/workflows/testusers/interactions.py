"""Clicks: stored before Slack has its acknowledgement, so that no crash loses one.

Whichever process lives follows a stored click, by the job `click:<id>`, and answers over the
click's response_url. Following one twice, as after a crash, changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog
from cachetools import LRUCache

from bot.background.jobs import Again, Lease, Outcome
from bot.dataclass import dataclass
from bot.errors import (
    DatabaseUnavailable,
    GatehouseError,
    RecordEdited,
    Replayed,
    UnknownPerson,
)
from bot.model.testusers.approval import Act
from bot.model.testusers.requests import Request
from bot.ops.deliveries import delivery_id, following_again, new_delivery_id
from bot.permissions import Person
from bot.store import jobs, outbox, requests
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.ui import replies
from bot.ui.message import Message
from bot.ui.testusers import notes, pages
from bot.workflows.deliveries import take_in
from bot.workflows.testusers.asking import Asking
from bot.workflows.testusers.deciding import Deciding
from bot.workflows.testusers.reading import Reading
from bot.workflows.testusers.setup import Setup
from bot.workflows.testusers.transitions import CARD, card_key

log = structlog.get_logger(__name__)

INTERACTION = "testusers.interaction"
# A click that reads a list before it can be answered, and waits as long as the flow service likes.
UNDO = "testusers.undo"
READY_SECONDS = 0.5
# How often, and in what steps, a click is followed again when Slack says neither who it was nor
# takes an answer.
WHO_TRIES, WHO_SECONDS = 6, 10.0
WAITING_INTERACTIONS = 1_000


class ReplyPort(Protocol):
    """Answers by response_url."""

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person, in whatever way; return whether Slack took it."""
        ...


@dataclass(frozen=True)
class StoredInteraction:
    """Who wants to do what with which request, and where the answer goes.

    `page` is that of the list of requests that the click was in, if it was in one; `channel_id` and
    `message_ts` are of the message that the click was in, if everybody in the channel sees it;
    `delivery_id` is what the log has of it.
    """

    act: Act
    request_id: str
    slack_user_id: str
    team_ids: tuple[str, ...]
    reply_to: str
    denial_reason: str = ""
    page: str = ""
    channel_id: str = ""
    message_ts: str = ""
    delivery_id: str = ""

    def payload(self) -> dict[str, Any]:
        """Return it as a job holds it."""
        return {
            "act": self.act.value,
            "request_id": self.request_id,
            "slack_user_id": self.slack_user_id,
            "team_ids": list(self.team_ids),
            "reply_to": self.reply_to,
            "denial_reason": self.denial_reason,
            "page": self.page,
            "channel_id": self.channel_id,
            "message_ts": self.message_ts,
            "delivery_id": self.delivery_id,
        }

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "StoredInteraction":
        """Read what a job holds."""
        return cls(
            Act(payload["act"]),
            payload["request_id"],
            payload["slack_user_id"],
            tuple(payload["team_ids"]),
            payload["reply_to"],
            payload["denial_reason"],
            # One that was stored before there were any has none.
            payload.get("page", ""),
            payload.get("channel_id", ""),
            payload.get("message_ts", ""),
            payload.get("delivery_id", ""),
        )


class StoredInteractions:
    """Keeps clicks, and follows them."""

    def __init__(
        self,
        setup: Setup,
        reply_port: ReplyPort,
        count: Callable[[str, str], None],
    ) -> None:
        self._setup = setup
        self._asking = Asking(setup)
        self._deciding = Deciding(setup)
        self._reading = Reading(setup)
        self._replies = reply_port
        self._count = count
        self._said_later: LRUCache[str, bool] = LRUCache(WAITING_INTERACTIONS)
        # Read with the click, for the run that is most likely the next thing here.
        self._known: LRUCache[str, Request] = LRUCache(WAITING_INTERACTIONS)

    async def store(self, interaction: StoredInteraction) -> None:
        """Store the click; it is followed at once, or by another process after a crash.

        One that was stored before, by any process, is not stored again.

        Raises:
            DatabaseUnavailable: It could not be stored, so nothing will come of it.
            Replayed: It was stored before.
        """
        key = f"click:{self._setup.new_id()}"
        interaction = replace(interaction, delivery_id=delivery_id())
        async with self._setup.database.transaction() as tx:
            if not await take_in(tx):
                raise Replayed("This was done before.")
            job = Job(
                key,
                UNDO if interaction.act is Act.UNDO else INTERACTION,
                interaction.request_id[:255],
                await tx.now(),
                interaction.payload(),
            )
            await jobs.put(tx, job)
            known = await _load(tx, interaction.request_id)
        if known is not None:
            self._known[key] = known

    async def run(self, job: Job, lease: Lease) -> Outcome:  # noqa: ARG002
        """Process a stored click and answer it; after a start, once Slack has said who we are."""
        if not self._setup.people.is_ready:
            return await self._soon()
        interaction = StoredInteraction.of(job.payload)
        with following_again(interaction.delivery_id or new_delivery_id()):
            return await self._follow(interaction, job)

    async def _follow(self, interaction: StoredInteraction, job: Job) -> Outcome:
        name = f"testusers.{interaction.act}"
        try:
            message, outcome = await self._outcome(interaction, job.key, name)
        except DatabaseUnavailable:
            await self._say_later(interaction, job.key)
            raise
        await self._show_copy(interaction)
        self._count(name, outcome)
        log.info("answered", name=name, outcome=outcome)
        if not interaction.reply_to and outcome == "ok":
            # It was clicked in the Home tab, which shows what came of it.
            return None
        if await self._answer(interaction, message, outcome):
            return None
        if outcome == UnknownPerson.outcome and job.tries < WHO_TRIES:
            # Slack is away: nothing was done, and nobody has heard so.
            return Again(await self._soon(WHO_SECONDS), job.tries + 1)
        # Not followed again for the sake of its answer: it would be decided, and put on record, a
        # second time. What was done is on the card.
        if outcome == "ok" or not await self._answer_directly(interaction, message):
            log.warning("click.unanswered", name=name)
        return None

    async def _answer(self, interaction: StoredInteraction, message: Message, outcome: str) -> bool:
        """Answer where the click was made, with the list as it is now where it was in one."""
        replaces = False
        if interaction.page and outcome in {"ok", "conflict"}:
            message, replaces = await self._renewed(interaction, message)
        return await self._replies.say(
            interaction.reply_to, message, to=interaction.slack_user_id, replace=replaces
        )

    async def _answer_directly(self, interaction: StoredInteraction, message: Message) -> bool:
        """Say it in a direct message, unless that is what was tried; twice is better than never."""
        if not interaction.reply_to:
            return False
        return await self._replies.say("", message, to=interaction.slack_user_id)

    async def _show_copy(self, interaction: StoredInteraction) -> None:
        """Bring the message that was clicked up to date where it is not the card that is known.

        A post whose answer was lost is made again, and then there are two in the channel.
        """
        if interaction.channel_id != self._setup.rules.approvals_channel:
            return
        request_id, key = interaction.request_id, card_key(interaction.request_id)
        async with self._setup.database.transaction() as tx:
            copy_key = await outbox.remember_copy(
                tx, key, interaction.channel_id, interaction.message_ts
            )
            if copy_key is not None:
                await outbox.put(tx, OutboxMessage(copy_key, CARD, request_id))

    async def _outcome(
        self, interaction: StoredInteraction, key: str, name: str
    ) -> tuple[Message, str]:
        """Process the click; return what to say and a word for how it went.

        Raises:
            DatabaseUnavailable: It has to be followed again.
        """
        try:
            return await self._process(interaction, key), "ok"
        except DatabaseUnavailable:
            raise
        except GatehouseError as error:
            return replies.sorry(error), error.outcome
        except Exception:
            reference = delivery_id() or new_delivery_id()
            log.exception("click.broken", name=name, reference=reference)
            return replies.broken(reference), "broken"

    async def _renewed(
        self, interaction: StoredInteraction, message: Message
    ) -> tuple[Message, bool]:
        """Return the list that was clicked in as it is now, and whether it can be shown."""
        try:
            person = await self._setup.people.find(interaction.slack_user_id, interaction.team_ids)
            page = await self._reading.pending(person, int(interaction.page))
        except (GatehouseError, ValueError):
            return message, False
        channel = self._setup.rules.approvals_channel
        sees = self._reading.sees_identities(person)
        return pages.renewed(message, pages.pending(page, channel, sees_identities=sees)), True

    async def _say_later(self, interaction: StoredInteraction, key: str) -> None:
        """Say once that the click waits for the database; a response_url is good for five posts."""
        if key not in self._said_later:
            self._said_later[key] = True
            await self._replies.say(
                interaction.reply_to, replies.NOTED, to=interaction.slack_user_id
            )

    async def _soon(self, seconds: float = READY_SECONDS) -> datetime:
        async with self._setup.database.read_only() as tx:
            return await tx.now() + timedelta(seconds=seconds)

    async def _process(self, interaction: StoredInteraction, key: str) -> Message:
        found = await self._setup.people.find(interaction.slack_user_id, interaction.team_ids)
        person = replace(found, came_by=f"stored {interaction.act}")
        if interaction.act is Act.UNDO:
            return await self._undo(person, interaction.request_id)
        decided = await self._deciding.decide(
            person,
            interaction.act,
            interaction.request_id,
            interaction.denial_reason,
            key,
            self._known.pop(key, None),
        )
        return notes.decided(decided.act, decided.reason, decided.request, decided.needed)

    async def _undo(self, person: Person, request_id: str) -> Message:
        asked = await self._asking.undo(person, request_id)
        channel = self._setup.rules.approvals_channel
        message = notes.asked(asked.flow, asked.effect, asked.request, channel)
        return notes.with_next_steps(message, asked.request, None) if asked.request else message


async def _load(tx: Transaction, request_id: str) -> Request | None:
    try:
        return await requests.load(tx, request_id)
    except RecordEdited:
        # Said to whoever clicked, when the click is processed.
        return None
