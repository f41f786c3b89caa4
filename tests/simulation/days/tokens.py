"""Simulates a provider of access tokens."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bot.services.credentials import (
    ASSUMED_LIFE_SECONDS,
    PAUSE_SECONDS,
    RENEWALS_AFTER_401,
    RENEWALS_WINDOW_SECONDS,
    SHORT_PAUSE_SECONDS,
)
from tests.simulation.days.loop import MOST_DRIFT, PROCESS, SimulationLoop
from tests.simulation.days.outside import TIMEOUT_SECONDS, Faults, at_their_place

# Such a refusal lasts.
REFUSALS = (
    (400, {"error": "invalid_grant"}),
    (400, {"error": "access_denied"}),
    (200, {"error": "invalid_code"}),
    (429, {}),
)


@dataclass
class Tokens:
    """Issues access tokens that expire after a while.

    When too many tokens exist, the oldest token is revoked.
    """

    loop: SimulationLoop
    faults: Faults
    issued: dict[str, float] = field(default_factory=dict)
    # The last token that arrived at each process.
    given: dict[str, str] = field(default_factory=dict)
    given_at: dict[str, list[float]] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    not_before: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A lifetime that is not stated is at least as long as the bot assumes.
        self.life = self.loop.random.choice((60.0, 90.0, 240.0, 1.2 * ASSUMED_LIFE_SECONDS))
        self.is_life_told = self.life < ASSUMED_LIFE_SECONDS
        # At least as many as processes, each of which has its own token.
        self.most = self.loop.random.choice((3, 10))

    def is_good(self, token: str) -> bool:
        """Return True if the token is valid. Some tokens are revoked before they expire."""
        is_kept = token in list(self.issued)[-self.most :]
        if self.faults.happens("token ended", 0.1):
            self.issued[token] = -math.inf
        return is_kept and self.loop.time() < self.issued[token] + self.life

    def has_many(self, process: str) -> bool:
        """Return True if the process has renewed its token often in the last ten minutes.

        Such a process may ignore a 401 response. Its first token was no renewal, and its clock may
        be slow.
        """
        since = self.loop.time() - RENEWALS_WINDOW_SECONDS * (1 + MOST_DRIFT)
        renewed_at = self.given_at.get(process, [])[1:]
        return sum(at > since for at in renewed_at) >= RENEWALS_AFTER_401

    async def renew(self, _: str) -> tuple[int, Mapping[str, Any]]:
        """Issue a new token, unless a fault occurs.

        A problem is recorded if a process sends two requests at the same time, or tries again too
        soon after a failure. The pause after a failure may be slightly too short, because the
        process's clock may run fast.
        """
        process, pause = PROCESS.get(), SHORT_PAUSE_SECONDS
        if process in self.asking:
            self.problems.append(f"{process} renews its token twice at once")
        if self.loop.time() < self.not_before.get(process, 0.0):
            self.problems.append(f"{process} renews its token again without a pause")
        self.asking.add(process)
        try:
            status, body = await at_their_place(self.loop, self._renew())
            if token := body.get("access_token"):
                self.given[process], pause = token, 0.0
                self.given_at.setdefault(process, []).append(self.loop.time())
            elif status < 500:
                pause = PAUSE_SECONDS
            return status, body
        finally:
            self.asking.discard(process)
            self.not_before[process] = self.loop.time() + pause * (1 - MOST_DRIFT)

    async def _renew(self) -> tuple[int, Mapping[str, Any]]:
        await asyncio.sleep(self.loop.random.uniform(0, 0.5))
        if self.faults.happens("token 500", 0.3):
            return 503, {}
        if self.faults.happens("token refused", 0.1):
            return self.loop.random.choice(REFUSALS)
        token = f"token-{len(self.issued)}"
        self.issued[token] = self.loop.time()
        self.loop.trace(f"issued {token}")
        if self.faults.happens("token late", 0.3):
            await asyncio.sleep(self.loop.random.uniform(1.0, 1.5 * TIMEOUT_SECONDS))
        if self.faults.happens("token answer lost", 0.3):
            raise aiohttp.ServerDisconnectedError
        told = {"expires_in": self.life} if self.is_life_told else {}
        return 200, {"access_token": token, **told}
