"""What a 429 sets off: the pause, the incident, its alert, and the one call that ends it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import BlockCode, Blocks
from bot.model.quotas.concurrency import lower_after_refusal
from bot.model.quotas.days import limit_in_message
from bot.model.quotas.incidents import IncidentDetail
from bot.model.quotas.plans import CallClass
from bot.model.quotas.quota import InUse, LimitKind, Terms
from bot.model.quotas.standing import Meter, may_be_smaller_plan
from bot.store import accounts, gateway_waits, incidents, jobs, outbox, quota_use, quotas
from bot.store.accounts import Account
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.store.quotas import CallRequest, Reservation

PROBE_JOB = "probe"
ALERT_JOB = "alert"
CARD, NOTE = "incident_card", "incident_note"
MUTE_SECONDS = 3600.0
# A slot that is free this very moment may be gone the next.
LEAST_PUT_OFF_SECONDS = 1.0

# A refusal that was written so late: what is in use now tells nothing of then.
LATE_SECONDS = 5.0

_LIMIT_OF = {
    BlockCode.MINUTE: LimitKind.MINUTE,
    BlockCode.DAY: LimitKind.DAY,
    BlockCode.CONCURRENT: LimitKind.CONCURRENT,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A 429: the call, the code as the service sent it, and its own words.

    `seconds_ago` is how long it is known: the database may have been away.
    """

    request: CallRequest
    code: int | None
    words: str
    reservation: Reservation
    seconds_ago: float = 0.0


class Incidents:
    """Writes what follows from refusals and probes, in the transaction of the call they end.

    Args:
        terms: The plans in force, and when a call is given up.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    async def refused(self, tx: Transaction, refusal: Refusal) -> None:
        """Pause all calls for the organization, count the refusal, and see to the probe."""
        request, code = refusal.request, BlockCode.known(refusal.code)
        account = await accounts.load_locked(tx, request.key, self._terms)
        is_probe = request.call_class is CallClass.PROBE
        at = account.now - refusal.seconds_ago
        blocks = account.blocks.refused(code, at, probe=is_probe)
        await quotas.save_blocks(tx, account, blocks)
        detail = await self._learn(tx, account, refusal, code)
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

    async def _learn(
        self, tx: Transaction, account: Account, refusal: Refusal, code: BlockCode
    ) -> IncidentDetail:
        """Lower the limit that a refusal tells of; return what is known of the refusal."""
        named = self._limit_in(refusal) if code is BlockCode.DAY else None
        if named is not None:
            await quotas.lower_day(tx, account, named)
        own, is_lowered = await _own_use(tx, account, refusal), False
        if code is BlockCode.CONCURRENT:
            is_lowered = await _lower_concurrency(tx, account, refusal, own)
        at = account.now - refusal.seconds_ago
        clients = await gateway_waits.use_by_client(tx, account, at)
        return replace(_detail(own, refusal, code, named), is_lowered=is_lowered, clients=clients)

    def _limit_in(self, refusal: Refusal) -> int | None:
        return limit_in_message(refusal.words, refusal.request.key.organization_id)

    async def next_try(self, tx: Transaction, key: OrganizationKey) -> float | None:
        """When the one call at the end of the pause is due; None where nothing blocks."""
        account = await accounts.load(tx, key, self._terms)
        longest = account.blocks.longest if account is not None else None
        return None if longest is None else longest.until

    async def probed(self, tx: Transaction, key: OrganizationKey, *, passed: bool) -> None:
        """End the blocks and their incidents after a probe that passed, else pause once more."""
        account = await accounts.load_locked(tx, key, self._terms)
        if not passed:
            await _pause(tx, account, account.blocks.unclear(account.now))
            return
        await _close(tx, account)

    async def gone(self, tx: Transaction, key: OrganizationKey, why: str) -> None:
        """End the blocks and their incidents of an organization that nobody can call any more."""
        account = await accounts.load_locked(tx, key, self._terms)
        await incidents.note(tx, await incidents.open_ids(tx, account.id), ended_because=why)
        await _close(tx, account)

    async def not_reached(self, tx: Transaction, key: OrganizationKey, due: float) -> None:
        """Pause once more where a probe failed before it was granted: its time is `due` still."""
        await accounts.lock(tx, key)
        if await self.next_try(tx, key) == due:
            await self.probed(tx, key, passed=False)

    async def postpone(self, tx: Transaction, key: OrganizationKey, until: datetime) -> None:
        """Set the probe for a later time, and tell that time wherever the next try is told."""
        account = await accounts.load_locked(tx, key, self._terms)
        later = max(until.timestamp(), account.now + LEAST_PUT_OFF_SECONDS)
        await _pause(tx, account, account.blocks.postpone(later))


async def _close(tx: Transaction, account: Account) -> None:
    await quotas.save_blocks(tx, account, Blocks())
    # Put again, perhaps, for a call that was refused while the probe was under way.
    await jobs.drop(tx, _probe_key(account.id))
    for incident_id in await incidents.close_all(tx, account.id):
        await outbox.put(tx, card_message(incident_id))
        await outbox.put(tx, OutboxMessage(_card_key(incident_id), NOTE, str(incident_id)))


async def bring_forward(tx: Transaction, account: Account) -> None:
    """Set a probe that was put off for its usual time: the account's limits are others now."""
    sooner = account.blocks.bring_forward(account.now)
    if sooner != account.blocks:
        await _pause(tx, account, sooner)


