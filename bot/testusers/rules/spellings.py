"""Identities on a list that differ from typed identities only in invisible characters or case."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from bot.spelling import tidy_identity


class Spellings:
    """Finds the spellings on a list of the identities that people type.

    Typed identities are cleaned up, but lists are not: `+15550100` may be on the list with
        invisible characters from a phone.

    Args:
        listed: The list.
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
        """Return these identities as the list spells them, in all spellings that it has.

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

    def respelled(self, identity: str) -> str:
        """Return the current spelling of an identity, if exactly one matches."""
        if identity in self._listed:
            return identity
        tidy = tidy_identity(identity)
        now = [tidy] if tidy in self._listed else self._untidy.get(tidy, [])
        return now[0] if len(now) == 1 else identity


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
