"""Handles 429s: pauses calls, opens incidents with alerts, and makes test calls.

`refused` and `probed` run in the transaction that records the call's outcome.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bot.errors import (
    GatehouseError,
    NotConfigured,
    NotFound,
    OrganizationBlocked,
    QuotaExhausted,
)
from bot.organizations.directory import DECLINED, OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.permissions import Person
from bot.quotas import messages as ui
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    LimitKind,
    day_began_at,
    limit_in_message,
    lowered,
)
from bot.quotas.rules.quota import (
    BlockCode,
    Blocks,
    Incident,
    IncidentDetail,
    InUse,
    Standing,
    Terms,
)
from bot.quotas.store import accounts, incidents
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import Reservation
from bot.services.calls import PROBE, WATCH, CallCause
from bot.services.errors import RateLimited, ServiceError
from bot.slack.messages.block_kit import Message
from bot.slack.sender import Outgoing
from bot.store import audit, jobs, outbox
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

PROBE_JOB = "probe"
CARD = "incident_card"
NOTE = "incident_note"
MUTE_SECONDS = 3600.0
EDIT_SECONDS = 10.0
# A call that got no response may reach the service this late, if never.
LATE_SECONDS = 600.0

WATCH_KIND = "watch"
# The delay before looking again while there are no organizations to watch.
IDLE_SECONDS = 600.0
# Delay the first check to keep it from competing with the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# Each check downloads a data center's whole listing, so space out a data center's checks.
_LEAST_BETWEEN_LISTINGS_SECONDS = 120.0


async def refused(
    tx: Transaction, reservation: Reservation, error: RateLimited, seconds_ago: float
) -> None:
    """Pause the organization's calls after a 429, update the incident, and schedule a probe."""
    request = reservation.request
    account = await accounts.load_locked(tx, request.key, request.terms)
    code = code_of(request.key, error)
    at = account.now - seconds_ago
    told = error.retry_after
    blocks = account.blocks.refused(code, at, probe=request.is_probe, told_seconds=told)
    detail = await _learn(tx, account, reservation, error, at)
    await incidents.count_one(tx, account.id, code, detail, at, reservation.at)
    await _become(tx, account, blocks)


def code_of(key: OrganizationKey, error: RateLimited) -> BlockCode:
    """Return the code that a 429 counts as."""
    return BlockCode.API if key.is_api else BlockCode.known(error.code)


async def _learn(
    tx: Transaction, account: Standing, reservation: Reservation, error: RateLimited, at: float
) -> IncidentDetail:
    """Lower a limit if the 429 shows that it's too high, and return the incident's details.

    Record the bot's current usage or its usage when the call was granted, whichever is higher.
    """
    code = code_of(account.key, error)
    granted = reservation.account.in_use
    in_use = account.in_use
    limits = {kind: meter.limit for kind, meter in account.meters.items()}
    changes = dict[str, object]()
    began_at = day_began_at(account.reported, at)
    made = InUse(
        max(granted.minute + 1, in_use.minute),
        max(granted.concurrent + 1, in_use.concurrent),
        await accounts.count_since(tx, account, began_at, reservation.number),
    )
    used = made.of(code.kind)
    if code is BlockCode.DAY:
        # The service's day may be a sliding window, whatever it reports.
        possible = await accounts.count_since(tx, account, at - DAY_SECONDS, reservation.number)
        told = limit_in_message(error.message)
        if told is not None and told < limits[LimitKind.DAY]:
            limits[LimitKind.DAY] = changes["lowered_day"] = told
    else:
        possible = used + await accounts.count_late(tx, account, at - LATE_SECONDS)
    is_by_others = code is BlockCode.MINUTE and possible < limits[LimitKind.MINUTE]
    # During a block, a 429 for a probe or a call already in flight adds no information.
    if code is BlockCode.CONCURRENT or (is_by_others and not account.blocks):
        limit = lowered(
            account.lowered(code.kind), code.kind, beside=granted.concurrent, used=used, at=at
        )
        if limit is not None:
            most, until = accounts.COLUMNS[code.kind]
            changes |= {most: limit.most, until: limit.until}
    if changes:
        await quotas.change(tx, account.id, **changes)
    return IncidentDetail(
        own={kind.value: (made.of(kind), limit) for kind, limit in limits.items()},
        possible=possible,
        words=error.message,
        sent_code=None if account.key.is_api else error.code,
        clients=await accounts.use_by_client(tx, account, at),
    )


