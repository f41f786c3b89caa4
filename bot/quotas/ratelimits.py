"""The `/ratelimits` command: the overview, an organization's details, test calls, and plans."""

import asyncio
from dataclasses import dataclass, replace

from bot.errors import Ambiguous, NotFound, OrganizationBlocked
from bot.ops.clock import Clock
from bot.organizations.directory import NO_LONGER_LISTED, OrganizationDirectory
from bot.organizations.rules import Directory, OrganizationKey, Place
from bot.permissions import Person
from bot.quotas import messages as ui
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.use import (
    HOUR_SECONDS,
    PEOPLE_SHOWN,
    QuotaState,
    Standing,
    calls_by,
    first_hour,
    forecast,
)
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.services.calls import CHECK, LIST, CallCause, client_named
from bot.services.errors import RateLimited
from bot.slack.messages.block_kit import Message
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

    async def overview(self, person: Person, page: int = 0) -> Message:
        """Show a page of organizations. Make calls only if a data center has never been listed."""
        directory = await self.directory.known()
        if not directory.reports or any(report.listing is None for report in directory.reports):
            directory = await self.directory.directory(CallCause(LIST, person.slack_user_id))
        return ui.overview(await self._standings(directory), directory, self.clock.now(), page)

    async def standings(self) -> list[Standing]:
        """Return the standings of up to 1,000 organizations, worst first, without making a call."""
        return (await self._standings(await self.directory.known()))[:MOST_SHOWN]

    async def _standings(self, directory: Directory) -> list[Standing]:
        """Return the standings of all organizations, worst first.

        Organizations without any calls come last, sorted by name.
        """
        async with self.database.read_only() as tx:
            found = await accounts.load_all(tx, self.terms)
        listed = dict.fromkeys(place.key for place in directory.places)
        called = {standing.key for standing in found}
        # Unlisted accounts, such as a data center's own, are shown only if they have a problem.
        shown = [
            standing
            for standing in found
            if standing.key in listed or standing.state is not QuotaState.FINE
        ]
        idle = [Standing.idle(key, self.terms.plan_of(key)) for key in listed if key not in called]
        return sorted(shown, key=lambda standing: standing.rank) + idle

    async def detail(self, key: OrganizationKey) -> Message:
        """Show an organization's current usage, its calls in the last 24 hours, and a forecast."""
        name, standing = await self._known(key)
        now = standing.now
        async with self.database.read_only() as tx:
            kept = await accounts.hours_since(tx, standing, first_hour(now) - 2 * HOUR_SECONDS)
            last_hour = await accounts.count_since(tx, standing, now - HOUR_SECONDS, standing.made)
        hours = [hour for hour in kept if hour.hour_at >= first_hour(now)]
        day = replace(standing.day, limit=standing.allowed.day)
        # At a reported reset, all earlier calls stop counting at once.
        counted = [hour for hour in kept if hour.hour_at > standing.day_began_at - HOUR_SECONDS]
        ends_at = forecast(day, last_hour, now, counted)
        shown = (caller for caller, _ in calls_by("slack_user_id", hours).most_common(PEOPLE_SHOWN))
        ids = [caller for caller in shown if caller and client_named(caller) is None]
        people = dict(zip(ids, await asyncio.gather(*map(self.people.name, ids)), strict=True))
        return ui.detail(name, standing, hours, people, last_hour=last_hour, ends_at=ends_at)

    async def check(self, person: Person, key: OrganizationKey) -> Message:
        """Unless the organization is blocked, make a real call, which counts against the limits."""
        name, standing = await self._known(key)
        if standing.blocks:
            # Renewing the credential may also need a call.
            return ui.checked(name, standing)
        began = self.clock.monotonic()
        try:
            await self.directory.call(key, CallCause(CHECK, person.slack_user_id))
        except OrganizationBlocked:
            return ui.checked(*await self._known(key))
        except RateLimited as refusal:
            return ui.checked(*await self._known(key), refusal=refusal.message)
        seconds = self.clock.monotonic() - began
        return ui.checked(*await self._known(key), seconds=seconds)

    async def _known(self, key: OrganizationKey) -> tuple[str, Standing]:
        directory = await self.directory.known()
        if directory.listed_name(key) is None:
            directory = await self.directory.known(look_again=True)
        async with self.database.read_only() as tx:
            account = await accounts.load(tx, key, self.terms)
        if not account.id and directory.listed_name(key) is None:
            raise NotFound(NO_LONGER_LISTED)
        return directory.name_of(key), account

    async def set_plan(self, person: Person, place: Place, plan: Plan) -> Message:
        """Set an organization's plan, and record the change in the audit log."""
        async with self.database.transaction() as tx:
            before = await accounts.load_locked(tx, place.key, self.terms)
            await quotas.set_plan(tx, place.key, plan)
            detail = {"plan": plan.value, "before": before.plan.value}
            entry = AuditEntry(person.slack_user_id, "plan.set", str(place.key), detail)
            await audit.append(tx, entry)
        return ui.plan_set(place.organization.name, before.plan, plan)

    async def find(self, person: Person, typed: str, *, in_part: bool) -> Place:
        """Return the organization with the typed ID or name. With `in_part`, accept part of a name.

        Known organizations are searched before a listing is requested, which can save a call.
        """
        try:
            return (await self.directory.known()).find(typed, in_part=in_part)
        except (NotFound, Ambiguous):
            # A new listing may contain the organization, or an exact match for an ambiguous name.
            cause = CallCause(LIST, person.slack_user_id)
            directory = await self.directory.directory(cause, look_again=True)
            return directory.find(typed, in_part=in_part)
