"""Grants or declines each call to the inventory service, based on the shared database.

A call is reserved before it's sent and settled when it ends, in separate transactions. A
reservation that is never settled counts until the call's timeout and a grace period have passed. If
the call, this process, or the database fails, the bot therefore makes too few calls, never too
many.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise

import structlog

from bot.errors import DatabaseUnavailable, OrganizationBlocked, QuotaError, QuotaExhausted
from bot.ops.clock import Clock
from bot.organizations.rules import OrganizationKey
from bot.quotas import incidents
from bot.quotas.clock import DatabaseClock
from bot.quotas.rules.limits import LimitKind, Source, reported_day
from bot.quotas.rules.quota import GRACE_SECONDS, NotNow, Terms
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import TIDY_JOB, CallRequest, ClockCorrected, Reservation
from bot.services.calls import PROBE, CallCause, CallClass, ReportedLimits
from bot.services.errors import (
    RateLimited,
    ResponseTooLarge,
    ServiceError,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.services.http import Permit
from bot.slack.messages import text
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.tasks import Batches, Flights, Tasks

log = structlog.get_logger(__name__)

PERSON_WAITS_SECONDS = 2.0
# Poll, because other processes return permits without notifying this process.
LOOK_AGAIN_SECONDS = 0.1
# This process's clock may run up to a twelfth too fast while a time service corrects it, so only
# this share of a measured time is counted.
SURE_SHARE = 0.9
WRITE_AGAIN_SECONDS = 1.0

# After these outcomes, the service may still be processing the call.
_UNFINISHED = (ServiceTimeout, ServiceUnreachable, ResponseTooLarge)


@dataclass(eq=False)
class Guard:
    """Grants calls within the limits that all processes share through the database.

    Reservation times come from the database's clock.
    """

    database: Database
    clock: Clock
    terms: Terms
    tasks: Tasks

    def __post_init__(self) -> None:
        # Refused calls that the database hasn't recorded yet, oldest first.
        self._unwritten = list[_Call]()
        self._writing = asyncio.Lock()
        self._database_clock = DatabaseClock(self.clock, self.terms)
        # Clients and background calls use at most half of the connections, besides one for those
        # that are reserved together. The rest is left for people.
        self.spare = asyncio.Semaphore(max(1, self.database.pool_size // 2))
        self._reserving = Batches(self._reserve_some)
        self._settling = Batches(self._settle)
        self._following = Flights[str, None]()

    @asynccontextmanager
    async def call(self, key: OrganizationKey, cause: CallCause) -> AsyncIterator["_Call"]:
        """Grant a single attempt at a call.

        A person's call waits up to 2 s if too many calls are running, but never for the minute
        limit or the daily limit. Other calls are granted or declined immediately.
        """
        request = CallRequest(key, cause, self.terms)
        deadline = self.clock.monotonic() + PERSON_WAITS_SECONDS
        result = await self.reserve(request)
        while isinstance(result, NotNow):
            left = deadline - self.clock.monotonic()
            is_busy = result.kind is LimitKind.CONCURRENT
            if request.cause.call_class is not CallClass.PERSON or not is_busy or left <= 0:
                raise decline_error(result, key)
            await self.clock.sleep(min(left, LOOK_AGAIN_SECONDS))
            result = await self.reserve(request)
        async with self.granted(result) as call:
            yield call

    @asynccontextmanager
    async def granted(self, reservation: Reservation) -> AsyncIterator["_Call"]:
        """Yield a reserved call. When the context ends, record the call's outcome."""
        call = _Call(reservation, self.clock)
        request = reservation.request
        error: BaseException | None = None
        try:
            yield call
        except BaseException as raised:
            error = raised
            raise
        finally:
            try:
                await self._end(call, error)
            except DatabaseUnavailable as away:
                log.warning("quota.not_settled", key=str(request.key), reason=away.sentence)
                # Raise the error for a probe, because its job can retry.
                if request.is_probe and not isinstance(error, asyncio.CancelledError):
                    raise

    async def reserve(self, request: CallRequest) -> Reservation | NotNow:
        """Return a reservation or the reason for declining the call. Don't wait for a free slot."""
        # Record earlier refusals first, because they could change the decision.
        await self._write_refusals()
        is_background = request.cause.call_class is CallClass.BACKGROUND
        try:
            if is_background or request.cause.client:
                result = await self._reserving.add(request)
                if result is None:
                    async with self.spare:
                        result = await self._reserve(request)
            else:
                result = await self._reserve(request)
        except ClockCorrected:
            await self._move_times()
            result = await self._reserve(request)
        if isinstance(result, NotNow) and request.key.is_api and result.is_pause_over:
            # Only clients call other APIs, so the first call after a pause is the test.
            return await self._reserve(replace(request, cause=replace(request.cause, kind=PROBE)))
        return result

    async def _reserve(self, request: CallRequest) -> Reservation | NotNow:
        opened = self.database.transaction if request.is_probe else self.database.autocommit
        async with opened() as tx:
            # Like the database's clock, this clock keeps running while the machine sleeps.
            asked_at = self.clock.since_boot()
            return await quotas.reserve(tx, request, asked_at, self._database_clock.agrees)

    async def _reserve_some(
        self, requests: Sequence[CallRequest]
    ) -> Sequence[Reservation | NotNow | None]:
        if len(requests) == 1:
            return [await self._reserve(requests[0])]
        async with self.database.autocommit() as tx:
            asked_at = self.clock.since_boot()
            return await quotas.reserve_some(tx, requests, asked_at, self._database_clock.agrees)

    async def _follow_clock(self) -> None:
        """Move the stored times if the database's clock was corrected.

        Whatever stores times of calls, or goes by them, calls this first.
        """
        async with self.database.autocommit() as tx:
            asked_at = self.clock.since_boot()
            now = await tx.now()
        if not self._database_clock.agrees(now.timestamp(), asked_at):
            await self._move_times()

    async def _move_times(self) -> None:
        follow = partial(self._database_clock.follow, self.database)
        await asyncio.shield(self._following.start("", follow))

    @property
    def kinds(self) -> dict[str, Kind]:
        """The job that tidies the ledger."""
        return {TIDY_JOB: Kind(self._tidy, plan=quotas.plan_tidying)}

    async def _tidy(self, job: Job, lease: Lease) -> datetime:
        await self._follow_clock()
        return await quotas.tidy(job, lease)

    async def _settle(self, ended: Sequence["_Call"]) -> Sequence[None]:
        await self._follow_clock()
        async with self.database.autocommit() as tx:
            await quotas.settle(tx, [(call.reservation, call.age()) for call in ended])
        return [None] * len(ended)

    async def give_back(self, unused: Reservation) -> None:
        """Cancel an unused reservation, or let it expire if the database is unavailable."""
        with suppress(DatabaseUnavailable):
            async with self.database.autocommit() as tx:
                await quotas.give_back(tx, unused)

    async def _end(self, call: "_Call", error: BaseException | None) -> None:
        if call.refusal is not None:
            self._unwritten.append(call)
            try:
                await self._write_refusals()
            except BaseException:
                # Retry even if no other call is requested.
                self.tasks.start(self._go_on_writing(), "refusals")
                raise
            return
        request = call.reservation.request
        is_whole = call.is_whole(error)
        # These take several statements that belong together.
        is_joint = request.is_probe or request.cause.write is not None
        if is_joint or call.was_never_sent(error) or (is_whole and call.limits is not None):
            await self._follow_clock()
            opened = self.database.transaction if is_joint else self.database.autocommit
            async with opened() as tx:
                await self._record(tx, call, error)
                # Any client's call can be the test of another API, and that client may be gone.
                is_no_test = request.key.is_api and call.was_never_sent(error)
                if request.is_probe and not is_no_test:
                    passed = error is None and is_whole
                    await incidents.probed(tx, request.key, self.terms, passed=passed)
        elif is_whole:
            await self._settling.add(call)

    async def _record(self, tx: Transaction, call: "_Call", error: BaseException | None) -> None:
        reservation = call.reservation
        if call.limits is not None:
            now = (await tx.now()).timestamp()
            unsure = reservation.account.in_use.concurrent
            reported = reported_day(call.limits, now, reservation.number, unsure)
            if reported is not None:
                await quotas.note_reported(tx, reservation, reported)
        if call.refusal is not None:
            # Record the refusal first, while the call still counts as running.
            await incidents.refused(tx, reservation, call.refusal, call.age())
        if call.was_never_sent(error):
            await quotas.give_back(tx, reservation)
        elif call.refusal is not None or call.is_whole(error):
            await quotas.settle(tx, [(reservation, call.age())])
        if reservation.request.cause.write is not None:
            await quotas.record_write(tx, reservation.account.id, reservation.number, call.status)

    async def _write_refusals(self) -> None:
        if not self._unwritten:
            return
        async with self._writing:
            await self._follow_clock()
            while self._unwritten:
                call = self._unwritten[0]
                async with self.database.transaction() as tx:
                    # A previous attempt to record the call may have been committed.
                    if not await quotas.is_settled(tx, call.reservation):
                        await self._record(tx, call, None)
                self._unwritten.pop(0)

    async def _go_on_writing(self) -> None:
        while self._unwritten:
            await self.clock.sleep(WRITE_AGAIN_SECONDS)
            with suppress(DatabaseUnavailable):
                await self._write_refusals()


