"""A flow's test users: identities, changes to their list, and the effect of a change.

The flow service stores one list per flow, and an update replaces the list. This module turns an
approved change into the next list without losing anybody.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from bot.spelling import exactly, tidy_identity

MAX_IDENTITY_BYTES = 300
"""Specification, area C, rule 2: each identity has at most 300 bytes."""

MAX_REQUEST_CHARS = 6_000
"""The number of characters of escaped identities that one card can show."""

PHONE_CHARS = 20
"""The number of characters that a phone number uses on a card."""

MAX_REASON_CHARS = 500

_SID = re.compile(r"FW[0-9a-fA-F]{32}")
_LINE_CHARS = 8
_READING_CHARS = 45
_ESCAPED_CHARS = {"&": 5, "<": 4, ">": 4}


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow: its SID as spelled by the service, and its alias, if any."""

    sid: str
    alias: str | None = None

    @property
    def key(self) -> str:
        """The SID in capitals, because the case of hexadecimal digits doesn't matter."""
        return self.sid.upper()

    @property
    def name(self) -> str:
        """The alias, or the SID if there is no alias."""
        return self.alias or self.sid


def find_flow(typed: str, aliases: Mapping[str, str]) -> Flow | None:
    """Return the flow with that alias (in any case) or SID, or None."""
    for alias, sid in aliases.items():
        if typed == alias or typed.casefold() in (alias.casefold(), sid.casefold()):
            return Flow(sid, alias)
    return Flow(typed) if is_flow_sid(typed) else None


def is_flow_sid(text: str) -> bool:
    """Return True for a flow's SID: `FW` and 32 hexadecimal digits."""
    return _SID.fullmatch(text) is not None


def identity_problem(identity: str) -> str | None:
    """Return a sentence that explains why the service can't accept this identity, or None."""
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
    """Return True if an identity from the service's list can be sent back unchanged."""
    try:
        return bool(identity.encode())
    except UnicodeEncodeError:
        return False


def identities_problem(identities: Sequence[str]) -> str | None:
    """Return a sentence that explains why one request can't contain these identities, or None."""
    if not identities:
        return "Who? Add at least one phone number or chat ID."
    for identity in identities:
        if problem := identity_problem(identity):
            return problem
    for identity, times in Counter(identities).items():
        if times > 1:
            return f"“{identity[:80]}” is listed twice."
    if sum(map(_escaped_size, identities)) > MAX_REQUEST_CHARS:
        return (
            f"That's too many people for one request ({len(identities):,}). Please split them up:"
            f" about {MAX_REQUEST_CHARS // PHONE_CHARS} phone numbers fit in one."
        )
    return None


def _escaped_size(identity: str) -> int:
    """Return an identity's size on a card, including the punctuation of a list."""
    shown = exactly(identity)
    # The readable form of other alphabets is shown too.
    reading = 0 if identity.isascii() else len(identity[:_READING_CHARS])
    return _LINE_CHARS + reading + sum(_ESCAPED_CHARS.get(character, 1) for character in shown)


def mask(identity: str) -> str:
    """Mask an identity for viewers: show its last four characters, or none if it is that short."""
    visible = identity[-4:] if len(identity) > 4 else ""  # noqa: PLR2004 - contract section 4
    return f"…{visible}"


def mask_in(words: str, identities: Iterable[str]) -> str:
    """Return the text with these identities masked wherever they appear as separate words."""
    longest_first = sorted(filter(None, identities), key=len, reverse=True)
    for identity in longest_first:
        alone = rf"(?<!\w){re.escape(identity)}(?!\w)"
        words = re.sub(alone, lambda match: mask(match.group()), words, flags=re.IGNORECASE)
    return words


@dataclass(frozen=True, slots=True)
class Change:
    """The people to add and to remove. Nobody is in both groups."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse contradictory changes."""
        if not set(self.additions).isdisjoint(self.removals):
            raise ValueError("somebody is both added and removed")

    @property
    def is_empty(self) -> bool:
        """True if the change affects nobody."""
        return not (self.additions or self.removals)

    @property
    def identities(self) -> tuple[str, ...]:
        """All people in the change."""
        return self.additions + self.removals

    def then(self, later: "Change") -> "Change":
        """Return the net effect of this change and a later one."""
        back = {*self.additions} & {*later.removals} | {*self.removals} & {*later.additions}
        kept, new = self.without(back), later.without(back)
        return Change(
            tuple(dict.fromkeys(kept.additions + new.additions)),
            tuple(dict.fromkeys(kept.removals + new.removals)),
        )

    def without(self, identities: Collection[str]) -> "Change":
        """Return the change without these people."""
        return Change(
            tuple(identity for identity in self.additions if identity not in identities),
            tuple(identity for identity in self.removals if identity not in identities),
        )

    def spelled(self, spellings: Mapping[str, str]) -> "Change":
        """Return the change with people respelled, if they have another spelling."""
        return Change(
            tuple(spellings.get(identity, identity) for identity in self.additions),
            tuple(spellings.get(identity, identity) for identity in self.removals),
        )


