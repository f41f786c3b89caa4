"""How much one person may do in a minute."""

from collections import deque
from collections.abc import MutableMapping
from enum import Enum

from bot.errors import TooManyCommands

WINDOW_SECONDS = 60.0
# Who presses on and on is told so once in this time.
QUIET_SECONDS = 5.0


class Deed(Enum):
    """What is counted, each for itself, and how many times the limit of commands it may come."""

    COMMAND = ("commands", 1)
    INTERACTION = ("clicks", 2)
    TYPING = ("characters", 2)

    @property
    def noun(self) -> str:
        """It, in the plural."""
        return self.value[0]

    @property
    def factor(self) -> int:
        """Its share of the limit."""
        return self.value[1]


class Recent:
    """What one person did of a kind in the last minute, and when they were last told to wait."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()
        self.told_at = float("-inf")

    def forget_before(self, at: float) -> None:
        """Drop what is older."""
        while self.times and self.times[0] <= at:
            self.times.popleft()


class Pace:
    """Counts what people do over the last minute.

    Args:
        limit: Commands a minute; twice as many clicks and forms; 0 for no limit.
        recent: Where it is kept; a cache that forgets who was quiet for a minute.
    """

    def __init__(self, limit: int, recent: MutableMapping[tuple[str, Deed], Recent]) -> None:
        self._limit = limit
        self._recent = recent

    def require(self, slack_user_id: str, now: float, deed: Deed = Deed.COMMAND) -> None:
        """Count a deed at `now` (seconds that never go back).

        Raises:
            TooManyCommands: The minute's are used up; has the seconds to wait.
        """
        if not self._limit:
            return
        recent = self._recent.get((slack_user_id, deed)) or Recent()
        recent.forget_before(now - WINDOW_SECONDS)
        if len(recent.times) >= self._limit * deed.factor:
            is_told = now - recent.told_at < QUIET_SECONDS
            if not is_told:
                recent.told_at = now
            wait = recent.times[0] + WINDOW_SECONDS - now
            raise TooManyCommands(wait, deed.noun, is_told=is_told)
        recent.times.append(now)
        self._recent[slack_user_id, deed] = recent