@dataclass(eq=False)
class _Call(Permit):
    """A granted call and its outcome, which is recorded when the call ends."""

    reservation: Reservation
    clock: Clock
    limits: ReportedLimits | None = None
    refusal: RateLimited | None = None
    headers_at: float | None = None

    def may_send(self) -> bool:
        """Return True if a request sent now would end before its reservation expires.

        A call lasts at most until its timeout, and its reservation lasts for a grace period after
        that. The clock keeps running while the machine sleeps.
        """
        return self.clock.since_boot() - self.reservation.asked_at <= GRACE_SECONDS

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        """Record when the response's headers arrived, and the limits that they contain, if any."""
        self.headers_at = self.clock.monotonic()
        self.limits = limits

    async def refused(self, error: RateLimited) -> None:
        """Record that the service responded with a 429."""
        self.refusal = error

    def is_whole(self, error: BaseException | None) -> bool:
        """Return True if the complete response arrived, even if it reports an error."""
        if self.headers_at is None:
            return False
        answered = isinstance(error, ServiceError) and not isinstance(error, _UNFINISHED)
        return error is None or answered

    def was_never_sent(self, error: BaseException | None) -> bool:
        """Return True if the call failed before it was sent, for example while connecting."""
        if isinstance(error, ServiceError) and error.service == "oauth":
            return self.headers_at is None
        return isinstance(error, ServiceUnreachable) and not error.sent

    def age(self) -> float:
        """Return the seconds that have surely passed since the response's headers arrived."""
        if self.headers_at is None:
            return 0.0
        return (self.clock.monotonic() - self.headers_at) * SURE_SHARE