NO_CHANGE = Change()


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change on a given list.

    `change` is the part still to do; `dropped` is the part that is already true. Additions of
    people who are already listed stay in the change if they replace the end of a grant
    (`end_changes`). The list may spell people differently than the request: `respelled` are the
    people that the request means, `kept` are other people.
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
    """Return the part of a requested change that is not true yet.

    `grant_ends` has the end of every grant that has one; `timed` are the additions requested with
    an end. Adding somebody again extends or shortens a grant, or makes it permanent.
    """
    present = [identity for identity in wanted.additions if identity in listed]
    end_changes = tuple(
        identity for identity in present if identity in timed or identity in grant_ends
    )
    already_there = tuple(identity for identity in present if identity not in end_changes)
    already_gone = tuple(identity for identity in wanted.removals if identity not in listed)
    dropped = Change(already_there, already_gone)
    return Effect(wanted.without(dropped.identities), dropped, end_changes)


def apply_change(listed: Sequence[str], change: Change) -> tuple[str, ...]:
    """Return the list after a change: existing people keep their order, additions go to the end."""
    removed = set(change.removals)
    kept = [identity for identity in listed if identity not in removed]
    known = set(kept)
    return (
        *kept,
        *(identity for identity in dict.fromkeys(change.additions) if identity not in known),
    )


def apply_changes(listed: Sequence[str], changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the list after several changes, in this order."""
    result = tuple(listed)
    for change in changes:
        result = apply_change(result, change)
    return result


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the difference between two states of a list."""
    was, now = set(before), set(after)
    return Change(
        tuple(identity for identity in dict.fromkeys(after) if identity not in was),
        tuple(identity for identity in dict.fromkeys(before) if identity not in now),
    )


def outside_edits(seen: Sequence[str], own: Iterable[Change], found: Sequence[str]) -> Change:
    """Return the external changes since the list was seen, without the bot's own changes."""
    return difference(apply_changes(seen, own), found)


def same_people(sent: Sequence[str], answered: Sequence[str]) -> bool:
    """Return True if the response has the people who were sent, in any order."""
    return sorted(sent) == sorted(answered)


class Spellings:
    """Finds the spellings on a list of the identities that people type.

    Typed identities are cleaned up, but lists are not: `+15550100` may be on the list with
    invisible characters from a phone.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = dict.fromkeys(listed)
        self._untidy: dict[str, list[str]] = {}
        self._alike: dict[str, list[str]] = {}
        for identity in self._listed:
            tidy = tidy_identity(identity)
            if tidy != identity:
                self._untidy.setdefault(tidy, []).append(identity)
            self._alike.setdefault(_plain(identity), []).append(identity)

    def meant(self, identities: Iterable[str]) -> tuple[str, ...]:
        """Return every spelling of these identities that is on the list.

        All spellings matter because a removed person must not stay on the list under a spelling
        that looks the same. Identities that aren't listed are returned unchanged.
        """
        return tuple(dict.fromkeys(chain.from_iterable(map(self._of, identities))))

    def _of(self, identity: str) -> list[str]:
        if identity in self._listed:
            return [identity]
        if identity in self._untidy:
            return self._untidy[identity]
        # The service may store this spelling, if only one differs in case or Unicode form.
        alike = self._alike.get(_plain(identity), [])
        return alike if len(alike) == 1 else [identity]

    def others(self, identities: Iterable[str]) -> tuple[str, ...]:
        """Return the listed identities that look like these but are spelled differently."""
        return tuple(chain.from_iterable(self._untidy.get(identity, []) for identity in identities))


def stored_spellings(missing: Collection[str], new: Collection[str]) -> Mapping[str, str]:
    """Return the spellings that the service stores, by the identities that were sent.

    The spellings differ in case or Unicode form, and exactly one new identity on the list matches
    each identity that was sent.
    """
    found = {
        identity: [other for other in new if _plain(other) == _plain(identity)]
        for identity in missing
    }
    taken = [others[0] for others in found.values() if len(others) == 1]
    return {
        identity: others[0]
        for identity, others in found.items()
        if len(others) == 1 and taken.count(others[0]) == 1
    }


def _plain(identity: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", identity).casefold())