async def probed(tx: Transaction, key: OrganizationKey, terms: Terms, *, passed: bool) -> None:
    """If the probe succeeded, end the blocks and their incidents. Otherwise, extend the pause."""
    account = await accounts.load_locked(tx, key, terms)
    await _become(tx, account, Blocks() if passed else account.blocks.unclear(account.now))


async def _become(tx: Transaction, account: Standing, blocks: Blocks, *, because: str = "") -> None:
    """Save the organization's blocks, and update its probe job and alerts.

    `because` says why calls are no longer possible, if the blocks end for that reason.
    """
    await quotas.save_blocks(tx, account, blocks)
    if (block := blocks.longest) is not None:
        # Another API's test call is the first call of a client after the pause.
        if not account.key.is_api:
            await jobs.put(tx, _probe_job(account, datetime.fromtimestamp(block.until, UTC)))
    else:
        # This also drops a job that was scheduled by a refusal during the probe.
        await jobs.drop(tx, f"{PROBE_JOB}:{account.id}")
    for incident in await incidents.all_open(tx, account.id):
        card = card_message(incident)
        await outbox.put(tx, card)
        if block is None:
            await incidents.close(tx, incident, because)
            await outbox.put(tx, replace(card, kind=NOTE))


def _probe_job(account: Standing, due_at: datetime) -> Job:
    return Job(f"{PROBE_JOB}:{account.id}", PROBE_JOB, account.key.path, due_at)


async def move(tx: Transaction, terms: Terms, seconds: float) -> None:
    """Move all pauses, because the database's clock was corrected by this many seconds."""
    for account in (await accounts.load_all(tx, terms)).values():
        if account.blocks:
            await _become(tx, account, account.blocks.moved(seconds))


def card_message(incident: Incident) -> OutboxMessage:
    """Return an outbox message that updates the incident's alert."""
    return OutboxMessage(f"{incidents.CARD_PREFIX}{incident.id}", CARD, str(incident.id))


