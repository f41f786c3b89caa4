"""Refusals on record: each person and entry point once a minute, with how often.

Whoever is refused may press on and on. Were each press an entry, the audit would be theirs to fill.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from bot.errors import DatabaseUnavailable
from bot.model.audit import REFUSED, AuditEntry
from bot.ops.clock import Clock
from bot.permissions import Person
from bot.store.audit import AuditStore
from bot.store.engine import Database

log = structlog.get_logger(__name__)

ENTRY_SECONDS = 60.0
# People and entry points that are kept apart; more are recorded at once.
KEPT_APART = 10_000
# Who, what they may not do, and the entry point.
_Key = tuple[str, str, str]


@dataclass
class _Repeated:
    """What was refused again since its last entry."""

    until: float
    detail: Mapping[str, Any]
    count: int = 0


class RefusalRecord:
    """Writes refusals into the audit."""

    def __init__(self, database: Database, audit: AuditStore, clock: Clock) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._repeated: dict[_Key, _Repeated] = {}
        self._ending: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Task[None]] = set()

    async def add(self, person: Person, subject: str, detail: Mapping[str, Any]) -> None:
        """Record a refusal: at once, or with the others of its minute."""
        key = (person.slack_user_id, subject, person.came_by)
        now = self._clock.monotonic()
        repeated = self._repeated.get(key)
        if repeated is not None and now < repeated.until:
            repeated.count += 1
            repeated.detail = detail
            return
        count = repeated.count if repeated is not None else 0
        if len(self._repeated) < KEPT_APART:
            self._repeated[key] = _Repeated(now + ENTRY_SECONDS, detail)
            self._end_later()
        await self._write(key, detail, count + 1)

    async def flush(self) -> None:
        """Write down what was refused again, before the program stops."""
        await self._write_all(float("inf"))

    def _end_later(self) -> None:
        if self._ending is None:
            loop = asyncio.get_running_loop()
            self._ending = loop.call_later(ENTRY_SECONDS, self._end)

    def _end(self) -> None:
        """Write what has had its minute; look again a minute later while there is any left."""
        self._ending = None
        writing = asyncio.ensure_future(self._write_all(self._clock.monotonic()))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write_all(self, now: float) -> None:
        over = {key: one for key, one in self._repeated.items() if one.until <= now}
        for key in over:
            del self._repeated[key]
        if self._repeated:
            self._end_later()
        for key, one in over.items():
            if one.count:
                await self._write(key, one.detail, one.count)

    async def _write(self, key: _Key, detail: Mapping[str, Any], count: int) -> None:
        slack_user_id, subject, _ = key
        times = {"times": count} if count > 1 else {}
        entry = AuditEntry(slack_user_id, REFUSED, subject, {**detail, **times})
        try:
            async with self._database.transaction() as tx:
                await self._audit.append(tx, entry)
        except DatabaseUnavailable as error:
            # The refusal stands whether or not it could be written down.
            log.error("people.refusal_not_recorded", reason=error.sentence)  # noqa: TRY400 - expected
