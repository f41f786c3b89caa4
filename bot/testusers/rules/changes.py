"""Flows, identities, and changes to a flow's list of test users.

The flow service stores one list per flow, and an update replaces the whole list. These
functions apply a change to the current list without losing anyone else.
"""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.spelling import exactly, tidy_identity, with_hyphens

MAX_IDENTITY_BYTES = 300
"""The maximum length of an identity that the flow service accepts, in UTF-8 bytes."""

MAX_REQUEST_CHARS = 6_000
"""The maximum total length of the identities on a card, in characters after escaping."""

PHONE_CHARS = 20
"""The number of characters that a phone number takes up on a card."""

MAX_REASON_CHARS = 500

_SID = re.compile(r"FW[0-9a-fA-F]{32}")
_LINE_CHARS = 8
_READING_CHARS = 45


@dataclass(frozen=True)
class Flow:
    """A flow's SID, as typed or configured, and its alias if it has one."""

    sid: str
    alias: str | None = None

    @property
    def key(self) -> str:
        """The SID in uppercase, for comparing flows. SIDs aren't case-sensitive."""
        return self.sid.upper()

    @property
    def name(self) -> str:
        """The alias, or the SID if the flow has no alias."""
        return self.alias or self.sid


def find_flow(typed: str, aliases: Mapping[str, str]) -> Flow | None:
    """Return the flow with this alias or SID, ignoring case, or None if the text is neither."""
    for alias, sid in aliases.items():
        if typed == alias or typed.casefold() in (alias.casefold(), sid.casefold()):
            return Flow(sid, alias)
    return Flow(typed) if is_flow_sid(typed) else None


def is_flow_sid(text: str) -> bool:
    """Return True if the text is a flow's SID: `FW` followed by 32 hexadecimal digits."""
    return _SID.fullmatch(text) is not None


def identity_problem(identity: str) -> str | None:
    """Return a sentence that says why the service can't accept this identity, or None if it can."""
    if not identity.strip():
        return "An identity is empty."
    if not is_sendable(identity):
        return "An identity contains a character I can't send. Please retype it."
    if (size := len(identity.encode())) > MAX_IDENTITY_BYTES:
        return (
            f"“{identity[:20]}…” is too long: it has {size:,} bytes, but the limit is"
            f" {MAX_IDENTITY_BYTES}."
        )
    return None


def is_sendable(identity: str) -> bool:
    """Return True if an identity or reason isn't empty and can be encoded in UTF-8."""
    try:
        return bool(identity.encode())
    except UnicodeEncodeError:
        return False


def identities_problem(identities: Sequence[str]) -> str | None:
    """Return a sentence that says why a request can't have these identities, or None if it can."""
    if not identities:
        return "Add at least one phone number or chat ID."
    for identity in identities:
        if problem := identity_problem(identity):
            return problem
    for identity, times in Counter(identities).items():
        if times > 1:
            return f"“{identity[:80]}” is listed twice."
    if sum(map(_escaped_size, identities)) > MAX_REQUEST_CHARS:
        return (
            f"{len(identities):,} people are too many for one request. Please split them up."
            f" Each request has room for about {MAX_REQUEST_CHARS // PHONE_CHARS} phone numbers."
        )
    return None


def _escaped_size(identity: str) -> int:
    """Return the number of characters, including punctuation, that an identity takes on a card."""
    shown = exactly(identity)
    # Non-ASCII identities are also shown in a readable form.
    reading = 0 if identity.isascii() else len(identity[:_READING_CHARS])
    return _LINE_CHARS + reading + len(html.escape(shown, quote=False))


def mask(identity: str) -> str:
    """Hide all but the last four characters of an identity. Hide a short identity completely."""
    visible = identity[-4:] if len(identity) > 4 else ""  # noqa: PLR2004 - contract section 4
    return f"…{visible}"


def mask_in(words: str, identities: Iterable[str]) -> str:
    """Mask these identities in a text wherever they appear as separate words."""
    longest_first = sorted(filter(None, identities), key=len, reverse=True)
    for identity in longest_first:
        alone = rf"(?<!\w){re.escape(identity)}(?!\w)"
        words = re.sub(alone, lambda match: mask(match.group()), words, flags=re.IGNORECASE)
    return words


@dataclass(frozen=True)
class Change:
    """The people to add and the people to remove. Nobody can be in both groups."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if the change adds and removes the same person."""
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
        """Return the net result of this change followed by a later one."""
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

    def shown_in(self, listed: Collection[str]) -> "Change":
        """Return the part of the change that a list already shows."""
        return Change(
            tuple(identity for identity in self.additions if identity in listed),
            tuple(identity for identity in self.removals if identity not in listed),
        )

    def spelled(self, spellings: Mapping[str, str]) -> "Change":
        """Return the change with identities replaced by their spellings in this mapping."""
        return Change(
            tuple(spellings.get(identity, identity) for identity in self.additions),
            tuple(spellings.get(identity, identity) for identity in self.removals),
        )


NO_CHANGE = Change()


def apply_change(listed: Sequence[str], change: Change) -> tuple[str, ...]:
    """Return the list after a change. Additions go at the end, and the rest keeps its order."""
    removed = set(change.removals)
    kept = [identity for identity in listed if identity not in removed]
    known = set(kept)
    return (
        *kept,
        *(identity for identity in dict.fromkeys(change.additions) if identity not in known),
    )


def apply_changes(listed: Sequence[str], changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the list after these changes, applied in order."""
    result = tuple(listed)
    for change in changes:
        result = apply_change(result, change)
    return result


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the change that turns one list into another, regardless of the order."""
    was, now = set(before), set(after)
    return Change(
        tuple(identity for identity in dict.fromkeys(after) if identity not in was),
        tuple(identity for identity in dict.fromkeys(before) if identity not in now),
    )


def outside_edits(seen: Sequence[str], own: Iterable[Change], found: Sequence[str]) -> Change:
    """Return the changes made since the list was seen, excluding the bot's `own` changes."""
    return difference(apply_changes(seen, own), found)


def meant_on(listed: Iterable[str], identities: Iterable[str]) -> tuple[str, ...]:
    """Return the identities as a list spells them. Identities not on the list stay unchanged.

    Typed identities are tidied, but identities on the list aren't. For example, a list may contain
    `+15550100` with invisible characters that a phone added. All such spellings are returned,
    because a removed person must not stay on the list under a spelling that looks the same. The
    service may also have changed an identity's case or Unicode form.
    """
    known, untidy, alike = dict.fromkeys(listed), defaultdict(list), defaultdict(list)
    for other in known:
        untidy[with_hyphens(tidy_identity(other))].append(other)
        alike[_plain(other)].append(other)
    found = []
    for identity in identities:
        same = untidy.get(identity) or alike[_plain(identity)]
        is_clear = identity in untidy or len(same) == 1
        found += same if is_clear and identity not in known else [identity]
    return tuple(dict.fromkeys(found))


def stored_spellings(missing: Collection[str], new: Collection[str]) -> Mapping[str, str]:
    """Map identities that seem to be missing from the service's list to the service's spellings.

    A new identity counts as the spelling of a missing identity if the two differ only in case or
    Unicode form and neither has another match.
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