# Why Gatehouse allows fewer calls than the service. The share has a sentence of its own.
_LEFT = {
    Source.REFUSAL: "left unused because the service refused calls",
    Source.RESERVE: "reserved for other programs",
    Source.PEOPLE: "kept for people",
    Source.RESET: "held back until the service reports on its new day",
    Source.STALL: "held back while the service doesn't respond",
    Source.SHARE: "left to other clients",
}


def decline_error(decline: NotNow, key: OrganizationKey) -> QuotaError:
    """Return the error for a declined call."""
    whose = f"the data center {key.data_center}"
    if key.organization_id:
        whose = f"organization {key.organization_id} ({key.data_center})"
    service = "The inventory service"
    if key.is_api:
        service = whose = key.service
    seconds = decline.free_at - decline.now
    when = text.duration(math.ceil(seconds))
    if decline.code is not None:
        later = f"will try again in {when} and won't make any calls until then"
        blocked = f"{service} has blocked {whose} with code {decline.code:d}."
        if key.is_api:
            blocked = f"{service} is receiving too many requests."
            later = f"won't make any calls for {when}"
        sentence = f"{blocked} Gatehouse {later if seconds > 0 else 'is trying again now'}."
        return OrganizationBlocked(sentence, decline.code, seconds)
    limit = decline.limits[-1]
    kind = limit.kind
    calls = f"{text.count(limit.most, 'call')} {kind.unit}"
    # Other clients may have made some of these calls.
    reached = f"Gatehouse's limit of {calls} for {whose} has been reached."
    if limit.source is Source.SHARE:
        reached = f"This client has used its share of the calls for {whose}: {calls}."
    latest = " at the latest" if kind is LimitKind.CONCURRENT else ""
    sentence = (
        f"{reached}{_reduced(decline)} Nothing was sent. The next slot will be free in"
        f" {when}{latest}."
    )
    return QuotaExhausted(sentence, limit_kind=kind.value, seconds=seconds)


def _reduced(decline: NotNow) -> str:
    """Return a sentence about what leaves fewer calls than the service allows, if anything does."""
    reasons = []
    for looser, limit in pairwise(decline.limits):
        number = looser.most - limit.most
        if number and limit.source in _LEFT:
            verb = "is" if number == 1 else "are"
            reasons.append(f"{number:,} {verb} {_LEFT[limit.source]}")
    if not reasons:
        return ""
    return f" Of {decline.limits[0].most:,}, {', '.join(reasons)}."
