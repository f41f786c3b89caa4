"""Cards and messages about requests, rendered from the stored state when they're sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.approvals.rules import State
from bot.errors import DatabaseUnavailable, SlackError
from bot.permissions import Permission, Person
from bot.slack.messages import text
from bot.slack.messages.block_kit import Message
from bot.slack.sender import Outgoing, drawn
from bot.store import outbox
from bot.store.engine import Transaction
from bot.store.outbox import OutboxMessage, SentCard
from bot.testusers import store
from bot.testusers.messages import notes, phrases
from bot.testusers.messages.card import Surroundings, card
from bot.testusers.parts import Parts, policy_of
from bot.testusers.reading import channel_of, named_now
from bot.testusers.rules.people import RequestPerson
from bot.testusers.rules.requests import Asked, Request
from bot.testusers.work import CARD, ENDING, ESCALATION, OUTCOME, REMINDER, card_key, current_list

# How long to wait for this process to post a card, and how often.
LINK_SECONDS = 0.35
LINK_TRIES = 2
PAUSE_SECONDS = 0.05


async def link_to(bot: Parts, sent: SentCard | None) -> str | None:
    """Return a link to the card, or None if it isn't posted or Slack fails."""
    if sent is None:
        return None
    try:
        return await bot.slack.permalink(sent.channel_id, sent.message_ts)
    except SlackError:
        return None


async def card_link(bot: Parts, request_id: str) -> str | None:
    """Return a link to the request's card.

    The card is posted shortly after the request is made, so this function waits for it briefly. It
    returns None if the card still isn't posted, or if Slack or the database fails.
    """
    key = card_key(request_id)
    try:
        for _ in range(LINK_TRIES):
            sent = await bot.database.until_job_ends(f"{outbox.SEND}:{key}", LINK_SECONDS)
            if sent is None:
                async with bot.database.read_only(sees_snapshot=False) as tx:
                    sent = await outbox.sent_card(tx, key)
            if sent is not None:
                return await link_to(bot, sent)
            # Another task may be about to start the job.
            await bot.clock.sleep(PAUSE_SECONDS)
    except DatabaseUnavailable:
        return None
    return None


async def deciders(bot: Parts, request: Request, holders: Sequence[str] | None = None) -> list[str]:
    """Return the people and groups who can approve the request now, or those among `holders`."""
    policy, sid = bot.people.policy, request.flow.sid
    if holders is None:
        holders = policy.approvers(sid)
    requester = request.requester.slack_user_id
    counted = request.counted(policy.of_flow(sid).approvals_needed)
    return await bot.people.able(holders, Permission.DECIDE, sid, requester, counted)


async def addressed(bot: Parts, request: Request) -> str:
    """Return the line that mentions who can approve the request now, or says that nobody can."""
    policy, sid = bot.people.policy, request.flow.sid
    able, first = await deciders(bot, request), policy.mentioned(sid)
    if policy.of_flow(sid).notify is None:
        chosen = [holder for holder in able if holder in first] or able
        return f"Approvers: {phrases.mentions(chosen)}" if able else phrases.NOBODY
    notified = [*first]
    if not await deciders(bot, request, first):
        notified += able
    only = f"Only {text.escape(await bot.people.named(able), 500)} can approve this request."
    return f"{only if able else phrases.NOBODY} Notified: {phrases.mentions(notified)}"


async def answer_to(
    bot: Parts, person: Person, asked: Asked, *, has_typed_time: bool = False
) -> Message:
    """Return the reply to the requester, with a link to the card if the request needs approval."""
    channel = channel_of(bot, asked.flow)
    request = asked.request
    more = [notes.time_zone_used(person.time_zone)] if has_typed_time else []
    more += phrases.warning(policy_of(bot, asked.flow).warning)
    if request is None or request.state is not State.PENDING:
        return notes.asked(asked, channel, *more)
    more.append(notes.WAIT if await deciders(bot, request) else phrases.NOBODY)
    message = notes.asked(asked, channel, *more)
    return notes.with_next_steps(message, request, await card_link(bot, request.id))


async def answer_to_program(bot: Parts, asked: Asked) -> str:
    """Return what a program reads about its request, without markup and people's names."""
    request = asked.request
    if request is None:
        return notes.told_program(asked)
    more = phrases.warning(policy_of(bot, asked.flow).warning)
    if request.state is State.PENDING and not await deciders(bot, request):
        more.append(phrases.NOBODY)
    related = list[Request]()
    if request.state in store.OPEN:
        async with bot.database.read_only(sees_snapshot=False) as tx:
            _, related, _ = await store.and_related(tx, request.id)
    return notes.told_program(replace(asked, related=related), *more)


