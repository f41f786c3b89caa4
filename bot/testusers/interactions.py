"""Clicks: stored before Slack gets its acknowledgement, so that a crash loses none.

Any running process carries out a stored click, in the job `click:<id>`, and answers over the
click's response_url. Carrying it out twice, as after a crash, changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog
from cachetools import LRUCache

from bot.approvals.rules.approval import Act
from bot.errors import DatabaseUnavailable, GatehouseError, Replayed, UnknownPerson
from bot.ops.current_delivery import delivery_id, following_again, new_delivery_id
from bot.permissions import Person
from bot.slack.messages import replies
from bot.slack.messages.message import Message
from bot.slack.received_events import take_in
from bot.store import jobs, outbox
from bot.store.job_loop import Again, Lease, Outcome
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.asking import Asking
from bot.testusers.deciding import Click, Deciding
from bot.testusers.messages import notes, pages
from bot.testusers.reading import Reading
from bot.testusers.rules.requests import Request
from bot.testusers.setup import Setup
from bot.testusers.store import requests
from bot.testusers.transitions import CARD, card_key

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
        """Show the message to the person; return whether Slack took it."""
        ...


@dataclass(frozen=True)
class StoredInteraction:
    """A click: the person, the action, the request, and where to answer.

    `page` is the page of the list of requests that held the button, if any; `channel_id` and
    `message_ts` name the message that held it, if the whole channel sees it; `delivery_id` is the
    id in the log. `clicked_at` is when the click was stored.
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
    clicked_at: datetime | None = None

    def payload(self) -> dict[str, Any]:
        """Return the click as a job stores it."""
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
            "clicked_at": self.clicked_at and self.clicked_at.isoformat(),
        }

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "StoredInteraction":
        """Return the click that a job stores."""
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
            datetime.fromisoformat(at) if (at := payload.get("clicked_at")) else None,
        )


class StoredInteractions:
    """Stores clicks, and carries them out."""

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
        """Store the click; this process carries it out at once, or another does after a crash.

        Raises:
            DatabaseUnavailable: The click is not stored and will not be carried out.
            Replayed: A process has stored the click before.
        """
        key = f"click:{self._setup.new_id()}"
        async with self._setup.database.transaction() as tx:
            if not await take_in(tx):
                raise Replayed("This was done before.")
            now = await tx.now()
            interaction = replace(interaction, delivery_id=delivery_id(), clicked_at=now)
            job = Job(
                key,
                UNDO if interaction.act is Act.UNDO else INTERACTION,
                interaction.request_id[:255],
                now,
                interaction.payload(),
            )
            await jobs.put(tx, job)
            known = await requests.load(tx, interaction.request_id)
        if known is not None:
            self._known[key] = known

    async def run(self, job: Job, lease: Lease) -> Outcome:  # noqa: ARG002
        """Carry out a stored click and answer it, once Slack has identified the bot."""
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
        """Answer where the click was made; if that was a list, show the current list."""
        replaces = False
        if interaction.page and outcome in {"ok", "conflict"}:
            message, replaces = await self._renewed(interaction, message)
        return await self._replies.say(
            interaction.reply_to, message, to=interaction.slack_user_id, replace=replaces
        )

    async def _answer_directly(self, interaction: StoredInteraction, message: Message) -> bool:
        """Answer in a direct message, unless that was tried; an answer twice beats no answer."""
        if not interaction.reply_to:
            return False
        return await self._replies.say("", message, to=interaction.slack_user_id)

    async def _show_copy(self, interaction: StoredInteraction) -> None:
        """Update the message that was clicked if it is not the known card.

        A post whose answer was lost is repeated, and then the channel has two cards.
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
        """Carry out the click; return the answer and a word for its outcome.

        Raises:
            DatabaseUnavailable: The click has to be carried out again.
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
        """Return the current version of the clicked list, and whether it can be shown."""
        try:
            person = await self._setup.people.find(interaction.slack_user_id, interaction.team_ids)
            page = await self._reading.pending(person, int(interaction.page))
        except (GatehouseError, ValueError):
            return message, False
        channel = self._setup.rules.approvals_channel
        sees = self._reading.sees_identities(person)
        return pages.renewed(message, pages.pending(page, channel, sees_identities=sees)), True

    async def _say_later(self, interaction: StoredInteraction, key: str) -> None:
        """Say once that the click waits for the database: a response_url allows five posts only."""
        if key not in self._said_later:
            self._said_later[key] = True
            await self._replies.say(
                interaction.reply_to, replies.NOTED, to=interaction.slack_user_id
            )

    async def _soon(self, seconds: float = READY_SECONDS) -> datetime:
        return await self._setup.database.now() + timedelta(seconds=seconds)

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
            Click(key, interaction.clicked_at),
            self._known.pop(key, None),
        )
        return notes.decided(decided.act, decided.reason, decided.request, decided.needed)

    async def _undo(self, person: Person, request_id: str) -> Message:
        asked = await self._asking.undo(person, request_id)
        channel = self._setup.rules.approvals_channel
        message = notes.asked(asked.flow, asked.effect, asked.request, channel)
        return notes.with_next_steps(message, asked.request, None) if asked.request else message
