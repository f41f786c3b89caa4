"""Identities of test users: which ones the service accepts, and which spellings are one person."""

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from bot.spelling import exactly, tidy_identity, visible

MAX_IDENTITY_BYTES = 300
"""The maximum length of an identity that the flow service accepts, in UTF-8 bytes."""

MAX_REQUEST_CHARS = 6_000
"""The maximum total length of the identities on a card, in characters after escaping."""

PHONE_CHARS = 20
"""The number of characters that a phone number takes up on a card."""

NUMBER_DASH = re.compile("(?<=[0-9)])[\u2010\u2011\u2012\u2013\u2212](?=[0-9(])")
"""A dash between the digits of a phone number that phones may type instead of a hyphen."""

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
    for identity in identities:
        if problem := identity_problem(identity):
            return problem
        earlier = people.setdefault(plain(identity), identity)
        if earlier != identity:
            return (
                f"“{exactly(earlier)[:80]}” and “{exactly(identity)[:80]}” are two spellings of one"
                " person. Please use only one."
            )
    if len(people) < len(identities):
        twice = next(identity for identity in identities if identities.count(identity) > 1)
        return f"“{twice[:80]}” is listed twice."
    if sum(map(_escaped_size, identities)) > MAX_REQUEST_CHARS:
        return (
            f"{len(identities):,} people are too many for one request. Please split them up."
            f" Each request has room for about {MAX_REQUEST_CHARS // PHONE_CHARS} phone numbers."
        )
    return None


def _escaped_size(identity: str) -> int:
    """Return the number of characters, including punctuation, that an identity takes on a card."""
    # Non-ASCII identities are also shown in a readable form.
    reading = 0 if identity.isascii() else len(identity[:_READING_CHARS])
    return _LINE_CHARS + reading + len(html.escape(exactly(identity), quote=False))


def mask(identity: str) -> str:
    """Hide most of an identity.

    Of an e-mail address, the first character and the domain are left. Of anything else, the last
    four characters are left, or nothing if it's no longer than that.
    """
    name, at, domain = identity.rpartition("@")
    if at and name and domain and ":" not in name:
        return f"{name[0]}…@{domain}"
    visible_end = identity[-4:] if len(identity) > 4 else ""  # noqa: PLR2004 - contract section 4
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
