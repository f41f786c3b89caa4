"""Refusals in the audit log: one entry a minute per person and entry point, with a count.

Otherwise somebody who keeps pressing a forbidden button could fill the audit log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.permissions import Person
from bot.store.audit import AuditStore
from bot.store.audit_entry import REFUSED, AuditEntry
from bot.store.engine import Database

log = structlog.get_logger(__name__)

ENTRY_SECONDS = 60.0
# The maximum number of tracked pairs of person and entry point; others are recorded immediately.
KEPT_APART = 10_000
# Person, missing permission, entry point.
_Key = tuple[str, str, str]


@dataclass
class _Repeated:
    until: float
    detail: Mapping[str, Any]
    count: int = 0


class RefusalRecord:
    """Writes refusals to the audit log; repeats are counted in a later entry or at shutdown."""

    def __init__(self, database: Database, audit: AuditStore, clock: Clock) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._repeated: dict[_Key, _Repeated] = {}

    async def add(self, person: Person, subject: str, detail: Mapping[str, Any]) -> None:
        """Record a refusal now, or count it as a repeat in the current minute."""
        key = (person.slack_user_id, subject, person.came_by)
        now = self._clock.monotonic()
        repeated = self._repeated.get(key)
        if repeated is not None and now < repeated.until:
            repeated.count += 1
            repeated.detail = detail
            return
        count = repeated.count if repeated is not None else 0
        self._repeated.pop(key, None)
        await self.flush(now)
        if len(self._repeated) < KEPT_APART:
            self._repeated[key] = _Repeated(now + ENTRY_SECONDS, detail)
        await self._write(key, detail, count + 1)

    async def flush(self, now: float = float("inf")) -> None:
        """Record repeated refusals whose minute has passed, or all before the program stops."""
        over = {key: repeated for key, repeated in self._repeated.items() if repeated.until <= now}
        for key, repeated in over.items():
            del self._repeated[key]
            if repeated.count:
                await self._write(key, repeated.detail, repeated.count)

    async def _write(self, key: _Key, detail: Mapping[str, Any], count: int) -> None:
        slack_user_id, subject, _ = key
        times = {"times": count} if count > 1 else {}
        entry = AuditEntry(slack_user_id, REFUSED, subject, {**detail, **times})
        try:
            async with self._database.transaction() as tx:
                await self._audit.append(tx, entry)
        except DatabaseUnavailable as error:
            # The person is refused even if the record fails.
            log.error("people.refusal_not_recorded", reason=error.sentence)  # noqa: TRY400 - expected