@dataclass(frozen=True)
class Probes:
    """Runs the `probe` jobs. Each job makes one test call at the end of a pause."""

    directory: OrganizationDirectory
    terms: Terms

    @property
    def kinds(self) -> dict[str, Kind]:
        """The jobs that make test calls."""
        return {PROBE_JOB: Kind(self.run, plan=self.plan)}

    async def plan(self, tx: Transaction) -> None:
        """Add a job for each blocked API that was removed, because no client makes a test call."""
        for account in (await accounts.load_all(tx, self.terms)).values():
            is_removed = account.key.is_api and account.key.organization_id not in self.terms.apis
            if is_removed and account.blocks:
                await jobs.put(tx, _probe_job(account, await tx.now()))

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Make the test call if the block still exists. Return the time to try again, or None."""
        key = OrganizationKey.of_path(job.subject)
        database = lease.database
        async with database.read_only() as tx:
            account = await accounts.load(tx, key, self.terms)
        if not account.blocks:
            return None
        await lease.confirm()
        try:
            await self.directory.call(key, CallCause(PROBE))
        except OrganizationBlocked as blocked:
            # Another process is making the call, or died while making it.
            return await database.now() + timedelta(seconds=blocked.seconds)
        except NotConfigured:
            why = "is no longer in the settings"
        except (QuotaExhausted, ServiceError) as error:
            listing = (await self.directory.known()).report_on(key.data_center).listing
            is_listed = listing is None or key.organization_id in listing.by_id
            if is_listed or not key.organization_id or not isinstance(error, DECLINED):
                async with database.transaction() as tx:
                    # The guard doesn't know about attempts that failed before the call was sent.
                    locked = await accounts.load_locked(tx, key, self.terms)
                    if locked.blocks.longest == account.blocks.longest:
                        await _become(tx, locked, locked.blocks.unclear(locked.now))
                raise
            why = "is no longer listed by the service"
        else:
            return None
        async with database.transaction() as tx:
            locked = await accounts.load_locked(tx, key, self.terms)
            await _become(tx, locked, Blocks(), because=why)
        return None


@dataclass(frozen=True)
class Alerts:
    """Provides and mutes the alerts for the channel set in `ALERTS_CHANNEL`."""

    database: Database
    directory: OrganizationDirectory
    channel_id: str

    async def card(self, tx: Transaction, outbox_message: OutboxMessage) -> Outgoing | None:
        """Return the incident's alert, or None if alerts are muted and it hasn't been posted."""
        incident = await incidents.load(tx, outbox_message.subject)
        if incident is None:
            return None
        is_posted = await outbox.sent_card(tx, outbox_message.key) is not None
        if incident.is_muted and not is_posted:
            return None

        async def draw() -> Message:
            return ui.incident_card(incident, await self._name(incident.key))

        seconds = EDIT_SECONDS if incident.closed_at is None else 0.0
        return Outgoing(self.channel_id, draw, edit_seconds=seconds)

    async def note(self, tx: Transaction, outbox_message: OutboxMessage) -> Outgoing | None:
        """Return the reply about the incident's end, or None if it's open or was never posted."""
        incident = await incidents.load(tx, outbox_message.subject)
        if incident is None or incident.closed_at is None:
            return None
        closed_at = incident.closed_at
        if await outbox.sent_card(tx, outbox_message.key) is None:
            return None

        async def draw() -> Message:
            return ui.cleared_note(incident, closed_at, await self._name(incident.key))

        return Outgoing(self.channel_id, draw, thread_of=outbox_message.key)

    async def mute(self, person: Person, incident_id: str) -> Message:
        """Mute new alerts about the incident's organization.

        If an incident that opens during the mute lasts longer than the mute, the first test call
        after the mute posts its alert.
        """
        async with self.database.transaction() as tx:
            incident = await incidents.load(tx, incident_id)
            if incident is None:
                raise NotFound("That alert no longer exists.")
            await accounts.lock(tx, incident.key)
            until = await tx.now() + timedelta(seconds=MUTE_SECONDS)
            mute = {"muted_until": until.timestamp(), "muted_by": person.name}
            await quotas.change(tx, incident.organization, **mute)
            for each in await incidents.all_open(tx, incident.organization):
                await outbox.put(tx, card_message(each))
            detail = {"incident": incident.id, "seconds": MUTE_SECONDS}
            entry = AuditEntry(person.slack_user_id, "alert.muted", str(incident.key), detail)
            await audit.append(tx, entry)
        return ui.muted(await self._name(incident.key), until)

    async def _name(self, key: OrganizationKey) -> str:
        return (await self.directory.known()).name_of(key)


@dataclass(frozen=True)
class Watcher:
    """Runs the `watch` job, which makes a test call for each organization to notice blocks early.

    The calls are spread over the day and use at most 1% of each daily limit. They never take a slot
    that is reserved for people. If an organization's limit is used up, its check is left out.
    `is_on` is the value of `INVENTORY_WATCH`.
    """

    database: Database
    directory: OrganizationDirectory
    terms: Terms
    is_on: bool

    @property
    def kinds(self) -> dict[str, Kind]:
        """The job that calls the inventory service for each organization."""
        return {WATCH_KIND: Kind(self.run, plan=self.plan)}

    async def plan(self, tx: Transaction) -> None:
        """Add the job, or remove it if the watcher is off or no data center is configured."""
        if self.is_on and self.directory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Check the most overdue organization. Return the time of the next check, if any."""
        if not self.is_on:
            return None
        now = (await self.database.now()).timestamp()
        watched = await self._watched()
        if not watched:
            return datetime.fromtimestamp(now + IDLE_SECONDS, UTC)
        due_at, key, _ = min(watched)
        if due_at <= now:
            await lease.confirm()
            # Checks that are due at the same time are spread out at twice the usual pace.
            pace = sum(1 / seconds for _, _, seconds in watched)
            due_at = now + max(0.5 / pace, LEAST_PAUSE_SECONDS)
            async with self.database.transaction() as tx:
                await quotas.change(tx, await accounts.lock(tx, key), watched_at=now)
            # Calls log their own failures.
            with suppress(GatehouseError):
                await self.directory.call(key, CallCause(WATCH, background=True))
        return datetime.fromtimestamp(min(due_at, now + IDLE_SECONDS), UTC)

    async def _watched(self) -> list[tuple[float, OrganizationKey, float]]:
        """Return the time of each organization's next check, its key, and its check interval.

        Data centers that have never been listed are watched too.
        """
        async with self.database.read_only() as tx:
            stored = await accounts.load_all(tx, self.terms)
        watched = []
        for report in (await self.directory.known()).reports:
            keys = [OrganizationKey(report.data_center)]
            if report.listing is not None:
                places = report.listing.places
                keys = [place.key for place in places if place.organization.is_org_active]
            for key in keys:
                standing = stored.get(key) or Standing.idle(key, self.terms)
                day = standing.meters[LimitKind.DAY]
                seconds = _DAY_SECONDS / (day.limit * _SHARE_OF_THE_DAY)
                seconds = max(seconds, len(keys) * _LEAST_BETWEEN_LISTINGS_SECONDS)
                watched.append((standing.watched_at + seconds, key, seconds))
        return watched
