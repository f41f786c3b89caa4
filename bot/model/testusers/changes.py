"""The test users of a flow: identities, changes to their list, and what a change really does.

The flow service stores one list per flow and an update replaces it, so everything here is about
turning an approved change into the next list without losing anybody.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from bot.dataclass import dataclass
from bot.model.spelling import exactly

MAX_IDENTITY_BYTES = 300
"""Specification, area C, rule 2: each identity is at most 300 bytes."""

MAX_REQUEST_CHARS = 6_000
"""What a card can show of identities, escaped, within Slack's limit for one message."""

PHONE_CHARS = 20
"""What a phone number takes of that."""

MAX_REASON_CHARS = 500

_SID = re.compile(r"FW[0-9a-fA-F]{32}")
_LINE_CHARS = 8
_READING_CHARS = 45
_ESCAPED_CHARS = {"&": 5, "<": 4, ">": 4}


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow: its SID as the service knows it, and the short name that people use, if any."""

    sid: str
    alias: str | None = None

    @property
    def key(self) -> str:
        """What two spellings of one SID share: hexadecimal digits mean the same in any case."""
        return self.sid.upper()

    @property
    def name(self) -> str:
        """What people call it: the alias, or else the SID."""
        return self.alias or self.sid


def find_flow(typed: str, aliases: Mapping[str, str]) -> Flow | None:
    """The flow with that alias (in any case) or SID, or None."""
    for alias, sid in aliases.items():
        if typed == alias or typed.casefold() in (alias.casefold(), sid.casefold()):
            return Flow(sid, alias)
    return Flow(typed) if is_flow_sid(typed) else None


def is_flow_sid(text: str) -> bool:
    """Whether it has the form of a flow's SID: `FW` and 32 hexadecimal digits."""
    return _SID.fullmatch(text) is not None


def identity_problem(identity: str) -> str | None:
    """Why the service could not take this identity, as a sentence; None when it can."""
    if not identity.strip():
        return "An identity is empty."
    try:
        size = len(identity.encode())
    except UnicodeEncodeError:
        return "An identity contains a character I can't send. Please retype it."
    if size > MAX_IDENTITY_BYTES:
        return f"“{identity[:20]}…” is too long ({size} bytes, limit {MAX_IDENTITY_BYTES})."
    return None


def is_sendable(identity: str) -> bool:
    """Whether an identity that the service lists can be sent back to it as it is."""
    try:
        return bool(identity.encode())
    except UnicodeEncodeError:
        return False


def identities_problem(identities: Sequence[str]) -> str | None:
    """Why these identities cannot be one request, as a sentence; None when they can."""
    if not identities:
        return "Who? Add at least one phone number or chat ID."
    for identity in identities:
        if problem := identity_problem(identity):
            return problem
    if twice := _first_repeated(identities):
        return f"“{twice[:80]}” is listed twice."
    if sum(map(_escaped_size, identities)) > MAX_REQUEST_CHARS:
        return (
            f"That's too many people for one request ({len(identities):,}). Please split them up:"
            f" about {MAX_REQUEST_CHARS // PHONE_CHARS} phone numbers fit in one."
        )
    return None


def _first_repeated(identities: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for identity in identities:
        if identity in seen:
            return identity
        seen.add(identity)
    return None


def _escaped_size(identity: str) -> int:
    """What an identity takes in a card, with the marks of a list around it."""
    shown = exactly(identity)
    # How other alphabets read is shown too.
    reading = 0 if identity.isascii() else len(identity[:_READING_CHARS])
    return _LINE_CHARS + reading + sum(_ESCAPED_CHARS.get(character, 1) for character in shown)


def mask(identity: str) -> str:
    """What somebody who may not see identities sees: the last four characters, of longer ones."""
    visible = identity[-4:] if len(identity) > 4 else ""  # noqa: PLR2004 - contract section 4
    return f"…{visible}"


def mask_in(words: str, identities: Iterable[str]) -> str:
    """The words with these identities masked wherever they stand on their own."""
    longest_first = sorted(filter(None, identities), key=len, reverse=True)
    for one in longest_first:
        alone = rf"(?<!\w){re.escape(one)}(?!\w)"
        words = re.sub(alone, lambda match: mask(match.group()), words, flags=re.IGNORECASE)
    return words


@dataclass(frozen=True, slots=True)
class Change:
    """Who is added and who is removed. Nobody is in both."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what nobody can mean.

        Raises:
            ValueError: Somebody is both added and removed.
        """
        if not set(self.additions).isdisjoint(self.removals):
            raise ValueError("somebody is both added and removed")

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.additions or self.removals)

    @property
    def identities(self) -> tuple[str, ...]:
        """Everybody it names."""
        return self.additions + self.removals

    def then(self, later: "Change") -> "Change":
        """What is left of this change after a later one: who came and went is in neither."""
        back = {*self.additions} & {*later.removals} | {*self.removals} & {*later.additions}
        kept, new = self.without(back), later.without(back)
        return Change(
            tuple(dict.fromkeys(kept.additions + new.additions)),
            tuple(dict.fromkeys(kept.removals + new.removals)),
        )

    def without(self, identities: Collection[str]) -> "Change":
        """The same change, these left out."""
        return Change(
            tuple(one for one in self.additions if one not in identities),
            tuple(one for one in self.removals if one not in identities),
        )


NO_CHANGE = Change()


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change would do to a list that stands.

    `change` is what is still to do; `dropped` is what is true already. Additions of people who are
    there already stay in the change when they replace the end of a grant (`end_changes`). Of those
    whom the list spells otherwise than they were typed, `respelled` are meant, `kept` are not.
    """

    change: Change
    dropped: Change = Change()
    end_changes: tuple[str, ...] = ()
    respelled: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def effect_of(
    wanted: Change,
    listed: Collection[str],
    grant_ends: Mapping[str, datetime],
    *,
    timed: Collection[str],
) -> Effect:
    """What of a requested change is not true yet.

    `grant_ends` has the end of every grant for a time; `timed` are the additions that are requested
    for a time. Adding somebody again is how a grant is extended, shortened or made permanent.
    """
    present = [one for one in wanted.additions if one in listed]
    end_changes = tuple(one for one in present if one in timed or one in grant_ends)
    already_there = tuple(one for one in present if one not in end_changes)
    already_gone = tuple(one for one in wanted.removals if one not in listed)
    dropped = Change(already_there, already_gone)
    return Effect(wanted.without(dropped.identities), dropped, end_changes)


def apply_change(listed: Sequence[str], change: Change) -> tuple[str, ...]:
    """The list after a change: the order of all others kept, additions at the end."""
    removed = set(change.removals)
    kept = [one for one in listed if one not in removed]
    known = set(kept)
    return (*kept, *(one for one in dict.fromkeys(change.additions) if one not in known))


def apply_changes(listed: Sequence[str], changes: Iterable[Change]) -> tuple[str, ...]:
    """The list after several changes, the first first."""
    result = tuple(listed)
    for change in changes:
        result = apply_change(result, change)
    return result


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Who came and who went between two states of a list."""
    was, now = set(before), set(after)
    return Change(
        tuple(one for one in dict.fromkeys(after) if one not in was),
        tuple(one for one in dict.fromkeys(before) if one not in now),
    )


def outside_edits(seen: Sequence[str], own: Iterable[Change], found: Sequence[str]) -> Change:
    """What others did to the list since it was seen, the bot's own changes since then aside."""
    return difference(apply_changes(seen, own), found)


def same_people(sent: Sequence[str], answered: Sequence[str]) -> bool:
    """Whether the service answered with what was sent, in whatever order."""
    return sorted(sent) == sorted(answered)
