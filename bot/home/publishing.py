"""The jobs that publish the Home tab when a person opens it, and after that person's clicks.

Only one job per person runs at a time, across all processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from bot.approvals.rules import State
from bot.errors import SlackRefused, UnknownPerson
from bot.home import messages as ui
from bot.organizations.directory import OrganizationDirectory
from bot.permissions import Permission, Person
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.quota import QuotaState, Standing
from bot.quotas.store import incidents
from bot.store import jobs
from bot.store.engine import Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.store.tables import EPOCH
from bot.tasks import SingleFlight
from bot.testusers import store
from bot.testusers.messages.pages import grouped
from bot.testusers.parts import Parts
from bot.testusers.reading import DECIDED_FOR, named_now, open_row, reader_of

log = structlog.get_logger(__name__)

PUBLISH = "home"
# Several clicks draw the tab once, and a change may be applied by then.
MOMENT = timedelta(seconds=2)
CLOSEST_SECONDS = 5.0
CLOSEST_SHOWN = 3
ENDING_WITHIN = timedelta(hours=24)


async def redraw(tx: Transaction, slack_user_id: str, delay: timedelta = MOMENT) -> None:
    """Schedule a job that publishes the person's tab, by default with the result of a click."""
    job = Job(f"{PUBLISH}:{slack_user_id}", PUBLISH, slack_user_id, EPOCH)
    await jobs.put_after(tx, job, delay)


@dataclass
class Home:
    """Draws and publishes Home tabs."""

    bot: Parts
    directory: OrganizationDirectory
    ratelimits: RateLimits

    def __post_init__(self) -> None:
        timer = self.bot.clock.monotonic
        self._closest = SingleFlight(self._find_closest, CLOSEST_SECONDS, timer)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The jobs that publish Home tabs."""
        return {PUBLISH: Kind(self.publish, at_once=24)}

    async def open(self, slack_user_id: str, delay: timedelta = timedelta(0)) -> None:
        """Schedule a job that publishes the person's tab.

        Raises:
            DatabaseUnavailable: The database didn't respond, so the tab won't be published.
        """
        async with self.bot.database.transaction() as tx:
            await redraw(tx, slack_user_id, delay)

    async def publish(self, job: Job, lease: Lease) -> None:
        """Run a `home` job, which publishes the person's tab."""
        view = await self.draw(job.subject)
        if not lease.is_fresh:
            await lease.confirm()
        try:
            await self.bot.slack.publish_home(job.subject, view)
        except SlackRefused as error:
            # Slack would refuse the same view again.
            log.warning("home.refused", reason=error.sentence)

    async def draw(self, slack_user_id: str) -> Mapping[str, Any]:
        """Return a person's Home tab.

        Raises:
            UnknownPerson: The bot doesn't know its workspace yet, so the job has to be tried again.
        """
        people = self.bot.people
        if not people.is_ready:
            raise UnknownPerson("Gatehouse doesn't know its workspace yet.")
        try:
            person = await people.find(slack_user_id, (people.team_id,))
        except UnknownPerson as error:
            return ui.sentence(error.sentence)
        if people.may(person, Permission.READ):
            return await self._home_of(person)
        no_access = f"{ui.NO_ACCESS} {await people.access_contact(person)}"
        return ui.sentence(person.stranger or person.doubt or no_access)

    async def _home_of(self, person: Person) -> Mapping[str, Any]:
        user = person.slack_user_id
        closest = await self._closest.get()
        names = await self.directory.known()
        async with self.bot.database.read_only() as tx:
            now = await tx.now()
            pending = named_now(self.bot, await store.requests_in(tx, State.PENDING))
            blocked = await incidents.all_open(tx)
            own = named_now(self.bot, await store.requests_of(tx, user, now - DECIDED_FOR))
            granted = await store.access_by(tx, user)
        rows = [open_row(self.bot, person, request) for request in pending]
        waiting = [
            row for row in rows if row.decides and user not in row.request.counted(row.needed)
        ]
        ending = [
            (self.bot.flows.now(flow), access)
            for flow, access in granted
            if access.ends_at is not None and access.ends_at <= now + ENDING_WITHIN
        ]
        return ui.home(
            reader_of(self.bot, person),
            waiting=waiting,
            own=own,
            ending=grouped(ending),
            limits=ui.limits(names, blocked, closest),
            doubt=person.doubt,
        )

    async def _find_closest(self) -> Sequence[Standing]:
        close = [
            standing
            for standing in await self.ratelimits.standings()
            if standing.state is not QuotaState.FINE and not standing.blocks
        ]
        return close[:CLOSEST_SHOWN]
