"""The Home tab: opened, brought up to date, and never shown older than it was.

Whatever changes puts a job `homes`, which puts a job `home` for everybody who has opened the tab
within a day. One such job runs at a time for a person, in whichever process, and names with each
publish the view that it replaces, so that one that comes late replaces nothing.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

import structlog
from cachetools import TTLCache

from bot.background.jobs import Lease
from bot.background.single_flight import SingleFlight
from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable, UnknownPerson
from bot.model.home import (
    DECIDED_FOR,
    ENDING_WITHIN,
    OPEN_FOR,
    EndingGrant,
    HomeContent,
    OpenBlock,
)
from bot.model.quotas.incidents import Incident
from bot.model.quotas.use import OrganizationUse
from bot.model.testusers.pages import PendingRow
from bot.model.testusers.requests import Request
from bot.ops.clock import Clock
from bot.permissions import Permission, Person
from bot.store import grants, home_views, incidents, requests
from bot.store.engine import Database, Transaction
from bot.store.home_views import HomeView
from bot.store.jobs import Job
from bot.ui import home as ui
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.people import People
from bot.workflows.quotas.ratelimits import RateLimits

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Contract, section 11: at most once in three seconds for each person.
BETWEEN = timedelta(seconds=3)
# After a publish whose outcome is not known, it is made sure of once this is over.
UNSURE_FOR = timedelta(seconds=30)
SLACK_AWAY = timedelta(seconds=10)
SOON = timedelta(seconds=0.5)
DOUBTFUL = timedelta(seconds=30)
# Use of the limits changes with every call; what is shown of it is that old at most.
LIMITS_FRESH = timedelta(minutes=1)
LIMITS_FRESH_LATER = timedelta(minutes=10)
WATCHED_FOR = timedelta(hours=1)
CLOSEST_SECONDS = 5.0
A_LITTLE_SECONDS = 0.005
WAITING_SHOWN, OWN_SHOWN, ENDING_SHOWN, CLOSEST_SHOWN = 10, 15, 10, 3
# Of those that wait, so many are looked at for those that this person may decide on.
PENDING_READ = 200
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
    """What the Home tab is made of; `wake` makes the job loop of this process look at once."""

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
class _Common:
    """What is the same for everybody, but for who may see what of it."""

    pending: Sequence[Request]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]


class SharedReading(Generic[T]):
    """Reads once for all who want what is true since about the same moment."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._began = -math.inf
        self._reading: asyncio.Task[T] | None = None

    async def since(self, moment: float) -> T:
        """Return what was read after a moment (of the clock's monotonic seconds)."""
        if self._reading is None or self._began < moment:
            self._began = self._clock.monotonic()
            self._reading = asyncio.ensure_future(self._read())
        return await asyncio.shield(self._reading)


