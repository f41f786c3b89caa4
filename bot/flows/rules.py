"""Flows, identities of test users, and lists of them, with changes to the lists.

The flow service stores one list per flow, and an update replaces the whole list. A change is
therefore applied to the current list, without losing anyone else.
"""

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from bot.ids import FLOW_SID
from bot.spelling import exactly, tidy_identity, visible

MAX_IDENTITY_BYTES = 300
"""The maximum length of an identity that the flow service accepts, in UTF-8 bytes."""

MAX_REQUEST_CHARS = 6_000
"""The maximum total length of the identities on a card, in characters after escaping."""

PHONE_CHARS = 20
"""The number of characters that a phone number takes up on a card."""

NUMBER_DASH = re.compile("(?<=[0-9)])[\u2010\u2011\u2012\u2013\u2212](?=[0-9(])")
"""A dash between the digits of a phone number that phones may type instead of a hyphen."""

# What an identity takes up on a card besides itself: punctuation, and this much of a readable form.
_LINE_CHARS = 8
_READING_CHARS = 45


def identity_problem(identity: str) -> str | None:
    """Return a sentence that says why the service can't accept this identity, or None if it can."""
    if not identity.strip():
        return "An identity is empty."
    if (size := len(identity.encode())) > MAX_IDENTITY_BYTES:
        return (
            f"“{identity[:20]}…” is too long: it has {size:,} bytes, but the limit is"
            f" {MAX_IDENTITY_BYTES}."
        )
    return None


def identities_problem(identities: Sequence[str]) -> str | None:
    """Return a sentence that says why a request can't have these identities, or None if it can."""
    if not identities:
        return "Add at least one phone number or chat ID."
    people = dict[str, str]()
    size = 0
    for identity in identities:
        if problem := identity_problem(identity):
            return problem
        earlier = people.setdefault(plain(identity), identity)
        if earlier != identity:
            return (
                f"“{exactly(earlier)[:80]}” and “{exactly(identity)[:80]}” are two spellings of one"
                " person. Please use only one."
            )
        size += _LINE_CHARS + len(html.escape(exactly(identity), quote=False))
        # Non-ASCII identities are also shown in a readable form.
        size += 0 if identity.isascii() else len(identity[:_READING_CHARS])
    if len(people) < len(identities):
        twice = next(identity for identity in identities if identities.count(identity) > 1)
        return f"“{twice[:80]}” is listed twice."
    if size > MAX_REQUEST_CHARS:
        return (
            f"{len(identities):,} people are too many for one request. Please split them up."
            f" Each request has room for about {MAX_REQUEST_CHARS // PHONE_CHARS} phone numbers."
        )
    return None


def mask(identity: str) -> str:
    """Hide most of an identity.

    Of an e-mail address, the first character and the domain are left. Of anything else, the last
    four characters are left, or nothing if it's no longer than that.
    """
    name, at, domain = identity.rpartition("@")
    if at and name and domain and ":" not in name:
        return f"{name[0]}…@{domain}"
    visible_end = identity[-4:] if len(identity) > 4 else ""  # noqa: PLR2004 - the four shown
    return f"…{visible_end}"


# Each card looks for its people among everybody on the list.
@lru_cache(maxsize=10_000)
def plain(identity: str) -> str:
    """Return a form that is the same for all spellings of one person, for comparing only.

    Spellings can differ in case, in Unicode form, in dashes between digits, and in characters that
    can't be seen.
    """
    # Characters that can't be seen would keep others from being composed.
    hyphenated = NUMBER_DASH.sub("-", visible(tidy_identity(identity)))
    composed = unicodedata.normalize("NFKC", hyphenated)
    # An identity of which nothing can be seen is like no other.
    return visible(unicodedata.normalize("NFKC", composed.casefold())) or identity


