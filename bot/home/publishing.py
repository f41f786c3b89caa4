"""The Home tab: opened, kept up to date, and never replaced by an older view.

Every change adds a job `homes`, which adds a job `home` for everybody who opened the tab in the
last day. Only one such job runs per person at a time, across all processes. Each publish names the
view that it replaces, so a late one replaces nothing.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable, UnknownPerson
from bot.home import messages as ui
from bot.home.reading import HomeReading, Stored
from bot.home.rules import DECIDED_FOR, ENDING_WITHIN, HomeContent
from bot.ops.clock import Clock
from bot.organizations.directory import OrganizationDirectory
from bot.permissions import Permission, Person
from bot.quotas.ratelimits import RateLimits
from bot.slack.people import People
from bot.store import home_views
from bot.store.engine import Database, Transaction
from bot.store.home_views import BETWEEN, OPEN_FOR, HomeView
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.testusers.rules.pages import PendingRow, grouped
from bot.testusers.rules.requests import Request

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
        """Show the view, with a hash only in place of that version; return its own hash."""
        ...


@dataclass(frozen=True)
class HomeSetup:
    """The parts that the Home tab needs; `wake` makes this process look for jobs."""

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
    """A view, and when it changes even if nothing happens."""

    view: Mapping[str, Any]
    next_at: datetime | None

    @property
    def fingerprint(self) -> str:
        """The hash of the view's content."""
        text = json.dumps(self.view, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Home:
    """Runs the jobs `home` and `homes`."""

    def __init__(self, setup: HomeSetup) -> None:
        self._setup = setup
        self._database = setup.database
        self._reading = HomeReading(setup.database, setup.directory, setup.ratelimits, setup.clock)

    async def open(self, slack_user_id: str, *, is_empty: bool) -> None:
        """Record that a person opened the tab; the first process to pick up the job publishes it.

        Raises:
            DatabaseUnavailable: The tab will not be published.
        """
        async with self._database.transaction() as tx:
            due_at = await home_views.opened(tx, slack_user_id, is_empty=is_empty)
            now = await tx.now()
        self._wake_at([due_at], now)

    async def plan(self, tx: Transaction) -> None:
        """Refresh the tabs after a start: changes may have been missed."""
        await home_views.mark_changed(tx, "start")

    async def spread(self, _job: Job, _lease: Lease) -> None:
        """Run a job `homes`: refresh every open tab after a change."""
        async with self._database.transaction() as tx:
            due, now = await home_views.mark_all(tx), await tx.now()
        self._wake_at(due, now)

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Run a job `home`: publish the person's current view if it isn't shown yet."""
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
        """Wake this process at these times; other processes look once a second."""
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
        """Replace the view that was published last, or whatever is shown if that isn't known.

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
        """Store the result of a publish; return the time.

        An unsure publish may still arrive for `unsure_for`.
        """
        async with self._database.transaction() as tx:
            now = await tx.now()
            unsure_until = now + unsure_for if unsure_for else view.unsure_until
            known = replace(
                view,
                published_at=now,
                hash=view_hash or view.hash,
                fingerprint=fingerprint,
                unsure_until=unsure_until if unsure_until and unsure_until > now else None,
            )
            await home_views.published(tx, known)
        return now

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
            PendingRow(request, True, False, self._needed(request))
            for request in stored.pending
            if self._waits(person, request)
        ]
        ending = grouped(granted for granted in stored.timed if _ends_by(granted[1].ends_at, now))
        content = HomeContent(
            waiting=waiting[:WAITING_SHOWN],
            waiting_total=len(waiting),
            own=stored.own,
            cancels=people.may(person, Permission.REQUEST),
            ending=ending,
            blocks=stored.blocks,
            closest=[use for use in stored.closest if not use.standing.blocks],
            asks_changes=people.may(person, Permission.REQUEST),
            sees_identities=people.may(person, Permission.SEE_IDENTITIES),
        )
        later = [
            grant.ends_at - ENDING_WITHIN for _, grant in stored.timed if grant.ends_at is not None
        ]
        leaving = [
            request.decided_at + DECIDED_FOR
            for request in stored.own
            if request.decided_at is not None
        ]
        limits_at = now + (
            LIMITS_FRESH if view.opened_at > now - WATCHED_FOR else LIMITS_FRESH_LATER
        )
        next_at = min(time for time in (*later, *leaving, limits_at) if time > now)
        shown = ui.home(content, self._setup.approvals_channel)
        return _Shown(shown, next_at)

    def _needed(self, request: Request) -> int:
        rules = self._setup.people.policy.rules_of(request.flow.sid, self._setup.approvals_needed)
        return rules.approvals_needed

    def _waits(self, person: Person, request: Request) -> bool:
        """Return True if the person may decide and their approval is still missing."""
        approved = {approval.who.slack_user_id for approval in request.progress.approvals}
        has_enough = request.has_enough_approvals(self._needed(request))
        return (has_enough or person.slack_user_id not in approved) and self._setup.people.may(
            person, Permission.DECIDE, request.flow.sid, request.requester.slack_user_id
        )


def _ends_by(ends_at: datetime | None, now: datetime) -> bool:
    return ends_at is not None and ends_at <= now + ENDING_WITHIN


def _is_to_be_made_sure(view: HomeView, now: datetime) -> bool:
    return view.unsure_until is not None and view.unsure_until <= now


def _first(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