class RequestMessages:
    """The renderers of cards, messages in card threads, and messages to requesters.

    `cards` are kept up to date, and `notes` are posted once. Both are keyed by kind of message.
    """

    def __init__(self, bot: Parts) -> None:
        self._bot = bot
        self.cards = {CARD: self._card}
        self.notes = dict.fromkeys((REMINDER, ESCALATION, OUTCOME, ENDING), self._note)

    async def _card(self, tx: Transaction, outbox_message: OutboxMessage) -> Outgoing | None:
        """Return the request's current card, or None if the request no longer exists."""
        request, related, listed = await store.and_related(tx, outbox_message.subject)
        # A change without approval gets a card only once it's applied or has failed.
        if request is None or (
            request.requested.without_approval and request.state is State.APPLYING
        ):
            return None
        bot, is_pending = self._bot, request.state is State.PENDING
        already = list[RequestPerson]()
        if is_pending:
            current, at = await current_list(tx, request, listed), await tx.now()
            already = [person for person in request.left if not current.effect(person, at)]
        (request,) = named_now(bot, [request])

        async def draw() -> Message:
            approvers = await addressed(bot, request) if is_pending else ""
            policy = policy_of(bot, request.flow)
            needed, warning = policy.approvals_needed, policy.warning
            others = named_now(bot, related) if is_pending else ()
            return card(
                request, Surroundings(needed, approvers, len(listed), others, warning, already)
            )

        return Outgoing(channel_of(bot, request.flow), draw)

    async def _note(self, tx: Transaction, outbox_message: OutboxMessage) -> Outgoing | None:
        """Return a message that is posted once, or None if it's no longer needed."""
        request = await store.load_request(tx, outbox_message.subject)
        if request is None:
            return None
        (request,) = named_now(self._bot, [request])
        if outbox_message.kind == OUTCOME:
            return await self._outcome(tx, request, outbox_message.payload)
        if outbox_message.kind != ENDING:
            return self._waiting(request, outbox_message.kind)
        # The end of access may have changed or passed since the message was stored.
        ends_at = datetime.fromisoformat(outbox_message.payload["ends_at"])
        ending = [
            person.spelling
            for person in request.people
            if person.has_access and person.ends_at == ends_at
        ]
        if not ending or ends_at <= await tx.now():
            return None
        message = notes.ending(request, ending, ends_at)
        return Outgoing(request.requester.slack_user_id, drawn(message))

    def _waiting(self, request: Request, kind: str) -> Outgoing | None:
        """Return a reminder or an escalation, or None if the request has been decided."""
        if request.state is not State.PENDING:
            return None
        escalate_to: Sequence[str] = ()
        if kind == ESCALATION:
            escalate_to = policy_of(self._bot, request.flow).escalate_to or ()

        async def draw() -> Message:
            can_decide = await deciders(self._bot, request, escalate_to)
            approvers = "" if can_decide else await addressed(self._bot, request)
            return notes.still_waiting(request, approvers, escalate_to)

        channel = channel_of(self._bot, request.flow)
        return Outgoing(channel, draw, thread_of=card_key(request.id))

    async def _outcome(
        self, tx: Transaction, request: Request, payload: Mapping[str, Any]
    ) -> Outgoing | None:
        """Return the direct message about the outcome, or None if nothing is left to report."""
        related = list[Request]()
        # If more has happened since, that has a message of its own.
        last = "asked_again" if request.state is State.PENDING else request.state
        if payload["event"] not in {"ended", last}:
            return None
        if payload["event"] == "ended":
            # If the message was delayed, some of these people may have been given access again.
            access = await store.access_for(tx, request.flow.key, payload["identities"])
            out = [identity for identity in payload["identities"] if identity not in access]
            if not out:
                return None
            payload = {**payload, "identities": out}
            _, related, _ = await store.and_related(tx, request.id)
        sent = await outbox.sent_card(tx, card_key(request.id))

        async def draw() -> Message:
            return notes.outcome(request, payload, await link_to(self._bot, sent), related)

        return Outgoing(request.requester.slack_user_id, draw)
