"""Identities of test users: which ones the service accepts, and which spellings are one person."""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from bot.spelling import exactly, tidy_identity, with_hyphens

MAX_IDENTITY_BYTES = 300
"""The maximum length of an identity that the flow service accepts, in UTF-8 bytes."""

MAX_REQUEST_CHARS = 6_000
"""The maximum total length of the identities on a card, in characters after escaping."""

PHONE_CHARS = 20
"""The number of characters that a phone number takes up on a card."""


_LINE_CHARS = 8


_READING_CHARS = 45


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
