"""Simulates the inventory's three limits.

As in the real service, calls are counted when they arrive, not when they end. Tests compare the
bot's counts with the counts in this module. The limits are taken from the "Limits" section of the
specification. In each data center, all calls that don't name an organization are counted together,
and the free plan's limits apply to them.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

WindowKind = Literal["fixed", "sliding"]
OrganizationAt = tuple[str, str | None]
"""A data center and one of its organizations (None for calls that name no organization)."""

MINUTE_EXCEEDED, DAY_EXCEEDED, TOO_MANY_AT_ONCE = 44, 45, 1070


@dataclass(frozen=True)
class Plan:
    """One plan's limits."""

    per_day: int
    concurrent: int


PLANS = {
    "free": Plan(1000, 5),
    "standard": Plan(2000, 10),
    "professional": Plan(5000, 10),
    "premium": Plan(10_000, 10),
    "enterprise": Plan(10_000, 10),
}


@dataclass(frozen=True)
class Window:
    """A period in which calls are counted.

    `seconds` is the length of the window. A sliding window always ends at the current time. Fixed
    windows follow one another without gaps, and `phase_seconds` shifts their start times.
    """

    kind: WindowKind
    seconds: float
    phase_seconds: float = 0.0

    def forget(self, arrivals: deque[float], now: float) -> None:
        """Remove arrival times that are no longer in the window."""
        if self.kind == "fixed":
            start = self._start(now)
            while arrivals and arrivals[0] < start:
                arrivals.popleft()
        else:
            while arrivals and arrivals[0] <= now - self.seconds:
                arrivals.popleft()

    def resets_in(self, arrivals: deque[float], now: float) -> float:
        """Return the number of seconds until the oldest call leaves the window."""
        if self.kind == "fixed":
            return self._start(now) + self.seconds - now
        return arrivals[0] + self.seconds - now if arrivals else self.seconds

    def _start(self, now: float) -> float:
        passed = math.floor((now - self.phase_seconds) / self.seconds)
        return self.phase_seconds + passed * self.seconds


@dataclass
class LimitRules:
    """The rules for counting calls. A test can change any field while the service is running.

    After a refusal with code 44, the organization stays blocked for `block_seconds`. If
    `tells_day` is True, responses show the daily limit in the headers `X-Rate-Limit-Limit`,
    `X-Rate-Limit-Remaining` and `X-Rate-Limit-Reset` (in seconds).
    """

    minute: Window = field(default_factory=lambda: Window("sliding", 60.0))
    day: Window = field(default_factory=lambda: Window("fixed", 86_400.0))
    per_minute: int = 100
    block_seconds: float = 0.0
    tells_day: bool = False


@dataclass(frozen=True)
class Block:
    """A block on an organization's calls. `code` is the error code in each response.

    If `until` is None, the block lasts until `Limits.lift` is called.
    """

    code: int
    until: float | None


@dataclass(frozen=True)
class Refusal:
    """The code and message of a refusal, as documented in the specification."""

    code: int
    message: str


@dataclass
class Usage:
    """One organization's usage."""

    minute: deque[float] = field(default_factory=deque)
    day: deque[float] = field(default_factory=deque)
    in_flight: int = 0
    peak_in_flight: int = 0
    block: Block | None = None


class Limits:
    """Counts each organization's calls, and refuses calls that exceed a limit."""

    def __init__(self, now: Callable[[], float], rules: LimitRules) -> None:
        self._now = now
        self.rules = rules
        self.usage: dict[OrganizationAt, Usage] = defaultdict(Usage)
        self.plans: dict[OrganizationAt, str] = {}

    def plan(self, at: OrganizationAt) -> Plan:
        """Return an organization's plan, which is the free plan unless a test sets another plan."""
        return PLANS[self.plans.get(at, "free")]

    def enter(self, at: OrganizationAt) -> Refusal | None:
        """Admit and count a new call, or return a refusal if the call is not allowed.

        An admitted call is in flight until `leave` is called.
        """
        usage, now = self.current(at), self._now()
        code = self._refusing_code(at, usage)
        if code is None:
            usage.minute.append(now)
            usage.day.append(now)
            usage.in_flight += 1
            usage.peak_in_flight = max(usage.peak_in_flight, usage.in_flight)
            return None
        if code == MINUTE_EXCEEDED and usage.block is None and self.rules.block_seconds:
            usage.block = Block(code, now + self.rules.block_seconds)
        return Refusal(code, self._sentence(code, at))

    def leave(self, at: OrganizationAt) -> None:
        """Record that an admitted call has ended."""
        self.usage[at].in_flight -= 1

    def block(self, at: OrganizationAt, code: int, seconds: float | None = None) -> None:
        """Block an organization for a number of seconds, or until `lift` is called."""
        until = None if seconds is None else self._now() + seconds
        self.usage[at].block = Block(code, until)

    def lift(self, at: OrganizationAt) -> None:
        """Unblock an organization."""
        self.usage[at].block = None

    def current(self, at: OrganizationAt) -> Usage:
        """Return an organization's current usage."""
        usage, now = self.usage[at], self._now()
        self.rules.minute.forget(usage.minute, now)
        self.rules.day.forget(usage.day, now)
        if usage.block and usage.block.until is not None and usage.block.until <= now:
            usage.block = None
        return usage

    def day_headers(self, at: OrganizationAt) -> dict[str, str]:
        """Return the headers for the daily limit, or no headers if `tells_day` is False."""
        if not self.rules.tells_day:
            return {}
        usage, limit = self.current(at), self.plan(at).per_day
        return {
            "X-Rate-Limit-Limit": str(limit),
            "X-Rate-Limit-Remaining": str(max(0, limit - len(usage.day))),
            "X-Rate-Limit-Reset": str(
                math.ceil(self.rules.day.resets_in(usage.day, self._now())),
            ),
        }

    def _refusing_code(self, at: OrganizationAt, usage: Usage) -> int | None:
        if usage.block:
            return usage.block.code
        if len(usage.day) >= self.plan(at).per_day:
            return DAY_EXCEEDED
        if len(usage.minute) >= self.rules.per_minute:
            return MINUTE_EXCEEDED
        if usage.in_flight >= self.plan(at).concurrent:
            return TOO_MANY_AT_ONCE
        return None

    def _sentence(self, code: int, at: OrganizationAt) -> str:
        plan = self.plan(at)
        return {
            MINUTE_EXCEEDED: "Your organization has been blocked for some time because it sent more"
            f" than {self.rules.per_minute} requests in a minute.",
            DAY_EXCEEDED: "Your organization has exceeded its API call rate limit of"
            f" {plan.per_day:,} requests a day.",
            TOO_MANY_AT_ONCE: f"The maximum of {plan.concurrent} requests in process is reached."
            " Try again in a while.",
        }[code]
