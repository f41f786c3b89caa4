"""Blocks by the service: the pause for each code, the call that ends it, and their incidents.

Code 44 is the minute's limit, 45 the day's, 1070 too many calls at once (the specification, area B,
"Errors"). The length of a block is not documented, so the pause doubles with each failed attempt.
During a block nobody calls; at the end of its pause, the bot makes a single call to test it.
Times are seconds since the epoch by the database's clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.plans import CallClass


class BlockCode(IntEnum):
    """The documented codes of a 429."""

    MINUTE = 44
    DAY = 45
    CONCURRENT = 1070

    @classmethod
    def known(cls, code: int | None) -> "BlockCode":
        """Return the code to act on; an undocumented or missing code counts as 44."""
        return cls(code) if code in {known.value for known in cls} else cls.MINUTE


@dataclass(frozen=True, slots=True)
class _Pause:
    first_seconds: float
    longest_seconds: float


_PAUSES = {
    BlockCode.MINUTE: _Pause(60.0, 15 * 60.0),
    BlockCode.DAY: _Pause(15 * 60.0, 3600.0),
    BlockCode.CONCURRENT: _Pause(2.0, 60.0),
}


# Longest accepted pause, even if the service asks for more.
LONGEST_TOLD_SECONDS = 3600.0


def pause_seconds(code: BlockCode, failed_tries: int) -> float:
    """Return the seconds to pause after this many failed attempts."""
    pause = _PAUSES[code]
    # Bounded, so that an edited row can't cause hours of computation.
    return min(pause.longest_seconds, pause.first_seconds * 2.0 ** min(failed_tries, 16))


@dataclass(frozen=True, slots=True)
class Block:
    """A block by one code, from its first 429 to the next attempt."""

    code: BlockCode
    since: float
    until: float
    failed_tries: int = 0


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks of an organization. A probe is running while `probing_until` is in the future."""

    blocks: tuple[Block, ...] = ()
    probing_until: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.blocks)

    @property
    def longest(self) -> Block | None:
        """Return the block that ends last, and so decides for the organization."""
        return max(self.blocks, key=lambda block: block.until, default=None)

    def of(self, code: BlockCode) -> Block | None:
        """Return the block of a code."""
        return next((block for block in self.blocks if block.code is code), None)

    def in_the_way_of(self, call_class: CallClass, now: float) -> Block | None:
        """Return the block that forbids a call, if any; after the pause, only one probe passes.

        People's calls stay refused until the probe has passed, so that exactly one call is made.
        """
        block = self.longest
        if block is None:
            return None
        may_probe = call_class is CallClass.PROBE and now >= max(block.until, self.probing_until)
        return None if may_probe else block

    def refused(
        self, code: BlockCode, now: float, *, probe: bool, told_seconds: float = 0.0
    ) -> "Blocks":
        """Return the blocks after one more 429.

        A failed probe lengthens the pause. A call that was already sent when the block began
        does not; neither shortens a known pause. A longer pause that the service asks for
        (`Retry-After`) is kept, up to an hour.
        """
        known = self.of(code) or Block(code, since=now, until=now)
        tries = known.failed_tries + 1 if probe and self.of(code) else known.failed_tries
        pause = max(pause_seconds(code, tries), min(told_seconds, LONGEST_TOLD_SECONDS))
        block = replace(known, until=max(known.until, now + pause), failed_tries=tries)
        return Blocks((*self._others(code), block), 0.0 if probe else self.probing_until)

    def probing(self, until: float) -> "Blocks":
        """Return the blocks with a probe running, at most until its hold ends."""
        return replace(self, probing_until=until)

    def unclear(self, now: float) -> "Blocks":
        """Return the blocks after an inconclusive probe, which counts as refused.

        Otherwise a service that is down for a day would use up a day's calls.
        """
        longest = self.longest
        return Blocks() if longest is None else self.refused(longest.code, now, probe=True)

    def postpone(self, until: float) -> "Blocks":
        """Return the blocks with the probe postponed by the bot until the given time."""
        longest = self.longest
        if longest is None:
            return self
        later = replace(longest, until=max(longest.until, until))
        return Blocks((*self._others(longest.code), later), self.probing_until)

    def _others(self, code: BlockCode) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.code is not code)


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """The facts when an incident opened, and facts learned since.

    Attributes:
        own: The bot's own use, including gateway clients, and the limit, by the kind of limit.
        words: The service's message.
        sent_code: The code as the service sent it.
        is_foreign: True if the bot's own use was below the limit.
        may_be_plan: True if it was above the limit of a smaller plan.
        is_lowered: True if the bot has since lowered the number of concurrent calls.
        clients: Each gateway client's use of the minute and of the day.
        ended_because: Why the organization can no longer be called, otherwise "".
    """

    own: Mapping[str, Sequence[int]] = field(default_factory=dict)
    words: str = ""
    sent_code: int | None = None
    is_foreign: bool = False
    may_be_plan: bool = False
    is_lowered: bool = False
    clients: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ended_because: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """A series of 429s with one code, until a call passes.

    `organization` is the organization's ID in other tables.
    `blocks` are the organization's current blocks. `muted_until` is None unless it is in the
    future; `muted_by` is a name.
    """

    id: int
    organization: int
    key: OrganizationKey
    code: int
    opened_at: datetime
    closed_at: datetime | None
    refusals: int
    detail: IncidentDetail
    blocks: Blocks
    muted_until: datetime | None = None
    muted_by: str = ""
