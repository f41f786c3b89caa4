"""The guard under every inventory call: one grant in the shared database before anything is sent.

A grant is reserved before the call and settled after it, in two transactions. What is not settled
stays held until the call's timeout and a grace have passed: so whatever happens to the call, to
this process or to the database, the bot errs on the side of calling less.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog

from bot.clock import Clock
from bot.errors import (
    DatabaseUnavailable,
    RateLimited,
    ResponseTooLarge,
    ServiceError,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.model.calls import PROBE, CallCause
from bot.model.days import told_day
from bot.model.organization import OrganizationKey
from bot.model.plans import CallClass
from bot.model.quota import GRACE_SECONDS, Full, LimitKind, Terms
from bot.model.told import ToldLimits
from bot.store import quotas
from bot.store.engine import Database, Transaction
from bot.store.quotas import CallRequest, NotNow, Reservation
from bot.tasks import Tasks
from bot.workflows.incidents import Incidents, Refusal
from bot.workflows.refusals import as_error
from bot.workflows.unwritten import Unwritten

log = structlog.get_logger(__name__)

PERSON_WAITS_SECONDS = 2.0
# Another process gives a permit back without telling us.
LOOK_AGAIN_SECONDS = 0.1
# What a grant holds counts from when the database was asked; a call that begins much later, because
# the database was slow or this process stood still, would outlast it. Half the grace is the call's.
LATEST_SECONDS = GRACE_SECONDS / 2
TOO_LATE = "The database took too long to answer. Nothing was sent; please try again."

# With these the answer was not whole: the service may be at work on the call still.
_UNFINISHED = (ServiceTimeout, ServiceUnreachable, ResponseTooLarge)


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
        self._lines: WeakValueDictionary[OrganizationKey, _Line] = WeakValueDictionary()
        self._unwritten = Unwritten(clock, tasks)

    @asynccontextmanager
    async def call(self, key: OrganizationKey, cause: CallCause) -> AsyncIterator["_Call"]:
        """One attempt at one call, as `QuotaGuard` says.

        A person waits up to 2 s for a call of theirs to fit beside those in flight, and never for
        the minute or the day. The background's turns wait where they are kept, not here.
        """
        line = self._line_of(key)
        request = self._request(key, cause)
        # Before anything more is granted.
        await self._unwritten.done(key)
        call = _Call(await self._wait_for(request, line), request, self._clock)
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
                raise as_error(result, request.key)
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
                raise as_error(result, request.key)
            await self._pause(line, min(left, LOOK_AGAIN_SECONDS))

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
        opened = self._database.transaction() if is_probe else self._database.statements()
        # By the clock that bounds the call itself.
        now = asyncio.get_running_loop().time
        async with opened as tx:
            began = now()
            result = await quotas.reserve(tx, request)
        if isinstance(result, Reservation) and now() - began > LATEST_SECONDS:
            # It would be free again while the call is at work.
            await self._give_back(result)
            raise DatabaseUnavailable(TOO_LATE)
        return result

    async def _give_back(self, unused: Reservation) -> None:
        with suppress(DatabaseUnavailable):
            async with self._database.statements() as tx:
                await quotas.settle(tx, unused, 0.0)

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
            await self._unwritten.write(call.request.key, partial(self._write_refusal, call))
            return
        is_over = call.is_whole(error) or call.was_never_sent(error)
        if call.is_probe:
            await self._end_probe(call, is_over=is_over, passed=error is None and is_over)
        elif is_over:
            async with self._database.statements() as tx:
                await quotas.settle(tx, call.reservation, call.seconds_since_headers())
                await self._note_told(tx, call)

    async def _end_probe(self, call: "_Call", *, is_over: bool, passed: bool) -> None:
        async with self._database.transaction() as tx:
            if is_over:
                await quotas.settle(tx, call.reservation, call.seconds_since_headers())
                await self._note_told(tx, call)
            await self._incidents.probed(tx, call.request.key, passed=passed)
        self._incidents.wake()

    async def _note_told(self, tx: Transaction, call: "_Call") -> None:
        if call.limits is None:
            return
        now, in_flight = (await tx.now()).timestamp(), call.reservation.granted.concurrent
        told = told_day(call.limits, now, call.reservation.number, in_flight)
        if told is not None:
            await quotas.note_told(tx, call.reservation, told)

    async def _write_refusal(self, call: "_Call") -> None:
        async with self._database.transaction() as tx:
            await self._note_told(tx, call)
            # Before it is settled: it was in flight itself when it was refused.
            await self._incidents.refused(tx, call.as_refusal())
            await quotas.settle(tx, call.reservation, call.seconds_since_headers())
        self._incidents.wake()


class _Call:
    """A granted call: collects what became of it, for the one transaction at its end."""

    def __init__(self, reservation: Reservation, request: CallRequest, clock: Clock) -> None:
        self.reservation = reservation
        self.request = request
        self.limits: ToldLimits | None = None
        self.refusal: RateLimited | None = None
        self._clock = clock
        self._headers_at: float | None = None

    async def responded(self) -> None:
        """The response headers are here."""
        self._headers_at = self._clock.monotonic()

    async def told(self, limits: ToldLimits) -> None:
        """The service told its limits."""
        self.limits = limits

    async def refused(self, error: RateLimited) -> None:
        """The service answered 429."""
        self.refusal = error
        self.limits = error.told

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
        """Whether no connection was made, so that the service cannot be at work on the call."""
        return isinstance(error, ServiceUnreachable) and not error.sent

    def seconds_since_headers(self) -> float:
        """By this process's clock; nothing is known of the database's at that moment."""
        now = self._clock.monotonic()
        return now - (self._headers_at if self._headers_at is not None else now)

    def as_refusal(self) -> Refusal:
        """What the incident needs to know."""
        assert self.refusal is not None  # noqa: S101 - asked for refusals only
        return Refusal(self.request, self.refusal.code, self.refusal.message)


def class_of(cause: CallCause) -> CallClass:
    """Whose turn a call takes."""
    if cause.kind == PROBE:
        return CallClass.PROBE
    return CallClass.BACKGROUND if cause.background else CallClass.PERSON


def _is_busy(result: NotNow) -> bool:
    return isinstance(result.reason, Full) and result.reason.kind is LimitKind.CONCURRENT
