"""Simulates Home tabs. The seed determines which calls fail and which responses are lost."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.errors import SlackRateLimited, SlackUnreachable
from bot.home.messages import LIMITS
from tests.simulation.days.loop import PROCESS, SimulationLoop
from tests.simulation.days.outside import Faults, at_their_place


@dataclass
class Homes:
    """Stores the Home tab that each person sees."""

    loop: SimulationLoop
    faults: Faults
    shown: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    holds: Callable[[], bool] = lambda: True

    async def publish_home(self, slack_user_id: str, view: Mapping[str, Any]) -> None:
        """Show the view to the person."""
        if not self.holds():
            self.problems.append(f"{PROCESS.get()} publishes without the lease")
        await at_their_place(self.loop, self._publish(slack_user_id, view))

    async def _publish(self, user: str, view: Mapping[str, Any]) -> None:
        await asyncio.sleep(self.loop.random.uniform(0, 0.3))
        if self.faults.happens("slack 429", 0.2):
            raise SlackRateLimited(self.loop.random.randrange(1, 5))
        if self.faults.happens("slack away", 0.3):
            raise SlackUnreachable
        self.shown[user] = view
        self.loop.trace(f"published {user}")
        if self.faults.happens("slack answer lost", 0.3):
            raise SlackUnreachable


def about_requests(view: Mapping[str, Any]) -> list[Any]:
    """Return the blocks that come before the limits in a Home tab. The limits keep changing."""
    return list(_until_limits(view))


def _until_limits(view: Mapping[str, Any]) -> Iterator[Any]:
    for block in view["blocks"]:
        if block["type"] == "header" and block["text"]["text"] == LIMITS:
            return
        yield block
