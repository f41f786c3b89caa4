"""How long to wait before what failed again and again is tried again."""

FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0
_DOUBLINGS = 10


def pause_seconds(
    failures: int, first: float = FIRST_PAUSE_SECONDS, longest: float = LONGEST_PAUSE_SECONDS
) -> float:
    """The pause after so many failures in a row: twice as long each time, up to the longest."""
    return min(first * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS), longest)
