"""The jobs that publish the Home tab and keep it up to date.

Every change to a card adds a `homes` job, which adds a `home` job for everyone who opened the tab
in the last day. Only one `home` job per person runs at a time, across all processes. Publish calls
include the hash of the last view, if known, so that a late call can't replace a newer view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import structlog
from cachetools import TTLCache

from bot.approvals.rules import State
from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable, UnknownPerson
from bot.home import messages as ui
from bot.home.messages import HomeContent
from bot.ops.clock import Clock
from bot.organizations.directory import OrganizationDirectory
from bot.permissions import Permission, Person
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.use import OrganizationUse
from bot.quotas.store import incidents
from bot.slack.client import SlackClient
from bot.slack.messages import block_kit
from bot.slack.people import People
from bot.store import home_views
from bot.store.engine import Database, Transaction
from bot.store.home_views import BETWEEN, OPEN_FOR, HomeView
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.tasks import SingleFlight
from bot.testusers import store
from bot.testusers.messages.pages import grouped
from bot.testusers.reading import open_row, reader_of

log = structlog.get_logger(__name__)

# If the outcome of a publish call is unknown, the view is published again after this time.
UNSURE_FOR = timedelta(seconds=30)
SLACK_AWAY = timedelta(seconds=10)
SOON = timedelta(seconds=0.5)
HASH_CONFLICT = "hash_conflict"

CLOSEST_SECONDS = 5.0
WAITING_SHOWN, OWN_SHOWN, CLOSEST_SHOWN = 10, 15, 3
# The maximum number of a person's grants to search for grants that end soon.
TIMED_READ = 1_000
# The maximum number of pending requests to search for those that the person can decide on.
PENDING_READ = 200
DECIDED_FOR = timedelta(days=7)
ENDING_WITHIN = timedelta(hours=24)
DOUBTFUL = timedelta(seconds=30)
# The maximum age of the API usage shown on a tab.
LIMITS_FRESH = timedelta(minutes=2)

Drawn = tuple[Mapping[str, Any], datetime | None]
"""A view, and the time to redraw it even if nothing changes. The time may be None."""


@dataclass
class Home:
    """Draws and publishes Home tabs."""

    database: Database
    clock: Clock
    people: People
    directory: OrganizationDirectory
    ratelimits: RateLimits
    slack: SlackClient
    approvals_channel: str

    def __post_init__(self) -> None:
        self._closest: SingleFlight[str, Sequence[OrganizationUse]] = SingleFlight(
            TTLCache(1, CLOSEST_SECONDS, timer=self.clock.monotonic)
        )

    async def open(self, slack_user_id: str, *, is_empty: bool) -> None:
        """Record that a person opened the tab, and schedule a job that publishes it.

        Raises:
            DatabaseUnavailable: The database didn't respond, so the tab won't be published.
        """
        async with self.database.transaction() as tx:
            await home_views.opened(tx, slack_user_id, is_empty=is_empty)

    async def plan(self, tx: Transaction) -> None:
        """Schedule a refresh of all open tabs at startup, in case changes were missed."""
        await home_views.mark_changed(tx, "start")

    async def spread(self, _job: Job, _lease: Lease) -> None:
        """Run a `homes` job, which schedules a refresh of every open tab."""
        async with self.database.transaction() as tx:
            await home_views.mark_all(tx)

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Run a `home` job, which publishes the person's view if it has changed."""
        async with self.database.read_only() as tx:
            view, now = await home_views.load(tx, job.subject), await tx.now()
        if view is None or view.opened_at <= now - OPEN_FOR:
            return None
        if not self.people.is_ready:
            return now + SOON
        if view.published_at is not None and view.published_at + BETWEEN > now:
            return view.published_at + BETWEEN
        drawn, next_at = await self.draw(view.slack_user_id, now)
        fingerprint = block_kit.fingerprint(drawn)
        is_unsure = view.unsure_until is not None and view.unsure_until <= now
        if fingerprint == view.fingerprint and not is_unsure:
            return _first(next_at, view.unsure_until)
        return await self._publish(view, drawn, fingerprint, next_at, lease)

    async def _publish(
        self,
        view: HomeView,
        drawn: Mapping[str, Any],
        fingerprint: str,
        next_at: datetime | None,
        lease: Lease,
    ) -> datetime | None:
        try:
            new_hash = await self._publish_over(view.slack_user_id, drawn, view.hash, lease)
        except SlackRateLimited as error:
            return await self.database.now() + timedelta(seconds=error.retry_after_seconds)
        except SlackUnreachable as error:
            log.warning("home.unsure", reason=error.sentence)
            now = await self._note(view, fingerprint="", unsure_for=UNSURE_FOR)
            return now + (SLACK_AWAY if view.unsure_until else BETWEEN)
        except SlackRefused as error:
            # Store the fingerprint, because Slack would refuse the same view again.
            log.warning("home.refused", error=error.error, reason=error.sentence)
            await self._note(view, fingerprint=fingerprint)
            return None
        now = await self._note(view, fingerprint=fingerprint, view_hash=new_hash)
        unsure_until = view.unsure_until
        return _first(next_at, unsure_until if unsure_until and unsure_until > now else None)

    async def _publish_over(
        self, user: str, view: Mapping[str, Any], view_hash: str | None, lease: Lease
    ) -> str:
        """Replace the last published view, or the current one if the hash is unknown or outdated.

        Without a hash, only the lease prevents a late call from replacing a newer view.
        """
        if view_hash is not None:
            try:
                return await self.slack.publish_home(user, view, view_hash)
            except SlackRefused as error:
                if error.error != HASH_CONFLICT:
                    raise
        if not lease.is_fresh:
            await lease.confirm()
        return await self.slack.publish_home(user, view, None)

    async def _note(
        self,
        view: HomeView,
        *,
        fingerprint: str,
        view_hash: str | None = None,
        unsure_for: timedelta | None = None,
    ) -> datetime:
        async with self.database.transaction() as tx:
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

    async def draw(self, slack_user_id: str, now: datetime) -> Drawn:
        """Return a person's Home tab, and when to redraw it (None if no redraw is planned)."""
        people = self.people
        try:
            person = await people.find(slack_user_id, (people.team_id,))
        except UnknownPerson as error:
            return ui.sentence(error.sentence), now + DOUBTFUL
        if person.stranger is not None:
            return ui.sentence(person.stranger), None
        if people.may(person, Permission.READ):
            return await self._content(person)
        if person.doubt is not None:
            return ui.sentence(person.doubt), now + DOUBTFUL
        return ui.sentence(f"{ui.NO_ACCESS} {await people.access_contact()}"), None

    async def _content(self, person: Person) -> Drawn:
        user, people = person.slack_user_id, self.people
        closest = await self._closest.get("", self._find_closest)
        names = await self.directory.known()
        async with self.database.read_only() as tx:
            now = await tx.now()
            pending = await store.requests_in(tx, State.PENDING, limit=PENDING_READ)
            blocked = await incidents.all_open(tx)
            own = await store.requests_of(
                tx, user, decided_since=now - DECIDED_FOR, limit=OWN_SHOWN
            )
            timed = await store.grants_of(tx, user, limit=TIMED_READ, only_timed=True)
        rows = [open_row(people, person, request) for request in pending]
        waiting = [
            row for row in rows if row.decides and user not in row.request.facts.approver_ids
        ]
        ending_by = [(granted, granted[1].ends_at) for granted in timed]
        content = HomeContent(
            waiting=waiting[:WAITING_SHOWN],
            waiting_total=len(waiting),
            own=own,
            ending=grouped(
                granted for granted, at in ending_by if at is not None and at <= now + ENDING_WITHIN
            ),
            blocks=[(names.name_of(incident.key), incident) for incident in blocked],
            closest=[use for use in closest if not use.standing.blocks],
            reader=reader_of(people, person),
        )
        changes_at = [
            now + LIMITS_FRESH,
            *(at - ENDING_WITHIN for _, at in ending_by if at is not None),
            *(request.decided_at + DECIDED_FOR for request in own if request.decided_at),
        ]
        drawn = ui.home(content, self.approvals_channel)
        return drawn, min(at for at in changes_at if at > now)

    async def _find_closest(self, _: str) -> Sequence[OrganizationUse]:
        names = await self.directory.known()
        used = (standing for standing in await self.ratelimits.standings() if standing.closeness)
        worst = islice(used, CLOSEST_SHOWN)
        return [OrganizationUse(names.name_of(standing.key), standing) for standing in worst]


def _first(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