class Home:
    """Runs the jobs `home` and `homes`."""

    def __init__(self, setup: HomeSetup) -> None:
        self._setup = setup
        self._database = setup.database
        self._closest: SingleFlight[str, Sequence[OrganizationUse]] = SingleFlight(
            TTLCache(1, CLOSEST_SECONDS, timer=setup.clock.monotonic)
        )
        self._common = SharedReading(self._read_common, setup.clock)

    async def open(self, slack_user_id: str, *, is_empty: bool) -> None:
        """Note that somebody opened the tab; it is published by whichever process comes first.

        Raises:
            DatabaseUnavailable: Nothing will come of it.
        """
        async with self._database.transaction() as tx:
            await home_views.opened(tx, slack_user_id, is_empty=is_empty)
        self._setup.wake()

    async def plan(self, tx: Transaction) -> None:
        """See that what changed while no process lived is shown."""
        await home_views.mark_changed(tx, "start")

    async def spread(self, _job: Job, _lease: Lease) -> None:
        """Run a job `homes`: something changed, so every open tab may be out of date."""
        async with self._database.transaction() as tx:
            await home_views.mark_all(tx)

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Run a job `home`: publish what a person should see now, unless it stands there."""
        since = self._setup.clock.monotonic()
        async with self._database.read_only() as tx:
            view, now = await home_views.load(tx, job.subject), await tx.now()
        if view is None or view.opened_at <= now - OPEN_FOR:
            return None
        if not self._setup.people.is_ready:
            return now + SOON
        if view.published_at is not None and view.published_at + BETWEEN > now:
            return self._woken_at(view.published_at + BETWEEN, now)
        shown = await self._shown(view, since)
        if shown.fingerprint == view.fingerprint and not _is_to_be_made_sure(view, now):
            return _first(shown.next_at, view.unsure_until)
        return await self._publish(view, shown, lease)

    def _woken_at(self, at: datetime, now: datetime) -> datetime:
        """Other processes look every second; this one looks at that very time."""
        seconds = (at - now).total_seconds() + A_LITTLE_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._setup.wake)
        return at

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
        async with self._database.transaction() as tx:
            now = await tx.now()
            unsure_until = now + unsure_for if unsure_for else view.unsure_until
            known = replace(
                view,
                published_at=now,
                hash=view_hash or view.hash,
                fingerprint=fingerprint,
                unsure_until=None if _is_over(unsure_until, now) else unsure_until,
            )
            await home_views.published(tx, known)
        return now

    async def _shown(self, view: HomeView, since: float) -> _Shown:
        people = self._setup.people
        try:
            person = await people.find(view.slack_user_id, (people.team_id,))
        except UnknownPerson as error:
            return await self._sentence(error.sentence, DOUBTFUL)
        if person.stranger is not None:
            return await self._sentence(person.stranger)
        if not people.may(person, Permission.READ):
            if person.doubt is not None:
                return await self._sentence(person.doubt, DOUBTFUL)
            return await self._sentence(f"{NO_ACCESS} {await people.access_contact()}")
        return await self._content(person, view, since)

    async def _sentence(self, reason: str, again: timedelta | None = None) -> _Shown:
        async with self._database.read_only() as tx:
            now = await tx.now()
        return _Shown(ui.sentence(reason), now + again if again else None)

    async def _content(self, person: Person, view: HomeView, since: float) -> _Shown:
        people = self._setup.people
        common = await self._common.since(since)
        async with self._database.read_only() as tx:
            now = await tx.now()
            own = await requests.of_requester(
                tx, person.slack_user_id, decided_since=now - DECIDED_FOR, limit=OWN_SHOWN
            )
            timed = await grants.of_requester(tx, person.slack_user_id, limit=ENDING_SHOWN + 1)
        waiting = [
            PendingRow(one, True, False, self._needed(one))
            for one in common.pending
            if self._waits(person, one)
        ]
        ending = [EndingGrant(*one) for one in timed if _ends_by(one[1].ends_at, now)]
        content = HomeContent(
            waiting=waiting[:WAITING_SHOWN],
            waiting_total=len(waiting),
            own=own,
            cancels=people.may(person, Permission.REQUEST),
            ending=ending[:ENDING_SHOWN],
            blocks=common.blocks,
            closest=[one for one in common.closest if not one.standing.blocks],
            asks_changes=people.may(person, Permission.REQUEST),
            sees_identities=people.may(person, Permission.SEE_IDENTITIES),
        )
        later = [one.ends_at - ENDING_WITHIN for _, one in timed if one.ends_at is not None]
        leaving = [one.decided_at + DECIDED_FOR for one in own if one.decided_at is not None]
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
        """Whether the request waits for this person, who may decide on it and has not."""
        approved = {one.who.slack_user_id for one in request.progress.approvals}
        return person.slack_user_id not in approved and self._setup.people.may(
            person, Permission.DECIDE, request.flow.sid, request.requester.slack_user_id
        )

    async def _read_common(self) -> _Common:
        """What is the same for everybody."""
        closest = await self._closest.get("", self._find_closest)
        names = await self._setup.directory.known()
        async with self._database.read_only() as tx:
            pending = await requests.pending(tx, limit=PENDING_READ)
            blocked = await incidents.all_open(tx)
        blocks = [_open_block(one, names.name_of(one.key)) for one in blocked]
        return _Common(pending, blocks, closest)

    async def _find_closest(self, _: str) -> Sequence[OrganizationUse]:
        names = await self._setup.directory.known()
        used = (one for one in await self._setup.ratelimits.standings() if one.is_used)
        worst = islice(used, CLOSEST_SHOWN)
        return [OrganizationUse(names.name_of(one.key), one) for one in worst]


def _open_block(incident: Incident, name: str) -> OpenBlock:
    longest = incident.blocks.longest
    until = datetime.fromtimestamp(longest.until, UTC) if longest else None
    return OpenBlock(name, incident.key.data_center, incident.code, until)


def _ends_by(ends_at: datetime | None, now: datetime) -> bool:
    return ends_at is not None and ends_at <= now + ENDING_WITHIN


def _is_to_be_made_sure(view: HomeView, now: datetime) -> bool:
    return view.unsure_until is not None and view.unsure_until <= now


def _is_over(until: datetime | None, now: datetime) -> bool:
    return until is None or until <= now


def _first(*times: datetime | None) -> datetime | None:
    return min((one for one in times if one is not None), default=None)
