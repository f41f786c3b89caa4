"""Durations as people type them: `30m`, `2 hours`, `1h30m`."""

import re

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
# As many as make a sentence: "1 week 2 days 3 h 4 min 5 s".
MOST_PARTS = len(UNITS)
_PART = re.compile(r"([0-9]{1,9})\s*([a-z]{1,7})\s*", re.IGNORECASE)


def parse_duration(text: str) -> int | None:
    """Return a duration such as `30m`, `2 hours` or `1h30m` in seconds; None if it is invalid."""
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
    """Return the shortest spelling of a duration, in days at most: `90s`, `2h`, `14d`."""
    spelled = ((size, unit) for unit, (size, _) in UNITS.items() if unit != "w")
    largest_first = sorted(spelled, reverse=True)
    size, unit = next(pair for pair in largest_first if seconds % pair[0] == 0)
    return f"{seconds // size}{unit}"