class Spellings:
    """The entries of a list, found by any spelling of the same person."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._alike = defaultdict[str, list[str]](list)
        for entry in dict.fromkeys(listed):
            self._alike[plain(entry)].append(entry)

    def of(self, identity: str) -> Sequence[str]:
        """Return the entries that are this person's, or none if the person isn't on the list."""
        return self._alike.get(plain(identity), ())


def stored_spellings(missing: Collection[str], new: Collection[str]) -> Mapping[str, str]:
    """Map identities that seem to be missing from the service's list to the service's spellings.

    A new identity counts as the spelling of a missing identity if both are the same person and
    neither has another match.
    """
    spellings, people = Spellings(new), Spellings(missing)
    stored = dict[str, str]()
    for identity in missing:
        matches = spellings.of(identity)
        if len(matches) == len(people.of(identity)) == 1:
            stored[identity] = matches[0]
    return stored


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
    """Return the flow with this alias or SID, or None if the text is neither.

    Differences in case, Unicode form and characters that can't be seen are ignored.
    """
    if typed in aliases:
        return Flow(aliases[typed], typed)
    for alias, sid in aliases.items():
        if plain(typed) in (plain(alias), plain(sid)):
            return Flow(sid, alias)
    sid = visible(typed)
    return Flow(sid) if is_flow_sid(sid) else None


def is_flow_sid(text: str) -> bool:
    """Return True if the text is a flow's SID: `FW` followed by 32 hexadecimal digits."""
    return re.fullmatch(FLOW_SID, text) is not None


CONFIRMED = timedelta(seconds=60)
"""For this long after a change is confirmed, a list without the change counts as outdated."""


@dataclass(frozen=True)
class Change:
    """The people to add and the people to remove. Nobody can be in both groups."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

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

    @property
    def of_people(self) -> "Change":
        """The change without people who are only spelled differently after it."""
        respelled = stored_spellings(self.removals, self.additions)
        return self.without([*respelled, *respelled.values()])

    def shown_in(self, listed: Collection[str]) -> "Change":
        """Return the part of the change that a list already shows."""
        there = {*listed}
        return self.without({*self.additions} - there | {*self.removals} & there)

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
    there = set(kept)
    return (*kept, *(identity for identity in change.additions if identity not in there))


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the change that turns one list into another, regardless of the order."""
    was, now = dict.fromkeys(before), dict.fromkeys(after)
    return Change(
        tuple(identity for identity in now if identity not in was),
        tuple(identity for identity in was if identity not in now),
    )


@dataclass(frozen=True)
class FlowList:
    """A flow's list at one time.

    If `is_own` is True, it's the result of the bot's change to the list before it. Otherwise, the
    bot read it, so whatever differs from the list before it is somebody else's change.
    """

    id: int
    at: datetime
    identities: tuple[str, ...]
    is_own: bool


def outside_edits(lists: Sequence[FlowList]) -> Change:
    """Return the net result of other people's changes in consecutive lists, oldest first."""
    edits = NO_CHANGE
    for before, after in pairwise(lists):
        if not after.is_own:
            edits = edits.then(difference(before.identities, after.identities))
    return edits


def own_changes(lists: Sequence[FlowList]) -> Iterator[Change]:
    """Yield the bot's changes in consecutive lists, newest first."""
    for before, after in reversed([*pairwise(lists)]):
        if after.is_own:
            yield difference(before.identities, after.identities)


def is_before(recent: Sequence[FlowList], in_doubt: Collection[str], listed: Sequence[str]) -> bool:
    """Return True if a list may be older than one of the bot's changes in the `recent` lists.

    Such a list shows none of the net effect of that change and all later ones. It may spell added
    people differently. People in a POST in doubt are ignored, because that POST may have reverted
    the changes.
    """
    there, people, doubted, net = {*listed}, Spellings(listed), Spellings(in_doubt), NO_CHANGE
    for change in own_changes(recent):
        net = change.then(net)
        expected = net.without([one for one in net.identities if doubted.of(one)]).of_people
        is_shown = any(map(people.of, expected.additions)) or {*expected.removals} - there
        if not expected.is_empty and not is_shown:
            return True
    return False
