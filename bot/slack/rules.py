"""The limit on a person's actions per minute."""

from collections import deque
from enum import Enum

from cachetools import TTLCache

from bot.errors import TooManyCommands
from bot.ops.clock import Clock

WINDOW_SECONDS = 60.0
PEOPLE_COUNTED = 10_000


class Deed(Enum):
    """A kind of action: its plural noun, and its limit as a multiple of the command limit."""

    COMMAND = ("commands", 1)
    INTERACTION = ("clicks", 2)


class Pace:
    """Counts each person's actions over the last minute, each kind separately.

    `limit` is the number of commands a minute; 0 for no limit.
    """

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._recent: TTLCache[tuple[str, Deed], deque[float]] = TTLCache(
            PEOPLE_COUNTED, WINDOW_SECONDS, timer=clock.monotonic
        )

    def require(self, slack_user_id: str, deed: Deed) -> None:
        """Count an action.

        Raises:
            TooManyCommands: The limit is used up; has the seconds to wait.
        """
        (noun, factor), now = deed.value, self._clock.monotonic()
        times = self._recent.get((slack_user_id, deed)) or deque()
        while times and times[0] <= now - WINDOW_SECONDS:
            times.popleft()
        if self._limit and len(times) >= self._limit * factor:
            raise TooManyCommands(times[0] + WINDOW_SECONDS - now, noun)
        times.append(now)
        self._recent[slack_user_id, deed] = times