async def _pause(tx: Transaction, account: Account, blocks: Blocks) -> None:
    """Write a new time of the next try: in the account, its job, and its open alerts."""
    await quotas.save_blocks(tx, account, blocks)
    await probe_job(tx, account.id, account.key, blocks, ensure=False)
    for incident_id in await incidents.open_ids(tx, account.id):
        await outbox.put(tx, card_message(incident_id))


async def probe_job(
    tx: Transaction, organization: int, key: OrganizationKey, blocks: Blocks, *, ensure: bool
) -> None:
    """Set the one call at the end of the pause; `ensure` leaves one alone that is set already."""
    longest = blocks.longest
    if longest is None:
        return
    due_at = datetime.fromtimestamp(longest.until, UTC)
    job = Job(_probe_key(organization), PROBE_JOB, key.path, due_at)
    await (jobs.ensure(tx, job) if ensure else jobs.put(tx, job))


def _probe_key(organization: int) -> str:
    return f"{PROBE_JOB}:{organization}"


async def _lower_concurrency(
    tx: Transaction, account: Account, refusal: Refusal, own: Mapping[LimitKind, Meter]
) -> bool:
    """Make fewer calls at once from now on; whether the refusal asks for that."""
    lowered = lower_after_refusal(
        account.lowered_concurrent,
        beside=refusal.reservation.granted.concurrent,
        used=own[LimitKind.CONCURRENT].used,
        at=account.now - refusal.seconds_ago,
    )
    if lowered is not None:
        await quotas.lower_concurrency(tx, account, lowered)
    return lowered is not None


async def _own_use(tx: Transaction, account: Account, refusal: Refusal) -> dict[LimitKind, Meter]:
    """The bot's own use when the call was refused, that call counted.

    What was in use when it was granted, and, unless that is long ago, what is in use now if that
    is more. Of the day only the bot's own calls: what the service tells has others' among them.
    """
    standing = quota_use.standing(account)
    granted, now = refusal.reservation.granted, standing.in_use
    if refusal.seconds_ago > LATE_SECONDS:
        now = InUse()
    limits = standing.limits
    day = await quota_use.own_day(tx, account, refusal.reservation.number, refusal.seconds_ago)
    return {
        LimitKind.MINUTE: Meter(max(granted.minute + 1, now.minute), limits.minute),
        LimitKind.DAY: Meter(day, standing.day.limit),
        LimitKind.CONCURRENT: Meter(max(granted.concurrent + 1, now.concurrent), limits.concurrent),
    }


def _detail(
    meters: Mapping[LimitKind, Meter], refusal: Refusal, code: BlockCode, named: int | None
) -> IncidentDetail:
    """What is known at the first refusal; `named` is the day's limit in the service's words."""
    day = meters[LimitKind.DAY]
    limit = day.limit if named is None else min(day.limit, named)
    meters = {**meters, LimitKind.DAY: Meter(day.used, limit)}
    kind = _LIMIT_OF[code]
    own = meters[kind]
    return IncidentDetail(
        own={kind.value: [meter.used, meter.limit] for kind, meter in meters.items()},
        words=refusal.words,
        sent_code=refusal.code,
        is_foreign=own.used < own.limit,
        may_be_plan=may_be_smaller_plan(kind, own),
    )


async def mute_job(tx: Transaction, incident_id: int, until: float) -> None:
    """See that an incident is told of when a mute ends."""
    due_at = datetime.fromtimestamp(until, UTC)
    await jobs.put(tx, Job(f"{ALERT_JOB}:{incident_id}", ALERT_JOB, str(incident_id), due_at))


def card_message(incident_id: int) -> OutboxMessage:
    """An outbox message that brings the incident's message up to date."""
    return OutboxMessage(_card_key(incident_id), CARD, str(incident_id))


def _card_key(incident_id: int) -> str:
    return f"{outbox.INCIDENT_CARD}{incident_id}"
