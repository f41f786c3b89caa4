"""Parsers for durations and times such as `1h30m`, `2 hours`, `friday` and `tomorrow 9:00`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LONGEST_SECONDS = 3650 * 86_400
UNITS = {
    "s": (1, ("sec", "secs", "second", "seconds")),
    "m": (60, ("min", "mins", "minute", "minutes")),
    "h": (3_600, ("hr", "hrs", "hour", "hours")),
    "d": (86_400, ("day", "days")),
    "w": (604_800, ("wk", "wks", "week", "weeks")),
}
UNIT_SECONDS = {
    name: seconds for unit, (seconds, names) in UNITS.items() for name in (unit, *names)
}
# A duration can contain each unit once: "1 week 2 days 3 h 4 min 5 s".
MOST_PARTS = len(UNITS)
_PART = re.compile(r"([0-9]{1,9})\s*([a-z]{1,7})\s*", re.IGNORECASE)


def parse_duration(text: str) -> int | None:
    """Convert a duration such as `30m` or `1h30m` to seconds. Return None if it's invalid."""
    text = text.removesuffix(".")
    at, seconds = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        size = UNIT_SECONDS.get(part.group(2).lower()) if part else None
        if part is None or size is None:
            return None
        seconds += int(part.group(1)) * size
        at = part.end()
    return seconds if 0 < seconds <= LONGEST_SECONDS else None


def spell_duration(seconds: int) -> str:
    """Format a duration in the largest unit that divides it evenly, up to days, such as `2h`."""
    spelled = ((size, unit) for unit, (size, _) in UNITS.items() if unit != "w")
    largest_first = sorted(spelled, reverse=True)
    size, unit = next(pair for pair in largest_first if seconds % pair[0] == 0)
    return f"{seconds // size}{unit}"


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST = timedelta(seconds=LONGEST_SECONDS)
NOON = 12
LAST_MINUTE = time(23, 59)
_CLOCK = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2}))?\s?(am|pm)?", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class LocalTime:
    """A typed day, time of day, or both, in the person's time zone.

    `at` is None for a whole day. If only a time was typed, `day` is empty, and the value means the
    next occurrence of that time.
    """

    at: time | None
    day: str = ""

    def __str__(self) -> str:
        """Return the day and time as a person would type them."""
        return f"{self.day} {self.at:%H:%M}".strip() if self.at else self.day


When = LocalTime | datetime


def parse_when(words: Sequence[str]) -> tuple[LocalTime, int] | None:
    """Return the time at the start of `words` and how many words it spans, or None if there's none.

    >>> parse_when(["friday", "6", "pm", "+15550100"])
    (LocalTime(at=datetime.time(18, 0), day='friday'), 3)
    """
    day = words[0].casefold() if words and _is_day(words[0].casefold()) else ""
    rest = words[1:] if day else words
    for count in (2, 1):
        at = _clock(" ".join(rest[:count])) if len(rest) >= count else None
        if at is not None:
            taken = count + bool(day)
            if not day and len(words) > taken and _is_day(words[taken].casefold()):
                return LocalTime(at, words[taken].casefold()), taken + 1
            return LocalTime(at, day), taken
    return (LocalTime(None, day), 1) if day else None


def moment_of(when: When, now: datetime, zone: tzinfo) -> datetime | None:
    """Convert a typed end to UTC, or return None if it has passed or is over ten years away.

    A day without a time means its last minute. A time that is skipped by daylight saving time moves
    forward by the same amount as the clocks. If a time occurs twice, the next occurrence is used.
    """
    latest = now + LONGEST
    if isinstance(when, datetime):
        return when if now < when <= latest else None
    at = when.at or LAST_MINUTE
    today = now.astimezone(zone).date()
    days = [today, today + timedelta(days=1)]
    if when.day in ("today", "tomorrow"):
        days = [today + timedelta(days=when.day == "tomorrow")]
    elif when.day in WEEKDAYS:
        ahead = (WEEKDAYS.index(when.day) - today.weekday()) % len(WEEKDAYS)
        days = [today + timedelta(days=ahead + more) for more in (0, len(WEEKDAYS))]
    elif when.day:
        days = [date.fromisoformat(when.day)]
    for day in days:
        # Dates at the end of the calendar can't be converted to UTC in some time zones.
        if abs(day - now.date()) > LONGEST:
            continue
        for fold in (0, 1):
            moment = datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC)
            if now < moment <= latest:
                return moment
    return None


def _is_day(text: str) -> bool:
    if text in ("today", "tomorrow", *WEEKDAYS):
        return True
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _clock(text: str) -> time | None:
    if text.casefold() == "noon":
        return time(NOON)
    match = _CLOCK.fullmatch(text)
    if match is None or not (match.group(2) or match.group(3)):
        return None
    hour, minute, half = int(match.group(1)), int(match.group(2) or 0), (match.group(3) or "")
    if half:
        if not 1 <= hour <= NOON:
            return None
        hour = hour % NOON + (NOON if half.lower() == "pm" else 0)
    try:
        return time(hour, minute)
    except ValueError:
        return None


def zone_of(name: str) -> ZoneInfo | None:
    """Return the time zone with this name, such as `Europe/Berlin`, or None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None
