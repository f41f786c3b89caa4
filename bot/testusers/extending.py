"""Extending access: with one click, or in the form that shows the current end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.approvals.rules.durations import spell_duration
from bot.errors import Conflict
from bot.permissions import Person
from bot.testusers.messages.buttons import Prefilled
from bot.testusers.parse.change import ChangeRequest
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant
from bot.testusers.setup import Setup
from bot.testusers.store import grants
from bot.testusers.term import term_of

MINUTE = timedelta(minutes=1)


class Extending:
    """Looks up the current end of access."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def filled(self, known: Prefilled) -> Prefilled:
        """Return the values that the form opens with: the current end, and the last duration.

        Raises:
            NotConfigured: The flow service lacks settings.
            NotFound: The flow does not exist.
        """
        if known.kind != "add" or not (known.flow and known.identities):
            return known
        found, _ = await self._grants(self._setup.flow(known.flow), known.identities)
        timed = [grant for grant in found if grant.ends_at is not None]
        if not timed:
            return known
        last = max(timed, key=lambda grant: grant.ends_at or grant.granted_at)
        ends_at = last.ends_at or last.granted_at
        minutes = max(1, round((ends_at - last.granted_at) / MINUTE))
        is_open = not (known.duration or known.until)
        duration = spell_duration(minutes * 60) if is_open else known.duration
        return replace(known, duration=duration, ends_at=ends_at)

    async def of_command(self, person: Person, flow: Flow, command: ChangeRequest) -> Prefilled:
        """Return the values that the form opens with after a complete command.

        Raises:
            UsageError: A time has passed, or the zone is not known here.
        """
        term = term_of(person.time_zone, command, await self._setup.database.now())
        preset = f"@{command.presets[0]}" if len(command.presets) == 1 else ""
        seconds = command.duration_seconds
        return Prefilled(
            flow.sid,
            f"{command.kind}{preset}",
            command.identities,
            spell_duration(seconds) if seconds else "",
            term.starts_at,
            term.ends_at,
            command.reason,
        )

    async def until(self, flow: Flow, identities: Sequence[str], seconds: int) -> datetime:
        """Return the end that is this many seconds after the current end, or after now.

        Raises:
            Conflict: Somebody's access has no end.
        """
        found, now = await self._grants(flow, identities)
        endless = next((grant.identity for grant in found if grant.ends_at is None), None)
        if endless is not None:
            raise Conflict(
                f"“{endless[:80]}” has access with no end date. There's no need to extend it."
            )
        ends = (grant.ends_at for grant in found if grant.ends_at is not None)
        end = max((now, *ends)) + timedelta(seconds=seconds)
        # A whole minute, as people type it; never less than was asked for.
        return (end + MINUTE).replace(second=0, microsecond=0)

    async def _grants(self, flow: Flow, identities: Sequence[str]) -> tuple[list[Grant], datetime]:
        async with self._setup.database.read_only() as tx:
            granted = await grants.of_flow(tx, flow.key)
            now = await tx.now()
        return [granted[identity] for identity in identities if identity in granted], now
