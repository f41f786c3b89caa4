"""The limit on a person's actions per minute."""

from collections import deque
from collections.abc import MutableMapping
from enum import Enum

from bot.errors import TooManyCommands

WINDOW_SECONDS = 60.0
# People who keep clicking are asked to wait once in this time.
QUIET_SECONDS = 5.0


class Deed(Enum):
    """A kind of action, which is counted separately and has a multiple of the command limit."""

    COMMAND = ("commands", 1)
    INTERACTION = ("clicks", 2)
    TYPING = ("characters", 2)

    @property
    def noun(self) -> str:
        """The plural noun, for sentences."""
        return self.value[0]

    @property
    def factor(self) -> int:
        """The multiple of the command limit allowed for this kind."""
        return self.value[1]


class Recent:
    """One person's recent actions of one kind, and the last time they were asked to wait."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()
        self.told_at = float("-inf")

    def forget_before(self, at: float) -> None:
        """Drop older entries."""
        while self.times and self.times[0] <= at:
            self.times.popleft()


class Pace:
    """Counts each person's actions over the last minute.

    Args:
        limit: Commands a minute; twice as many clicks and forms; 0 for no limit.
        recent: A cache that drops people after a minute without an action.
    """

    def __init__(self, limit: int, recent: MutableMapping[tuple[str, Deed], Recent]) -> None:
        self._limit = limit
        self._recent = recent

    def require(self, slack_user_id: str, now: float, deed: Deed = Deed.COMMAND) -> None:
        """Count an action at `now` (monotonic seconds).

        Raises:
            TooManyCommands: The limit is used up; has the seconds to wait.
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
