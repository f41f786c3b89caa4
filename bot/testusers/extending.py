"""Extending access with one click, or in the form that shows the current end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.approvals.rules.durations import spell_duration
from bot.errors import Conflict
from bot.permissions import Person
from bot.testusers.messages.buttons import Prefilled
from bot.testusers.parse.change import ChangeRequest, term_of
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant
from bot.testusers.setup import Setup
from bot.testusers.store import grants

MINUTE = timedelta(minutes=1)


async def with_current_end(setup: Setup, known: Prefilled) -> Prefilled:
    """Return the form's initial values: the current end and the last duration.

    Raises:
        NotConfigured: The flow service lacks settings.
        NotFound: The flow does not exist.
    """
    if known.kind != "add" or not (known.flow and known.identities):
        return known
    found, _ = await _grants(setup, setup.flow(known.flow), known.identities)
    ends = [(grant.ends_at, grant.granted_at) for grant in found if grant.ends_at is not None]
    if not ends:
        return known
    ends_at, granted_at = max(ends)
    minutes = max(1, round((ends_at - granted_at) / MINUTE))
    is_open = not (known.duration or known.until)
    duration = spell_duration(minutes * 60) if is_open else known.duration
    return replace(known, duration=duration, ends_at=ends_at)


async def prefilled(setup: Setup, person: Person, flow: Flow, command: ChangeRequest) -> Prefilled:
    """Return the form's initial values after a complete command.

    Raises:
        UsageError: A time has passed, or the time zone is unknown.
    """
    term = term_of(person.time_zone, command, await setup.database.now())
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


async def extended_end(
    setup: Setup, flow: Flow, identities: Sequence[str], seconds: int
) -> datetime:
    """Return the end this many seconds after the current end or the current time.

    Raises:
        Conflict: Somebody's access has no end.
    """
    found, now = await _grants(setup, flow, identities)
    ends = [now]
    for grant in found:
        if grant.ends_at is None:
            endless = f"“{grant.identity[:80]}” has access with no end date."
            raise Conflict(f"{endless} There's no need to extend it.")
        ends.append(grant.ends_at)
    # A whole minute, as people type it; never less than requested.
    end = max(ends) + timedelta(seconds=seconds) + MINUTE
    return end.replace(second=0, microsecond=0)


async def _grants(
    setup: Setup, flow: Flow, identities: Sequence[str]
) -> tuple[list[Grant], datetime]:
    async with setup.database.read_only() as tx:
        granted = await grants.of_flow(tx, flow.key)
        now = await tx.now()
    return [granted[identity] for identity in identities if identity in granted], now
