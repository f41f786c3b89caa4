"""Spans of time in words, as short as a sentence wants them."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def in_words(seconds: float) -> str:
    """`40 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: the two largest units, rounded up."""
    whole = max(0, -int(-seconds // 1))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole // _MINUTE, "min", whole % _MINUTE, "s")
    minutes = -(-whole // _MINUTE)
    if whole < _DAY:
        return _two(minutes // 60, "h", minutes % 60, "min")
    hours = -(-whole // _HOUR)
    return _two(hours // 24, "d", hours % 24, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = f" {small} {small_unit}" if small else ""
    return f"{large} {large_unit}{rest}"
