"""The start and the end of a requested change, read in the requester's time zone."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.approvals.rules.times import When, moment_of, spell_when
from bot.errors import UsageError
from bot.testusers.parse.change import ChangeRequest, misuse


@dataclass(frozen=True, slots=True)
class Term:
    """The start and end of access, in UTC; None for at once, and for an end that is not fixed."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def seconds(self, requested: ChangeRequest, now: datetime) -> float | None:
        """The length of access from its start; None for no end."""
        if self.ends_at is None:
            return requested.duration_seconds
        return (self.ends_at - (self.starts_at or now)).total_seconds()


def term_of(time_zone: str, requested: ChangeRequest, now: datetime) -> Term:
    """Return the start and end of the requested access; `time_zone` is the requester's.

    Raises:
        UsageError: A time has passed, the end is before the start, or the zone is not known here.
    """
    if requested.start is None and requested.until is None:
        return Term()
    zone = _zone(time_zone)
    starts_at = ends_at = None
    if requested.start is not None:
        starts_at = moment_of(requested.start, now, zone)
        if starts_at is None:
            raise _out_of_range(requested.start, "has passed, or is more than a year away")
    if requested.until is not None:
        ends_at = moment_of(requested.until, now, zone, after=starts_at, ends=True)
        if ends_at is None:
            early = "is not after the start" if starts_at else "has passed"
            raise _out_of_range(requested.until, f"{early}, or is more than ten years away")
    return Term(starts_at, ends_at)


def _out_of_range(when: When, problem: str) -> UsageError:
    return misuse("add", f"“{spell_when(when)}” {problem}.", has_right_form=True)


def _zone(time_zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        problem = f"I don't know your time zone ({time_zone}), so I can't read the time."
        raise misuse("add", problem, has_right_form=True) from None
