"""Cards and messages about requests, rendered from the stored state when they're sent."""

from dataclasses import replace
from datetime import datetime

from bot.approvals.rules import State
from bot.errors import DatabaseUnavailable, SlackError
from bot.permissions import EVERY_FULL_MEMBER, Permission
from bot.slack.messages.block_kit import Message
from bot.slack.sender import CardNow, Note, Renderer
from bot.store import outbox
from bot.store.engine import Transaction
from bot.store.outbox import OutboxMessage
from bot.testusers import store, transitions
from bot.testusers.asking import Asked
from bot.testusers.messages import notes
from bot.testusers.messages.card import card
from bot.testusers.parts import Parts
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Request
from bot.testusers.transitions import card_key, write_card

# States in which a card has buttons or may get buttons later.
OPEN_STATES = frozenset({State.PENDING, State.APPLYING, State.FAILED})
TRIES, PAUSE_SECONDS = 8, 0.05


async def card_link(bot: Parts, request_id: str, tries: int = TRIES) -> str | None:
    """Return a link to the request's card.

    The card is posted shortly after the request is made, so this function waits for it briefly. It
    returns None if the card still isn't posted, or if Slack or the database fails.
    """
    try:
        for attempt in range(tries):
            if attempt:
                await bot.clock.sleep(PAUSE_SECONDS)
            async with bot.database.read_only() as tx:
                card = await outbox.sent_card(tx, card_key(request_id))
            if card is not None:
                return await bot.slack.permalink(card.channel_id, card.message_ts)
    except (DatabaseUnavailable, SlackError):
        return None
    return None


async def answer_to(bot: Parts, asked: Asked, time_zone: str = "") -> Message:
    """Return the reply to the requester, with a link to the card if the request needs approval."""
    channel, request = bot.settings.approvals_channel, asked.request
    message = notes.asked(asked.flow, asked.effect, request, channel, time_zone)
    if request is None or not request.waits:
        return message
    return notes.with_next_steps(message, request, await card_link(bot, request.id))


class RequestMessages:
    """A renderer of cards, messages in card threads, and messages to requesters."""

    def __init__(self, bot: Parts) -> None:
        self._bot = bot

    @property
    def renderers(self) -> dict[str, Renderer]:
        """The functions that render outbox messages, keyed by the kind of message."""
        return {
            transitions.CARD: self.card,
            transitions.REMINDER: self.waiting,
            transitions.ESCALATION: self.waiting,
            transitions.FAILURE: self.failure,
            transitions.OUTCOME: self.outcome,
            transitions.ENDING: self.ending,
            transitions.REFUSED: self.refused,
        }

    async def plan(self, tx: Transaction) -> None:
        """Redraw all open cards with the current settings, such as the list of approvers."""
        for request in await store.requests_in(tx, *OPEN_STATES):
            # A change without approval gets a card only once it's applied or has failed.
            if request.state is not State.APPLYING or not request.requested.without_approval:
                await write_card(tx, request.id)

    async def card(self, outbox_message: OutboxMessage) -> CardNow | None:
        """Return the request's current card, or None if the request no longer exists."""
        channel = self._bot.settings.approvals_channel
        request = await self._request(outbox_message)
        if request is None:
            return None
        if request.state in OPEN_STATES:
            request = replace(request, flow=self._bot.flows.now(request.flow))
        policy = self._bot.people.policy
        flow_policy = policy.of_flow(request.flow.sid)
        mentioned = policy.mentioned(request.flow.sid, request.requester.slack_user_id)
        async with self._bot.database.read_only() as tx:
            related = await store.naming_the_same(tx, request)
        message = card(
            request,
            mentioned,
            flow_policy.approvals_needed,
            allows_self=policy.allow_self_approval,
            approvers=await self._approvers(request) if flow_policy.notify is not None else "",
            related=related,
        )
        if outbox.COPY in outbox_message.key:
            return CardNow(channel, message, is_copy=True)
        return CardNow(channel, message, follows=request.state in OPEN_STATES)

    async def _approvers(self, request: Request) -> str:
        policy = self._bot.people.policy
        ids = policy.holders(Permission.DECIDE, request.flow.sid)
        if EVERY_FULL_MEMBER in ids:
            return "any full member"
        asker = None if policy.allow_self_approval else request.requester.slack_user_id
        return await self._bot.people.named(user_id for user_id in ids if user_id != asker)

    async def failure(self, outbox_message: OutboxMessage) -> CardNow | None:
        """Return the thread message that says the change failed, or that it later succeeded."""
        request, above = await self._request(outbox_message), card_key(outbox_message.subject)
        if request is None or request.state not in {State.FAILED, State.APPLIED}:
            return None
        message = notes.failure_in_thread(request)
        return CardNow(self._bot.settings.approvals_channel, message, under=above)

    async def ending(self, outbox_message: OutboxMessage) -> Note | None:
        """Return the notice that access ends soon, or None if the end has changed or passed."""
        request = await self._request(outbox_message)
        async with self._bot.database.read_only() as tx:
            now, made = await tx.now(), await store.grants_of_request(tx, outbox_message.subject)
        ends_at = datetime.fromisoformat(outbox_message.payload["ends_at"])
        ending = [grant.identity for grant in made if grant.ends_at == ends_at]
        if request is None or not ending or ends_at <= now:
            return None
        return Note(request.requester.slack_user_id, notes.ending(request, ending, ends_at))

    async def waiting(self, outbox_message: OutboxMessage) -> CardNow | None:
        """Return a reminder or an escalation, or the text that replaces it after a decision."""
        is_escalation = outbox_message.kind == transitions.ESCALATION
        request = await self._request(outbox_message)
        if request is None:
            return None
        above, is_waiting = card_key(request.id), request.state is State.PENDING
        async with self._bot.database.read_only() as tx:
            # A note needs a posted card. After a decision, only a note that was sent is updated.
            needed = await outbox.sent_card(tx, above if is_waiting else outbox_message.key)
        if needed is None:
            return None
        if not is_waiting:
            message = notes.no_longer_waiting(request)
        else:
            people = self._bot.people.policy.of_flow(request.flow.sid).escalate_to or ()
            message = notes.still_waiting(request, people if is_escalation else None)
        return CardNow(self._bot.settings.approvals_channel, message, under=above)

    async def outcome(self, outbox_message: OutboxMessage) -> Note | None:
        """Return the direct message about the outcome, or None if nothing is left to report."""
        request = await self._request(outbox_message)
        if request is None:
            return None
        payload = dict(outbox_message.payload)
        if payload["event"] == "ended":
            # If the message was delayed, some of these people may have been given access again.
            async with self._bot.database.read_only() as tx:
                granted = await store.grants_of_flow(tx, request.flow.key)
            out = [identity for identity in payload["identities"] if identity not in granted]
            if not out:
                return None
            payload["identities"] = out
        link = await card_link(self._bot, request.id, tries=1)
        return Note(request.requester.slack_user_id, notes.outcome(request, payload, link))

    async def refused(self, outbox_message: OutboxMessage) -> Note:
        """Return the alert about refused changes, or the notice that the service works again."""
        payload, channel = outbox_message.payload, self._bot.settings.alerts_channel
        if not payload:
            return Note(channel, notes.service_accepts())
        flow = Flow(outbox_message.subject, payload["alias"])
        return Note(channel, notes.service_refuses(payload["sentence"], flow))

    async def _request(self, outbox_message: OutboxMessage) -> Request | None:
        async with self._bot.database.read_only() as tx:
            return await store.load_request(tx, outbox_message.subject)
