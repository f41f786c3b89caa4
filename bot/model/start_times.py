"""Times at which a change is to begin: `9:00`, `tomorrow 9:00`, `2026-12-01 09:00`."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from bot.dataclass import dataclass
from bot.model.edit_distance import edit_distance

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FURTHEST = timedelta(days=366)
NOON = 12
_CLOCK = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2}))?\s?(am|pm)?", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAYS = frozenset({"today", "tomorrow", *WEEKDAYS})
# So many characters of a day's name may be wrong.
_NEAR_DAYS = {**dict.fromkeys(_DAYS, 1), "tomorrow": 2, "am": 0, "pm": 0}
_NEARLY = re.compile(
    r"[0-9]{1,2}[:;.][0-9]{1,3}[a-z]{0,2}|[0-9]{1,2}[ap]m|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}"
)


@dataclass(frozen=True, slots=True)
class StartTime:
    """A time of day in somebody's own zone.

    `day` is a date, `today`, `tomorrow`, a day of the week, or "" for the next time it is so late.
    """

    at: time
    day: str = ""

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.day} {self.at:%H:%M}".strip()


def parse_start(words: Sequence[str]) -> tuple[StartTime, int] | None:
    """The start time at the beginning of these words, and how many of them it takes."""
    if words and (stamp := re.fullmatch(rf"({_DATE.pattern})T(.+)", words[0])):
        words = (*stamp.groups(), *words[1:])
        found = parse_start(words)
        return (found[0], found[1] - 1) if found else None
    day = words[0].casefold() if words else ""
    has_day = day in _DAYS or _is_date(day)
    rest = words[1:] if has_day else words
    for count in (2, 1):
        at = _clock(" ".join(rest[:count])) if len(rest) >= count else None
        if at is not None:
            return StartTime(at, day if has_day else ""), count + has_day
    return None


def is_like_a_start(text: str) -> bool:
    """Whether it is a time or a day, or nearly one: `9:00`, `9;0`, `tomorow`, `2026-12-1`."""
    typed = text.casefold()
    if any(edit_distance(typed, day, near) <= near for day, near in _NEAR_DAYS.items()):
        return True
    return _NEARLY.fullmatch(typed) is not None or _is_like_a_date(typed)


def _is_like_a_date(typed: str) -> bool:
    # A phone number has other groups, or does not begin as a year does: "0170-5550".
    has_form = typed.count("-") > 1 or (typed.startswith("20") and "-" in typed)
    shape = re.sub("[0-9]", "0", typed)
    date_itself = re.sub("(?<=0)t.*", "", shape)
    return has_form and any(
        edit_distance(one, "0000-00-00", 1) <= 1 for one in (shape, date_itself)
    )


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _clock(text: str) -> time | None:
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


def moment_of(start: StartTime, now: datetime, zone: tzinfo) -> datetime | None:
    """When that is, in UTC; None when it has passed, or is more than a year away.

    A time that a change of the clocks leaves out is as much later as the clocks are put forward; of
    one that comes twice it is the first that is still to come.
    """
    today = now.astimezone(zone).date()
    if not start.day:
        return _upcoming(today, start.at, now, zone) or _upcoming(
            today + timedelta(days=1), start.at, now, zone
        )
    if start.day in WEEKDAYS:
        ahead = (WEEKDAYS.index(start.day) - today.weekday()) % len(WEEKDAYS)
        days = (today + timedelta(days=ahead), today + timedelta(days=ahead + len(WEEKDAYS)))
        return next(filter(None, (_upcoming(day, start.at, now, zone) for day in days)), None)
    named = {"today": today, "tomorrow": today + timedelta(days=1)}
    day = named[start.day] if start.day in named else date.fromisoformat(start.day)
    return _upcoming(day, start.at, now, zone)


def _upcoming(day: date, at: time, now: datetime, zone: tzinfo) -> datetime | None:
    """The moment of that local time, unless it has passed, or is too far away."""
    # A day more than that, as zones differ; the last day there is has no moment in some of them.
    if abs(day - now.date()) > FURTHEST + timedelta(days=1):
        return None
    for fold in (0, 1):
        local = datetime.combine(day, at, zone).replace(fold=fold)
        moment = local.astimezone(UTC)
        exists = moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None)
        if now < moment <= now + FURTHEST and (exists or fold == 0):
            return moment
    return None
