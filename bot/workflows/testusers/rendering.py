"""What the outbox sends about requests, rendered from what is stored when it is sent."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from bot.background.outbox import CardNow, Note
from bot.errors import RecordEdited
from bot.model.testusers.approval import State
from bot.model.testusers.requests import Request
from bot.store import grants, outbox, requests
from bot.store.engine import Transaction
from bot.store.outbox import OutboxMessage
from bot.ui import record
from bot.ui.message import Message
from bot.ui.testusers import notes
from bot.ui.testusers.card import card
from bot.workflows.testusers.card_links import CardLinks
from bot.workflows.testusers.setup import Setup
from bot.workflows.testusers.transitions import card_key, write_card

# What somebody still has to do something about, or may.
OPEN_STATES = frozenset({State.PENDING, State.SCHEDULED, State.APPLYING, State.FAILED})


class RequestMessages:
    """Renders cards, reminders and messages to requesters.

    Args:
        setup: The parts that all steps share.
        links: Knows where cards stand; None leaves links to them out.
    """

    def __init__(self, setup: Setup, links: CardLinks | None = None) -> None:
        self._setup = setup
        self._links = links

    async def plan(self, tx: Transaction) -> None:
        """Have every open card shown as the settings of now have it: approvers, quorum, channel."""
        for request_id in await requests.ids_in(tx, OPEN_STATES):
            try:
                request = await requests.load(tx, request_id)
            except RecordEdited:
                # Its card says so once the alerts channel is told.
                continue
            if request is not None and _has_card(request):
                await write_card(tx, request_id)

    async def card(self, outbox_message: OutboxMessage) -> CardNow | None:
        """The card of a request as it stands now."""
        rules = self._setup.rules
        try:
            request = await self._request(outbox_message)
        except RecordEdited:
            edited = record.request_edited(outbox_message.subject)
            return CardNow(rules.approvals_channel, edited)
        if request is None:
            return None
        flow_rules, policy = self._setup.flow_rules(request.flow.sid), self._setup.people.policy
        mentioned = policy.mentioned(request.flow.sid, request.requester.slack_user_id)
        message = card(
            request,
            mentioned,
            flow_rules.approvals_needed,
            allows_self=policy.allow_self_approval,
            notifies=flow_rules.notify is not None,
        )
        if outbox.COPY in outbox_message.key:
            return CardNow(rules.approvals_channel, message, is_copy=True)
        is_open = request.state in OPEN_STATES
        return CardNow(rules.approvals_channel, message, follows=is_open)

    async def reminder(self, outbox_message: OutboxMessage) -> CardNow | None:
        """The reminder in the card's thread."""
        return await self._waiting(outbox_message, notes.reminder)

    async def failure(self, outbox_message: OutboxMessage) -> Note | None:
        """The failure in the card's thread, unless it has been put right meanwhile."""
        request = await self._genuine(outbox_message)
        if request is None or request.state is not State.FAILED:
            return None
        channel = self._setup.rules.approvals_channel
        return Note(channel, notes.failed_in_thread(request), in_thread=True)

    async def escalation(self, outbox_message: OutboxMessage) -> CardNow | None:
        """The escalation in the card's thread."""

        def show(request: Request) -> Message:
            mentioned = self._setup.flow_rules(request.flow.sid).escalate_to
            return notes.escalation(request, mentioned)

        return await self._waiting(outbox_message, show)

    async def _waiting(
        self, outbox_message: OutboxMessage, show: Callable[[Request], Message]
    ) -> CardNow | None:
        """What says in the card's thread that the request waits, until it no longer does."""
        request = await self._genuine(outbox_message)
        if request is None:
            return None
        above, is_waiting = card_key(request.id), request.state is State.PENDING
        async with self._setup.database.read_only() as tx:
            # Before the card is there it has nothing to add; once it is decided, only to correct.
            needed = await outbox.sent_card(tx, above if is_waiting else outbox_message.key)
        # Version 0.1.0 stored reminders under the key of the card.
        if needed is None or outbox_message.key == above:
            return None
        message = show(request) if is_waiting else notes.no_longer_waiting(request)
        return CardNow(self._setup.rules.approvals_channel, message, under=above)

    async def outcome(self, outbox_message: OutboxMessage) -> Note | None:
        """The message to the requester about what happened."""
        request = await self._genuine(outbox_message)
        if request is None:
            return None
        payload = dict(outbox_message.payload)
        if payload["event"] == "ended":
            # It may be sent hours later, when Slack is there again.
            payload["identities"] = await self._still_out(request, payload["identities"])
            if not payload["identities"]:
                return None
        link = await self._links.link(request.id, tries=1) if self._links else None
        return Note(request.requester.slack_user_id, notes.outcome(request, payload, link))

    async def _still_out(self, request: Request, identities: Sequence[str]) -> list[str]:
        """Those whom no later request has let in again."""
        async with self._setup.database.read_only() as tx:
            granted = await grants.of_flow(tx, request.flow.key)
        return [one for one in identities if one not in granted]

    async def _genuine(self, outbox_message: OutboxMessage) -> Request | None:
        """The request, unless somebody edited it: of that one only the card speaks."""
        with suppress(RecordEdited):
            return await self._request(outbox_message)
        return None

    async def _request(self, outbox_message: OutboxMessage) -> Request | None:
        async with self._setup.database.read_only() as tx:
            request = await requests.load(tx, outbox_message.subject)
        if request is not None and not request.is_genuine:
            raise RecordEdited("request", request.id)
        return request


def _has_card(request: Request) -> bool:
    """The card of a change without approval is first seen when it is decided."""
    return request.state is not State.APPLYING or not request.requested.without_approval
