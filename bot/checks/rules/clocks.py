"""Comparison of the machine's clock with another one."""

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

# Slack's signatures are refused when they are five minutes old.
_WRONG_SECONDS = 60.0
# Less than this is no step of a clock: it is slewed, or read a moment later.
_LEAST_STEP_SECONDS = 1.0
# Two clocks that are kept right differ by less.
_AGREES_SECONDS = 2.0
# The `Date` of an answer has whole seconds.
_ROUNDING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ReportedTime:
    """A reading of another clock between two of ours; all in seconds since 1970."""

    asked_at: float
    reported: float
    answered_at: float

    @property
    def ahead(self) -> float:
        """The seconds that our clock is ahead of the other, at the least; behind if negative."""
        at_most = self.answered_at - self.reported
        return max(self.asked_at - self.reported - _ROUNDING_SECONDS, min(0.0, at_most))


def time_in(date: str) -> float | None:
    """The time in an HTTP `Date` header, in seconds since 1970; None without one."""
    try:
        parsed = parsedate_to_datetime(date)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def is_wrong(ahead: float) -> bool:
    """Return True if a clock that is off by so many seconds needs an alert."""
    return abs(ahead) > _WRONG_SECONDS


def agrees(ahead: float) -> bool:
    """Return True if a clock that is off by so many seconds counts as right."""
    return abs(ahead) <= _AGREES_SECONDS


def is_step(seconds: float) -> bool:
    """Return True if a clock that jumped by so many seconds was set."""
    return abs(seconds) >= _LEAST_STEP_SECONDS


def ahead_or_behind(seconds: float) -> str:
    """As in "is 75 s ahead of Slack's"."""
    return f"{abs(round(seconds))} s {'ahead of' if seconds > 0 else 'behind'}"
