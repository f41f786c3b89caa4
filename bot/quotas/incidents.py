"""Handles a 429: the pause, the incident, its alert, and the probe that ends it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, Blocks, IncidentDetail
from bot.quotas.rules.days import limit_in_message
from bot.quotas.rules.plans import CallClass, lower_concurrency, lower_minute
from bot.quotas.rules.quota import InUse, LimitKind, Terms
from bot.quotas.rules.standing import Meter, may_be_smaller_plan
from bot.quotas.store import accounts, incidents, quota_use
from bot.quotas.store import ledger as quotas
from bot.quotas.store.accounts import Account
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.services.errors import RateLimited
from bot.store import jobs, outbox
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

PROBE_JOB = "probe"
ALERT_JOB = "alert"
CARD, NOTE = "incident_card", "incident_note"
MUTE_SECONDS = 3600.0
# A free slot may be taken a moment later.
LEAST_PUT_OFF_SECONDS = 1.0
# A plan change or another process may free a slot sooner than the ledger expects.
MOST_PUT_OFF_SECONDS = 3600.0
# For refusals recorded later than this, current usage doesn't show the usage at the 429.
LATE_SECONDS = 5.0

_LIMIT_OF = {
    BlockCode.MINUTE: LimitKind.MINUTE,
    BlockCode.DAY: LimitKind.DAY,
    BlockCode.CONCURRENT: LimitKind.CONCURRENT,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call (429) and its age, which grows while the database is unavailable."""

    request: CallRequest
    reservation: Reservation
    error: RateLimited
    seconds_ago: float = 0.0


