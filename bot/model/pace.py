"""How many commands one person may send in a minute."""

from collections import deque
from collections.abc import MutableMapping

from bot.errors import TooManyCommands

WINDOW_SECONDS = 60.0


class CommandPace:
    """Counts commands per person over the last minute.

    Args:
        limit: Commands a minute; 0 for no limit.
        recent: Where the times are kept; a cache that forgets who was quiet for a minute.
    """

    def __init__(self, limit: int, recent: MutableMapping[str, deque[float]]) -> None:
        self._limit = limit
        self._recent = recent

    def admit(self, slack_user_id: str, now: float) -> None:
        """Count a command at `now` (seconds that never go back).

        Raises:
            TooManyCommands: The minute's are used up; has the seconds to wait.
        """
        if not self._limit:
            return
        times = self._recent.get(slack_user_id) or deque()
        while times and times[0] <= now - WINDOW_SECONDS:
            times.popleft()
        if len(times) >= self._limit:
            raise TooManyCommands(times[0] + WINDOW_SECONDS - now)
        times.append(now)
        self._recent[slack_user_id] = times
