"""A list as people read it: an identity may stand there with marks that nobody sees or types."""

from collections.abc import Iterable
from itertools import chain

from bot.model.spelling import tidy_identity


class Spellings:
    """Who on a list is meant by an identity that is spelled otherwise there.

    What is typed is tidied, a list is not: `+15550100` may stand on it with the marks of a phone.

    Args:
        listed: The list.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = dict.fromkeys(listed)
        self._untidy: dict[str, list[str]] = {}
        for identity in self._listed:
            tidy = tidy_identity(identity)
            if tidy != identity:
                self._untidy.setdefault(tidy, []).append(identity)

    def meant(self, identities: Iterable[str]) -> tuple[str, ...]:
        """The very identities that are listed, all spellings of the others that are, and the rest.

        All, because whoever is to go must not stay on the list in a spelling that looks the same.
        """
        return tuple(dict.fromkeys(chain.from_iterable(map(self._of, identities))))

    def _of(self, identity: str) -> list[str]:
        if identity in self._listed:
            return [identity]
        return self._untidy.get(identity, [identity])

    def others(self, identities: Iterable[str]) -> tuple[str, ...]:
        """Who on the list reads as one of these and is spelled otherwise."""
        return tuple(chain.from_iterable(self._untidy.get(one, []) for one in identities))

    def respelled(self, identity: str) -> str:
        """How an identity that was listed is spelled by now, where that can be only one."""
        if identity in self._listed:
            return identity
        tidy = tidy_identity(identity)
        now = [tidy] if tidy in self._listed else self._untidy.get(tidy, [])
        return now[0] if len(now) == 1 else identity
