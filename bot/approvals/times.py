"""Durations and times such as `1h30m`, `2 hours`, `friday` and `tomorrow 9:00`."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LONGEST_SECONDS = 3650 * 86_400
UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
# A duration can contain each unit once: "1 week 2 days 3 h 4 min 5 s".
MOST_WORDS = 2 * len(UNITS)
_UNIT = r"w(?:ks?|eeks?)?|d(?:ays?)?|h(?:rs?|ours?)?|m(?:ins?|inutes?)?|s(?:ecs?|econds?)?"
_PART = rf"([0-9]{{1,9}})\s*({_UNIT})\s*"
_PARTS = re.compile(_PART, re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART})+", re.IGNORECASE)


def parse_duration(text: str) -> int | None:
    """Convert a duration such as `30m` or `1h30m` to seconds. Return None if it's invalid."""
    text = text.removesuffix(".")
    if not _DURATION.fullmatch(text):
        return None
    seconds, left = 0, dict(UNITS)
    for number, word in _PARTS.findall(text):
        unit = left.pop(word[0].lower(), None)
        if unit is None:
            return None
        seconds += int(number) * unit
    return seconds if 0 < seconds <= LONGEST_SECONDS else None


def duration_at(words: Sequence[str]) -> tuple[int, int] | None:
    """Return the duration at the start of `words` in seconds and how many words it spans, if any.

    >>> duration_at(["2", "hours", "+15550100"])
    (7200, 2)
    """
    for count in range(min(len(words), MOST_WORDS), 0, -1):
        if (seconds := parse_duration(" ".join(words[:count]))) is not None:
            return seconds, count
    return None


def spell_duration(seconds: int) -> str:
    """Format a duration in the largest unit that divides it evenly, up to days, such as `2h`."""
    unit = next(unit for unit in "dhms" if seconds % UNITS[unit] == 0)
    return f"{seconds // UNITS[unit]}{unit}"


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The days that a word can mean, counted from today. A time alone means its next occurrence.
DAYS_AHEAD = {"": (0, 1), "today": (0,), "tomorrow": (1,)}
LONGEST = timedelta(seconds=LONGEST_SECONDS)
NOON = 12
LAST_MINUTE = time(23, 59)
_CLOCKS = ("%H:%M", "%I%p", "%I %p", "%I:%M%p", "%I:%M %p")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOUR = re.compile("[0-9]{1,2}")
_JOINTS = ("at", "on")
# "on friday at 6 p.m."
MOST_TIME_WORDS = 6


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

    The day can stand before or after the time of day.

    >>> parse_when(["6", "pm", "on", "friday", "+15550100"])
    (LocalTime(at=datetime.time(18, 0), day='friday'), 4)
    """
    for count in range(min(len(words), MOST_TIME_WORDS), 0, -1):
        parts = [word.casefold().removesuffix(".") for word in words[:count]]
        days = [part for part in parts if _is_day(part)]
        clock = " ".join(part for part in parts if part not in (*days, *_JOINTS))
        if "at" in parts and _HOUR.fullmatch(clock):
            clock += ":00"
        at = _clock(clock)
        is_whole = at is not None if clock else days
        if is_whole and len(days) <= 1 and parts[-1] not in _JOINTS:
            return LocalTime(at, "".join(days)), count
    return None


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
    for ahead in _days_ahead(when.day, today):
        # Dates at the end of the calendar can't be converted to UTC in some time zones.
        if abs(ahead) > LONGEST.days + 1:
            continue
        for fold in (0, 1):
            day = today + timedelta(days=ahead)
            moment = datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC)
            if now < moment <= latest:
                return moment
    return None


def _days_ahead(day: str, today: date) -> tuple[int, ...]:
    if day in WEEKDAYS:
        ahead = (WEEKDAYS.index(day) - today.weekday()) % len(WEEKDAYS)
        return ahead, ahead + len(WEEKDAYS)
    return DAYS_AHEAD.get(day) or ((date.fromisoformat(day) - today).days,)


def _is_day(text: str) -> bool:
    if text in ("today", "tomorrow", *WEEKDAYS):
        return True
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _clock(text: str) -> time | None:
    plain = text.replace("a.m", "am").replace("p.m", "pm")
    if plain == "noon":
        return time(NOON)
    for form in _CLOCKS:
        with suppress(ValueError):
            return datetime.strptime(plain.replace(".", ":"), form).time()  # noqa: DTZ007 - no date
    return None


def zone_of(name: str) -> ZoneInfo | None:
    """Return the time zone with this name, such as `Europe/Berlin`, or None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # An OSError means that the name is that of a folder of zones.
        return None
