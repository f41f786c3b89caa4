"""Growing pauses between retries."""

FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0
_DOUBLINGS = 10


def pause_seconds(
    failures: int, first: float = FIRST_PAUSE_SECONDS, longest: float = LONGEST_PAUSE_SECONDS
) -> float:
    """Return the pause after so many failures: doubled each time, up to `longest`."""
    return min(first * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS), longest)
