"""The `/ratelimits` command: the overview, an organization's details, test calls, and plans."""

from dataclasses import dataclass

from bot.errors import Ambiguous, NotFound, OrganizationBlocked
from bot.ops.clock import Clock
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import (
    API,
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
    Place,
)
from bot.permissions import Person
from bot.quotas import messages as ui
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import (
    HOUR_SECONDS,
    PEOPLE_SHOWN,
    QuotaState,
    Standing,
    Terms,
    calls_by,
    first_hour,
)
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.services.calls import CHECK, LIST, CallCause
from bot.services.errors import RateLimited
from bot.slack.messages.block_kit import FIRST, Message, Wanted
from bot.slack.people import People
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database

# The maximum number of organizations in the metrics.
MOST_SHOWN = 1_000


@dataclass(frozen=True)
class RateLimits:
    """Answers `/ratelimits` without calling the service for data that is already known."""

    database: Database
    directory: OrganizationDirectory
    people: People
    terms: Terms
    clock: Clock

    async def overview(self, person: Person, wanted: Wanted = FIRST) -> Message:
        """Show a page of organizations. Make calls only if a data center has never been listed."""
        directory = await self._directory()
        if not directory.reports or any(report.listing is None for report in directory.reports):
            directory = await self._directory(person)
        return ui.overview(await self._standings(directory), directory, self.clock.now(), wanted)

    async def _directory(self, person: Person | None = None) -> Directory:
        """Return what is known, with the other APIs as if they were a data center's organizations.

        For a person, data centers whose listings are too old are listed.
        """
        if person is None:
            directory = await self.directory.known()
        else:
            directory = await self.directory.directory(CallCause(LIST, person.slack_user_id))
        if not self.terms.apis:
            return directory
        apis = tuple(Organization(organization_id=name, name=name) for name in self.terms.apis)
        report = DataCenterReport(API, Listing(API, apis, self.clock.now()))
        return Directory((*directory.reports, report))

    async def standings(self) -> list[Standing]:
        """Return the standings of up to 1,000 organizations, worst first, without making a call."""
        return (await self._standings(await self._directory()))[:MOST_SHOWN]

    async def _standings(self, directory: Directory) -> list[Standing]:
        """Return the standings of all organizations, worst first.

        Organizations without any calls come last, sorted by name.
        """
        async with self.database.read_only() as tx:
            stored = await accounts.load_all(tx, self.terms)
        listed = dict.fromkeys(place.key for place in directory.places)
        # Unlisted accounts, such as a data center's own, are shown only if they have a problem.
        standings = [
            standing
            for key, standing in stored.items()
            if key in listed or standing.state is not QuotaState.FINE
        ]
        standings.sort(key=lambda standing: standing.rank)
        return standings + [Standing.idle(key, self.terms) for key in listed if key not in stored]

    async def detail(self, key: OrganizationKey) -> Message:
        """Show an organization's current usage, and its calls in the last 24 hours."""
        name, standing = await self._known(key)
        now = standing.now
        async with self.database.read_only() as tx:
            hours = await accounts.hours_since(tx, standing, first_hour(now))
            last_hour = await accounts.count_since(tx, standing, now - HOUR_SECONDS, standing.made)
        callers = calls_by("slack_user_id", hours).most_common(PEOPLE_SHOWN)
        names = await self.people.names(caller for caller, _ in callers)
        return ui.detail(name, standing, hours, names, last_hour)

    async def check(self, person: Person, key: OrganizationKey) -> Message:
        """Unless the organization is blocked, make a real call, which counts against the limits."""
        name, standing = await self._known(key)
        if key.is_api:
            return ui.not_for_apis(name, "makes no test calls to it")
        if standing.blocks:
            # Renewing the credential may also need a call.
            return ui.checked(name, standing)
        began = self.clock.monotonic()
        seconds = refusal = None
        try:
            await self.directory.call(key, CallCause(CHECK, person.slack_user_id))
            seconds = self.clock.monotonic() - began
        except RateLimited as error:
            refusal = error.message
        except OrganizationBlocked:
            pass  # The standing shows the block.
        return ui.checked(*await self._known(key), seconds=seconds, refusal=refusal)

    async def _known(self, key: OrganizationKey) -> tuple[str, Standing]:
        directory = await self._directory()
        async with self.database.read_only() as tx:
            account = await accounts.load(tx, key, self.terms)
        if not account.id and directory.listed_name(key) is None:
            raise NotFound("That organization isn't listed. Use /orgs to see the current list.")
        return directory.name_of(key), account

    async def set_plan(self, person: Person, place: Place, plan: Plan) -> Message:
        """Set an organization's plan, and record the change in the audit log."""
        if place.key.is_api:
            return ui.not_for_apis(place.organization.name, "has no plan for it")
        async with self.database.transaction() as tx:
            before = await accounts.load_locked(tx, place.key, self.terms)
            await quotas.set_plan(tx, before.id, plan)
            detail = {"plan": plan.value, "before": before.plan.value}
            entry = AuditEntry(person.slack_user_id, "plan.set", str(place.key), detail)
            await audit.append(tx, entry)
        return ui.plan_set(place.organization.name, before.plan, plan)

    async def find(self, person: Person, typed: str, *, in_part: bool) -> Place:
        """Return the organization with the typed ID or name. With `in_part`, accept part of a name.

        Known organizations are searched before a listing is requested, which can save a call.
        """
        try:
            return (await self._directory()).find(typed, in_part=in_part)
        except (NotFound, Ambiguous):
            if self.terms.apis and not self.directory.data_centers:
                raise
            # A new listing may contain the organization, or an exact match for an ambiguous name.
            return (await self._directory(person)).find(typed, in_part=in_part)
