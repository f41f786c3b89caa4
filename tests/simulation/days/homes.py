"""Home tabs in Slack as a seed would have them: a view named by a hash, published late or twice."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable
from bot.home.messages import LIMITS
from bot.home.publishing import HASH_CONFLICT
from tests.simulation.days.loop import PROCESS, SimulationLoop
from tests.simulation.days.outside import TIMEOUT_SECONDS, Faults, at_their_place


@dataclass
class Homes:
    """What each person sees, and its hash."""

    loop: SimulationLoop
    faults: Faults
    shown: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    holds: Callable[[], bool] = lambda: True

    async def publish_home(
        self, slack_user_id: str, view: Mapping[str, Any], view_hash: str | None
    ) -> str:
        """Show the view; with a hash only in the place of that one."""
        if view_hash is None and not self.holds():
            self.problems.append(f"{PROCESS.get()} publishes, and the lease is another's")
        publish = self._publish(slack_user_id, view, view_hash)
        return await at_their_place(self.loop, publish)

    async def _publish(self, user: str, view: Mapping[str, Any], view_hash: str | None) -> str:
        await asyncio.sleep(self.loop.random.uniform(0, 0.3))
        if self.faults.happens("slack 429", 0.2):
            raise SlackRateLimited(self.loop.random.randrange(1, 5))
        if self.faults.happens("slack away", 0.3):
            raise SlackUnreachable
        if self.faults.happens("home lands late", 0.2):
            late = self.loop.random.uniform(0.5, 15.0)
            self.loop.call_later(TIMEOUT_SECONDS + late, self._show, user, view, view_hash)
            await asyncio.sleep(TIMEOUT_SECONDS)
            raise SlackUnreachable
        if not self._show(user, view, view_hash):
            raise SlackRefused(HASH_CONFLICT)
        if self.faults.happens("slack answer lost", 0.3):
            raise SlackUnreachable
        return self.shown[user][0]

    def _show(self, user: str, view: Mapping[str, Any], view_hash: str | None) -> bool:
        if view_hash not in {None, self.hash_of(user)}:
            return False
        name = f"{user} {int(self.hash_of(user).rpartition(' ')[2] or 0) + 1}"
        self.shown[user] = name, view
        self.loop.trace(f"published {name}")
        return True

    def hash_of(self, user: str) -> str:
        """The name of what somebody sees; "" for nothing yet."""
        return self.shown[user][0] if user in self.shown else ""


def about_requests(view: Mapping[str, Any]) -> list[Any]:
    """What a tab shows of requests: use of the limits changes with every call."""
    return list(_until_limits(view))


def _until_limits(view: Mapping[str, Any]) -> Iterator[Any]:
    for block in view["blocks"]:
        if block["type"] == "header" and block["text"]["text"] == LIMITS:
            return
        yield block
