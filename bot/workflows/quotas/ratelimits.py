"""`/ratelimits`: how every organization stands, one in detail, one real call, and the plan."""

import asyncio
from collections.abc import Callable, Sequence

from bot.errors import Ambiguous, DatabaseUnavailable, NotFound, OrganizationBlocked
from bot.model.audit import AuditEntry
from bot.model.organizations.directory import Directory, Place
from bot.model.organizations.organization import OrganizationKey
from bot.model.paging import page_count
from bot.model.quotas.calls import CHECK, CallCause, client_named
from bot.model.quotas.days import DAY_SECONDS
from bot.model.quotas.forecast import OldCalls, forecast
from bot.model.quotas.plans import Plan
from bot.model.quotas.quota import Full, LimitKind, Terms
from bot.model.quotas.standing import Standing
from bot.model.quotas.use import (
    HOUR_SECONDS,
    ORGANIZATIONS_SHOWN,
    PEOPLE_SHOWN,
    Checked,
    Detail,
    HourOfCalls,
    OrganizationUse,
    Overview,
    PlanSet,
    by_person,
    first_hour,
)
from bot.ops.clock import Clock
from bot.permissions import Person
from bot.service_errors import RateLimited
from bot.store import accounts, quota_use, quotas
from bot.store.accounts import Account
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.workflows.directory import (
    NO_LONGER_LISTED,
    InventoryListings,
    OrganizationDirectory,
)
from bot.workflows.organization_lookup import look_up
from bot.workflows.people import People
from bot.workflows.quotas.incidents import bring_forward
from bot.workflows.quotas.standings import Standings

LIST = "list"
# Organizations that were never called, in the metrics.
IDLE_SHOWN = 500


