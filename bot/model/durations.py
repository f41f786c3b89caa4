"""Lengths of time as people type them: `30m`, `2 hours`, `1h30m`."""

import re

from bot.model.edit_distance import edit_distance

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

# What durations look like, with 0 for a number: where so many characters differ, one was meant.
NEAR_LETTERS = 2
LONG_UNIT = 4
_SHAPES = (
    *(f"0{name}" for name in UNIT_SECONDS),
    *("0h0m", "0d0h", "0w0d", "0m0s", "0h0min", "0hr0min", "0d0h0m", "0h0m0s"),
)
_MAY_BE_ONE = re.compile(r"(?=.*[a-z])(?=.{0,1}[0-9])[0-9a-z]{2,12}")
# Part of a number, an address or a random id has more.
MOST_DIGITS = 4


def parse_duration(text: str) -> int | None:
    """The seconds of `30m`, `2 hours` or `1h30m`; None when it is none, or out of range."""
    at, seconds = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        size = UNIT_SECONDS.get(part.group(2).lower()) if part else None
        if part is None or size is None:
            return None
        seconds += int(part.group(1)) * size
        at = part.end()
    return seconds if 0 < seconds <= LONGEST_SECONDS else None


def is_like_a_duration(text: str) -> bool:
    """Whether it is a duration with a character or two mistyped, such as `2hh`, `20m1n` or `3ours`.

    A word that begins with one of a to z may have no other mistake: there are handles like `b2b`.
    """
    typed = text.lower()
    if not _MAY_BE_ONE.fullmatch(typed) or sum(map(str.isdigit, typed)) > MOST_DIGITS:
        return False
    near = NEAR_LETTERS if typed[0].isdigit() else 1
    shape = re.sub("[0-9]+", "0", typed)
    return any(edit_distance(shape, one, near) <= near for one in _SHAPES)


def is_like_a_unit(text: str) -> bool:
    """Whether it is the unit of a duration, or nearly one: `h`, `ours`, `mni`."""
    typed = text.lower()
    near = NEAR_LETTERS if len(typed) >= LONG_UNIT else 1
    return typed.isalpha() and any(edit_distance(typed, one, near) <= near for one in UNIT_SECONDS)


def spell_duration(seconds: int) -> str:
    """The shortest text that is read as so many seconds, in days at most: `90s`, `2h`, `14d`."""
    spelled = ((size, unit) for unit, (size, _) in UNITS.items() if unit != "w")
    largest_first = sorted(spelled, reverse=True)
    size, unit = next(one for one in largest_first if seconds % one[0] == 0)
    return f"{seconds // size}{unit}"
