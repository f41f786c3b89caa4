"""The workspace's people, groups and names, cached from Slack."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

import structlog
from cachetools import TTLCache

from bot.errors import SlackError, SlackRefused
from bot.ops.clock import Clock
from bot.single_flight import SingleFlight
from bot.slack.client import SlackClient, SlackUser

V = TypeVar("V")

log = structlog.get_logger(__name__)

# Contract, section 4: group membership is cached for at most five minutes.
CACHE_SECONDS = 240
NAMED_HOLDERS = 8


class Members:
    """Looks up people and groups; concurrent look-ups of the same id share one call.

    Failed look-ups are cached too: asking Slack about unknown people and groups on every click
    would use up the rate limit for everyone else.

    Args:
        slack: The Web API.
        clock: Tells the age of cached entries.
    """

    def __init__(self, slack: SlackClient, clock: Clock) -> None:
        def cache(size: int) -> TTLCache[str, V]:
            return TTLCache(size, CACHE_SECONDS, timer=clock.monotonic)

        self._slack = slack
        self._users: SingleFlight[str, SlackUser | SlackRefused] = SingleFlight(cache(10_000))
        self._groups: SingleFlight[str, frozenset[str] | SlackRefused] = SingleFlight(cache(1_000))
        self._handles: SingleFlight[str, Mapping[str, str]] = SingleFlight(cache(1))

    async def user(self, slack_user_id: str, *, fresh: bool = False) -> SlackUser:
        """Return a person. With `fresh`, the cache is used only if Slack doesn't answer.

        Raises:
            SlackError: Slack doesn't answer or doesn't know the person.
        """
        return await _look_up(self._users, slack_user_id, self._slack.user, fresh=fresh)

    async def groups_of(
        self, slack_user_id: str, named: Collection[str], *, fresh: bool
    ) -> tuple[frozenset[str], bool]:
        """Return the person's groups among `named`, and whether all those groups could be read."""
        found = await asyncio.gather(*(self._members(group, fresh=fresh) for group in named))
        members = dict(zip(named, found, strict=True))
        groups = frozenset(group for group, ids in members.items() if slack_user_id in (ids or ()))
        return groups, None not in found

    async def _members(self, group_id: str, *, fresh: bool) -> frozenset[str] | None:
        """Return the members of a group, empty if it was deleted, None if unknown."""
        try:
            return await _look_up(self._groups, group_id, self._slack.members, fresh=fresh)
        except SlackRefused as error:
            if error.error != "no_such_subteam":
                return None
            log.warning("people.no_such_group", group=group_id)
            return frozenset()
        except SlackError:
            return None

    async def name(self, slack_user_id: str) -> str:
        """Return a person's name in Slack, or the id if the look-up fails."""
        try:
            return (await self.user(slack_user_id)).name
        except SlackError:
            return slack_user_id

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return the Slack name of each person among the actors, by id."""
        people = [actor for actor in actors if actor.startswith(("U", "W"))]
        found = await asyncio.gather(*(self.name(person) for person in people))
        return dict(zip(people, found, strict=True))

    async def named(self, holders: tuple[str, ...]) -> str:
        """Return the names of people and groups; with the ID if two share a name."""
        shown = holders[:NAMED_HOLDERS]
        names = await asyncio.gather(*(self._label(holder) for holder in shown))
        labels = [
            name if names.count(name) == 1 else f"{name} ({holder})"
            for name, holder in zip(names, shown, strict=True)
        ]
        rest = f" and {len(holders) - NAMED_HOLDERS} more" if len(holders) > NAMED_HOLDERS else ""
        return f"{', '.join(labels)}{rest}"

    async def _label(self, holder: str) -> str:
        if not holder.startswith("S"):
            return await self.name(holder)
        try:
            handles = await self._handles.get("", lambda _: self._slack.group_handles())
        except SlackError:
            handles = {}
        return f"@{handles[holder]}" if holder in handles else f"the group {holder}"


async def _look_up(
    cache: SingleFlight[str, V | SlackRefused],
    key: str,
    load: Callable[[str], Awaitable[V]],
    *,
    fresh: bool,
) -> V:
    async def load_or_refuse(key: str) -> V | SlackRefused:
        try:
            return await load(key)
        except SlackRefused as error:
            return error

    known = cache.cached(key)
    try:
        found = await cache.get(
            key, load_or_refuse, fresh=fresh and not isinstance(known, SlackRefused)
        )
    except SlackError:
        if known is None:
            raise
        found = known
    if isinstance(found, SlackRefused):
        raise found.with_traceback(None)
    return found
