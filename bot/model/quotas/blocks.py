"""Blocks by the service: which pause each code asks for, and whose call ends it.

Code 44 is the minute's limit, 45 the day's, 1070 too many calls at once (the specification, area B,
"Errors"). How long a block lasts is documented nowhere, so a pause doubles with each try that
fails. While a block stands nobody calls; when its pause ends the bot itself makes one call to see.
Times are seconds since the epoch by the database's clock.
"""

from dataclasses import replace
from enum import IntEnum

from bot.dataclass import dataclass
from bot.model.quotas.plans import CallClass


class BlockCode(IntEnum):
    """The code of a 429."""

    MINUTE = 44
    DAY = 45
    CONCURRENT = 1070

    @classmethod
    def known(cls, code: int | None) -> "BlockCode":
        """The code to act on: one that is not documented, or missing, is acted on as 44."""
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


def pause_seconds(code: BlockCode, failed_tries: int) -> float:
    """How long nobody calls, after so many tries at the end of a pause have failed."""
    pause = _PAUSES[code]
    # However many tries a row has: who edits it makes nobody compute for hours.
    return min(pause.longest_seconds, pause.first_seconds * 2.0 ** min(failed_tries, 16))


@dataclass(frozen=True, slots=True)
class Block:
    """One code's block, since its first 429 and until the next try."""

    code: BlockCode
    since: float
    until: float
    failed_tries: int = 0

    @property
    def pause_seconds(self) -> float:
        """The pause that now applies."""
        return pause_seconds(self.code, self.failed_tries)


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks of an organization. While `probing_until` is ahead, the one call is under way."""

    blocks: tuple[Block, ...] = ()
    probing_until: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.blocks)

    @property
    def longest(self) -> Block | None:
        """The block that ends last: the organization is blocked as long as it."""
        return max(self.blocks, key=lambda block: block.until, default=None)

    def of(self, code: BlockCode) -> Block | None:
        """The block of one code."""
        return next((block for block in self.blocks if block.code is code), None)

    def in_the_way_of(self, call_class: CallClass, now: float) -> Block | None:
        """The block that forbids a call, if any: only one probe, after the pause, is let through.

        People's calls stay refused until that probe has passed, so that it is exactly one call.
        """
        block = self.longest
        if block is None:
            return None
        may_probe = call_class is CallClass.PROBE and now >= max(block.until, self.probing_until)
        return None if may_probe else block

    def refused(self, code: BlockCode, now: float, *, probe: bool) -> "Blocks":
        """After one more 429.

        A failed probe lengthens the pause. A call that was already sent when the block began
        does not; neither shortens one that is known.
        """
        known = self.of(code)
        if known is None:
            block = Block(code, since=now, until=now + pause_seconds(code, 0))
        else:
            tries = known.failed_tries + 1 if probe else known.failed_tries
            until = max(known.until, now + pause_seconds(code, tries))
            block = replace(known, until=until, failed_tries=tries)
        return Blocks((*self._others(code), block), 0.0 if probe else self.probing_until)

    def probing(self, until: float) -> "Blocks":
        """While the one call is under way, at the longest until its hold is over."""
        return replace(self, probing_until=until)

    def unclear(self, now: float) -> "Blocks":
        """After a probe that neither passed nor was refused: as after one that was refused.

        Otherwise a service that is down for a day would cost a day's calls.
        """
        longest = self.longest
        return Blocks() if longest is None else self.refused(longest.code, now, probe=True)

    def postpone(self, until: float) -> "Blocks":
        """Where the one call has to wait until then for a reason of the bot's own."""
        longest = self.longest
        if longest is None:
            return self
        later = replace(longest, until=max(longest.until, until))
        return Blocks((*self._others(longest.code), later), self.probing_until)

    def bring_forward(self, now: float) -> "Blocks":
        """Where what it was put off for may have changed: it waits for one more pause at most."""
        sooner = (
            replace(block, until=min(block.until, now + block.pause_seconds))
            for block in self.blocks
        )
        return replace(self, blocks=tuple(sooner))

    def _others(self, code: BlockCode) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.code is not code)
