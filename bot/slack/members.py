"""Cached people, groups and names of the workspace, from Slack."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

import structlog
from cachetools import TTLCache

from bot.errors import SlackError, SlackRefused
from bot.ops.clock import Clock
from bot.single_flight import SingleFlight

V = TypeVar("V")

log = structlog.get_logger(__name__)

# Contract, section 4: group membership is cached for at most five minutes.
CACHE_SECONDS = 240
NAMED_HOLDERS = 8
UNKNOWN_SECONDS = 60
NO_SUCH_GROUP = "no_such_subteam"


class SlackUserInfo(Protocol):
    """The fields needed of a Slack user."""

    @property
    def team_id(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def is_guest(self) -> bool: ...  # noqa: D102
    @property
    def is_bot(self) -> bool: ...  # noqa: D102
    @property
    def is_deleted(self) -> bool: ...  # noqa: D102
    @property
    def is_stranger(self) -> bool: ...  # noqa: D102
    @property
    def time_zone(self) -> str: ...  # noqa: D102


class SlackPeople(Protocol):
    """The Slack calls needed here. Every method raises `SlackError`s."""

    async def user(self, slack_user_id: str) -> SlackUserInfo:
        """Return a person."""
        ...

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group."""
        ...

    async def group_handles(self) -> Mapping[str, str]:
        """Return each user group's handle by group id."""
        ...


class Members:
    """Looks up people and groups; concurrent look-ups of the same id share one call.

    Args:
        slack: The Web API.
        clock: For the age of cached entries.
    """

    def __init__(self, slack: SlackPeople, clock: Clock) -> None:
        self._slack = slack
        self._users: SingleFlight[str, SlackUserInfo] = SingleFlight(
            TTLCache(10_000, CACHE_SECONDS, timer=clock.monotonic)
        )
        # Failed look-ups are remembered too: asking Slack about unknown people and groups at every
        # click would use up the rate limit for everyone else.
        self._unknown: TTLCache[str, SlackRefused] = TTLCache(
            10_000, UNKNOWN_SECONDS, timer=clock.monotonic
        )
        self._groups: SingleFlight[str, frozenset[str]] = SingleFlight(
            TTLCache(1_000, CACHE_SECONDS, timer=clock.monotonic)
        )
        self._handles: SingleFlight[str, Mapping[str, str]] = SingleFlight(
            TTLCache(1, CACHE_SECONDS, timer=clock.monotonic)
        )

    async def user(self, slack_user_id: str, *, fresh: bool) -> SlackUserInfo:
        """Return a person. With `fresh`, the cache is used only if Slack doesn't answer.

        Raises:
            SlackError: Slack doesn't answer or doesn't know the person.
        """
        return await _look_up(self._users, slack_user_id, self._asked, fresh=fresh)

    async def groups_of(
        self, slack_user_id: str, named: Collection[str], *, fresh: bool
    ) -> tuple[frozenset[str], bool]:
        """Return the person's groups among `named`, and whether all of them could be read."""
        cached = {group: self._groups.cached(group) for group in named} if not fresh else {}
        wanted = sorted(group for group in named if cached.get(group) is None)
        found = await asyncio.gather(
            *(_look_up(self._groups, group, self._members, fresh=fresh) for group in wanted),
            return_exceptions=True,
        )
        for outcome in found:
            if isinstance(outcome, BaseException) and not isinstance(outcome, SlackError):
                raise outcome
        members = {**cached, **dict(zip(wanted, found, strict=True))}
        groups = frozenset(
            group
            for group, ids in members.items()
            if isinstance(ids, frozenset) and slack_user_id in ids
        )
        return groups, not any(isinstance(outcome, SlackError) for outcome in found)

    async def name(self, slack_user_id: str) -> str:
        """Return a person's name in Slack, or the id if the look-up fails."""
        try:
            return (await self._users.get(slack_user_id, self._slack.user)).name
        except SlackError:
            return slack_user_id

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return the Slack name of each person among the actors, by id."""
        people = [actor for actor in actors if actor.startswith(("U", "W"))]
        found = await asyncio.gather(*(self.name(person) for person in people))
        return dict(zip(people, found, strict=True))

    async def named(self, holders: tuple[str, ...]) -> str:
        """Return people and groups by name; with the ID if two share a name."""
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
            return f"the group {holder}"
        return f"@{handles[holder]}" if holder in handles else f"the group {holder}"

    async def _asked(self, slack_user_id: str) -> SlackUserInfo:
        return await self._known(slack_user_id, self._slack.user)

    async def _members(self, group_id: str) -> frozenset[str]:
        return await self._known(group_id, self._members_told)

    async def _members_told(self, group_id: str) -> frozenset[str]:
        try:
            return await self._slack.members(group_id)
        except SlackRefused as error:
            if error.error != NO_SUCH_GROUP:
                raise
            log.warning("people.no_such_group", group=group_id)
            return frozenset()

    async def _known(self, slack_id: str, load: Callable[[str], Awaitable[V]]) -> V:
        unknown = self._unknown.get(slack_id)
        if unknown is not None:
            raise unknown.with_traceback(None)
        try:
            return await load(slack_id)
        except SlackRefused as error:
            self._unknown[slack_id] = error
            raise


async def _look_up(
    cache: SingleFlight[str, V], key: str, load: Callable[[str], Awaitable[V]], *, fresh: bool
) -> V:
    try:
        return await cache.get(key, load, fresh=fresh)
    except SlackError:
        cached = cache.cached(key)
        if cached is None:
            raise
        return cached
