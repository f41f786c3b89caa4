"""Clicks: stored before Slack has its acknowledgement, so that no crash loses one.

Whichever process lives follows a stored click, by the job `click:<id>`, and answers over the
click's response_url. Following one twice, as after a crash, changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog
from cachetools import LRUCache

from bot.errors import DatabaseUnavailable, GatehouseError
from bot.model.approval import Act
from bot.permissions import Person
from bot.store import jobs
from bot.store.jobs import Job
from bot.ui import replies
from bot.ui.message import Message
from bot.ui.testusers import notes
from bot.workflows.jobs import Lease
from bot.workflows.testusers.asking import Asking
from bot.workflows.testusers.deciding import Deciding
from bot.workflows.testusers.setup import Setup

log = structlog.get_logger(__name__)

CLICK = "testusers.click"
READY_SECONDS = 0.5
WAITING_CLICKS = 1_000


class ReplyPort(Protocol):
    """Answers by response_url."""

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person, in whatever way; return whether Slack took it."""
        ...


@dataclass(frozen=True)
class StoredClick:
    """Who wants to do what with which request, and where the answer goes."""

    act: Act
    request_id: str
    slack_user_id: str
    team_ids: tuple[str, ...]
    reply_to: str
    denial_reason: str = ""

    def payload(self) -> dict[str, Any]:
        """Return it as a job holds it."""
        return {
            "act": self.act.value,
            "request_id": self.request_id,
            "slack_user_id": self.slack_user_id,
            "team_ids": list(self.team_ids),
            "reply_to": self.reply_to,
            "denial_reason": self.denial_reason,
        }

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "StoredClick":
        """Read what a job holds."""
        return cls(
            Act(payload["act"]),
            payload["request_id"],
            payload["slack_user_id"],
            tuple(payload["team_ids"]),
            payload["reply_to"],
            payload["denial_reason"],
        )


class Clicks:
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
        self._replies = reply_port
        self._count = count
        self._said_later: LRUCache[str, bool] = LRUCache(WAITING_CLICKS)

    async def keep(self, click: StoredClick) -> None:
        """Store the click; it is followed at once, or by another process after a crash.

        Raises:
            DatabaseUnavailable: It could not be stored, so nothing will come of it.
        """
        key = f"click:{self._setup.new_id()}"
        async with self._setup.database.transaction() as tx:
            job = Job(key, CLICK, click.request_id[:255], await tx.now(), click.payload())
            await jobs.put(tx, job)
        self._setup.wake()

    async def run(self, job: Job, lease: Lease) -> datetime | None:  # noqa: ARG002
        """Follow a stored click and answer it; after a start, once Slack has said who we are."""
        if not self._setup.people.is_ready:
            return await self._soon()
        click = StoredClick.of(job.payload)
        name = f"testusers.{click.act}"
        try:
            message, outcome = await self._outcome(click, job.key, name)
        except DatabaseUnavailable:
            await self._say_later(click, job.key)
            raise
        self._count(name, outcome)
        log.info("answered", name=name, outcome=outcome)
        if click.reply_to and not await self._replies.say(
            click.reply_to, message, to=click.slack_user_id
        ):
            # Not followed again for the sake of its answer: it would be decided, and put on record,
            # a second time.
            log.warning("click.unanswered", name=name)
        return None

    async def _outcome(self, click: StoredClick, key: str, name: str) -> tuple[Message, str]:
        """Follow the click; return what to say and a word for how it went.

        Raises:
            DatabaseUnavailable: It has to be followed again.
        """
        try:
            return await self._follow(click, key), "ok"
        except DatabaseUnavailable:
            raise
        except GatehouseError as error:
            return replies.sorry(error), error.outcome
        except Exception:
            reference = self._setup.new_id()[:12]
            log.exception("click.broken", name=name, reference=reference)
            return replies.broken(reference), "broken"

    async def _say_later(self, click: StoredClick, key: str) -> None:
        """Say once that the click waits for the database; a response_url is good for five posts."""
        if click.reply_to and key not in self._said_later:
            self._said_later[key] = True
            await self._replies.say(click.reply_to, replies.NOTED, to=click.slack_user_id)

    async def _soon(self) -> datetime:
        async with self._setup.database.reading() as tx:
            return await tx.now() + timedelta(seconds=READY_SECONDS)

    async def _follow(self, click: StoredClick, key: str) -> Message:
        person = await self._setup.people.find(click.slack_user_id, click.team_ids)
        if click.act is Act.UNDO:
            return await self._undo(person, click.request_id)
        decided = await self._deciding.decide(
            person, click.act, click.request_id, click.denial_reason, key
        )
        return notes.decided(decided.act, decided.reason, decided.request, decided.needed)

    async def _undo(self, person: Person, request_id: str) -> Message:
        asked = await self._asking.undo(person, request_id)
        channel = self._setup.rules.approvals_channel
        return notes.asked(asked.flow, asked.effect, asked.request, channel)
