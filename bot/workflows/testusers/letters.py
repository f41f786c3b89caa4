"""What the outbox sends about requests, rendered from what is stored when it is sent."""

from bot.model.approval import State
from bot.model.requests import Request
from bot.store import requests
from bot.store.outbox import Letter
from bot.ui.testusers import notes
from bot.ui.testusers.card import card
from bot.workflows.outbox import CardNow, Note
from bot.workflows.testusers.setup import Setup


class Letters:
    """Renders cards, reminders and messages to requesters."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def card(self, letter: Letter) -> CardNow | None:
        """The card of a request as it stands now."""
        request = await self._request(letter)
        if request is None:
            return None
        rules = self._setup.rules
        people, needed = self._setup.people, rules.approval.approvals_needed
        approvers = people.deciders(request.flow.sid)
        message = card(request, approvers, needed, allows_self=people.allows_self_approval)
        return CardNow(rules.approvals_channel, message)

    async def reminder(self, letter: Letter) -> Note | None:
        """The reminder in the card's thread, if it still waits."""
        request = await self._request(letter)
        if request is None or request.state is not State.PENDING:
            return None
        channel = self._setup.rules.approvals_channel
        return Note(channel, notes.reminder(request), in_thread=True)

    async def told(self, letter: Letter) -> Note | None:
        """The message to the requester about what happened."""
        request = await self._request(letter)
        if request is None:
            return None
        return Note(request.requester.slack_user_id, notes.told(request, letter.payload))

    async def _request(self, letter: Letter) -> Request | None:
        async with self._setup.database.reading() as tx:
            return await requests.load(tx, letter.subject)
