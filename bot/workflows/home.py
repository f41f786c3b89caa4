"""The Home tab: opened, brought up to date, and never shown older than it was.

Whatever changes puts a job `homes`, which puts a job `home` for everybody who has opened the tab
within a day. One such job runs at a time for a person, in whichever process, and names with each
publish the view that it replaces, so that one that comes late replaces nothing.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from bot.background.batches import Batches
from bot.background.jobs import Lease
from bot.dataclass import dataclass
from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable, UnknownPerson
from bot.model.home import (
    BETWEEN,
    DECIDED_FOR,
    ENDING_WITHIN,
    OPEN_FOR,
    EndingGrant,
    HomeContent,
)
from bot.model.testusers.pages import PendingRow
from bot.model.testusers.requests import Request
from bot.ops.clock import Clock
from bot.permissions import Permission, Person
from bot.store import home_views
from bot.store.engine import Database, Transaction
from bot.store.home_views import HomeView
from bot.store.jobs import Job
from bot.ui import home as ui
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.home_reading import BATCH_SECONDS, ENDING_SHOWN, HomeReading, Stored
from bot.workflows.people import People
from bot.workflows.quotas.ratelimits import RateLimits

log = structlog.get_logger(__name__)

# After a publish whose outcome is not known, it is made sure of once this is over.
UNSURE_FOR = timedelta(seconds=30)
SLACK_AWAY = timedelta(seconds=10)
SOON = timedelta(seconds=0.5)
DOUBTFUL = timedelta(seconds=30)
# Use of the limits changes with every call; what is shown of it is that old at most.
LIMITS_FRESH = timedelta(minutes=1)
LIMITS_FRESH_LATER = timedelta(minutes=10)
WATCHED_FOR = timedelta(hours=1)
A_LITTLE_SECONDS = 0.005
WAITING_SHOWN = 10
NO_ACCESS = "You don't have access to Gatehouse yet:"
HASH_CONFLICT = "hash_conflict"


class HomeTabs(Protocol):
    """Publishes Home tabs. Raises `SlackError`s."""

    async def publish_home(
        self, slack_user_id: str, view: Mapping[str, Any], view_hash: str | None
    ) -> str:
        """Show the view; with a hash only in the place of that one. Return its own hash."""
        ...


@dataclass(frozen=True)
class HomeSetup:
    """What the Home tab is made of; `wake` makes this process look for jobs."""

    database: Database
    clock: Clock
    people: People
    directory: OrganizationDirectory
    ratelimits: RateLimits
    slack: HomeTabs
    approvals_needed: int
    approvals_channel: str
    wake: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A view, and when it will be another one even though nothing happens."""

    view: Mapping[str, Any]
    next_at: datetime | None

    @property
    def fingerprint(self) -> str:
        """What two views that show the same have in common."""
        text = json.dumps(self.view, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What is known after a publish; `unsure_for`: it may still arrive for so long."""

    view: HomeView
    fingerprint: str
    hash: str | None
    unsure_for: timedelta | None

    def known_at(self, now: datetime) -> HomeView:
        """What is known at a time."""
        unsure_until = now + self.unsure_for if self.unsure_for else self.view.unsure_until
        return replace(
            self.view,
            published_at=now,
            hash=self.hash,
            fingerprint=self.fingerprint,
            unsure_until=None if _is_over(unsure_until, now) else unsure_until,
        )


class Home:
    """Runs the jobs `home` and `homes`."""

    def __init__(self, setup: HomeSetup) -> None:
        self._setup = setup
        self._database = setup.database
        self._reading = HomeReading(setup.database, setup.directory, setup.ratelimits, setup.clock)
        # A thousand people who open the tab are a few transactions, not thousands.
        self._opens = Batches(self._note_opened, every=BATCH_SECONDS)
        self._published = Batches(self._note_published, every=BATCH_SECONDS)

    async def open(self, slack_user_id: str, *, is_empty: bool) -> None:
        """Note that somebody opened the tab; it is published by whichever process comes first.

        Raises:
            DatabaseUnavailable: Nothing will come of it.
        """
        await self._opens.do((slack_user_id, is_empty))

    async def _note_opened(self, opens: Sequence[tuple[str, bool]]) -> Sequence[None]:
        is_empty: dict[str, bool] = {}
        for slack_user_id, empty in opens:
            is_empty[slack_user_id] = empty or is_empty.get(slack_user_id, False)
        async with self._database.transaction() as tx:
            due, now = await home_views.opened(tx, is_empty), await tx.now()
        self._wake_at(due, now)
        return [None] * len(opens)

    async def plan(self, tx: Transaction) -> None:
        """See that what changed while no process lived is shown."""
        await home_views.mark_changed(tx, "start")

    async def spread(self, _job: Job, _lease: Lease) -> None:
        """Run a job `homes`: something changed, so every open tab may be out of date."""
        async with self._database.transaction() as tx:
            due, now = await home_views.mark_all(tx), await tx.now()
        self._wake_at(due, now)

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Run a job `home`: publish what a person should see now, unless it stands there."""
        stored = await self._reading.of(job.subject)
        view, now = stored.view, stored.now
        if view is None or view.opened_at <= now - OPEN_FOR:
            return None
        if not self._setup.people.is_ready:
            return now + SOON
        if view.published_at is not None and view.published_at + BETWEEN > now:
            self._wake_at([view.published_at + BETWEEN], now)
            return view.published_at + BETWEEN
        shown = await self._shown(view, stored)
        if shown.fingerprint == view.fingerprint and not _is_to_be_made_sure(view, now):
            return _first(shown.next_at, view.unsure_until)
        return await self._publish(view, shown, lease)

    def _wake_at(self, times: Sequence[datetime], now: datetime) -> None:
        """Other processes look every second; this one looks at those very times."""
        loop = asyncio.get_running_loop()
        for at in {at for at in times if at > now}:
            seconds = (at - now).total_seconds() + A_LITTLE_SECONDS
            loop.call_later(seconds, self._setup.wake)

    async def _publish(self, view: HomeView, shown: _Shown, lease: Lease) -> datetime | None:
        user = view.slack_user_id
        try:
            new_hash = await self._publish_over(user, shown.view, view.hash, lease)
        except SlackRateLimited as error:
            async with self._database.read_only() as tx:
                return await tx.now() + timedelta(seconds=error.retry_after_seconds)
        except SlackUnreachable as error:
            log.warning("home.unsure", reason=error.sentence)
            now = await self._note(view, fingerprint="", unsure_for=UNSURE_FOR)
            return now + (SLACK_AWAY if view.unsure_until else BETWEEN)
        except SlackRefused as error:
            # Publishing the same again would be refused again.
            log.warning("home.refused", error=error.error, reason=error.sentence)
            await self._note(view, fingerprint=shown.fingerprint)
            return None
        now = await self._note(view, fingerprint=shown.fingerprint, view_hash=new_hash)
        unsure_until = view.unsure_until
        return _first(shown.next_at, unsure_until if unsure_until and unsure_until > now else None)

    async def _publish_over(
        self, user: str, view: Mapping[str, Any], view_hash: str | None, lease: Lease
    ) -> str:
        """Publish in the place of what stood there last; else, what stands there is not known.

        Without a hash only the lease keeps a late publish from replacing a newer one.
        """
        if view_hash is not None:
            try:
                return await self._setup.slack.publish_home(user, view, view_hash)
            except SlackRefused as error:
                if error.error != HASH_CONFLICT:
                    raise
        if not lease.is_fresh:
            await lease.confirm()
        return await self._setup.slack.publish_home(user, view, None)

    async def _note(
        self,
        view: HomeView,
        *,
        fingerprint: str,
        view_hash: str | None = None,
        unsure_for: timedelta | None = None,
    ) -> datetime:
        """Write what is known now; return the time."""
        outcome = _Outcome(view, fingerprint, view_hash or view.hash, unsure_for)
        return await self._published.do(outcome)

    async def _note_published(self, outcomes: Sequence[_Outcome]) -> Sequence[datetime]:
        async with self._database.transaction() as tx:
            now = await tx.now()
            await home_views.published(tx, [outcome.known_at(now) for outcome in outcomes])
        return [now] * len(outcomes)

    async def _shown(self, view: HomeView, stored: Stored) -> _Shown:
        people = self._setup.people
        soon = stored.now + DOUBTFUL
        try:
            person = await people.find(view.slack_user_id, (people.team_id,))
        except UnknownPerson as error:
            return _Shown(ui.sentence(error.sentence), soon)
        if person.stranger is not None:
            return _Shown(ui.sentence(person.stranger), None)
        if not people.may(person, Permission.READ):
            if person.doubt is not None:
                return _Shown(ui.sentence(person.doubt), soon)
            return _Shown(ui.sentence(f"{NO_ACCESS} {await people.access_contact()}"), None)
        return self._content(person, view, stored)

    def _content(self, person: Person, view: HomeView, stored: Stored) -> _Shown:
        people, now = self._setup.people, stored.now
        waiting = [
            PendingRow(one, True, False, self._needed(one))
            for one in stored.pending
            if self._waits(person, one)
        ]
        ending = [EndingGrant(*one) for one in stored.timed if _ends_by(one[1].ends_at, now)]
        content = HomeContent(
            waiting=waiting[:WAITING_SHOWN],
            waiting_total=len(waiting),
            own=stored.own,
            cancels=people.may(person, Permission.REQUEST),
            ending=ending[:ENDING_SHOWN],
            blocks=stored.blocks,
            closest=[one for one in stored.closest if not one.standing.blocks],
            asks_changes=people.may(person, Permission.REQUEST),
            sees_identities=people.may(person, Permission.SEE_IDENTITIES),
        )
        later = [one.ends_at - ENDING_WITHIN for _, one in stored.timed if one.ends_at is not None]
        leaving = [one.decided_at + DECIDED_FOR for one in stored.own if one.decided_at is not None]
        limits_at = now + (
            LIMITS_FRESH if view.opened_at > now - WATCHED_FOR else LIMITS_FRESH_LATER
        )
        next_at = min(one for one in (*later, *leaving, limits_at) if one > now)
        shown = ui.home(content, self._setup.approvals_channel)
        return _Shown(shown, next_at)

    def _needed(self, request: Request) -> int:
        rules = self._setup.people.policy.rules_of(request.flow.sid, self._setup.approvals_needed)
        return rules.approvals_needed

    def _waits(self, person: Person, request: Request) -> bool:
        """Whether the request waits for this person, who may decide on it and could do more."""
        approved = {one.who.slack_user_id for one in request.progress.approvals}
        has_enough = request.has_enough_approvals(self._needed(request))
        return (has_enough or person.slack_user_id not in approved) and self._setup.people.may(
            person, Permission.DECIDE, request.flow.sid, request.requester.slack_user_id
        )


def _ends_by(ends_at: datetime | None, now: datetime) -> bool:
    return ends_at is not None and ends_at <= now + ENDING_WITHIN


def _is_to_be_made_sure(view: HomeView, now: datetime) -> bool:
    return view.unsure_until is not None and view.unsure_until <= now


def _is_over(until: datetime | None, now: datetime) -> bool:
    return until is None or until <= now


def _first(*times: datetime | None) -> datetime | None:
    return min((one for one in times if one is not None), default=None)