class RateLimits:
    """Answers `/ratelimits`; without a call wherever the answer is known.

    Args:
        database: The ledger.
        audit: Remembers who set a plan.
        inventory: Makes the calls of `check`.
        directory: Knows the organizations.
        people: Knows names.
        terms: The plans in force, and when a call is given up.
        clock: Times a check.
    """

    def __init__(
        self,
        *,
        database: Database,
        audit: AuditStore,
        inventory: InventoryListings,
        directory: OrganizationDirectory,
        people: People,
        terms: Terms,
        clock: Clock,
    ) -> None:
        self._database = database
        self._audit = audit
        self._inventory = inventory
        self._directory = directory
        self._people = people
        self._terms = terms
        self._clock = clock
        self._standings = Standings(database, directory, terms, clock)

    async def overview(self, person: Person, page: int = 0) -> Overview:
        """A page of every organization, worst first; the last one where there are fewer.

        Only data centers that were never listed are called; what failed of the others is known.

        Raises:
            NotConfigured: No data center is.
        """
        directory = await self._directory.listed(CallCause(LIST, person.slack_user_id))
        ranking = await self._standings.ranking()
        pages = page_count(len(ranking), ORGANIZATIONS_SHOWN)
        page = min(page, pages - 1)
        shown = ranking.slice(page * ORGANIZATIONS_SHOWN, ORGANIZATIONS_SHOWN)
        return Overview(
            uses=[OrganizationUse(directory.name_of(one.key), one) for one in shown],
            failures=directory.failures,
            at=ranking.at,
            organizations=ranking.organizations,
            states=ranking.states,
            page=page,
            pages=pages,
        )

    async def standings(self) -> list[Standing]:
        """Organizations that were called, worst first, and some that were not; without any call.

        Raises:
            DatabaseUnavailable: Nothing is known then.
        """
        return (await self._standings.ranking()).with_idle(IDLE_SHOWN)

    async def one(self, person: Person, typed: str) -> Detail:
        """The organization of that id or name.

        Raises:
            NotFound, Ambiguous: None, or several.
        """
        place = await self._find(person, typed)
        return await self.detail(place.key)

    async def detail(self, key: OrganizationKey) -> Detail:
        """One organization: now, over the last 24 hours, and from here on.

        Raises:
            NotFound: It is not listed and was never called.
        """
        name = await self._known_name(key)
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
            account = await accounts.load(tx, key, self._terms)
            if account is None:
                return Detail.idle(name, self._idle(key), now)
            standing = quota_use.standing(account)
            free_at = await self._free_at(tx, account, standing)
            kept = await quota_use.hours_since(tx, account, first_hour(now) - 2 * HOUR_SECONDS)
            last_hour = await quota_use.count_since(tx, account, now - HOUR_SECONDS, account.made)
            old = await _old_calls(tx, account, kept)
            others = await self._others_used(tx, account)
        hours = [hour for hour in kept if hour.hour_at >= first_hour(now)]
        pace = forecast(standing.day, last_hour, now, old, others)
        people = await self._names(hours)
        return Detail(name, standing, free_at, hours, people, pace, others, now)

    async def check(self, person: Person, typed: str) -> Checked:
        """One real call that names the organization of that id or whole name; see `check_at`."""
        place = await self._find(person, typed, Directory.named)
        return await self.check_at(person, place.key)

    async def check_at(self, person: Person, key: OrganizationKey) -> Checked:
        """One real call that counts against `key`; while it is blocked, none.

        Raises:
            NotFound: It is not listed and was never called.
            QuotaExhausted: The bot itself declines; says when the next slot is free.
            ServiceError: The call failed, otherwise than by a 429 of the inventory service.
            DatabaseUnavailable: Says whether the call was made.
        """
        name = await self._known_name(key)
        standing = await self._current(key)
        if standing.blocks:
            # Before anybody is asked: the credential too may need a call, to be renewed.
            return Checked(name, standing)
        began = self._clock.monotonic()
        try:
            found = await self._inventory.organizations(key, CallCause(CHECK, person.slack_user_id))
        except OrganizationBlocked:
            return Checked(name, await self._current(key))
        except RateLimited as refusal:
            if refusal.service != "inventory":
                raise
            standing = await self._after_call(key, "The call was blocked.")
            return Checked(name, standing, refusal=refusal.message)
        seconds = self._clock.monotonic() - began
        await self._directory.accept(key, found)
        return Checked(name, await self._after_call(key, "The call succeeded."), seconds=seconds)

    async def _after_call(self, key: OrganizationKey, became: str) -> Standing:
        try:
            return await self._current(key)
        except DatabaseUnavailable as away:
            raise DatabaseUnavailable(
                f"{became} Gatehouse can't reach its database, so the current usage is unknown."
            ) from away

    async def _known_name(self, key: OrganizationKey) -> str:
        """What to call an organization that a button names, which may be an old one."""
        directory = await self._directory.known()
        if directory.listed_name(key) is None:
            async with self._database.read_only() as tx:
                if await accounts.load(tx, key, self._terms) is None:
                    raise NotFound(NO_LONGER_LISTED)
        return directory.name_of(key)

    async def set_plan(self, person: Person, typed: str, plan: Plan) -> PlanSet:
        """Set an organization's plan from now on, and remember who did.

        Raises:
            NotFound, Ambiguous: None has that id or whole name, or several.
        """
        place = await self._find(person, typed, Directory.named)
        async with self._database.transaction() as tx:
            before = await accounts.load_locked(tx, place.key, self._terms)
            await quotas.set_plan(tx, place.key, plan)
            account = await accounts.load_or_add(tx, place.key, self._terms)
            detail = {"plan": plan.value, "before": before.plan.value}
            entry = AuditEntry(person.slack_user_id, "plan.set", str(place.key), detail)
            await self._audit.append(tx, entry)
            await bring_forward(tx, account)
        return PlanSet(place.organization.name, before.plan, plan, before.is_lowered)

    async def _find(
        self,
        person: Person,
        typed: str,
        how: Callable[[Directory, str], Place] = Directory.find,
    ) -> Place:
        """Look in what is known first: a check is one call, not two."""
        try:
            return how(await self._directory.known(), typed)
        except (NotFound, Ambiguous):
            # What is listed since may be the one, or a whole name where there was a part of one.
            cause = CallCause(LIST, person.slack_user_id)
            return await look_up(await self._directory.directory(cause), typed, how)

    def _idle(self, key: OrganizationKey) -> Standing:
        """An organization that was never called."""
        return Standing.idle(key, self._terms.plan_of(key))

    async def _current(self, key: OrganizationKey) -> Standing:
        async with self._database.read_only() as tx:
            account = await accounts.load(tx, key, self._terms)
            return self._idle(key) if account is None else quota_use.standing(account)

    async def _free_at(
        self, tx: Transaction, account: Account, standing: Standing
    ) -> dict[LimitKind, float]:
        """When each limit that is used up has room again."""
        free_at: dict[LimitKind, float] = {}
        for kind in LimitKind:
            meter = standing.meter(kind)
            if meter.used >= meter.limit:
                full = Full(kind, meter.used, meter.limit)
                reported = await quotas.with_time(tx, account, full, self._terms)
                free_at[kind] = reported.free_at or account.now
        return free_at

    async def _others_used(self, tx: Transaction, account: Account) -> int | None:
        """Calls of the told day that were not ours, as far as its beginning can be guessed."""
        reported = account.reported
        if reported is None or account.now >= reported.resets_at:
            return None
        ours = await quota_use.own_day(tx, account, reported.number)
        return max(0, reported.used - ours)

    async def _names(self, hours: Sequence[HourOfCalls]) -> dict[str, str]:
        """What the people are called that are shown, all looked up at once."""
        callers = (who for who, _ in by_person(hours)[:PEOPLE_SHOWN] if who is not None)
        ids = [who for who in callers if client_named(who) is None]
        names = await asyncio.gather(*(self._people.name(one) for one in ids))
        return dict(zip(ids, names, strict=True))


async def _old_calls(
    tx: Transaction, account: Account, kept: Sequence[HourOfCalls]
) -> list[OldCalls]:
    """The calls that leave the day one by one; `kept` are those of at least 25 whole hours."""
    began_at = account.day_began_at
    if began_at > account.now - DAY_SECONDS:
        # With a reset: what was called before it has left at once.
        kept = await quota_use.hours_since(tx, account, began_at)
    # Else whole hours: of the first one those that have left tell how many are still to leave.
    return [OldCalls(hour.hour_at, hour.calls) for hour in kept]
