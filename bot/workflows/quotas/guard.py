"""The guard under every inventory call: one grant in the shared database before anything is sent.

A grant is reserved before the call and settled after it, in two transactions. What is not settled
stays held until the call's timeout and a grace have passed: so whatever happens to the call, to
this process or to the database, the bot errs on the side of calling less.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog

from bot.background.deferred_writes import DeferredWrites
from bot.background.tasks import Tasks
from bot.errors import DatabaseUnavailable, QuotaError
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import PROBE, CallCause
from bot.model.quotas.days import reported_day
from bot.model.quotas.plans import CallClass
from bot.model.quotas.quota import GRACE_SECONDS, Full, LimitKind, Terms
from bot.model.quotas.reported import ReportedLimits
from bot.model.turns import ClientTurn
from bot.ops.clock import Clock
from bot.service_errors import (
    RateLimited,
    ResponseTooLarge,
    ServiceError,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.store import quotas
from bot.store.engine import Database, Transaction
from bot.store.quotas import CallRequest, NotNow, Reservation
from bot.workflows.quotas.declines import as_error
from bot.workflows.quotas.incidents import Incidents, Refusal

log = structlog.get_logger(__name__)

PERSON_WAITS_SECONDS = 2.0
# Another process gives a permit back without telling us.
LOOK_AGAIN_SECONDS = 0.1
# What a grant holds counts from when the database was asked; a call that begins much later, because
# the database was slow or this process stood still, would outlast it. Half the grace is the call's.
LATEST_SECONDS = GRACE_SECONDS / 2
# Of a time by this process's clock, so much has passed at least: a time service that sets a clock
# right little by little has it go on up to a twelfth too fast.
SURE_SHARE = 0.9
# A process that stood still asks again, and is answered at once; a slow database is slow again.
ASKED_TIMES = 2
TOO_LATE = "The database took too long to answer. Nothing was sent; please try again."

# With these the answer was not whole: the service may be at work on the call still.
_UNFINISHED = (ServiceTimeout, ServiceUnreachable, ResponseTooLarge)


# Asks the ledger once, for a client in its turn; and what asks so until the call is granted.
Attempt = Callable[[ClientTurn], Awaitable[Reservation | NotNow]]
TakeTurn = Callable[[Attempt], Awaitable[Reservation]]


@dataclass(eq=False)
class _Line:
    """Who waits for an organization in this process, in order."""

    people: asyncio.Lock = field(default_factory=asyncio.Lock)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Guard:
    """Grants calls, for all processes that share the database.

    Args:
        database: Where the ledger stands, and whose clock counts.
        clock: For pauses and for the time between two moments of one call.
        terms: The plans in force, and when a call is given up.
        incidents: Told of each refusal by the service, and of the probe that passes.
        tasks: Hold what goes on trying to write a refusal.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        terms: Terms,
        incidents: Incidents,
        tasks: Tasks,
    ) -> None:
        self._database = database
        self._clock = clock
        self._terms = terms
        self._incidents = incidents
        self.name_of: Callable[[OrganizationKey], str | None] = lambda _: None
        """What people call an organization: a call that is not granted says it to them."""
        self._lines: WeakValueDictionary[OrganizationKey, _Line] = WeakValueDictionary()
        self._deferred_writes = DeferredWrites(clock, tasks)

    @asynccontextmanager
    async def call(
        self, key: OrganizationKey, cause: CallCause, take_turn: TakeTurn | None = None
    ) -> AsyncIterator["_Call"]:
        """One attempt at one call, as `QuotaGuard` says.

        A person waits up to 2 s for a call of theirs to fit beside those under way, and never for
        the minute or the day. The background's turns wait where they are kept, not here: so do
        those of the gateway's clients, with `take_turn`, which asks until the call is granted.
        """
        line = self._line_of(key)
        request = self._request(key, cause)
        # Before anything more is granted.
        await self._deferred_writes.done(key)
        if take_turn is None:
            reservation = await self._wait_for(request, line)
        else:
            reservation = await take_turn(lambda turn: self._try(replace(request, turn=turn)))
        call = _Call(reservation, request, self._clock)
        try:
            yield call
        except BaseException as error:
            await self._end_whatever_comes(call, error)
            raise
        else:
            await self._end_whatever_comes(call, None)
        finally:
            line.ended.set()

    def _line_of(self, key: OrganizationKey) -> _Line:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        return line

    def _request(self, key: OrganizationKey, cause: CallCause) -> CallRequest:
        return CallRequest(key, cause, class_of(cause), self._terms)

    async def _wait_for(self, request: CallRequest, line: _Line) -> Reservation:
        if request.call_class is not CallClass.PERSON:
            result = await self._try(request)
            if isinstance(result, NotNow):
                raise self._declined(result, request.key)
            return result
        deadline = self._clock.monotonic() + PERSON_WAITS_SECONDS
        async with self._turn(line.people, PERSON_WAITS_SECONDS):
            return await self._when_a_line_is_free(request, line, deadline)

    @asynccontextmanager
    async def _turn(self, people: asyncio.Lock, seconds: float) -> AsyncIterator[None]:
        """Wait for one's turn, but not longer: who is ahead may be waiting for the database."""
        if not people.locked():
            async with people:
                yield
            return
        waiting: asyncio.Task[Any] = asyncio.ensure_future(people.acquire())
        try:
            await self._first_of(waiting, seconds)
            yield
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            if not waiting.cancelled():
                people.release()

    async def _when_a_line_is_free(
        self, request: CallRequest, line: _Line, deadline: float
    ) -> Reservation:
        while True:
            line.ended.clear()
            result = await self._try(request)
            if isinstance(result, Reservation):
                return result
            left = deadline - self._clock.monotonic()
            if not _is_busy(result) or left <= 0:
                raise self._declined(result, request.key)
            await self._pause(line, min(left, LOOK_AGAIN_SECONDS))

    def _declined(self, not_now: NotNow, key: OrganizationKey) -> QuotaError:
        return as_error(not_now, key, self.name_of(key))

    async def _pause(self, line: _Line, seconds: float) -> None:
        """Until a call of this process ends, but no longer than so many seconds."""
        ended: asyncio.Task[Any] = asyncio.ensure_future(line.ended.wait())
        try:
            await self._first_of(ended, seconds)
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)

    async def _first_of(self, awaited: "asyncio.Task[Any]", seconds: float) -> None:
        pause: asyncio.Task[Any] = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({pause, awaited}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            await asyncio.gather(pause, return_exceptions=True)

    async def _try(self, request: CallRequest) -> Reservation | NotNow:
        is_probe = request.call_class is CallClass.PROBE
        # The job of a probe asks again by itself, once nobody takes the first for under way.
        for _ in range(1 if is_probe else ASKED_TIMES):
            # What counts time asleep, as the database's clock does.
            result, began, seconds = await self._reserve(request)
            if isinstance(result, NotNow):
                return result
            if seconds <= LATEST_SECONDS:
                return replace(result, asked_at=began)
            # It would be free again while the call is at work.
            await self._give_back(result)
        raise DatabaseUnavailable(TOO_LATE)

    async def _reserve(self, request: CallRequest) -> tuple[Reservation | NotNow, float, float]:
        """Ask the ledger; also when by `since_boot` that began, and how long it took."""
        is_probe = request.call_class is CallClass.PROBE
        opened = self._database.transaction() if is_probe else self._database.autocommit()
        async with opened as tx:
            began = self._clock.since_boot()
            result = await quotas.reserve(tx, request)
        return result, began, self._clock.since_boot() - began

    async def _give_back(self, unused: Reservation) -> None:
        with suppress(DatabaseUnavailable):
            async with self._database.autocommit() as tx:
                await quotas.give_back(tx, unused)

    async def _end_whatever_comes(self, call: "_Call", error: BaseException | None) -> None:
        """That a slot could not be given back early is not the caller's business.

        But that nobody knows what a probe has shown is the business of the job that made it: it is
        tried again.
        """
        try:
            await self._end(call, error)
        except DatabaseUnavailable as away:
            log.warning("quota.not_settled", key=str(call.request.key), reason=away.sentence)
            if call.is_probe and not isinstance(error, asyncio.CancelledError):
                raise

    async def _end(self, call: "_Call", error: BaseException | None) -> None:
        if call.refusal is not None:
            await self._deferred_writes.write(call.request.key, partial(self._write_refusal, call))
            return
        is_over = call.is_whole(error) or call.was_never_sent(error)
        if call.is_probe:
            await self._end_probe(call, error, is_over=is_over)
        elif is_over:
            async with self._database.autocommit() as tx:
                await self._settle(tx, call, error)
                await self._note_reported(tx, call)

    async def _settle(self, tx: Transaction, call: "_Call", error: BaseException | None) -> None:
        if call.was_never_sent(error):
            await quotas.give_back(tx, call.reservation)
        else:
            seconds = call.seconds_since_headers() * SURE_SHARE
            await quotas.settle(tx, call.reservation, seconds, call.request)

    async def _end_probe(
        self, call: "_Call", error: BaseException | None, *, is_over: bool
    ) -> None:
        async with self._database.transaction() as tx:
            if is_over:
                await self._settle(tx, call, error)
                await self._note_reported(tx, call)
            passed = error is None and is_over
            await self._incidents.probed(tx, call.request.key, passed=passed)

    async def _note_reported(self, tx: Transaction, call: "_Call") -> None:
        if call.limits is None:
            return
        now, in_flight = (await tx.now()).timestamp(), call.reservation.granted.concurrent
        reported = reported_day(call.limits, now, call.reservation.number, in_flight)
        if reported is not None:
            await quotas.note_reported(tx, call.reservation, reported)

    async def _write_refusal(self, call: "_Call") -> None:
        async with self._database.transaction() as tx:
            if await quotas.is_settled(tx, call.reservation, self._terms):
                # The try before this one broke off while it committed, and had.
                return
            await self._note_reported(tx, call)
            # Before it is settled: it was under way itself when it was refused.
            await self._incidents.refused(tx, call.as_refusal())
            await self._settle(tx, call, None)


class _Call:
    """A granted call: collects what became of it, for the one transaction at its end."""

    def __init__(self, reservation: Reservation, request: CallRequest, clock: Clock) -> None:
        self.reservation = reservation
        self.request = request
        self.limits: ReportedLimits | None = None
        self.refusal: RateLimited | None = None
        self._clock = clock
        self._headers_at: float | None = None

    def may_send(self) -> bool:
        """Whether a request that is written now is over before what it holds is free again.

        A call takes its timeout at most, and what it holds lasts for a grace longer. By a clock
        that counts the time asleep: the database's clock goes on meanwhile.
        """
        return self._clock.since_boot() - self.reservation.asked_at <= GRACE_SECONDS

    async def responded(self) -> None:
        """The response headers are here."""
        self._headers_at = self._clock.monotonic()

    async def reported(self, limits: ReportedLimits) -> None:
        """The service told its limits."""
        self.limits = limits

    async def refused(self, error: RateLimited) -> None:
        """The service answered 429."""
        self.refusal = error
        self.limits = error.reported

    @property
    def is_probe(self) -> bool:
        """Whether this is the one call at the end of a pause."""
        return self.request.call_class is CallClass.PROBE

    def is_whole(self, error: BaseException | None) -> bool:
        """Whether the whole answer was seen, good or bad."""
        if self._headers_at is None:
            return False
        answered = isinstance(error, ServiceError) and not isinstance(error, _UNFINISHED)
        return error is None or answered

    def was_never_sent(self, error: BaseException | None) -> bool:
        """Whether no connection was made, so that the service cannot be at work on the call.

        One that has waited for its turn may find no token for it.
        """
        if isinstance(error, ServiceError) and error.service == "oauth":
            return self._headers_at is None
        return isinstance(error, ServiceUnreachable) and not error.sent

    def seconds_since_headers(self) -> float:
        """By this process's clock; nothing is known of the database's at that moment."""
        now = self._clock.monotonic()
        return now - (self._headers_at if self._headers_at is not None else now)

    def as_refusal(self) -> Refusal:
        """What the incident needs to know."""
        assert self.refusal is not None  # noqa: S101 - asked for refusals only
        return Refusal(
            self.request,
            self.refusal.code,
            self.refusal.message,
            self.reservation,
            self.seconds_since_headers(),
        )


def class_of(cause: CallCause) -> CallClass:
    """Whose turn a call takes."""
    if cause.kind == PROBE:
        return CallClass.PROBE
    return CallClass.BACKGROUND if cause.background else CallClass.PERSON


def _is_busy(result: NotNow) -> bool:
    return isinstance(result.reason, Full) and result.reason.kind is LimitKind.CONCURRENT