class Incidents:
    """Records the effects of refusals and probes in the transaction that settles the call.

    Args:
        terms: The plans, and the timeout of a call.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    async def refused(self, tx: Transaction, refusal: Refusal) -> None:
        """Pause all calls for the organization, count the refusal, and schedule the probe."""
        request, error, code = refusal.request, refusal.error, BlockCode.known(refusal.error.code)
        account = await accounts.load_locked(tx, request.key, self._terms)
        is_probe = request.call_class is CallClass.PROBE
        at = account.now - refusal.seconds_ago
        blocks = account.blocks.refused(code, at, probe=is_probe, told_seconds=error.retry_after)
        await quotas.save_blocks(tx, account, blocks)
        detail = await _learn(tx, account, refusal, code)
        incident_id, is_new = await incidents.count_one(
            tx, account.id, code, detail, at, refusal.reservation.at
        )
        if detail.is_lowered and not is_new:
            await incidents.note(tx, [incident_id], is_lowered=True)
        await probe_job(tx, account.id, account.key, blocks, ensure=False)
        if is_new and account.muted_until > account.now:
            await mute_job(tx, incident_id, account.muted_until)
        else:
            await outbox.put(tx, card_message(incident_id))

    async def next_try(self, tx: Transaction, key: OrganizationKey) -> float | None:
        """Return the time of the call at the end of the pause; None if nothing is blocked."""
        account = await accounts.load(tx, key, self._terms)
        longest = account.blocks.longest if account is not None else None
        return None if longest is None else longest.until

    async def probed(self, tx: Transaction, key: OrganizationKey, *, passed: bool) -> None:
        """End the blocks and their incidents if the probe succeeded; otherwise extend the pause."""
        account = await accounts.load_locked(tx, key, self._terms)
        if not passed:
            await _pause(tx, account, account.blocks.unclear(account.now))
            return
        await _close(tx, account)

    async def gone(self, tx: Transaction, key: OrganizationKey, why: str) -> None:
        """End the blocks and incidents of an organization that can no longer be called."""
        account = await accounts.load_locked(tx, key, self._terms)
        await incidents.note(tx, await incidents.open_ids(tx, account.id), ended_because=why)
        await _close(tx, account)

    async def not_reached(self, tx: Transaction, key: OrganizationKey, due: float) -> None:
        """Extend the pause after a probe that was due at `due` but failed before it was granted."""
        await accounts.lock(tx, key)
        if await self.next_try(tx, key) == due:
            await self.probed(tx, key, passed=False)

    async def postpone(self, tx: Transaction, key: OrganizationKey, until: datetime) -> None:
        """Postpone the probe, and update the time of the next attempt everywhere."""
        account = await accounts.load_locked(tx, key, self._terms)
        seconds = max(until.timestamp() - account.now, LEAST_PUT_OFF_SECONDS)
        later = account.now + min(seconds, MOST_PUT_OFF_SECONDS)
        await _pause(tx, account, account.blocks.postpone(later))


async def _close(tx: Transaction, account: Account) -> None:
    await quotas.save_blocks(tx, account, Blocks())
    # Replaces any job that a refusal during the probe scheduled.
    await jobs.drop(tx, _probe_key(account.id))
    for incident_id in await incidents.close_all(tx, account.id):
        await outbox.put(tx, card_message(incident_id))
        await outbox.put(tx, OutboxMessage(_card_key(incident_id), NOTE, str(incident_id)))


async def _pause(tx: Transaction, account: Account, blocks: Blocks) -> None:
    """Set the time of the next attempt in the account, the probe job, and the open alerts."""
    await quotas.save_blocks(tx, account, blocks)
    await probe_job(tx, account.id, account.key, blocks, ensure=False)
    for incident_id in await incidents.open_ids(tx, account.id):
        await outbox.put(tx, card_message(incident_id))


async def probe_job(
    tx: Transaction, organization: int, key: OrganizationKey, blocks: Blocks, *, ensure: bool
) -> None:
    """Schedule the call at the end of the pause; with `ensure`, keep an existing job."""
    longest = blocks.longest
    if longest is None:
        return
    due_at = datetime.fromtimestamp(longest.until, UTC)
    job = Job(_probe_key(organization), PROBE_JOB, key.path, due_at)
    await (jobs.ensure(tx, job) if ensure else jobs.put(tx, job))


def _probe_key(organization: int) -> str:
    return f"{PROBE_JOB}:{organization}"


async def _learn(
    tx: Transaction, account: Account, refusal: Refusal, code: BlockCode
) -> IncidentDetail:
    """Lower the limit according to a refusal; return details for the incident.

    The bot's own use is measured when the call was granted or, if greater and the refusal is
    recent, now. The day counts only the bot's calls, not those of other clients.
    """
    error, granted = refusal.error, refusal.reservation.granted
    now = account.in_use if refusal.seconds_ago <= LATE_SECONDS else InUse()
    at = account.now - refusal.seconds_ago
    day_limit, limits = account.day.limit, account.limits
    if code is BlockCode.DAY:
        named = limit_in_message(error.message, refusal.request.key.organization_id)
        if named is not None and named < (account.day_ledger.lowered or named + 1):
            await quotas.change(tx, account.id, lowered_day=named)
        day_limit = min(day_limit, named or day_limit)
    day = await quota_use.own_day(tx, account, refusal.reservation.number, refusal.seconds_ago)
    meters = {
        LimitKind.MINUTE: Meter(max(granted.minute + 1, now.minute), limits.minute),
        LimitKind.DAY: Meter(day, day_limit),
        LimitKind.CONCURRENT: Meter(max(granted.concurrent + 1, now.concurrent), limits.concurrent),
    }
    kind = _LIMIT_OF[code]
    own = meters[kind]
    is_foreign, lowered = own.used < own.limit, None
    if code is BlockCode.CONCURRENT:
        lowered = lower_concurrency(
            account.lowered_concurrent, beside=granted.concurrent, used=own.used, at=at
        )
        if lowered is not None:
            values = {"lowered_concurrent": lowered.limit, "lowered_until": lowered.until}
            await quotas.change(tx, account.id, **values)
    elif code is BlockCode.MINUTE and is_foreign and not account.blocks:
        # A probe, or a call in flight when the block began, adds no information.
        lowered = lower_minute(account.lowered_minute, used=own.used, at=at)
        values = {"lowered_minute": lowered.limit, "lowered_minute_until": lowered.until}
        await quotas.change(tx, account.id, **values)
    return IncidentDetail(
        own={kind.value: [meter.used, meter.limit] for kind, meter in meters.items()},
        words=error.message,
        sent_code=error.code,
        is_foreign=is_foreign,
        may_be_plan=may_be_smaller_plan(kind, own),
        is_lowered=lowered is not None,
        clients=await quota_use.use_by_client(tx, account, at),
    )


async def mute_job(tx: Transaction, incident_id: int, until: float) -> None:
    """Schedule the job that reports an incident when its mute ends."""
    due_at = datetime.fromtimestamp(until, UTC)
    await jobs.put(tx, Job(f"{ALERT_JOB}:{incident_id}", ALERT_JOB, str(incident_id), due_at))


def card_message(incident_id: int) -> OutboxMessage:
    """Return an outbox message that updates the incident's message."""
    return OutboxMessage(_card_key(incident_id), CARD, str(incident_id))


def _card_key(incident_id: int) -> str:
    return f"{outbox.INCIDENT_CARD}{incident_id}"
