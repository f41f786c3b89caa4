"""Members of the workspace: people, groups and their names, as Slack tells, kept for a while."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

import structlog
from cachetools import TTLCache

from bot.background.single_flight import SingleFlight
from bot.errors import SlackError, SlackRefused
from bot.ops.clock import Clock

V = TypeVar("V")

log = structlog.get_logger(__name__)

# Contract, section 4: group membership is cached for at most five minutes.
CACHE_SECONDS = 240
NAMED_HOLDERS = 8
UNKNOWN_SECONDS = 60
NO_SUCH_GROUP = "no_such_subteam"


class SlackUserInfo(Protocol):
    """What is needed of a person in Slack."""

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
    """What is needed of Slack. Every method raises `SlackError`s."""

    async def user(self, slack_user_id: str) -> SlackUserInfo:
        """Return a person."""
        ...

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group."""
        ...

    async def group_handles(self) -> Mapping[str, str]:
        """Return the handle of each user group by its id."""
        ...


class Members:
    """Looks people and groups up, each once however many ask.

    Args:
        slack: Whom it asks.
        clock: For the age of what is cached.
    """

    def __init__(self, slack: SlackPeople, clock: Clock) -> None:
        self._slack = slack
        self._users: SingleFlight[str, SlackUserInfo] = SingleFlight(
            TTLCache(10_000, CACHE_SECONDS, timer=clock.monotonic)
        )
        # Whom Slack does not know, or which group it does not tell of, it need not be asked about
        # at every click: that would use up what it allows to be asked about the others.
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
        """Return a person; with `fresh` what is cached counts only where Slack does not answer.

        Raises:
            SlackError: Slack does not tell.
        """
        return await _look_up(self._users, slack_user_id, self._asked, fresh=fresh)

    async def groups_of(
        self, slack_user_id: str, named: Collection[str], *, fresh: bool
    ) -> tuple[frozenset[str], bool]:
        """Return which of the named groups somebody is in, and whether all could be read."""
        cached = {one: self._groups.cached(one) for one in named} if not fresh else {}
        wanted = sorted(one for one in named if cached.get(one) is None)
        found = await asyncio.gather(
            *(_look_up(self._groups, one, self._members, fresh=fresh) for one in wanted),
            return_exceptions=True,
        )
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, SlackError):
                raise one
        members = {**cached, **dict(zip(wanted, found, strict=True))}
        groups = frozenset(
            group
            for group, ids in members.items()
            if isinstance(ids, frozenset) and slack_user_id in ids
        )
        return groups, not any(isinstance(one, SlackError) for one in found)

    async def name(self, slack_user_id: str) -> str:
        """Return what Slack calls a person, or the id when it cannot be looked up."""
        try:
            return (await self._users.get(slack_user_id, self._slack.user)).name
        except SlackError:
            return slack_user_id

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return what Slack calls each of the people among the actors, by their ids."""
        people = [one for one in actors if one.startswith(("U", "W"))]
        found = await asyncio.gather(*(self.name(one) for one in people))
        return dict(zip(people, found, strict=True))

    async def named(self, holders: tuple[str, ...]) -> str:
        """Return people and groups by name; with the ID too where two have the same name."""
        shown = holders[:NAMED_HOLDERS]
        names = await asyncio.gather(*(self._label(one) for one in shown))
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
        """Ask Slack for a person, unless it has just said that there is none."""
        return await self._known(slack_user_id, self._slack.user)

    async def _members(self, group_id: str) -> frozenset[str]:
        """Ask Slack for the people in a group, unless it has just refused to tell."""
        return await self._known(group_id, self._members_told)

    async def _members_told(self, group_id: str) -> frozenset[str]:
        """Ask Slack for the people in a group; nobody is in one that does not exist any more."""
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
